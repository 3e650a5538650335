//! The model, its description and metadata.

use std::collections::BTreeMap;

use super::FeatureDescription;
use crate::proto::mil::Program;

/// A whole model: `CoreML.Specification.Model`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Model {
    /// 6 iOS 15, 7 iOS 16, 8 iOS 17, 9 iOS 18, 10 iOS 26.
    #[prost(int32, tag = "1")]
    pub specification_version: i32,
    /// The interface.
    #[prost(message, optional, tag = "2")]
    pub description: Option<ModelDescription>,
    /// Whether it can be trained further on the device.
    #[prost(bool, tag = "10")]
    pub is_updatable: bool,
    /// What kind of model, and its content.
    #[prost(oneof = "ModelKind", tags = "502")]
    pub r#type: Option<ModelKind>,
}

impl Model {
    /// The program, if the model holds one.
    #[must_use]
    pub fn program(&self) -> Option<&Program> {
        self.r#type.as_ref().map(|ModelKind::MlProgram(program)| program)
    }
}

/// The kinds of models that are decoded.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum ModelKind {
    /// An ML Program.
    #[prost(message, tag = "502")]
    MlProgram(Program),
}

/// The interface of a model.
///
/// A model of one function uses the lists here; one of several uses `functions`, and the lists here are empty.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ModelDescription {
    /// Inputs.
    #[prost(message, repeated, tag = "1")]
    pub input: Vec<FeatureDescription>,
    /// Outputs.
    #[prost(message, repeated, tag = "10")]
    pub output: Vec<FeatureDescription>,
    /// Of a classifier: the output that is the predicted class.
    #[prost(string, tag = "11")]
    pub predicted_feature_name: String,
    /// Of a classifier: the output that holds the probabilities.
    #[prost(string, tag = "12")]
    pub predicted_probabilities_name: String,
    /// States; each has a [`StateFeatureType`](super::StateFeatureType).
    #[prost(message, repeated, tag = "13")]
    pub state: Vec<FeatureDescription>,
    /// The functions of a multi-function model.
    #[prost(message, repeated, tag = "20")]
    pub functions: Vec<FunctionDescription>,
    /// Which of `functions` runs when none is named.
    #[prost(string, tag = "21")]
    pub default_function_name: String,
    /// Inputs used for training only.
    #[prost(message, repeated, tag = "50")]
    pub training_input: Vec<FeatureDescription>,
    /// Author, licence and so on.
    #[prost(message, optional, tag = "100")]
    pub metadata: Option<Metadata>,
}

/// The interface of one function of a multi-function model.
#[derive(Clone, PartialEq, prost::Message)]
pub struct FunctionDescription {
    /// Its name in the program.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Inputs.
    #[prost(message, repeated, tag = "2")]
    pub input: Vec<FeatureDescription>,
    /// Outputs.
    #[prost(message, repeated, tag = "3")]
    pub output: Vec<FeatureDescription>,
    /// Of a classifier: the output that is the predicted class.
    #[prost(string, tag = "4")]
    pub predicted_feature_name: String,
    /// Of a classifier: the output that holds the probabilities.
    #[prost(string, tag = "5")]
    pub predicted_probabilities_name: String,
    /// States.
    #[prost(message, repeated, tag = "6")]
    pub state: Vec<FeatureDescription>,
}

/// What the author says about the model.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Metadata {
    /// One or two sentences.
    #[prost(string, tag = "1")]
    pub short_description: String,
    /// The model's version.
    #[prost(string, tag = "2")]
    pub version_string: String,
    /// Who made it.
    #[prost(string, tag = "3")]
    pub author: String,
    /// Its licence.
    #[prost(string, tag = "4")]
    pub license: String,
    /// Anything else, by key.
    #[prost(btree_map = "string, string", tag = "100")]
    pub user_defined: BTreeMap<String, String>,
}
