//! Where a program refers to weight files.

use super::mil::{
    Binding, BindingKind, BlobFileValue, Block, Function, ImmediateKind, NamedValueType, Operation, Program, TypeKind,
    Value, ValueKind, ValueType,
};

/// Every reference to a weight file, in a fixed order.
#[must_use]
pub fn blob_references(program: &Program) -> Vec<&BlobFileValue> {
    let mut found = Vec::new();
    program.attributes.values().for_each(|value| read::value(value, &mut found));
    program.functions.values().for_each(|function| read::function(function, &mut found));
    found
}

/// Every reference to a weight file, in the order of [`blob_references`], to be changed in place.
#[must_use]
pub fn blob_references_mut(program: &mut Program) -> Vec<&mut BlobFileValue> {
    let mut found = Vec::new();
    program.attributes.values_mut().for_each(|value| write::value(value, &mut found));
    program.functions.values_mut().for_each(|function| write::function(function, &mut found));
    found
}

macro_rules! visitor {
    ($name:ident, $iter:ident, $values:ident, $as_ref:ident, $as_deref:ident $(, $mutable:tt)?) => {
        mod $name {
            use super::*;
            type Found<'a> = Vec<&'a $($mutable)? BlobFileValue>;

            pub(super) fn function<'a>(function: &'a $($mutable)? Function, found: &mut Found<'a>) {
                named(&$($mutable)? function.inputs, found);
                function.attributes.$values().for_each(|v| value(v, found));
                function.block_specializations.$values().for_each(|b| block(b, found));
            }

            fn block<'a>(block: &'a $($mutable)? Block, found: &mut Found<'a>) {
                named(&$($mutable)? block.inputs, found);
                block.attributes.$values().for_each(|v| value(v, found));
                block.operations.$iter().for_each(|op| operation(op, found));
            }

            fn operation<'a>(operation: &'a $($mutable)? Operation, found: &mut Found<'a>) {
                operation.attributes.$values().for_each(|v| value(v, found));
                for argument in operation.inputs.$values() {
                    for binding in argument.arguments.$iter() {
                        if let Binding { binding: Some(BindingKind::Value(v)) } = binding {
                            value(v, found);
                        }
                    }
                }
                named(&$($mutable)? operation.outputs, found);
                operation.blocks.$iter().for_each(|b| block(b, found));
            }

            fn named<'a>(named: &'a $($mutable)? [NamedValueType], found: &mut Found<'a>) {
                named.$iter().filter_map(|named| named.r#type.$as_ref()).for_each(|t| value_type(t, found));
            }

            fn value_type<'a>(value_type: &'a $($mutable)? ValueType, found: &mut Found<'a>) {
                use self::value_type as inner;
                match value_type.r#type.$as_ref() {
                    Some(TypeKind::TensorType(t)) => t.attributes.$values().for_each(|v| value(v, found)),
                    Some(TypeKind::ListType(t)) => t.r#type.$as_deref().into_iter().for_each(|t| inner(t, found)),
                    Some(TypeKind::TupleType(t)) => t.types.$iter().for_each(|t| inner(t, found)),
                    Some(TypeKind::DictionaryType(t)) => {
                        t.key_type.$as_deref().into_iter().for_each(|t| inner(t, found));
                        t.value_type.$as_deref().into_iter().for_each(|t| inner(t, found));
                    }
                    Some(TypeKind::StateType(t)) => t.wrapped_type.$as_deref().into_iter().for_each(|t| inner(t, found)),
                    None => {}
                }
            }

            pub(super) fn value<'a>(value: &'a $($mutable)? Value, found: &mut Found<'a>) {
                use self::value as inner;
                value.r#type.$as_ref().into_iter().for_each(|t| value_type(t, found));
                match value.value.$as_ref() {
                    Some(ValueKind::BlobFileValue(blob)) => found.push(blob),
                    Some(ValueKind::ImmediateValue(immediate)) => match immediate.value.$as_ref() {
                        Some(ImmediateKind::Tuple(tuple)) => tuple.values.$iter().for_each(|v| inner(v, found)),
                        Some(ImmediateKind::List(list)) => list.values.$iter().for_each(|v| inner(v, found)),
                        Some(ImmediateKind::Dictionary(dictionary)) => {
                            for pair in dictionary.values.$iter() {
                                pair.key.$as_ref().into_iter().for_each(|v| inner(v, found));
                                pair.value.$as_ref().into_iter().for_each(|v| inner(v, found));
                            }
                        }
                        Some(ImmediateKind::Tensor(_)) | None => {}
                    },
                    None => {}
                }
            }
        }
    };
}

visitor!(read, iter, values, as_ref, as_deref);
visitor!(write, iter_mut, values_mut, as_mut, as_deref_mut, mut);
