//! Ports: the inputs, outputs and states of a function as its model description declares them.

use crate::types::{DType, StaticType};

/// The ports of one function.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ports {
    /// Inputs that are not states.
    pub inputs: Vec<Port>,
    /// Outputs.
    pub outputs: Vec<Port>,
    /// States: name and wrapped tensor.
    pub states: Vec<(String, StaticType)>,
}

/// One input or output.
#[derive(Clone, Debug, PartialEq)]
pub struct Port {
    /// Name; ties the description to the program.
    pub name: String,
    /// Text for people.
    pub description: String,
    /// What passes through it.
    pub kind: PortKind,
    /// Whether a caller may leave the input out.
    pub optional: Option<PortDefault>,
}

/// The value of an optional input that was left out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PortDefault {
    /// Nothing is declared: zero.
    Zero,
    /// Every element has this value.
    Fill(f64),
}

/// What passes through a port.
#[derive(Clone, Debug, PartialEq)]
pub enum PortKind {
    /// A multi-dimensional array.
    Array {
        /// Element type at the border.
        dtype: DType,
        /// Shapes that are allowed.
        shape: PortShape,
    },
    /// Anything else that descriptions can declare, by its name there.
    Other(&'static str),
}

/// The shapes that a port allows.
#[derive(Clone, Debug, PartialEq)]
pub enum PortShape {
    /// Not declared, as for outputs of flexible shape.
    Unspecified,
    /// One shape.
    Fixed(Vec<usize>),
    /// One of several; the first is the default.
    Enumerated(Vec<Vec<usize>>),
    /// Each axis within bounds.
    Range {
        /// The default shape.
        default: Vec<usize>,
        /// Lower and upper bound for each axis; `None` is unbounded.
        bounds: Vec<(usize, Option<usize>)>,
    },
}

impl PortShape {
    /// Whether `shape` is allowed.
    #[must_use]
    pub fn admits(&self, shape: &[usize]) -> bool {
        match self {
            PortShape::Unspecified => true,
            PortShape::Fixed(s) => s == shape,
            PortShape::Enumerated(all) => all.iter().any(|s| s == shape),
            PortShape::Range { bounds, .. } => {
                bounds.len() == shape.len()
                    && bounds.iter().zip(shape).all(|(&(lo, hi), &n)| n >= lo && hi.is_none_or(|hi| n <= hi))
            }
        }
    }
}
