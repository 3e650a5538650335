//! What the library knows of one operation: [`Op`]. Each operation is one file under `ops/`.

use smallvec::SmallVec;

use crate::case::Case;
use crate::layout::Layout;
use crate::lower::{Kernel, LowerOperands};
use crate::packed::Packed;
use crate::tensor::{Data, DataMut};
use crate::types::{DType, Opset, StaticType};

/// Everything op-local: specification, type inference, plain evaluation, test cases.
pub trait Op: Sync {
    /// The name in MIL.
    fn name(&self) -> &'static str;

    /// The first operation set that has it.
    fn since(&self) -> Opset;

    /// Its parameters, of all operation sets together. Methods below name a parameter by its index here.
    fn params(&self) -> &'static [Param];

    /// How it touches state.
    fn effect(&self) -> Effect {
        Effect::Pure
    }

    /// The number of results for these operands.
    fn results(&self, _x: &dyn Operands) -> usize {
        1
    }

    /// The types of the results.
    ///
    /// # Errors
    /// If the operands do not fit, or the shape depends on a value that is not known yet ([`OpError::NeedsValue`]).
    fn infer(&self, x: &dyn Operands) -> Result<Results, OpError>;

    /// Computes the results into `out`, whose types are what [`Op::infer`] gave. This is the plain meaning: no fast path,
    /// sums in `f32`, results not rounded to a narrower declared type. Allocates only where the operation's file says so.
    ///
    /// # Errors
    /// If a run-time value is out of bounds.
    fn eval(&self, x: &dyn Operands, out: &mut [Out<'_>]) -> Result<(), OpError>;

    /// Where the result lies in the storage of the operand of parameter 0, if it is only another view of it. `layout` is how
    /// that operand lies there.
    fn view(&self, _x: &dyn Operands, _layout: &Layout) -> Option<Layout> {
        None
    }

    /// For an operation that copies its operand at [`Update::target`] and overwrites a part of the copy: that fact, which
    /// lets a plan overwrite in place.
    fn update(&self) -> Option<Update> {
        None
    }

    /// The part of the target that an updating operation overwrites: a layout in the storage of the target, which lies as
    /// `target` says.
    ///
    /// # Errors
    /// If it is out of bounds, or the operation is no updating one.
    fn region(&self, _x: &dyn Operands, _target: &Layout) -> Result<Layout, OpError> {
        Err(OpError::Unsupported { what: format!("updating in place by `{}`", self.name()) })
    }

    /// What the result is, still packed, if the operation decompresses constants.
    fn compressed(&self, _x: &dyn LowerOperands) -> Option<Packed> {
        None
    }

    /// A kernel faster than [`Op::eval`], if there is one for these operands.
    fn lower(&self, _x: &dyn LowerOperands) -> Option<Box<dyn Kernel>> {
        None
    }

    /// The operation that does several applications of this one to the same first operand at once, if that is faster. Its
    /// parameters are the same, but all after the first take an argument for each application, and it has as many results.
    fn joined(&self) -> Option<&'static dyn Op> {
        None
    }

    /// Programs of one operation that pin its meaning; at least one.
    fn cases(&self) -> Vec<Case>;
}

/// Types of results.
pub type Results = SmallVec<[StaticType; 1]>;

/// Which parameters of an updating operation are what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Update {
    /// What is copied and overwritten in part.
    pub target: usize,
    /// What it is overwritten with.
    pub source: usize,
}

/// How an operation touches state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Not at all.
    Pure,
    /// Parameter 0 names a state; the result is its present content.
    ReadState,
    /// Parameter 0 names a state, which takes the value of parameter 1; there is no result.
    WriteState,
}

/// A parameter of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Param {
    /// Its name in MIL.
    pub name: &'static str,
    /// How many arguments it takes.
    pub arity: Arity,
}

/// How many arguments a parameter takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arity {
    /// Exactly one.
    Required,
    /// One or none.
    Optional,
    /// One or more.
    Variadic,
}

impl Param {
    /// A parameter that must be given.
    #[must_use]
    pub const fn required(name: &'static str) -> Self {
        Self { name, arity: Arity::Required }
    }

    /// A parameter that may be left out.
    #[must_use]
    pub const fn optional(name: &'static str) -> Self {
        Self { name, arity: Arity::Optional }
    }

    /// A parameter of several arguments.
    #[must_use]
    pub const fn variadic(name: &'static str) -> Self {
        Self { name, arity: Arity::Variadic }
    }
}

/// The operands of one application, as an executor or the type inference sees them.
pub trait Operands {
    /// How many arguments a parameter has; 0 if it was left out.
    fn count(&self, param: usize) -> usize;
    /// Element type and shape of an argument.
    ///
    /// # Panics
    /// If there is no such argument.
    fn ty_at(&self, param: usize, index: usize) -> (DType, &[usize]);
    /// The elements, if known: at run time always, during inference for constants alone. Text has none, nor has an argument
    /// that is not there.
    fn data_at(&self, param: usize, index: usize) -> Option<Data<'_>>;
    /// The text of a text argument.
    fn text_at(&self, param: usize, index: usize) -> Option<&str>;
    /// How the argument lies in the elements that [`Operands::data_at`] gives; `None` where it is contiguous. Only kernels
    /// that accept views ever meet another layout.
    fn layout_at(&self, _param: usize, _index: usize) -> Option<&Layout> {
        None
    }
    /// The storage of an argument that lies in a state, as half floats; [`Operands::data_at`] then gives nothing. Only
    /// kernels that accept views ever meet one.
    fn halves_at(&self, _param: usize, _index: usize) -> Option<&[half::f16]> {
        None
    }
    /// The parameter's name, for errors.
    fn name_of(&self, param: usize) -> &'static str;
}

impl dyn Operands + '_ {
    /// Whether the parameter was given.
    #[must_use]
    pub fn has(&self, param: usize) -> bool {
        self.count(param) > 0
    }

    /// Element type of a given argument.
    ///
    /// # Panics
    /// If the parameter was left out.
    #[must_use]
    pub fn dtype(&self, param: usize) -> DType {
        self.ty_at(param, 0).0
    }

    /// Shape of a given argument.
    ///
    /// # Panics
    /// If the parameter was left out.
    #[must_use]
    pub fn shape(&self, param: usize) -> &[usize] {
        self.ty_at(param, 0).1
    }

    /// The concrete type of a given argument.
    ///
    /// # Panics
    /// If the parameter was left out.
    #[must_use]
    pub fn ty(&self, param: usize) -> StaticType {
        let (dtype, shape) = self.ty_at(param, 0);
        StaticType::new(dtype, shape)
    }

    /// Floating elements.
    ///
    /// # Errors
    /// If the elements are of another class or not known.
    pub fn f32s(&self, param: usize) -> Result<&[f32], OpError> {
        self.f32s_at(param, 0)
    }

    /// Floating elements of argument `index`.
    ///
    /// # Errors
    /// If the elements are of another class or not known.
    pub fn f32s_at(&self, param: usize, index: usize) -> Result<&[f32], OpError> {
        match self.known(param, index)? {
            Data::F32(v) => Ok(v),
            _ => Err(self.wrong_class(param, index, "floating elements")),
        }
    }

    /// Integer elements.
    ///
    /// # Errors
    /// If the elements are of another class or not known.
    pub fn i32s(&self, param: usize) -> Result<&[i32], OpError> {
        self.i32s_at(param, 0)
    }

    /// Integer elements of argument `index`.
    ///
    /// # Errors
    /// If the elements are of another class or not known.
    pub fn i32s_at(&self, param: usize, index: usize) -> Result<&[i32], OpError> {
        match self.known(param, index)? {
            Data::I32(v) => Ok(v),
            _ => Err(self.wrong_class(param, index, "integers")),
        }
    }

    /// Truth values.
    ///
    /// # Errors
    /// If the elements are of another class or not known.
    pub fn bools(&self, param: usize) -> Result<&[bool], OpError> {
        match self.known(param, 0)? {
            Data::Bool(v) => Ok(v),
            _ => Err(self.wrong_class(param, 0, "truth values")),
        }
    }

    /// Elements of any class.
    ///
    /// # Errors
    /// If they are not known.
    pub fn data(&self, param: usize) -> Result<Data<'_>, OpError> {
        self.known(param, 0)
    }

    /// One floating number.
    ///
    /// # Errors
    /// If it is not known or not one element.
    pub fn f32(&self, param: usize) -> Result<f32, OpError> {
        self.single(param, self.f32s(param)?)
    }

    /// One integer.
    ///
    /// # Errors
    /// If it is not known or not one element.
    pub fn i32(&self, param: usize) -> Result<i32, OpError> {
        self.single(param, self.i32s(param)?)
    }

    /// One truth value, or `default` if the parameter was left out.
    ///
    /// # Errors
    /// If it is not known or not one element.
    pub fn bool_or(&self, param: usize, default: bool) -> Result<bool, OpError> {
        if self.has(param) { self.single(param, self.bools(param)?) } else { Ok(default) }
    }

    /// One integer, or `default` if the parameter was left out.
    ///
    /// # Errors
    /// If it is not known or not one element.
    pub fn i32_or(&self, param: usize, default: i32) -> Result<i32, OpError> {
        if self.has(param) { self.i32(param) } else { Ok(default) }
    }

    /// One floating number, or `default` if the parameter was left out.
    ///
    /// # Errors
    /// If it is not known or not one element.
    pub fn f32_or(&self, param: usize, default: f32) -> Result<f32, OpError> {
        if self.has(param) { self.f32(param) } else { Ok(default) }
    }

    /// Text, or `default` if the parameter was left out.
    ///
    /// # Errors
    /// If the argument is not text.
    pub fn text_or<'a>(&'a self, param: usize, default: &'a str) -> Result<&'a str, OpError> {
        if !self.has(param) {
            return Ok(default);
        }
        self.text_at(param, 0).ok_or_else(|| self.wrong_class(param, 0, "text"))
    }

    /// An axis, counted from the end if negative, checked against `rank`.
    ///
    /// # Errors
    /// If it is not known or out of range.
    pub fn axis(&self, param: usize, rank: usize) -> Result<usize, OpError> {
        let axis = self.i32(param)?;
        normalize_axis(axis, rank).ok_or_else(|| self.bad(param, format!("an axis of a tensor of rank {rank}"), axis))
    }

    /// An error about one parameter's value.
    pub fn bad(&self, param: usize, expected: impl Into<String>, found: impl std::fmt::Debug) -> OpError {
        OpError::Operand { param: self.name_of(param), expected: expected.into(), found: format!("{found:?}") }
    }

    fn known(&self, param: usize, index: usize) -> Result<Data<'_>, OpError> {
        if index >= self.count(param) {
            return Err(OpError::Missing { param: self.name_of(param) });
        }
        if self.text_at(param, index).is_some() {
            return Err(self.wrong_class(param, index, "numbers"));
        }
        self.data_at(param, index).ok_or(OpError::NeedsValue { param: self.name_of(param) })
    }

    fn single<T: Copy + std::fmt::Debug>(&self, param: usize, values: &[T]) -> Result<T, OpError> {
        match values {
            [one] => Ok(*one),
            _ => Err(self.bad(param, "one element", values.len())),
        }
    }

    fn wrong_class(&self, param: usize, index: usize, expected: &str) -> OpError {
        self.bad(param, expected, self.ty_at(param, index).0)
    }
}

/// The axis that `axis` names in a tensor of rank `rank`; negative ones count from the end.
#[must_use]
pub fn normalize_axis(axis: i32, rank: usize) -> Option<usize> {
    let rank = i32::try_from(rank).ok()?;
    let axis = if axis < 0 { axis + rank } else { axis };
    (0..rank).contains(&axis).then_some(axis as usize)
}

/// One result being computed.
#[derive(Debug)]
pub struct Out<'a> {
    /// Declared element type.
    pub dtype: DType,
    /// Shape.
    pub shape: &'a [usize],
    /// Elements to write.
    pub data: DataMut<'a>,
}

impl Out<'_> {
    /// Floating elements to write.
    ///
    /// # Errors
    /// If the result is of another class.
    pub fn f32s(&mut self) -> Result<&mut [f32], OpError> {
        match &mut self.data {
            DataMut::F32(v) => Ok(v),
            _ => Err(OpError::mismatch("operands that give another result", self.dtype.name())),
        }
    }

    /// Integers to write.
    ///
    /// # Errors
    /// If the result is of another class.
    pub fn i32s(&mut self) -> Result<&mut [i32], OpError> {
        match &mut self.data {
            DataMut::I32(v) => Ok(v),
            _ => Err(OpError::mismatch("operands that give another result", self.dtype.name())),
        }
    }

    /// Truth values to write.
    ///
    /// # Errors
    /// If the result is of another class.
    pub fn bools(&mut self) -> Result<&mut [bool], OpError> {
        match &mut self.data {
            DataMut::Bool(v) => Ok(v),
            _ => Err(OpError::mismatch("operands that give another result", self.dtype.name())),
        }
    }
}

/// Why an operation does not accept its operands. Whoever asked adds the operation's place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpError {
    /// A parameter that must be given is absent.
    #[error("`{param}` is missing")]
    Missing {
        /// The parameter.
        param: &'static str,
    },
    /// A parameter has a value or type that does not fit.
    #[error("`{param}`: expected {expected}, found {found}")]
    Operand {
        /// The parameter.
        param: &'static str,
        /// What would fit.
        expected: String,
        /// What is there.
        found: String,
    },
    /// Operands do not fit each other.
    #[error("expected {expected}, found {found}")]
    Mismatch {
        /// What would fit.
        expected: String,
        /// What is there.
        found: String,
    },
    /// The result's shape depends on a value that is known only at run time.
    #[error("the shape of the result depends on the value of `{param}`, which is not a constant")]
    NeedsValue {
        /// The parameter.
        param: &'static str,
    },
    /// The operation has this form, and we do not compute it.
    #[error("{what} is not supported here")]
    Unsupported {
        /// The form.
        what: String,
    },
}

impl OpError {
    /// Operands that do not fit each other.
    pub fn mismatch(expected: impl Into<String>, found: impl Into<String>) -> Self {
        OpError::Mismatch { expected: expected.into(), found: found.into() }
    }
}
