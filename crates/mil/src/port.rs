//! Ports: the inputs, outputs and states of a function as its model description declares them.

use anemone_package::proto::spec::{FeatureKind, FeatureType};

use crate::types::{DType, StaticType};

/// The ports of one function.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ports {
    /// Inputs that are not states.
    pub inputs: Vec<Port>,
    /// Outputs.
    pub outputs: Vec<Port>,
    /// States.
    pub states: Vec<StatePort>,
    /// Of a classifier: the output that is the predicted class. Else empty.
    pub predicted_feature: String,
    /// Of a classifier: the output that holds the probabilities. Else empty.
    pub predicted_probabilities: String,
}

impl Ports {
    /// Whether nothing is declared, as for programs that were not read from a package.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
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
    /// Whether a caller may leave the input out. (For a port of kind [`PortKind::Other`] its feature type says it too.)
    pub optional: Option<PortDefault>,
}

/// One state: a tensor that keeps its content between predictions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatePort {
    /// Name; ties the description to the program.
    pub name: String,
    /// Text for people.
    pub description: String,
    /// The tensor that it wraps.
    pub ty: StaticType,
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
    /// Anything else that descriptions can declare, such as an image, as the description has it.
    Other(Box<FeatureType>),
}

impl PortKind {
    /// The element type and allowed shapes, if an array passes through.
    #[must_use]
    pub fn array(&self) -> Option<(DType, &PortShape)> {
        match self {
            PortKind::Array { dtype, shape } => Some((*dtype, shape)),
            PortKind::Other(_) => None,
        }
    }

    /// What it is called in the schema of model descriptions.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            PortKind::Array { .. } => "multiArrayType",
            PortKind::Other(feature) => match feature.r#type {
                Some(FeatureKind::Int64Type(_)) => "int64Type",
                Some(FeatureKind::DoubleType(_)) => "doubleType",
                Some(FeatureKind::StringType(_)) => "stringType",
                Some(FeatureKind::ImageType(_)) => "imageType",
                Some(FeatureKind::MultiArrayType(_)) => "multiArrayType",
                Some(FeatureKind::DictionaryType(_)) => "dictionaryType",
                Some(FeatureKind::SequenceType(_)) => "sequenceType",
                Some(FeatureKind::StateType(_)) => "stateType",
                None => "nothing",
            },
        }
    }
}

/// The shapes that a port allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PortShape {
    /// Not declared, as for outputs of flexible shape.
    Unspecified,
    /// One shape.
    Fixed(Vec<usize>),
    /// One of several.
    Enumerated {
        /// The default shape.
        default: Vec<usize>,
        /// All that are allowed.
        shapes: Vec<Vec<usize>>,
    },
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
            PortShape::Enumerated { shapes, .. } => shapes.iter().any(|s| s == shape),
            PortShape::Range { bounds, .. } => {
                bounds.len() == shape.len()
                    && bounds.iter().zip(shape).all(|(&(lo, hi), &n)| n >= lo && hi.is_none_or(|hi| n <= hi))
            }
        }
    }

    /// The shape used where a caller does not choose; none if it is not declared.
    #[must_use]
    pub fn default_shape(&self) -> Option<&[usize]> {
        match self {
            PortShape::Unspecified => None,
            PortShape::Fixed(s) => Some(s),
            PortShape::Enumerated { default, .. } | PortShape::Range { default, .. } => Some(default),
        }
    }
}
