//! The kinds of faults.

use crate::constant::ConstError;
use crate::op::OpError;
use crate::operands::BindError;
use crate::types::Opset;

/// What is wrong at a place of a program. The messages are the documentation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say it")]
pub enum Problem {
    #[error("expected version 1 of programs, found {found}")]
    Version { found: i64 },
    #[error("expected at least one function, found none")]
    NoFunctions,
    #[error("expected a name of letters, digits, `_` and `@` that does not begin with a digit or `@`, found `{name}`")]
    Identifier { name: String },
    #[error("expected an operation set from CoreML3 to CoreML9, found `{found}`")]
    Opset { found: String },
    #[error("operation set {opset} needs specification version {needs} or later, found {found}")]
    SpecificationVersion { opset: Opset, needs: i32, found: i32 },
    #[error("expected at least one output, found none")]
    NoOutputs,

    #[error("value {id} is no value of the function")]
    Foreign { id: u32 },
    #[error("`{name}` is assigned twice")]
    AssignedTwice { name: String },
    #[error("`{name}` is used before it is assigned")]
    UsedBeforeAssigned { name: String },
    #[error("`{name}` is used, and nothing assigns it")]
    NeverAssigned { name: String },
    #[error("`{name}` is used outside the block that assigns it")]
    OutOfScope { name: String },

    #[error("there is no operation `{name}` (operation set {opset})")]
    UnknownOp { name: String, opset: String },
    #[error("`{op}` came with {since} ({}); the function has {opset}", since.os())]
    TooNew { op: String, since: Opset, opset: Opset },
    #[error(transparent)]
    Arguments(BindError),
    #[error("`{param}` is given twice")]
    GivenTwice { param: String },
    #[error("`{param}`: expected tensors, found `{name}` of type {found}")]
    NoTensor { param: String, name: String, found: String },
    #[error(transparent)]
    Operands(OpError),
    #[error("`{param}`: {source}")]
    Literal { param: String, source: ConstError },
    #[error("expected {expected} results, found {found}")]
    Results { expected: usize, found: usize },
    #[error("`{name}` is declared {declared}; its operands give {inferred}")]
    Declared { name: String, declared: String, inferred: String },

    #[error("expected an attribute `val`, found none")]
    NoValue,
    #[error("`{name}` is declared {declared}; its value is {found}")]
    ConstType { name: String, declared: String, found: String },
    #[error("{attribute}: expected {expected} for {ty}, found {found}")]
    Constant { attribute: String, ty: String, expected: String, found: usize },

    #[error("input `{name}`: expected a tensor or a state, found {found}")]
    InputType { name: String, found: String },
    #[error("state `{name}`: expected fp16 elements and a fixed shape, found {found}")]
    StateType { name: String, found: String },
    #[error("`{param}`: expected a state, found {found}")]
    NoState { param: String, found: String },
    #[error("`{name}` is a state, which only `read_state` and `write_state` take")]
    StateAsValue { name: String },
    #[error("state `{state}` holds {wrapped}; what is written is {found}")]
    Written { state: String, wrapped: String, found: String },

    #[error("the program has no {what} `{name}`; it has {known}")]
    NoCounterpart { what: &'static str, name: String, known: String },
    #[error("the model description does not declare the {what} `{name}`")]
    Undeclared { what: &'static str, name: String },
    #[error("the model description declares the {what} `{name}` twice")]
    DeclaredTwice { what: &'static str, name: String },
    #[error("the model description declares {declared}; in the program it is {found}")]
    PortType { declared: String, found: String },
    #[error("the default function `{name}` is no function of the program; it has {known}")]
    NoDefault { name: String, known: String },
}
