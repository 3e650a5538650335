//! Features: the inputs, outputs and states that a caller sees.

use super::{ArrayFeatureType, ImageFeatureType, SizeRange};

/// A named input, output or state.
#[derive(Clone, PartialEq, prost::Message)]
pub struct FeatureDescription {
    /// Its name; the program's own inputs and outputs bear the same.
    #[prost(string, tag = "1")]
    pub name: String,
    /// One sentence for people.
    #[prost(string, tag = "2")]
    pub short_description: String,
    /// Its type.
    #[prost(message, optional, tag = "3")]
    pub r#type: Option<FeatureType>,
}

/// The type of a feature.
#[derive(Clone, PartialEq, prost::Message)]
pub struct FeatureType {
    /// Which kind.
    #[prost(oneof = "FeatureKind", tags = "1, 2, 3, 4, 5, 6, 7, 8")]
    pub r#type: Option<FeatureKind>,
    /// Whether a caller may leave it out.
    #[prost(bool, tag = "1000")]
    pub is_optional: bool,
}

/// The kinds of features.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum FeatureKind {
    /// An integer.
    #[prost(message, tag = "1")]
    Int64Type(Int64FeatureType),
    /// A number.
    #[prost(message, tag = "2")]
    DoubleType(DoubleFeatureType),
    /// A string.
    #[prost(message, tag = "3")]
    StringType(StringFeatureType),
    /// An image.
    #[prost(message, tag = "4")]
    ImageType(ImageFeatureType),
    /// A tensor.
    #[prost(message, tag = "5")]
    MultiArrayType(ArrayFeatureType),
    /// A dictionary.
    #[prost(message, tag = "6")]
    DictionaryType(DictionaryFeatureType),
    /// A sequence.
    #[prost(message, tag = "7")]
    SequenceType(SequenceFeatureType),
    /// A state.
    #[prost(message, tag = "8")]
    StateType(StateFeatureType),
}

/// An integer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, prost::Message)]
pub struct Int64FeatureType {}

/// A number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, prost::Message)]
pub struct DoubleFeatureType {}

/// A string.
#[derive(Clone, Copy, PartialEq, Eq, Hash, prost::Message)]
pub struct StringFeatureType {}

/// A dictionary of numbers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, prost::Message)]
pub struct DictionaryFeatureType {
    /// The type of its keys.
    #[prost(oneof = "DictionaryKeyType", tags = "1, 2")]
    pub key_type: Option<DictionaryKeyType>,
}

/// Key types of a [`DictionaryFeatureType`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, prost::Oneof)]
pub enum DictionaryKeyType {
    /// Integers.
    #[prost(message, tag = "1")]
    Int64KeyType(Int64FeatureType),
    /// Strings.
    #[prost(message, tag = "2")]
    StringKeyType(StringFeatureType),
}

/// A sequence.
#[derive(Clone, Copy, PartialEq, Eq, Hash, prost::Message)]
pub struct SequenceFeatureType {
    /// The type of its elements.
    #[prost(oneof = "SequenceElementType", tags = "1, 3")]
    pub r#type: Option<SequenceElementType>,
    /// How long it may be.
    #[prost(message, optional, tag = "101")]
    pub size_range: Option<SizeRange>,
}

/// Element types of a [`SequenceFeatureType`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, prost::Oneof)]
pub enum SequenceElementType {
    /// Integers.
    #[prost(message, tag = "1")]
    Int64Type(Int64FeatureType),
    /// Strings.
    #[prost(message, tag = "3")]
    StringType(StringFeatureType),
}

/// A state: what a prediction leaves for the next one.
#[derive(Clone, PartialEq, prost::Message)]
pub struct StateFeatureType {
    /// The type of its content.
    #[prost(oneof = "StateKind", tags = "1")]
    pub r#type: Option<StateKind>,
}

/// The kinds of states.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum StateKind {
    /// A tensor.
    #[prost(message, tag = "1")]
    ArrayType(ArrayFeatureType),
}
