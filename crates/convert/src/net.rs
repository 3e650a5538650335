//! A function under construction, with the weights of its source at hand.

use std::collections::HashMap;

use anemone_mil::build::{Arg, BuildError, FunctionBuilder};
use anemone_mil::types::{DType, StaticType};
use anemone_mil::{Const, Function, Opset, TensorType, ValueId};

use crate::error::{ConvertError, Result};
use crate::part::{COLUMNS, Frame, GIVES, Kv, Part, TAKES};
use crate::quantize::Weights;
use crate::source::config::Config;
use crate::source::{Source, Tensor};

/// The operation set that packages are written for: iOS 18, macOS 15.
pub(crate) const OPSET: Opset = Opset::CoreML8;
/// The name of the state that holds the key-value cache.
pub(crate) const CACHE: &str = "kv_cache";
/// Added to the scores of what must not be seen. Finite, for the Neural Engine; its sum with any score that half floats
/// hold in practice stays in their range.
pub(crate) const MASKED: f32 = -40_000.0;

/// A function under construction.
pub(crate) struct Net<'s> {
    pub(crate) f: FunctionBuilder,
    pub(crate) source: &'s Source,
    /// Tokens per call.
    pub(crate) width: usize,
    /// Positions that the cache has room for.
    pub(crate) context: usize,
    /// What the function computes of the model.
    pub(crate) part: Part,
    /// Where the cache is kept.
    pub(crate) kv: Kv,
    /// New columns for a cache that the host keeps, in the order in which they lie there.
    pub(crate) columns: Vec<ValueId>,
    weights: &'s Weights,
    made: HashMap<String, ValueId>,
}

/// What a part begins with.
#[derive(Clone, Copy)]
pub(crate) enum Begin {
    /// Token ids (1, width).
    Ids(ValueId),
    /// What the part before gives: (1, width, hidden size).
    Rows(ValueId),
}

impl<'s> Net<'s> {
    pub(crate) fn new(source: &'s Source, weights: &'s Weights, frame: Frame) -> Self {
        let Frame { width, context, part, kv } = frame;
        let (f, columns, made) = (FunctionBuilder::new(OPSET), Vec::new(), HashMap::new());
        Self { f, source, width, context, part, kv, columns, weights, made }
    }

    pub(crate) fn config(&self) -> &'s Config {
        self.source.config()
    }

    /// Adds an operation of one result.
    pub(crate) fn op(&mut self, kind: &str, name: &str, args: &[(&str, Arg)]) -> Result<ValueId> {
        self.f.op(kind, name, args).map_err(|e| internal(&e))
    }

    /// Adds an operation of several results.
    pub(crate) fn ops(&mut self, kind: &str, name: &str, args: &[(&str, Arg)]) -> Result<Vec<ValueId>> {
        self.f.ops(kind, name, args).map_err(|e| internal(&e))
    }

    /// Adds an operation of one result whose type no inference can tell.
    pub(crate) fn op_typed(&mut self, kind: &str, name: &str, args: &[(&str, Arg)], ty: TensorType) -> Result<ValueId> {
        let results = self.f.ops_typed(kind, name, args, &[ty]).map_err(|e| internal(&e))?;
        Ok(results[0])
    }

    /// Writes a state.
    pub(crate) fn write_state(&mut self, name: &str, state: ValueId, data: ValueId) -> Result<()> {
        self.ops("write_state", name, &[("input", state.into()), ("data", data.into())]).map(drop)
    }

    pub(crate) fn input(&mut self, name: &str, dtype: DType, shape: &[usize]) -> ValueId {
        self.f.input(name, TensorType::fixed(dtype, shape))
    }

    /// The cache: a state, or an input where the host keeps it.
    pub(crate) fn cache(&mut self, ty: &StaticType) -> ValueId {
        match self.kv {
            Kv::State => self.f.state(CACHE, ty),
            Kv::Io => self.input(CACHE, ty.dtype, &ty.shape),
        }
    }

    /// The inputs of the part; the positions of the tokens (width) are one if something depends on them.
    pub(crate) fn begin(&mut self) -> (Begin, Option<ValueId>) {
        let begin = match self.part.embeddings {
            true => Begin::Ids(self.input("input_ids", DType::I32, &[1, self.width])),
            false => Begin::Rows(self.input(TAKES, DType::F16, &[1, self.width, self.config().hidden_size])),
        };
        let positioned = !self.part.layers.is_empty() || (self.part.head && self.width > 1);
        (begin, positioned.then(|| self.positions()))
    }

    /// The positions of the tokens (width).
    pub(crate) fn positions(&mut self) -> ValueId {
        let shape = [self.width];
        self.input("cache_position", DType::I32, &shape)
    }

    /// A matrix of the source, as the chosen weights store it; the same value for the same tensor.
    pub(crate) fn matrix(&mut self, tensor: &str) -> Result<ValueId> {
        self.matrix_of(&self.source.tensor(tensor)?)
    }

    /// A matrix, as the chosen weights store it; the same value for the same name.
    pub(crate) fn matrix_of(&mut self, t: &Tensor) -> Result<ValueId> {
        // Tied weights have one name in the source, and are one constant here.
        let key = t.name().to_owned();
        if let Some(&v) = self.made.get(&key) {
            return Ok(v);
        }
        let v = self.weights.add(self, t)?;
        self.made.insert(key, v);
        Ok(v)
    }

    /// A vector of the source in half floats.
    pub(crate) fn vector(&mut self, tensor: &str) -> Result<ValueId> {
        if let Some(&v) = self.made.get(tensor) {
            return Ok(v);
        }
        let values = self.halves(tensor)?;
        let v = self.f.constant(tensor, Const::floats(DType::F16, &[values.len()], &values));
        self.made.insert(tensor.to_owned(), v);
        Ok(v)
    }

    /// The elements of a vector of the source, which half floats hold.
    pub(crate) fn halves(&self, tensor: &str) -> Result<Vec<f32>> {
        let t = self.source.tensor(tensor)?;
        let values = t.decode();
        crate::quantize::check_half(t.name(), &values)?;
        Ok(values)
    }

    /// `x · weightᵀ`, with the bias if the model has one.
    pub(crate) fn linear(&mut self, x: ValueId, tensor: &str) -> Result<ValueId> {
        let weight = self.matrix(&format!("{tensor}.weight"))?;
        let mut args: Vec<(&str, Arg)> = vec![("x", x.into()), ("weight", weight.into())];
        let bias = format!("{tensor}.bias");
        if self.config().has_bias(tensor) {
            args.push(("bias", self.vector(&bias)?.into()));
        }
        self.op("linear", tensor, &args)
    }

    /// A half float constant.
    pub(crate) fn half(value: f32) -> Arg {
        half::f16::from_f32(value).into()
    }

    pub(crate) fn shape(&self, v: ValueId) -> Vec<usize> {
        self.f.ty(v).shape.to_vec()
    }

    pub(crate) fn reshape(&mut self, x: ValueId, name: &str, shape: &[usize]) -> Result<ValueId> {
        let shape: Vec<i32> = shape.iter().map(|&n| int(n)).collect();
        self.op("reshape", name, &[("x", x.into()), ("shape", shape.as_slice().into())])
    }

    pub(crate) fn finish(self, outputs: &[ValueId]) -> Function {
        self.f.finish(outputs)
    }

    /// Values joined along an axis; one is itself.
    pub(crate) fn concat(&mut self, values: &[ValueId], axis: i32, name: &str) -> Result<ValueId> {
        match values {
            [one] => Ok(*one),
            _ => {
                let args = [("values", values.into()), ("axis", axis.into()), ("interleave", false.into())];
                self.op("concat", name, &args)
            }
        }
    }

    /// Finishes a part that gives `result`: logits, or what the next part takes. New columns of a cache that the host keeps
    /// are given too.
    pub(crate) fn finish_part(mut self, result: ValueId) -> Result<Function> {
        let columns = match self.columns.len() {
            0 => None,
            _ => {
                let all = std::mem::take(&mut self.columns);
                Some(self.concat(&all, 0, COLUMNS)?)
            }
        };
        let name = if self.part.head { "logits" } else { GIVES };
        let outputs: Vec<ValueId> = [result].into_iter().chain(columns).collect();
        let mut function = self.finish(&outputs);
        for (id, name) in [(Some(result), name), (columns, COLUMNS)] {
            if let Some(id) = id {
                rename(&mut function, id, name);
            }
        }
        Ok(function)
    }
}

/// Gives an output its name.
fn rename(function: &mut Function, id: ValueId, name: &str) {
    if function.value(id).name == name {
        return;
    }
    name.clone_into(&mut function.values[id.index()].name);
    if let Some(op) = function.body.ops.iter_mut().find(|op| op.outputs.contains(&id)) {
        op.attributes.insert("name".to_owned(), name.into());
    }
}

/// The cache of so many layers: their keys, then their values.
pub(crate) fn cache_type(config: &Config, layers: usize, context: usize) -> StaticType {
    StaticType::new(DType::F16, &[2 * layers, config.kv_heads, context, config.head_dim])
}

/// An extent as the integers of programs.
pub(crate) fn int(n: usize) -> i32 {
    i32::try_from(n).expect("extents are checked to fit 31 bits")
}

/// A fault of the builders, not of the checkpoint.
fn internal(e: &BuildError) -> ConvertError {
    ConvertError::Internal { problem: e.to_string() }
}
