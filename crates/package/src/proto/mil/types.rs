//! Types of values.

use std::collections::BTreeMap;

use super::Value;

/// The type of a value.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ValueType {
    /// Which kind of type.
    #[prost(oneof = "TypeKind", tags = "1, 2, 3, 4, 5")]
    pub r#type: Option<TypeKind>,
}

/// The kinds of types.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum TypeKind {
    /// A tensor or, with rank 0, a scalar (strings included).
    #[prost(message, tag = "1")]
    TensorType(TensorType),
    /// A list of one element type.
    #[prost(message, tag = "2")]
    ListType(Box<ListType>),
    /// A tuple.
    #[prost(message, tag = "3")]
    TupleType(TupleType),
    /// A dictionary.
    #[prost(message, tag = "4")]
    DictionaryType(Box<DictionaryType>),
    /// A state: a place that keeps its content between predictions.
    #[prost(message, tag = "5")]
    StateType(Box<StateType>),
}

/// Element type and shape.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TensorType {
    /// A [`DataType`], as its number.
    #[prost(enumeration = "DataType", tag = "1")]
    pub data_type: i32,
    /// Number of dimensions; −1 if unknown.
    #[prost(int64, tag = "2")]
    pub rank: i64,
    /// The dimensions, outermost first.
    #[prost(message, repeated, tag = "3")]
    pub dimensions: Vec<Dimension>,
    /// Anything else.
    #[prost(btree_map = "string, message", tag = "4")]
    pub attributes: BTreeMap<String, Value>,
}

/// The type of a tuple.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TupleType {
    /// The types of its members.
    #[prost(message, repeated, tag = "1")]
    pub types: Vec<ValueType>,
}

/// The type of a list.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ListType {
    /// The type of its elements.
    #[prost(message, optional, boxed, tag = "1")]
    pub r#type: Option<Box<ValueType>>,
    /// Its length.
    #[prost(message, optional, tag = "2")]
    pub length: Option<Dimension>,
}

/// The type of a dictionary.
#[derive(Clone, PartialEq, prost::Message)]
pub struct DictionaryType {
    /// The type of its keys.
    #[prost(message, optional, boxed, tag = "1")]
    pub key_type: Option<Box<ValueType>>,
    /// The type of its values.
    #[prost(message, optional, boxed, tag = "2")]
    pub value_type: Option<Box<ValueType>>,
}

/// The type of a state.
#[derive(Clone, PartialEq, prost::Message)]
pub struct StateType {
    /// The type of its content: a tensor type of fixed shape.
    #[prost(message, optional, boxed, tag = "1")]
    pub wrapped_type: Option<Box<ValueType>>,
}

/// One dimension of a shape.
#[derive(Clone, Copy, PartialEq, Eq, Hash, prost::Message)]
pub struct Dimension {
    /// Known or unknown.
    #[prost(oneof = "DimensionKind", tags = "1, 2")]
    pub dimension: Option<DimensionKind>,
}

/// The kinds of dimensions.
#[derive(Clone, Copy, PartialEq, Eq, Hash, prost::Oneof)]
pub enum DimensionKind {
    /// A size that is known.
    #[prost(message, tag = "1")]
    Constant(ConstantDimension),
    /// A size that is not.
    #[prost(message, tag = "2")]
    Unknown(UnknownDimension),
}

/// A size that is known.
#[derive(Clone, Copy, PartialEq, Eq, Hash, prost::Message)]
pub struct ConstantDimension {
    /// The size.
    #[prost(uint64, tag = "1")]
    pub size: u64,
}

/// A size that is not known until a prediction runs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, prost::Message)]
pub struct UnknownDimension {
    /// Stands for any number of dimensions.
    #[prost(bool, tag = "1")]
    pub variadic: bool,
}

/// Element types of MIL. (Weight files have an enumeration of their own, [`BlobType`](crate::BlobType).)
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
#[allow(missing_docs, reason = "the variants are the element types' own names")]
pub enum DataType {
    Unused = 0,
    Bool = 1,
    String = 2,
    Float16 = 10,
    Float32 = 11,
    Float64 = 12,
    BFloat16 = 13,
    Int8 = 21,
    Int16 = 22,
    Int32 = 23,
    Int64 = 24,
    Int4 = 25,
    UInt8 = 31,
    UInt16 = 32,
    UInt32 = 33,
    UInt64 = 34,
    UInt4 = 35,
    UInt2 = 36,
    UInt1 = 37,
    UInt6 = 38,
    UInt3 = 39,
    Float8E4M3FN = 40,
    Float8E5M2 = 41,
}
