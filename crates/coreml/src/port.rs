//! Inputs, outputs and states of a loaded function.

use serde::Serialize;

use crate::ElementType;

/// An array that goes in, comes out, or stays.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Port {
    /// Its name.
    pub name: String,
    /// The type of its elements.
    #[serde(rename = "type")]
    pub element: ElementType,
    /// Its shape; for ports that take several, the default one.
    pub shape: Vec<usize>,
}

impl Port {
    /// A port.
    #[must_use]
    pub fn new(name: impl Into<String>, element: ElementType, shape: impl Into<Vec<usize>>) -> Self {
        Self { name: name.into(), element, shape: shape.into() }
    }

    /// Elements of the whole array; `None` beyond what can be counted.
    #[must_use]
    pub fn elements(&self) -> Option<usize> {
        self.shape.iter().try_fold(1usize, |all, &n| all.checked_mul(n))
    }
}

/// The ports of one function, each list in order of names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Ports {
    /// Arrays that each call is given.
    pub inputs: Vec<Port>,
    /// Arrays that each call gives.
    pub outputs: Vec<Port>,
    /// Arrays that stay between calls.
    pub states: Vec<Port>,
}

impl Ports {
    /// Sorts the lists, so that indices do not depend on the order of a dictionary.
    pub(crate) fn sort(&mut self) {
        [&mut self.inputs, &mut self.outputs, &mut self.states]
            .into_iter()
            .for_each(|ports| ports.sort_by(|a, b| a.name.cmp(&b.name)));
    }
}
