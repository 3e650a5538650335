//! Runs a converted model through plans.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use anemone_cpu::{Instance, Plan, PlanOptions, Pool, State};
use anemone_mil::interpret::{Interpreter, Tensors};
use anemone_mil::lower::PackCache;
use anemone_mil::{DType, Data, DataMut, Tensor};

pub(crate) struct Model {
    program: anemone_mil::model::Model,
    decode: RefCell<Instance>,
    prefill: RefCell<Instance>,
    width: usize,
}

impl Model {
    pub(crate) fn open(folder: &Path, width: usize) -> Self {
        let model = anemone_mil::load::load(&folder.join("model.mlpackage")).unwrap();
        let cache = PackCache::default();
        let instance = |function: &str| {
            let plan = Plan::new(model.function(Some(function)).unwrap(), &PlanOptions::default(), &cache).unwrap();
            RefCell::new(Instance::new(Arc::new(plan), Pool::new(1)))
        };
        Self { decode: instance("decode"), prefill: instance("prefill"), width, program: model.clone() }
    }

    /// How often each kind of step occurs in one run of `decode` and one of `prefill`.
    pub(crate) fn steps(&self) -> [BTreeMap<String, usize>; 2] {
        [&self.decode, &self.prefill].map(|instance| {
            let mut instance = instance.borrow_mut();
            let mut state = State::new(instance.plan().states().clone());
            let mut steps = BTreeMap::new();
            instance.run_timed(&mut state, &mut |step, _| *steps.entry(step.to_owned()).or_default() += 1).unwrap();
            steps
        })
    }

    /// Feeds the tokens one by one as hardware would that rounds every result to half floats; the logits after each, and the
    /// operations that overflowed.
    pub(crate) fn feed_half(&self, tokens: &[i32]) -> (Vec<Vec<f32>>, Vec<String>) {
        let interpreter = Interpreter::new(self.program.function(Some("decode")).unwrap()).strict();
        let mut states = interpreter.fresh_states();
        let step = |(position, &token): (usize, &i32)| {
            let inputs = Tensors::from([
                ("input_ids".to_owned(), Tensor::ints(DType::I32, &[1, 1], &[token])),
                ("cache_position".to_owned(), Tensor::ints(DType::I32, &[1], &[position as i32])),
            ]);
            interpreter.run(&inputs, &mut states).unwrap()["logits"].as_f32().unwrap().to_vec()
        };
        let logits = tokens.iter().enumerate().map(step).collect();
        (logits, interpreter.overflows().iter().map(ToString::to_string).collect())
    }

    /// Feeds the tokens to a fresh state in pieces of these lengths; the logits after each. Pieces of one token go to
    /// `decode`.
    pub(crate) fn feed(&self, tokens: &[i32], pieces: &[usize]) -> Vec<Vec<f32>> {
        let mut state = State::new(self.decode.borrow().plan().states().clone());
        let mut position = 0;
        let piece = |&length: &usize| {
            let tokens = &tokens[position..position + length];
            let (instance, width) = if length == 1 { (&self.decode, 1) } else { (&self.prefill, self.width) };
            let logits = call(&mut instance.borrow_mut(), width, &mut state, tokens, position);
            position += length;
            logits
        };
        pieces.iter().map(piece).collect()
    }
}

/// A call of fewer tokens than the width repeats the last one.
fn call(instance: &mut Instance, width: usize, state: &mut State, tokens: &[i32], position: usize) -> Vec<f32> {
    assert!((1..=width).contains(&tokens.len()));
    let last = tokens.len() - 1;
    for (name, values) in [
        ("input_ids", (0..width).map(|i| tokens[i.min(last)]).collect::<Vec<_>>()),
        ("cache_position", (0..width).map(|i| (position + i.min(last)) as i32).collect()),
    ] {
        let index = instance.input_index(name).unwrap();
        let DataMut::I32(port) = instance.input_mut(index) else { panic!("{name} is not of integers") };
        port.copy_from_slice(&values);
    }
    instance.run(state).unwrap();
    let Data::F32(logits) = instance.output(0) else { panic!("logits are not floats") };
    logits.to_vec()
}
