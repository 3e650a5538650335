//! Tensors as features.

/// Element type and shape of a tensor that a caller gives or gets.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ArrayFeatureType {
    /// The default shape; empty for an output whose shape depends on the inputs.
    #[prost(int64, repeated, tag = "1")]
    pub shape: Vec<i64>,
    /// An [`ArrayDataType`], as its number.
    #[prost(enumeration = "ArrayDataType", tag = "2")]
    pub data_type: i32,
    /// Other shapes that are allowed.
    #[prost(oneof = "ShapeFlexibility", tags = "21, 31")]
    pub shape_flexibility: Option<ShapeFlexibility>,
    /// What an optional input is filled with when it is left out.
    #[prost(oneof = "DefaultOptionalValue", tags = "41, 51, 61")]
    pub default_optional_value: Option<DefaultOptionalValue>,
}

/// Which shapes are allowed beside the default one.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum ShapeFlexibility {
    /// Any of a list.
    #[prost(message, tag = "21")]
    EnumeratedShapes(EnumeratedShapes),
    /// A range for each dimension.
    #[prost(message, tag = "31")]
    ShapeRange(ShapeRange),
}

/// A list of allowed shapes.
#[derive(Clone, PartialEq, prost::Message)]
pub struct EnumeratedShapes {
    /// The shapes.
    #[prost(message, repeated, tag = "1")]
    pub shapes: Vec<Shape>,
}

/// One allowed shape.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub struct Shape {
    /// Its dimensions.
    #[prost(int64, repeated, tag = "1")]
    pub shape: Vec<i64>,
}

/// A range for each dimension.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ShapeRange {
    /// The ranges, one per dimension.
    #[prost(message, repeated, tag = "1")]
    pub size_ranges: Vec<SizeRange>,
}

/// A range of sizes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, prost::Message)]
pub struct SizeRange {
    /// The smallest.
    #[prost(uint64, tag = "1")]
    pub lower_bound: u64,
    /// The largest; −1 if there is none.
    #[prost(int64, tag = "2")]
    pub upper_bound: i64,
}

/// What an optional input is filled with when it is left out.
#[derive(Clone, Copy, PartialEq, prost::Oneof)]
pub enum DefaultOptionalValue {
    /// For int32.
    #[prost(int32, tag = "41")]
    IntDefaultValue(i32),
    /// For fp32 (and fp16).
    #[prost(float, tag = "51")]
    FloatDefaultValue(f32),
    /// For fp64.
    #[prost(double, tag = "61")]
    DoubleDefaultValue(f64),
}

/// Element types of features: the numbers are those of `MLMultiArrayDataType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
#[allow(missing_docs, reason = "the variants are the element types' own names")]
pub enum ArrayDataType {
    Invalid = 0,
    Float16 = 65552,
    Float32 = 65568,
    Double = 65600,
    Int8 = 131_080,
    Int32 = 131_104,
}
