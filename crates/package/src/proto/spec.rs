//! Messages of `Model.proto` and `FeatureTypes.proto`: what surrounds the program.
//!
//! Of the kinds of models only the ML Program is decoded; [`kind_of_field`] names the others.

mod array;
mod feature;
mod image;
mod kind;
mod model;

pub use array::{
    ArrayDataType, ArrayFeatureType, DefaultOptionalValue, EnumeratedShapes, Shape, ShapeFlexibility, ShapeRange,
    SizeRange,
};
pub use feature::{
    DictionaryFeatureType, DictionaryKeyType, DoubleFeatureType, FeatureDescription, FeatureKind, FeatureType,
    Int64FeatureType, SequenceElementType, SequenceFeatureType, StateFeatureType, StateKind, StringFeatureType,
};
pub use image::{ColorSpace, EnumeratedImageSizes, ImageFeatureType, ImageSize, ImageSizeFlexibility, ImageSizeRange};
pub use kind::{ML_PROGRAM, kind_of_field};
pub use model::{FunctionDescription, Metadata, Model, ModelDescription, ModelKind};
