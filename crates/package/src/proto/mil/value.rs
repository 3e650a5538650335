//! Values: immediate ones, and references into weight files.

use bytes::Bytes;

use super::ValueType;

/// A typed value.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Value {
    /// Free text.
    #[prost(string, tag = "1")]
    pub doc_string: String,
    /// Its type.
    #[prost(message, optional, tag = "2")]
    pub r#type: Option<ValueType>,
    /// Its content.
    #[prost(oneof = "ValueKind", tags = "3, 5")]
    pub value: Option<ValueKind>,
}

/// Where the content of a [`Value`] is.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum ValueKind {
    /// In the message.
    #[prost(message, tag = "3")]
    ImmediateValue(ImmediateValue),
    /// In a weight file.
    #[prost(message, tag = "5")]
    BlobFileValue(BlobFileValue),
}

/// A value that is in the message.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ImmediateValue {
    /// Its content.
    #[prost(oneof = "ImmediateKind", tags = "1, 2, 3, 4")]
    pub value: Option<ImmediateKind>,
}

/// The kinds of immediate values.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum ImmediateKind {
    /// A tensor or scalar.
    #[prost(message, tag = "1")]
    Tensor(TensorValue),
    /// A tuple.
    #[prost(message, tag = "2")]
    Tuple(TupleValue),
    /// A list.
    #[prost(message, tag = "3")]
    List(ListValue),
    /// A dictionary.
    #[prost(message, tag = "4")]
    Dictionary(DictionaryValue),
}

/// A reference to a blob of a weight file.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub struct BlobFileValue {
    /// The file, such as `@model_path/weights/weight.bin`; `@model_path` is the folder of the model file.
    #[prost(string, tag = "1")]
    pub file_name: String,
    /// Where in the file the blob's *metadata* begins (not its data).
    #[prost(uint64, tag = "2")]
    pub offset: u64,
}

/// The elements of an immediate tensor, row-major.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TensorValue {
    /// The elements.
    #[prost(oneof = "TensorData", tags = "1, 2, 3, 4, 5, 6, 7")]
    pub value: Option<TensorData>,
}

/// How the elements of an immediate tensor are spelt. The type of the value says what they mean.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum TensorData {
    /// fp32.
    #[prost(message, tag = "1")]
    Floats(RepeatedFloats),
    /// int32, int16, uint16.
    #[prost(message, tag = "2")]
    Ints(RepeatedInts),
    /// bool.
    #[prost(message, tag = "3")]
    Bools(RepeatedBools),
    /// Strings.
    #[prost(message, tag = "4")]
    Strings(RepeatedStrings),
    /// int64, uint64.
    #[prost(message, tag = "5")]
    LongInts(RepeatedLongInts),
    /// fp64.
    #[prost(message, tag = "6")]
    Doubles(RepeatedDoubles),
    /// fp16, int8, uint8, uint32 little-endian, and all sub-byte types packed from the lowest bit.
    #[prost(message, tag = "7")]
    Bytes(RepeatedBytes),
}

macro_rules! repeated {
    ($name:ident, $kind:ident, $of:ty, $doc:literal) => {
        #[doc = $doc]
        #[derive(Clone, PartialEq, prost::Message)]
        pub struct $name {
            /// The elements.
            #[prost($kind, repeated, tag = "1")]
            pub values: Vec<$of>,
        }
    };
}

repeated!(RepeatedFloats, float, f32, "Many `f32`.");
repeated!(RepeatedDoubles, double, f64, "Many `f64`.");
repeated!(RepeatedInts, int32, i32, "Many `i32`.");
repeated!(RepeatedLongInts, int64, i64, "Many `i64`.");
repeated!(RepeatedBools, bool, bool, "Many `bool`.");
repeated!(RepeatedStrings, string, String, "Many strings.");

/// Raw bytes; decoding from [`Bytes`] shares them instead of copying.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub struct RepeatedBytes {
    /// The bytes.
    #[prost(bytes = "bytes", tag = "1")]
    pub values: Bytes,
}

/// Members of a tuple.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TupleValue {
    /// The members.
    #[prost(message, repeated, tag = "1")]
    pub values: Vec<Value>,
}

/// Elements of a list.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ListValue {
    /// The elements.
    #[prost(message, repeated, tag = "1")]
    pub values: Vec<Value>,
}

/// Entries of a dictionary.
#[derive(Clone, PartialEq, prost::Message)]
pub struct DictionaryValue {
    /// The entries.
    #[prost(message, repeated, tag = "1")]
    pub values: Vec<KeyValuePair>,
}

/// One entry of a dictionary.
#[derive(Clone, PartialEq, prost::Message)]
pub struct KeyValuePair {
    /// The key.
    #[prost(message, optional, tag = "1")]
    pub key: Option<Value>,
    /// The value.
    #[prost(message, optional, tag = "2")]
    pub value: Option<Value>,
}
