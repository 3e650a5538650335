//! Packages that Anemone did not make, with the outputs that PyTorch gives, and two executors to drive them.
#![allow(dead_code, reason = "each test binary uses its part")]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use anemone_cpu::{Instance, Plan, PlanOptions, Pool, State, Varying};
use anemone_mil::interpret::{Interpreter, Tensors};
use anemone_mil::lower::PackCache;
use anemone_mil::model::Model;
use anemone_mil::{DType, Data, DataMut, Function, Tensor};
use anemone_package::Package;
use safetensors::SafeTensors;

/// The folder of fixtures, beside the checkout unless `ANEMONE_FIXTURES` names it.
pub(crate) fn folder() -> PathBuf {
    let default = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures");
    let folder = std::env::var_os("ANEMONE_FIXTURES").map_or(default, PathBuf::from);
    assert!(folder.is_dir(), "no fixtures at {}: set ANEMONE_FIXTURES to their folder", folder.display());
    folder
}

/// A fixture: a model, and what it must compute.
pub(crate) struct Fixture {
    pub(crate) name: String,
    pub(crate) package: Package,
    pub(crate) model: Model,
    /// Tensors of the reference: floats, integers.
    pub(crate) floats: BTreeMap<String, Vec<f32>>,
    pub(crate) ints: BTreeMap<String, Vec<i32>>,
    /// The function of each call, where the reference names it.
    pub(crate) functions: Option<Vec<String>>,
}

impl Fixture {
    pub(crate) fn open(name: &str) -> Self {
        let dir = folder().join(name);
        let package = Package::open(&dir.join("model.mlpackage")).unwrap_or_else(|e| panic!("{name}: {e}"));
        let model = anemone_mil::load::load_package(&package).unwrap_or_else(|e| panic!("{name}: {e}"));
        let bytes = std::fs::read(dir.join("ref.safetensors")).unwrap();
        let reference = SafeTensors::deserialize(&bytes).unwrap();
        let (mut floats, mut ints) = (BTreeMap::new(), BTreeMap::new());
        for (tensor, view) in reference.tensors() {
            let words = view.data().chunks_exact(4).map(|b| [b[0], b[1], b[2], b[3]]);
            match view.dtype() {
                safetensors::Dtype::F32 => drop(floats.insert(tensor, words.map(f32::from_le_bytes).collect())),
                safetensors::Dtype::I32 => drop(ints.insert(tensor, words.map(i32::from_le_bytes).collect())),
                other => panic!("{name}: {tensor} is {other:?}"),
            }
        }
        let (_, header) = SafeTensors::read_metadata(&bytes).unwrap();
        let functions = header
            .metadata()
            .as_ref()
            .and_then(|m| m.get("functions"))
            .map(|list| serde_json::from_str(list).expect("a list of names"));
        Self { name: name.to_owned(), package, model, floats, ints, functions }
    }

    /// The largest error allowed: the fixtures' README states it.
    pub(crate) fn tolerance(&self) -> f32 {
        if self.name.ends_with("fp32") { 0.001 } else { 0.01 }
    }

    /// The tokens of each call as the reference made them.
    pub(crate) fn splits(&self) -> Vec<usize> {
        match self.ints.get("call_lengths") {
            Some(lengths) => lengths.iter().map(|&n| n as usize).collect(),
            None => vec![1; self.ints["tokens"].len()],
        }
    }
}

/// Something that runs a function of a model with a state.
pub(crate) trait Executor {
    fn call(&mut self, function: &str, inputs: &Tensors) -> Tensors;
    fn state(&self, name: &str) -> Vec<f32>;
}

pub(crate) struct Plain<'m> {
    interpreters: BTreeMap<String, Interpreter<'m>>,
    states: Tensors,
}

impl<'m> Plain<'m> {
    pub(crate) fn new(model: &'m Model) -> Self {
        let interpreters: BTreeMap<_, _> =
            model.program.functions.iter().map(|(n, f)| (n.clone(), Interpreter::new(f))).collect();
        let states = interpreters.values().next().unwrap().fresh_states();
        Self { interpreters, states }
    }
}

impl Executor for Plain<'_> {
    fn call(&mut self, function: &str, inputs: &Tensors) -> Tensors {
        self.interpreters[function].run(inputs, &mut self.states).unwrap_or_else(|e| panic!("{function}: {e}"))
    }

    fn state(&self, name: &str) -> Vec<f32> {
        self.states[name].as_f32().unwrap().to_vec()
    }
}

/// Plans for each shape of inputs that comes, or for a family of masks.
pub(crate) struct Planned<'m> {
    model: &'m Model,
    cache: PackCache,
    pool: Pool,
    instances: BTreeMap<String, Instance>,
    state: Option<State>,
    /// The input whose last axis varies, and its largest extent.
    varying: Option<(&'static str, usize)>,
    /// Whether plans are written, and run as they are read again.
    kept: bool,
}

impl<'m> Planned<'m> {
    pub(crate) fn new(model: &'m Model, threads: usize, varying: Option<(&'static str, usize)>) -> Self {
        let (cache, pool) = (PackCache::default(), Pool::new(threads));
        Self { model, cache, pool, instances: BTreeMap::new(), state: None, varying, kept: false }
    }

    /// The same, with plans that are written and read again.
    pub(crate) fn kept(self, package: &Package) -> Self {
        let names = package.weight_file_names().into_iter();
        let files = names.map(|name| package.weight_file(name).unwrap()).collect();
        Self { cache: PackCache::new(Arc::default(), files).keeping_plans(true), kept: true, ..self }
    }

    /// What constants are packed in.
    pub(crate) fn cache(&self) -> &PackCache {
        &self.cache
    }

    /// The plans made so far.
    pub(crate) fn plans(&self) -> impl Iterator<Item = &Arc<Plan>> {
        self.instances.values().map(Instance::plan)
    }

    /// A new instance of a function for inputs of these shapes, which it holds.
    pub(crate) fn instance(&self, function: &str, inputs: &Tensors) -> Instance {
        let f = &self.model.program.functions[function];
        let plan = Plan::new(f, &self.options(inputs), &self.cache).unwrap_or_else(|e| panic!("{function}: {e}"));
        let plan = if self.kept {
            let bytes = plan.take_kept().unwrap_or_else(|| panic!("{function}: it cannot be written"));
            Plan::from_kept(&bytes, &self.cache).unwrap_or_else(|| panic!("{function}: it cannot be read"))
        } else {
            plan
        };
        let mut instance = Instance::new(Arc::new(plan), self.pool.clone());
        if let Some((name, _)) = self.varying {
            instance.set_extent(*inputs[name].ty.shape.last().unwrap()).unwrap();
        }
        fill(&mut instance, inputs);
        instance
    }

    fn options(&self, inputs: &Tensors) -> PlanOptions {
        let shapes = inputs.iter().map(|(n, t)| (n.clone(), t.ty.shape.to_vec())).collect();
        let varying = self.varying.map(|(name, high)| {
            let shape = &inputs[name].ty.shape;
            let axis = shape.len() - 1;
            Varying { axes: vec![(name.to_owned(), axis)], low: shape[axis - 1], high }
        });
        PlanOptions { shapes, varying, exact: true, ..PlanOptions::default() }
    }
}

impl Executor for Planned<'_> {
    fn call(&mut self, function: &str, inputs: &Tensors) -> Tensors {
        let mut shapes: BTreeMap<_, Vec<usize>> =
            inputs.iter().map(|(n, t)| (n.clone(), t.ty.shape.to_vec())).collect();
        let extent = self.varying.map(|(name, _)| shapes.get_mut(name).and_then(Vec::pop).unwrap());
        let key = format!("{function} {shapes:?}");
        if !self.instances.contains_key(&key) {
            let instance = self.instance(function, inputs);
            self.instances.insert(key.clone(), instance);
        }
        let instance = self.instances.get_mut(&key).unwrap();
        if let Some(extent) = extent {
            instance.set_extent(extent).unwrap();
        }
        fill(instance, inputs);
        let layout = instance.plan().states().clone();
        let state = self.state.get_or_insert_with(|| State::new(layout));
        instance.run(state).unwrap_or_else(|e| panic!("{function}: {e}"));
        let outputs = instance.plan().outputs().to_vec();
        outputs
            .iter()
            .enumerate()
            .map(|(i, port)| {
                let shape = instance.output_shape(i);
                let tensor = match instance.output(i) {
                    Data::F32(v) => Tensor::floats(port.dtype, shape, v),
                    Data::I32(v) => Tensor::ints(port.dtype, shape, v),
                    Data::Bool(v) => Tensor::bools(shape, v),
                };
                (port.name.clone(), tensor)
            })
            .collect()
    }

    fn state(&self, name: &str) -> Vec<f32> {
        let state = self.state.as_ref().expect("there was a call");
        state.get(name).unwrap().iter().map(|h| h.to_f32()).collect()
    }
}

fn fill(instance: &mut Instance, inputs: &Tensors) {
    for (name, tensor) in inputs {
        let index = instance.input_index(name).unwrap_or_else(|| panic!("no input {name}"));
        assert_eq!(instance.input_shape(index), tensor.ty.shape.as_slice(), "{name}");
        match instance.input_mut(index) {
            DataMut::F32(v) => v.copy_from_slice(tensor.as_f32().unwrap()),
            DataMut::I32(v) => v.copy_from_slice(tensor.as_i32().unwrap()),
            DataMut::Bool(v) => v.copy_from_slice(tensor.as_bool().unwrap()),
        }
    }
}

/// The inputs of a call with these tokens after `past` others.
pub(crate) fn inputs_of(f: &Function, ids: &[i32], past: usize) -> Tensors {
    f.inputs
        .iter()
        .map(|&id| f.value(id))
        .filter_map(|v| Some((v.name.clone(), input(&v.name, v.ty.tensor()?.dtype, ids, past))))
        .collect()
}

/// Feeds all tokens of a fixture in calls of `splits` tokens; the logits, a row a token.
pub(crate) fn drive(fixture: &Fixture, run: &mut dyn Executor, splits: &[usize]) -> Vec<f32> {
    let tokens = &fixture.ints["tokens"];
    assert_eq!(splits.iter().sum::<usize>(), tokens.len(), "{}: a split of all tokens", fixture.name);
    let (mut at, mut logits) = (0, Vec::new());
    for (call, &q) in splits.iter().enumerate() {
        let ids = &tokens[at..at + q];
        let function = match &fixture.functions {
            Some(_) if q == 1 => "decode",
            Some(_) => "prefill",
            None => fixture.model.default_name(),
        };
        let f = &fixture.model.program.functions[function];
        let inputs = inputs_of(f, ids, at);
        let outputs = run.call(function, &inputs);
        let (_, out) = outputs.iter().next().unwrap_or_else(|| panic!("{}: call {call}: no output", fixture.name));
        logits.extend_from_slice(out.as_f32().unwrap());
        at += q;
    }
    logits
}

fn input(name: &str, dtype: DType, ids: &[i32], past: usize) -> Tensor {
    let q = ids.len();
    match name {
        "pos" => Tensor::ints(dtype, &[1], &[past as i32]),
        "token" | "inputIds" | "tokens" => Tensor::ints(dtype, &[1, q], ids),
        "causalMask" => {
            let mask: Vec<f32> =
                (0..q).flat_map(|i| (0..past + q).map(move |j| if j <= past + i { 0.0 } else { -1e4 })).collect();
            Tensor::floats(dtype, &[1, 1, q, past + q], &mask)
        }
        other => panic!("an input {other:?} that no fixture has"),
    }
}
