//! The interpreter: runs a function one operation after the other, by the operations' plain meaning. Slow, and the
//! measure of everything faster.

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;

use half::f16;

use crate::constant::{Const, ConstError};
use crate::op::{Effect, Op, OpError};
use crate::operands::{BindError, Bound, Operand, apply, infer};
use crate::program::{Argument, Function, Kind, Operation, ValueId};
use crate::tensor::{Buffer, Tensor};
use crate::types::{DType, TensorType};

/// Tensors by name.
pub type Tensors = BTreeMap<String, Tensor>;

/// Why a function could not be run.
#[derive(Debug, thiserror::Error)]
pub enum InterpretError {
    /// An operation failed.
    #[error("operation {index}, `{kind}` giving `{result}`: {source}")]
    Op {
        /// Its index in the block.
        index: usize,
        /// Its kind.
        kind: String,
        /// Its first result, or its label.
        result: String,
        /// What is wrong.
        source: OpFault,
    },
    /// An input or a state does not fit.
    #[error("{what} `{name}`: expected {expected}, found {found}")]
    Port {
        /// Whether it is an input or a state.
        what: &'static str,
        /// Its name.
        name: String,
        /// The declared type.
        expected: String,
        /// What was given.
        found: String,
    },
}

/// What is wrong with an operation.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum OpFault {
    #[error(transparent)]
    Op(#[from] OpError),
    #[error(transparent)]
    Bind(#[from] BindError),
    #[error(transparent)]
    Const(#[from] ConstError),
    #[error("it is not in the registry of operations")]
    Unknown,
    #[error("it has nested blocks, which are not supported")]
    Blocks,
    #[error("`{value}` is used before it is assigned")]
    Unassigned { value: String },
    #[error("the result `{value}` is declared {declared} and came out as {found}")]
    Declared { value: String, declared: TensorType, found: String },
    #[error("the results would take {elements} elements, more than the bound of {MAX_ELEMENTS}")]
    TooLarge { elements: u128 },
}

/// No operation may make more elements than this.
pub const MAX_ELEMENTS: usize = 1 << 33;

/// Runs one function. Constants, and what depends on constants alone, are computed once and kept.
#[derive(Debug)]
pub struct Interpreter<'f> {
    function: &'f Function,
    constants: Vec<Option<&'f Const>>,
    /// Whether each operation depends on constants alone.
    fixed: Vec<bool>,
    kept: Vec<OnceCell<Tensor>>,
    /// Values that no later operation uses, by operation.
    dead_after: Vec<Vec<ValueId>>,
    /// Whether half floats are rounded as soon as they are computed.
    strict: bool,
    /// Operations that made infinities or NaN of finite operands, by index.
    overflows: RefCell<BTreeMap<usize, Overflow>>,
}

/// An operation that made infinities or NaN of finite operands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overflow {
    /// Its index in the block.
    pub index: usize,
    /// Its kind.
    pub kind: String,
    /// The result.
    pub result: String,
    /// How many runs had it.
    pub runs: usize,
}

impl std::fmt::Display for Overflow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let runs = if self.runs == 1 { "a run" } else { "runs" };
        write!(f, "op {} `{}` (`{}`) was not finite in {} {runs}", self.index, self.kind, self.result, self.runs)
    }
}

impl<'f> Interpreter<'f> {
    /// Prepares a function.
    #[must_use]
    pub fn new(function: &'f Function) -> Self {
        let constants = function.constants();
        let mut is_fixed: Vec<bool> = constants.iter().map(Option::is_some).collect();
        let mut fixed = Vec::with_capacity(function.body.ops.len());
        let mut last_use = vec![None; function.values.len()];
        for (i, op) in function.body.ops.iter().enumerate() {
            let values = || op.inputs.iter().flat_map(|(_, args)| args).filter_map(value_of);
            let pure = op.op().is_some_and(|o| o.effect() == Effect::Pure);
            let all = pure && values().all(|v| is_fixed[v.index()]);
            fixed.push(all);
            op.outputs.iter().for_each(|v| is_fixed[v.index()] |= all);
            values().for_each(|v| last_use[v.index()] = Some(i));
        }
        for v in &function.body.outputs {
            last_use[v.index()] = None;
        }
        let mut dead_after = vec![Vec::new(); function.body.ops.len()];
        for (v, at) in last_use.into_iter().enumerate() {
            if let Some(i) = at {
                dead_after[i].push(ValueId(v as u32));
            }
        }
        let kept = function.values.iter().map(|_| OnceCell::new()).collect();
        Self { function, constants, fixed, kept, dead_after, strict: false, overflows: RefCell::default() }
    }

    /// Rounds every half float as soon as it is computed, as hardware does that computes in half floats. (Sums within one
    /// operation stay in single floats.) What then overflows is told by [`Interpreter::overflows`].
    #[must_use]
    pub fn strict(mut self) -> Self {
        self.strict = true;
        self
    }

    /// Of a [strict](Interpreter::strict) interpreter: the operations that made infinities or NaN of finite operands so far.
    #[must_use]
    pub fn overflows(&self) -> Vec<Overflow> {
        self.overflows.borrow().values().cloned().collect()
    }

    /// Zeroed states.
    #[must_use]
    pub fn fresh_states(&self) -> Tensors {
        self.function.states().filter_map(|(_, name, ty)| Some((name.to_owned(), Tensor::zeros(ty?)))).collect()
    }

    /// Runs the function. Outputs are rounded to their declared element type, and so is what is written to states.
    ///
    /// # Errors
    /// If an input or state is missing or of another type, or an operation fails. States may then have been written.
    pub fn run(&self, inputs: &Tensors, states: &mut Tensors) -> Result<Tensors, InterpretError> {
        let f = self.function;
        let mut values: Vec<Option<Tensor>> = vec![None; f.values.len()];
        for &id in &f.inputs {
            let v = f.value(id);
            if let Some(ty) = v.ty.state() {
                check_port("state", &v.name, ty, states.get(&v.name))?;
            } else if let Some(ty) = v.ty.tensor() {
                values[id.index()] = Some(check_port("input", &v.name, ty, inputs.get(&v.name))?.clone());
            }
        }
        for (index, op) in f.body.ops.iter().enumerate() {
            self.step(index, op, &mut values, states).map_err(|source| InterpretError::Op {
                index,
                kind: op.name_of_kind.clone(),
                result: op
                    .outputs
                    .first()
                    .map_or_else(|| op.label().unwrap_or("nothing").to_owned(), |&v| f.value(v).name.clone()),
                source,
            })?;
            self.dead_after[index].iter().for_each(|v| values[v.index()] = None);
        }
        let mut outputs = Tensors::new();
        for (i, &id) in f.body.outputs.iter().enumerate() {
            let found = self.tensor(id, &values).map(|t| {
                let mut t = t.clone();
                round(&mut t);
                t
            });
            let t = found.map_err(|source| InterpretError::Op {
                index: f.body.ops.len() + i,
                kind: "output".to_owned(),
                result: f.value(id).name.clone(),
                source,
            })?;
            outputs.insert(f.value(id).name.clone(), t);
        }
        Ok(outputs)
    }

    fn step(
        &self,
        index: usize,
        op: &'f Operation,
        values: &mut [Option<Tensor>],
        states: &mut Tensors,
    ) -> Result<(), OpFault> {
        let known = match op.kind {
            Kind::Const => return Ok(()),
            Kind::Unknown => return Err(OpFault::Unknown),
            Kind::Op(_) if !op.blocks.is_empty() => return Err(OpFault::Blocks),
            Kind::Op(known) => known,
        };
        if self.fixed[index] && op.outputs.iter().all(|v| self.kept[v.index()].get().is_some()) {
            return Ok(());
        }
        let bound = self.bind(known, op, values, states)?;
        let mut results = self.apply(known, op, &bound)?;
        if self.strict {
            results.iter_mut().for_each(round);
            let pure = known.effect() == Effect::Pure;
            if pure && results.iter().any(|t| !finite(t)) && bound_values(op).all(|id| self.is_finite(id, values)) {
                self.note_overflow(index, op);
            }
        }
        match known.effect() {
            Effect::WriteState => {
                let written = op.args("data").first().and_then(value_of);
                if let (Some(state), Some(data)) = (self.state_name(op), written) {
                    let mut content = self.tensor(data, values)?.clone();
                    round(&mut content);
                    states.insert(state.to_owned(), content);
                }
            }
            Effect::Pure | Effect::ReadState => {
                for (&id, t) in op.outputs.iter().zip(results) {
                    if self.fixed[index] {
                        // Set once: nobody else can have computed it since the check above.
                        let _ = self.kept[id.index()].set(t);
                    } else {
                        values[id.index()] = Some(t);
                    }
                }
            }
        }
        Ok(())
    }

    fn apply(&self, known: &dyn Op, op: &Operation, bound: &Bound<'_>) -> Result<Vec<Tensor>, OpFault> {
        let types = infer(known, bound)?;
        let size = |t: &crate::types::StaticType| t.shape.iter().fold(1u128, |a, &b| a.saturating_mul(b as u128));
        let elements: u128 = types.iter().map(size).sum();
        if elements > MAX_ELEMENTS as u128 {
            return Err(OpFault::TooLarge { elements });
        }
        for (&id, ty) in op.outputs.iter().zip(&types) {
            let v = self.function.value(id);
            if let Some(declared) = v.ty.tensor()
                && !declared.admits(ty)
            {
                return Err(OpFault::Declared {
                    value: v.name.clone(),
                    declared: declared.clone(),
                    found: ty.to_string(),
                });
            }
        }
        Ok(apply(known, bound)?)
    }

    fn bind<'a>(
        &'a self,
        known: &dyn Op,
        op: &'f Operation,
        values: &'a [Option<Tensor>],
        states: &'a Tensors,
    ) -> Result<Bound<'a>, OpFault> {
        let mut bound = Bound::new(known);
        for (param, args) in &op.inputs {
            for arg in args {
                let operand = match arg {
                    Argument::Literal(c) => Operand::from_const(c)?,
                    Argument::Value(id) => {
                        let v = self.function.value(*id);
                        if v.ty.state().is_some() {
                            let state = states.get(&v.name);
                            Operand::Known(state.ok_or_else(|| OpFault::Unassigned { value: v.name.clone() })?)
                        } else if let Some(text) = self.constants[id.index()].and_then(Const::str) {
                            Operand::Text(text)
                        } else {
                            Operand::Known(self.tensor(*id, values)?)
                        }
                    }
                };
                bound.bind(known, param, [operand])?;
            }
        }
        // The compressions of iOS 16 keep their parameters in attributes.
        for p in known.params() {
            if op.args(p.name).is_empty()
                && let Some(c) = op.attributes.get(p.name)
            {
                bound.bind(known, p.name, [Operand::from_const(c)?])?;
            }
        }
        bound.check(known)?;
        Ok(bound)
    }

    fn tensor<'a>(&'a self, id: ValueId, values: &'a [Option<Tensor>]) -> Result<&'a Tensor, OpFault> {
        if let Some(t) = self.kept[id.index()].get().or(values[id.index()].as_ref()) {
            return Ok(t);
        }
        let unassigned = || OpFault::Unassigned { value: self.function.value(id).name.clone() };
        let constant = self.constants[id.index()].ok_or_else(unassigned)?;
        let Some(t) = constant.tensor() else {
            return Err(ConstError::NotNumeric { found: constant.ty().to_string() }.into());
        };
        let t = t.to_tensor()?;
        Ok(self.kept[id.index()].get_or_init(|| t))
    }

    fn is_finite(&self, id: ValueId, values: &[Option<Tensor>]) -> bool {
        // Text has no tensor.
        self.tensor(id, values).map_or(true, finite)
    }

    fn note_overflow(&self, index: usize, op: &Operation) {
        let result = op.outputs.first().map_or_else(String::new, |&v| self.function.value(v).name.clone());
        let first = || Overflow { index, kind: op.name_of_kind.clone(), result, runs: 0 };
        self.overflows.borrow_mut().entry(index).or_insert_with(first).runs += 1;
    }

    fn state_name(&self, op: &Operation) -> Option<&'f str> {
        op.args("input").first().and_then(value_of).map(|id| self.function.value(id).name.as_str())
    }
}

fn value_of(arg: &Argument) -> Option<ValueId> {
    match arg {
        Argument::Value(id) => Some(*id),
        Argument::Literal(_) => None,
    }
}

/// The values that an operation takes.
fn bound_values(op: &Operation) -> impl Iterator<Item = ValueId> + '_ {
    op.inputs.iter().flat_map(|(_, args)| args).filter_map(value_of)
}

/// Whether every floating element is a number.
fn finite(t: &Tensor) -> bool {
    match &t.data {
        Buffer::F32(v) => v.iter().all(|x| x.is_finite()),
        _ => true,
    }
}

fn check_port<'t>(
    what: &'static str,
    name: &str,
    ty: &TensorType,
    found: Option<&'t Tensor>,
) -> Result<&'t Tensor, InterpretError> {
    match found {
        Some(t) if ty.admits(&t.ty) => Ok(t),
        other => Err(InterpretError::Port {
            what,
            name: name.to_owned(),
            expected: ty.to_string(),
            found: other.map_or_else(|| "nothing".to_owned(), |t| t.ty.to_string()),
        }),
    }
}

/// Rounds floating elements to the declared width.
fn round(t: &mut Tensor) {
    if let (DType::F16, Buffer::F32(v)) = (t.ty.dtype, &mut t.data) {
        v.iter_mut().for_each(|x| *x = f16::from_f32(*x).to_f32());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::FunctionBuilder;
    use crate::types::{Opset, StaticType};

    #[test]
    fn a_state_is_read_changed_and_written() {
        let mut b = FunctionBuilder::new(Opset::CoreML8);
        let x = b.input("x", TensorType::fixed(DType::F16, &[2]));
        let s = b.state("total", &StaticType::new(DType::F16, &[2]));
        let old = b.op("read_state", "old", &[("input", s.into())]).unwrap();
        let new = b.op("add", "new", &[("x", old.into()), ("y", x.into())]).unwrap();
        b.ops("write_state", "write", &[("input", s.into()), ("data", new.into())]).unwrap();
        let f = b.finish(&[new]);
        let run = Interpreter::new(&f);
        let mut states = run.fresh_states();
        let inputs = Tensors::from([("x".to_owned(), Tensor::floats(DType::F16, &[2], &[1.0, 2.0]))]);
        run.run(&inputs, &mut states).unwrap();
        let out = run.run(&inputs, &mut states).unwrap();
        assert_eq!(out["new"].as_f32().unwrap(), [2.0, 4.0]);
        assert_eq!(states["total"].as_f32().unwrap(), [2.0, 4.0]);
    }

    #[test]
    fn states_and_outputs_are_rounded_to_their_type_and_nothing_else_is() {
        let mut b = FunctionBuilder::new(Opset::CoreML8);
        let x = b.input("x", TensorType::fixed(DType::F16, &[1]));
        // 4097 is no half float; the sum is exact only if it is kept.
        let y = b.op("add", "y", &[("x", x.into()), ("y", half::f16::from_f32(1.0).into())]).unwrap();
        let z = b.op("add", "z", &[("x", y.into()), ("y", half::f16::from_f32(-4096.0).into())]).unwrap();
        let f = b.finish(&[y, z]);
        let inputs = Tensors::from([("x".to_owned(), Tensor::floats(DType::F16, &[1], &[4096.0]))]);
        let out = Interpreter::new(&f).run(&inputs, &mut Tensors::new()).unwrap();
        assert_eq!(out["y"].as_f32().unwrap(), [4096.0]);
        assert_eq!(out["z"].as_f32().unwrap(), [1.0]);
    }

    #[test]
    fn a_strict_interpreter_rounds_every_half_float_and_tells_what_overflows() {
        let mut b = FunctionBuilder::new(Opset::CoreML8);
        let x = b.input("x", TensorType::fixed(DType::F16, &[1]));
        let square = b.op("mul", "square", &[("x", x.into()), ("y", x.into())]).unwrap();
        let root = b.op("sqrt", "root", &[("x", square.into())]).unwrap();
        let f = b.finish(&[root]);
        let inputs = |v: f32| Tensors::from([("x".to_owned(), Tensor::floats(DType::F16, &[1], &[v]))]);
        let strict = Interpreter::new(&f).strict();
        let root = |run: &Interpreter<'_>, v: f32| {
            run.run(&inputs(v), &mut Tensors::new()).unwrap()["root"].as_f32().unwrap()[0]
        };
        assert_eq!(root(&strict, 16.0), 16.0);
        assert!(strict.overflows().is_empty());
        assert_eq!(root(&strict, 300.0), f32::INFINITY);
        let found = strict.overflows();
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].kind.as_str(), found[0].result.as_str(), found[0].runs), ("mul", "square", 1));
        assert_eq!(root(&Interpreter::new(&f), 300.0), 300.0);
    }

    #[test]
    fn a_missing_input_is_named_with_its_type() {
        let mut b = FunctionBuilder::new(Opset::CoreML8);
        let x = b.input("x", TensorType::fixed(DType::F16, &[1]));
        let f = b.finish(&[x]);
        let e = Interpreter::new(&f).run(&Tensors::new(), &mut Tensors::new()).unwrap_err().to_string();
        assert_eq!(e, "input `x`: expected tensor<fp16, [1]>, found nothing");
    }
}
