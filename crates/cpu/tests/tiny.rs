//! The 200 tokens of `goldens/tiny`, pinned by the interpreter, through plans.

use std::path::PathBuf;
use std::sync::Arc;

use anemone_cpu::{Instance, Plan, PlanOptions, Pool, State};
use anemone_mil::interpret::{Interpreter, Tensors};
use anemone_mil::lower::PackCache;
use anemone_mil::model::Model;
use anemone_mil::{DType, Data, DataMut, Tensor};

const PREFILL: usize = 16;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../goldens/tiny")
}

fn model() -> Model {
    anemone_mil::load::load(&folder().join("model/model.mlpackage")).unwrap()
}

/// The prompt, and the tokens after it.
fn pins() -> (Vec<i32>, Vec<i32>) {
    let json: serde_json::Value =
        serde_json::from_slice(&std::fs::read(folder().join("greedy.json")).unwrap()).unwrap();
    let ids = |key: &str| json[key].as_array().unwrap().iter().map(|id| id.as_i64().unwrap() as i32).collect();
    (ids("prompt"), ids("tokens"))
}

fn best(logits: &[f32]) -> i32 {
    (0..logits.len()).max_by(|&a, &b| logits[a].total_cmp(&logits[b])).unwrap() as i32
}

/// One function of the model with its plan.
struct Call {
    instance: Instance,
    width: usize,
}

impl Call {
    fn new(model: &Model, function: &str, width: usize, threads: usize, cache: &PackCache) -> Self {
        let plan = Plan::new(model.function(Some(function)).unwrap(), &PlanOptions::default(), cache).unwrap();
        Self { instance: Instance::new(Arc::new(plan), Pool::new(threads)), width }
    }

    /// Feeds up to `width` tokens; a call of fewer repeats the last one. The logits after the last.
    fn feed(&mut self, state: &mut State, tokens: &[i32], position: usize) -> Vec<f32> {
        let last = tokens.len() - 1;
        for (name, values) in [
            ("input_ids", (0..self.width).map(|i| tokens[i.min(last)]).collect::<Vec<_>>()),
            ("cache_position", (0..self.width).map(|i| (position + i.min(last)) as i32).collect()),
        ] {
            let index = self.instance.input_index(name).unwrap();
            let DataMut::I32(port) = self.instance.input_mut(index) else { panic!("{name} is not of integers") };
            port.copy_from_slice(&values);
        }
        self.instance.run(state).unwrap();
        let Data::F32(logits) = self.instance.output(0) else { panic!("logits are not floats") };
        logits.to_vec()
    }
}

#[test]
fn the_interpreter_gives_the_first_of_them() {
    let (model, (prompt, tokens)) = (model(), pins());
    let interpreter = Interpreter::new(model.function(Some("decode")).unwrap());
    let mut states = interpreter.fresh_states();
    let fed: Vec<i32> = prompt.iter().chain(&tokens[..8]).copied().collect();
    for (position, &token) in fed.iter().enumerate() {
        let inputs = Tensors::from([
            ("input_ids".to_owned(), Tensor::ints(DType::I32, &[1, 1], &[token])),
            ("cache_position".to_owned(), Tensor::ints(DType::I32, &[1], &[position as i32])),
        ]);
        let outputs = interpreter.run(&inputs, &mut states).unwrap();
        if let Some(answered) = (position + 1).checked_sub(prompt.len()) {
            assert_eq!(best(outputs["logits"].as_f32().unwrap()), tokens[answered], "token {answered}");
        }
    }
}

#[test]
fn token_by_token() {
    let (model, (prompt, tokens)) = (model(), pins());
    assert_eq!(tokens.len(), 200);
    for threads in [1, 2] {
        let mut decode = Call::new(&model, "decode", 1, threads, &PackCache::default());
        let mut state = State::new(decode.instance.plan().states().clone());
        let mut fed = prompt.clone();
        for position in 0..prompt.len() + tokens.len() - 1 {
            let logits = decode.feed(&mut state, &[fed[position]], position);
            if position + 1 >= prompt.len() {
                fed.push(best(&logits));
            }
        }
        assert_eq!(fed[prompt.len()..], tokens, "{threads} threads");
    }
}

#[test]
fn after_prefill() {
    let (model, (prompt, tokens)) = (model(), pins());
    assert!(prompt.len() > PREFILL && prompt.len() % PREFILL != 0, "whole calls and a shorter one: {}", prompt.len());
    let cache = PackCache::default();
    let mut prefill = Call::new(&model, "prefill", PREFILL, 2, &cache);
    let mut decode = Call::new(&model, "decode", 1, 2, &cache);
    // One state for both, as for one conversation.
    let mut state = State::new(decode.instance.plan().states().clone());
    let (mut position, mut found) = (0, Vec::new());
    for piece in prompt.chunks(PREFILL) {
        let logits = prefill.feed(&mut state, piece, position);
        position += piece.len();
        found = vec![best(&logits)];
    }
    while found.len() < tokens.len() {
        let logits = decode.feed(&mut state, &found[found.len() - 1..], position);
        position += 1;
        found.push(best(&logits));
    }
    assert_eq!(found, tokens);
}

/// All that is pinned, read again from the start: any beginning of the transcript gives the next token.
#[test]
fn by_prefill_alone() {
    let (model, (prompt, tokens)) = (model(), pins());
    let all: Vec<i32> = prompt.iter().chain(&tokens).copied().collect();
    let mut prefill = Call::new(&model, "prefill", PREFILL, 2, &PackCache::default());
    let mut state = State::new(prefill.instance.plan().states().clone());
    let mut position = 0;
    for piece in all.chunks(PREFILL) {
        let logits = prefill.feed(&mut state, piece, position);
        position += piece.len();
        if position >= prompt.len() && position < all.len() {
            assert_eq!(best(&logits), all[position], "after {position} tokens");
        }
    }
}
