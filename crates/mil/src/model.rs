//! A model: a program with what its package says around it.

use std::collections::BTreeMap;

use crate::port::Port;
use crate::program::{Function, Program};

/// A program with what its package says around it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Model {
    /// 6 iOS 15, 7 iOS 16, 8 iOS 17, 9 iOS 18, 10 iOS 26.
    pub specification_version: i32,
    /// The functions, each with its ports.
    pub program: Program,
    /// The function that runs when none is named. `None` for the form of packages with one function, [`MAIN`], whose ports
    /// are the model's own.
    pub default_function: Option<String>,
    /// What the author says.
    pub metadata: Metadata,
    /// Whether it declares that it can be trained further on the device.
    pub updatable: bool,
    /// Inputs used for such training only.
    pub training_inputs: Vec<Port>,
    /// What the package says that a `Model` has no room for, one sentence each. [`encode`](mod@crate::encode) refuses to write
    /// a model while there is any, so nothing is lost unseen; clear it to lose it knowingly.
    pub left_out: Vec<String>,
}

/// The function of a package with one function.
pub const MAIN: &str = "main";

/// What the author says about a model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    /// One or two sentences.
    pub description: String,
    /// The model's version.
    pub version: String,
    /// Who made it.
    pub author: String,
    /// Its licence.
    pub license: String,
    /// Anything else, by key.
    pub user_defined: BTreeMap<String, String>,
}

impl Model {
    /// The name of the function that runs when none is named.
    #[must_use]
    pub fn default_name(&self) -> &str {
        self.default_function.as_deref().unwrap_or(MAIN)
    }

    /// The function `name`, or the default one; `None` if there is no such function.
    #[must_use]
    pub fn function(&self, name: Option<&str>) -> Option<&Function> {
        self.program.functions.get(name.unwrap_or(self.default_name()))
    }
}
