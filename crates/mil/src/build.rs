//! Building functions by hand: names are made unique, types are inferred, constants get operations of their own.

use std::collections::{BTreeMap, HashMap};

use smallvec::{SmallVec, smallvec};

use crate::constant::{Const, ConstError};
use crate::op::{Effect, Op, OpError, Results};
use crate::operands::{BindError, Bound, Operand};
use crate::ops;
use crate::port::Ports;
use crate::program::{Argument, Block, Function, Kind, Operation, ValueId};
use crate::tensor::Tensor;
use crate::types::{Opset, StaticType, TensorType, Type};

/// Why an operation could not be added.
#[derive(Debug, thiserror::Error)]
#[error("operation `{kind}` named `{name}`: {source}")]
pub struct BuildError {
    /// The operation.
    pub kind: String,
    /// The name asked for.
    pub name: String,
    /// What is wrong.
    pub source: BuildFault,
}

/// What is wrong with an operation to be added.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum BuildFault {
    #[error("there is no such operation")]
    UnknownOp,
    #[error("it came with {since}, the function has {opset}")]
    TooNew { since: Opset, opset: Opset },
    #[error(transparent)]
    Bind(#[from] BindError),
    #[error(transparent)]
    Const(#[from] ConstError),
    #[error(transparent)]
    Op(#[from] OpError),
    #[error("`{value}` is no tensor of known shape")]
    NotStatic { value: String },
    #[error("expected {expected} result, found {found}")]
    Results { expected: usize, found: usize },
}

/// An argument of an operation to be added.
#[derive(Clone, Debug)]
pub enum Arg {
    /// Values of the function; several for a variadic parameter.
    Values(SmallVec<[ValueId; 1]>),
    /// A constant, which gets an operation of its own.
    Const(Const),
}

impl From<ValueId> for Arg {
    fn from(v: ValueId) -> Self {
        Arg::Values(smallvec![v])
    }
}

impl From<&[ValueId]> for Arg {
    fn from(v: &[ValueId]) -> Self {
        Arg::Values(v.into())
    }
}

impl<const N: usize> From<[ValueId; N]> for Arg {
    fn from(v: [ValueId; N]) -> Self {
        Arg::Values(v.into_iter().collect())
    }
}

impl<T: Into<Const>> From<T> for Arg {
    fn from(c: T) -> Self {
        Arg::Const(c.into())
    }
}

/// A function being built.
#[derive(Debug)]
pub struct FunctionBuilder {
    function: Function,
    opset: Opset,
    names: HashMap<String, usize>,
    /// Elements of small constants, which inference may ask for.
    known: HashMap<ValueId, Known>,
}

#[derive(Debug)]
enum Known {
    Tensor(Tensor),
    Text(String),
}

/// Constants of more elements than this take no part in inference.
const INFERENCE_ELEMENTS: usize = 4096;

impl FunctionBuilder {
    /// An empty function.
    #[must_use]
    pub fn new(opset: Opset) -> Self {
        let function = Function {
            opset: opset.name().to_owned(),
            values: Vec::new(),
            inputs: Vec::new(),
            body: Block::default(),
            attributes: BTreeMap::new(),
            ports: Ports::default(),
        };
        Self { function, opset, names: HashMap::new(), known: HashMap::new() }
    }

    /// Adds an input.
    pub fn input(&mut self, name: &str, ty: TensorType) -> ValueId {
        let id = self.value(name, Type::Tensor(ty));
        self.function.inputs.push(id);
        id
    }

    /// Adds a state.
    pub fn state(&mut self, name: &str, ty: &StaticType) -> ValueId {
        let id = self.value(name, Type::State(TensorType::from(ty)));
        self.function.inputs.push(id);
        id
    }

    /// Adds a constant.
    pub fn constant(&mut self, name: &str, value: Const) -> ValueId {
        let id = self.value(name, value.ty());
        if let Some(text) = value.str() {
            self.known.insert(id, Known::Text(text.to_owned()));
        } else if let Some(t) = value.tensor()
            && t.deferred.is_none()
            && t.ty.elements() <= INFERENCE_ELEMENTS
            && let Ok(t) = t.to_tensor()
        {
            self.known.insert(id, Known::Tensor(t));
        }
        let mut attributes = self.name_attribute(id);
        attributes.insert("val".to_owned(), value);
        self.function.body.ops.push(Operation {
            name_of_kind: "const".to_owned(),
            kind: Kind::Const,
            inputs: Vec::new(),
            outputs: vec![id],
            blocks: Vec::new(),
            attributes,
        });
        id
    }

    /// Adds an operation of one result.
    ///
    /// # Errors
    /// If there is no such operation, or its operands do not fit.
    pub fn op(&mut self, kind: &str, name: &str, args: &[(&str, Arg)]) -> Result<ValueId, BuildError> {
        let results = self.ops(kind, name, args)?;
        match results.as_slice() {
            [one] => Ok(*one),
            all => Err(fault(kind, name, BuildFault::Results { expected: 1, found: all.len() })),
        }
    }

    /// Adds an operation.
    ///
    /// # Errors
    /// If there is no such operation, or its operands do not fit.
    pub fn ops(&mut self, kind: &str, name: &str, args: &[(&str, Arg)]) -> Result<Vec<ValueId>, BuildError> {
        self.add(kind, name, args, None).map_err(|e| fault(kind, name, e))
    }

    /// Adds an operation whose result types are declared, because they depend on run-time values.
    ///
    /// # Errors
    /// If there is no such operation, or its arguments do not fit its parameters.
    pub fn ops_typed(
        &mut self,
        kind: &str,
        name: &str,
        args: &[(&str, Arg)],
        types: &[TensorType],
    ) -> Result<Vec<ValueId>, BuildError> {
        self.add(kind, name, args, Some(types)).map_err(|e| fault(kind, name, e))
    }

    /// The static type of a value of the function.
    ///
    /// # Panics
    /// If the value is no tensor of known shape.
    #[must_use]
    pub fn ty(&self, value: ValueId) -> StaticType {
        self.static_type(value).expect("a tensor of known shape")
    }

    /// Finishes the function with these results.
    #[must_use]
    pub fn finish(mut self, outputs: &[ValueId]) -> Function {
        self.function.body.outputs = outputs.to_vec();
        self.function
    }

    fn add(
        &mut self,
        kind: &str,
        name: &str,
        args: &[(&str, Arg)],
        declared: Option<&[TensorType]>,
    ) -> Result<Vec<ValueId>, BuildFault> {
        let op = ops::find(kind).ok_or(BuildFault::UnknownOp)?;
        if op.since() > self.opset {
            return Err(BuildFault::TooNew { since: op.since(), opset: self.opset });
        }
        let inputs: Vec<(String, SmallVec<[ValueId; 1]>)> = args
            .iter()
            .map(|(param, arg)| {
                let values = match arg {
                    Arg::Values(v) => v.clone(),
                    Arg::Const(c) => smallvec![self.constant(&format!("{name}_{param}_0"), c.clone())],
                };
                ((*param).to_owned(), values)
            })
            .collect();
        let types = match declared {
            Some(types) => types.to_vec(),
            None => self.infer(op, &inputs)?.iter().map(TensorType::from).collect(),
        };
        let outputs: Vec<ValueId> = types
            .into_iter()
            .enumerate()
            .map(|(i, ty)| self.value(&if i == 0 { name.to_owned() } else { format!("{name}_{i}") }, Type::Tensor(ty)))
            .collect();
        let attributes = match outputs.first() {
            Some(&id) => self.name_attribute(id),
            None => BTreeMap::from([("name".to_owned(), Const::text(name))]),
        };
        self.function.body.ops.push(Operation {
            name_of_kind: kind.to_owned(),
            kind: Kind::Op(op),
            inputs: inputs.into_iter().map(|(p, vs)| (p, vs.into_iter().map(Argument::Value).collect())).collect(),
            outputs: outputs.clone(),
            blocks: Vec::new(),
            attributes,
        });
        Ok(outputs)
    }

    fn infer(&self, op: &dyn Op, inputs: &[(String, SmallVec<[ValueId; 1]>)]) -> Result<Results, BuildFault> {
        let mut bound = Bound::new(op);
        for (i, (param, values)) in inputs.iter().enumerate() {
            let state = i == 0 && op.effect() != Effect::Pure;
            let operands =
                values.iter().map(|&v| self.operand(v, state)).collect::<Result<SmallVec<[_; 1]>, BuildFault>>()?;
            bound.bind(op, param, operands)?;
        }
        bound.check(op)?;
        Ok(op.infer(&bound)?)
    }

    fn operand(&self, value: ValueId, state: bool) -> Result<Operand<'_>, BuildFault> {
        match self.known.get(&value) {
            Some(Known::Tensor(t)) => return Ok(Operand::Known(t)),
            Some(Known::Text(s)) => return Ok(Operand::Text(s)),
            None => {}
        }
        let ty = if state {
            self.function.value(value).ty.state().and_then(TensorType::to_static)
        } else {
            self.static_type(value)
        };
        let not_static = || BuildFault::NotStatic { value: self.function.value(value).name.clone() };
        ty.map(Operand::Typed).ok_or_else(not_static)
    }

    fn static_type(&self, value: ValueId) -> Option<StaticType> {
        self.function.value(value).ty.tensor().and_then(TensorType::to_static)
    }

    fn value(&mut self, name: &str, ty: Type) -> ValueId {
        let mut unique = identifier(name);
        while let Some(n) = self.names.get_mut(&unique) {
            *n += 1;
            unique = format!("{unique}_{n}");
        }
        self.names.insert(unique.clone(), 0);
        self.function.add_value(unique, ty)
    }

    fn name_attribute(&self, id: ValueId) -> BTreeMap<String, Const> {
        BTreeMap::from([("name".to_owned(), Const::text(self.function.value(id).name.clone()))])
    }
}

fn fault(kind: &str, name: &str, source: BuildFault) -> BuildError {
    BuildError { kind: kind.to_owned(), name: name.to_owned(), source }
}

/// The nearest identifier that MIL allows: `[A-Za-z_][A-Za-z0-9_@]*`.
#[must_use]
pub fn identifier(name: &str) -> String {
    let mut id: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' || c == '@' { c } else { '_' }).collect();
    if !id.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        id.insert(0, '_');
    }
    id
}

/// Whether MIL allows a name: `[A-Za-z_][A-Za-z0-9_@]*`.
#[must_use]
pub fn is_identifier(name: &str) -> bool {
    !name.is_empty() && identifier(name) == name
}
