//! Operands held as tensors: what the interpreter, the builder and the tests hand to an operation.

use crate::constant::{Const, ConstError};
use crate::op::{Arity, Op, OpError, Operands, Param, Results};
use crate::tensor::{Data, Tensor};
use crate::types::{DType, StaticType};

/// One argument.
#[derive(Clone, Debug)]
pub enum Operand<'a> {
    /// Its elements are known.
    Known(&'a Tensor),
    /// Its elements are known, and held here.
    Owned(Tensor),
    /// Only its type is known.
    Typed(StaticType),
    /// Text.
    Text(&'a str),
}

impl<'a> Operand<'a> {
    /// The argument that a constant is.
    ///
    /// # Errors
    /// If the constant is neither a tensor of numbers nor a text scalar.
    pub fn from_const(c: &'a Const) -> Result<Self, ConstError> {
        if let Some(text) = c.str() {
            return Ok(Operand::Text(text));
        }
        match c.tensor() {
            Some(t) => Ok(Operand::Owned(t.to_tensor()?)),
            None => Err(ConstError::NotNumeric { found: c.ty().to_string() }),
        }
    }
}

/// Arguments by parameter index of one operation.
#[derive(Clone, Debug)]
pub struct Bound<'a> {
    params: &'static [Param],
    args: Vec<Vec<Operand<'a>>>,
}

/// A name or a number of arguments that the operation does not take.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BindError {
    /// No such parameter.
    #[error("`{op}` has no parameter `{param}`; it has {known}")]
    Unknown {
        /// The operation.
        op: &'static str,
        /// The name that was given.
        param: String,
        /// The parameters that there are.
        known: String,
    },
    /// Too few or too many arguments.
    #[error("`{op}` takes {expected} argument for `{param}`, found {found}")]
    Count {
        /// The operation.
        op: &'static str,
        /// The parameter.
        param: &'static str,
        /// What it takes.
        expected: &'static str,
        /// Arguments that were given.
        found: usize,
    },
}

impl<'a> Bound<'a> {
    /// No arguments yet.
    #[must_use]
    pub fn new(op: &dyn Op) -> Self {
        let params = op.params();
        Self { params, args: vec![Vec::new(); params.len()] }
    }

    /// Adds arguments to the parameter `name`.
    ///
    /// # Errors
    /// If there is no such parameter.
    pub fn bind(
        &mut self,
        op: &dyn Op,
        name: &str,
        args: impl IntoIterator<Item = Operand<'a>>,
    ) -> Result<(), BindError> {
        let index = param_index(op, name)?;
        self.args[index].extend(args);
        Ok(())
    }

    /// Checks that every parameter has as many arguments as it takes.
    ///
    /// # Errors
    /// If one has not.
    pub fn check(&self, op: &dyn Op) -> Result<(), BindError> {
        for (p, args) in self.params.iter().zip(&self.args) {
            check_arity(op, p, args.len())?;
        }
        Ok(())
    }
}

/// The index of the parameter `name`.
///
/// # Errors
/// If there is no such parameter.
pub fn param_index(op: &dyn Op, name: &str) -> Result<usize, BindError> {
    op.params().iter().position(|p| p.name == name).ok_or_else(|| BindError::Unknown {
        op: op.name(),
        param: name.to_owned(),
        known: op.params().iter().map(|p| p.name).collect::<Vec<_>>().join(", "),
    })
}

/// Checks a number of arguments against what a parameter takes.
///
/// # Errors
/// If it does not fit.
pub fn check_arity(op: &dyn Op, param: &Param, found: usize) -> Result<(), BindError> {
    let (fits, expected) = match param.arity {
        Arity::Required => (found == 1, "one"),
        Arity::Optional => (found <= 1, "at most one"),
        Arity::Variadic => (found >= 1, "at least one"),
    };
    if fits { Ok(()) } else { Err(BindError::Count { op: op.name(), param: param.name, expected, found }) }
}

impl Operands for Bound<'_> {
    fn count(&self, param: usize) -> usize {
        self.args[param].len()
    }

    fn ty_at(&self, param: usize, index: usize) -> (DType, &[usize]) {
        match &self.args[param][index] {
            Operand::Known(t) => (t.ty.dtype, &t.ty.shape),
            Operand::Owned(t) => (t.ty.dtype, &t.ty.shape),
            Operand::Typed(t) => (t.dtype, &t.shape),
            Operand::Text(_) => (DType::String, &[]),
        }
    }

    fn data_at(&self, param: usize, index: usize) -> Option<Data<'_>> {
        match self.args[param].get(index)? {
            Operand::Known(t) => Some(t.data.view(t.data.len())),
            Operand::Owned(t) => Some(t.data.view(t.data.len())),
            Operand::Typed(_) | Operand::Text(_) => None,
        }
    }

    fn text_at(&self, param: usize, index: usize) -> Option<&str> {
        match self.args[param].get(index)? {
            Operand::Text(s) => Some(s),
            _ => None,
        }
    }

    fn name_of(&self, param: usize) -> &'static str {
        self.params[param].name
    }
}

/// The types of the results, which are never text: nothing computes it.
///
/// # Errors
/// As [`Op::infer`], and for text.
pub fn infer(op: &dyn Op, x: &dyn Operands) -> Result<Results, OpError> {
    let types = op.infer(x)?;
    if types.iter().any(|t| t.dtype == DType::String) {
        return Err(OpError::mismatch("operands that give numbers or truth values", "text"));
    }
    Ok(types)
}

/// Infers the results' types and computes them.
///
/// # Errors
/// If the operands do not fit.
pub fn apply(op: &dyn Op, x: &dyn Operands) -> Result<Vec<Tensor>, OpError> {
    let types = infer(op, x)?;
    let mut results: Vec<Tensor> = types.into_iter().map(Tensor::zeros).collect();
    let mut out: Vec<crate::op::Out<'_>> = results
        .iter_mut()
        .map(|t| {
            let n = t.data.len();
            crate::op::Out { dtype: t.ty.dtype, shape: &t.ty.shape, data: t.data.view_mut(n) }
        })
        .collect();
    op.eval(x, &mut out)?;
    Ok(results)
}
