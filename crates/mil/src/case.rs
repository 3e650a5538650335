//! Test cases of operations: one application with its operands and the results that it must give.

use crate::constant::Const;
use crate::tensor::Tensor;

/// One application of an operation with known results.
#[derive(Clone, Debug)]
pub struct Case {
    /// What the case shows.
    pub name: &'static str,
    /// Arguments by parameter.
    pub inputs: Vec<(&'static str, Vec<CaseArg>)>,
    /// The results.
    pub expect: Vec<Tensor>,
    /// Largest absolute or relative difference allowed in floating results.
    pub tolerance: f32,
}

/// An argument of a case.
#[derive(Clone, Debug)]
pub enum CaseArg {
    /// Known at compile time.
    Const(Const),
    /// Known at run time.
    Tensor(Tensor),
}

impl Case {
    /// A case without operands.
    #[must_use]
    pub fn new(name: &'static str) -> Self {
        Self { name, inputs: Vec::new(), expect: Vec::new(), tolerance: 1e-6 }
    }

    /// Adds an operand known at run time; repeat the parameter for a variadic one.
    #[must_use]
    pub fn input(self, param: &'static str, value: Tensor) -> Self {
        self.arg(param, CaseArg::Tensor(value))
    }

    /// Adds an operand known at compile time; repeat the parameter for a variadic one.
    #[must_use]
    pub fn constant(self, param: &'static str, value: impl Into<Const>) -> Self {
        self.arg(param, CaseArg::Const(value.into()))
    }

    /// Adds an expected result.
    #[must_use]
    pub fn expect(mut self, value: Tensor) -> Self {
        self.expect.push(value);
        self
    }

    /// Sets the tolerance of floating results.
    #[must_use]
    pub fn within(mut self, tolerance: f32) -> Self {
        self.tolerance = tolerance;
        self
    }

    fn arg(mut self, param: &'static str, arg: CaseArg) -> Self {
        match self.inputs.iter_mut().find(|(p, _)| *p == param) {
            Some((_, args)) => args.push(arg),
            None => self.inputs.push((param, vec![arg])),
        }
        self
    }
}
