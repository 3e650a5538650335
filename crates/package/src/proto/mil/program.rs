//! Program, functions, blocks, operations.

use std::collections::BTreeMap;

use super::{Value, ValueType};

/// A whole ML Program: `MILSpec.Program`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Program {
    /// Version of the program format; always 1 so far.
    #[prost(int64, tag = "1")]
    pub version: i64,
    /// Functions by name; a single-function model has just `main`.
    #[prost(btree_map = "string, message", tag = "2")]
    pub functions: BTreeMap<String, Function>,
    /// Free text.
    #[prost(string, tag = "3")]
    pub doc_string: String,
    /// Anything else, such as coremltools' `buildInfo`.
    #[prost(btree_map = "string, message", tag = "4")]
    pub attributes: BTreeMap<String, Value>,
}

/// One function: inputs (tensors and states), and a block per opset.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Function {
    /// Parameters in order; states are among them, with a state type.
    #[prost(message, repeated, tag = "1")]
    pub inputs: Vec<NamedValueType>,
    /// The active opset, `CoreML5` … `CoreML9`: a key of `block_specializations`.
    #[prost(string, tag = "2")]
    pub opset: String,
    /// The body, per opset.
    #[prost(btree_map = "string, message", tag = "3")]
    pub block_specializations: BTreeMap<String, Block>,
    /// Anything else.
    #[prost(btree_map = "string, message", tag = "4")]
    pub attributes: BTreeMap<String, Value>,
}

/// A list of operations in order of execution.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Block {
    /// Parameters; only nested blocks (of `cond`, `while_loop`, …) have any.
    #[prost(message, repeated, tag = "1")]
    pub inputs: Vec<NamedValueType>,
    /// Names of the values that the block returns.
    #[prost(string, repeated, tag = "2")]
    pub outputs: Vec<String>,
    /// Operations, topologically ordered; around states the order is the only dependency.
    #[prost(message, repeated, tag = "3")]
    pub operations: Vec<Operation>,
    /// Anything else.
    #[prost(btree_map = "string, message", tag = "4")]
    pub attributes: BTreeMap<String, Value>,
}

/// One operation.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Operation {
    /// Name of the op, such as `linear`.
    #[prost(string, tag = "1")]
    pub r#type: String,
    /// Arguments by parameter name.
    #[prost(btree_map = "string, message", tag = "2")]
    pub inputs: BTreeMap<String, Argument>,
    /// Results in order; `write_state` has none.
    #[prost(message, repeated, tag = "3")]
    pub outputs: Vec<NamedValueType>,
    /// Nested blocks of control flow.
    #[prost(message, repeated, tag = "4")]
    pub blocks: Vec<Block>,
    /// Compile-time values: `name`, the `val` of a `const`, all parameters of an iOS 16 `constexpr_*`.
    #[prost(btree_map = "string, message", tag = "5")]
    pub attributes: BTreeMap<String, Value>,
}

/// What is bound to one parameter: one binding, or several for a variadic parameter.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Argument {
    /// The bindings in order.
    #[prost(message, repeated, tag = "1")]
    pub arguments: Vec<Binding>,
}

/// One binding of an [`Argument`].
#[derive(Clone, PartialEq, prost::Message)]
pub struct Binding {
    /// A name in scope or an inline value.
    #[prost(oneof = "BindingKind", tags = "1, 2")]
    pub binding: Option<BindingKind>,
}

/// The two ways to bind an argument.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum BindingKind {
    /// The name of an earlier value.
    #[prost(string, tag = "1")]
    Name(String),
    /// A value in place.
    #[prost(message, tag = "2")]
    Value(Value),
}

/// A name and its type: an input, or a result of an operation.
#[derive(Clone, PartialEq, prost::Message)]
pub struct NamedValueType {
    /// The name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// The type.
    #[prost(message, optional, tag = "2")]
    pub r#type: Option<ValueType>,
}
