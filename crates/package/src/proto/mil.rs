//! Messages of `MIL.proto`: the program inside a model.
//!
//! Field names and numbers are those of the schema; the variants of a `oneof` live beside their message, in an enum named
//! after it (`Value.value` is a [`ValueKind`]). Absent sub-messages are `None` and are judged by the decoder of programs,
//! not here.

mod program;
mod types;
mod value;

pub use program::{Argument, Binding, BindingKind, Block, Function, NamedValueType, Operation, Program};
pub use types::{
    ConstantDimension, DataType, DictionaryType, Dimension, DimensionKind, ListType, StateType, TensorType, TupleType,
    TypeKind, UnknownDimension, ValueType,
};
pub use value::{
    BlobFileValue, DictionaryValue, ImmediateKind, ImmediateValue, KeyValuePair, ListValue, RepeatedBools,
    RepeatedBytes, RepeatedDoubles, RepeatedFloats, RepeatedInts, RepeatedLongInts, RepeatedStrings, TensorData,
    TensorValue, TupleValue, Value, ValueKind,
};
