//! What can go wrong while planning and running.

use anemone_mil::constant::ConstError;
use anemone_mil::op::OpError;
use anemone_mil::operands::BindError;

use crate::state::StateError;

/// Why a function could not be planned.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// An operation cannot be planned.
    #[error("{place}: {source}")]
    Op {
        /// Where it stands.
        place: String,
        /// What is wrong.
        source: PlanFault,
    },
    /// An input's shape is neither declared nor given.
    #[error("input `{name}` is declared {declared}: its shape has to be given, found {found}")]
    Input {
        /// The input.
        name: String,
        /// Its declared type.
        declared: String,
        /// The shape that was given.
        found: String,
    },
    /// An option names something that the function does not have.
    #[error("{what} `{name}` is not there; the function has {known}")]
    NotThere {
        /// What kind of thing.
        what: &'static str,
        /// Its name.
        name: String,
        /// What there is.
        known: String,
    },
    /// A state is of a type that cannot be kept.
    #[error("state `{name}`: expected fp16 elements and a fixed shape, found {found}")]
    State {
        /// The state.
        name: String,
        /// Its type.
        found: String,
    },
    /// Shapes do not follow the varying extent in a straight line.
    #[error("{what} does not change in a straight line with the varying extent: {found}. Plan each extent by itself")]
    NotAffine {
        /// What varies.
        what: String,
        /// Its values at the probes.
        found: String,
    },
    /// The plan needs more memory than the bound.
    #[error("the tensors between operations need {elements} elements, more than the bound of {bound}")]
    TooLarge {
        /// What it needs.
        elements: usize,
        /// The bound.
        bound: usize,
    },
}

/// What is wrong with an operation.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum PlanFault {
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
    #[error("`{value}` is text, which no function gives; expected a tensor of numbers or truth values")]
    Text { value: String },
    #[error("the result `{value}` is declared {declared} and comes out as {found}")]
    Declared { value: String, declared: String, found: String },
    #[error("the results would take {elements} elements, more than the bound of {bound}")]
    TooLarge { elements: u128, bound: usize },
}

/// Why a run failed.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// An operation failed at run time. States may have been written up to there.
    #[error("{place}: {source}")]
    Op {
        /// Where the operation stands.
        place: String,
        /// What is wrong.
        source: OpError,
    },
    /// The state does not belong to this plan.
    #[error(transparent)]
    State(#[from] StateError),
    /// The varying extent is out of range.
    #[error("extent {found} is outside {low}..={high}, the range that was planned")]
    Extent {
        /// What was given.
        found: usize,
        /// The smallest.
        low: usize,
        /// The largest.
        high: usize,
    },
}
