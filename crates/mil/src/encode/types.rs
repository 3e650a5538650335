//! Types of values.

use anemone_package::proto::mil;

use crate::types::{Dim, TensorType, Type};
use crate::wire;

pub(super) fn ty(t: &Type) -> mil::ValueType {
    let inner = |t: &Type| Some(Box::new(ty(t)));
    mil::ValueType {
        r#type: Some(match t {
            Type::Tensor(t) => mil::TypeKind::TensorType(tensor_type(t)),
            Type::State(t) => {
                mil::TypeKind::StateType(Box::new(mil::StateType { wrapped_type: inner(&Type::Tensor(t.clone())) }))
            }
            Type::List(element, length) => mil::TypeKind::ListType(Box::new(mil::ListType {
                r#type: inner(element),
                length: Some(dimension(length.map_or(Dim::Unknown, Dim::Known))),
            })),
            Type::Tuple(members) => {
                mil::TypeKind::TupleType(mil::TupleType { types: members.iter().map(ty).collect() })
            }
            Type::Dictionary(key, value) => mil::TypeKind::DictionaryType(Box::new(mil::DictionaryType {
                key_type: inner(key),
                value_type: inner(value),
            })),
        }),
    }
}

fn tensor_type(t: &TensorType) -> mil::TensorType {
    let (rank, dimensions) = match &t.shape {
        Some(dims) => (dims.len() as i64, dims.iter().copied().map(dimension).collect()),
        None => {
            let any = mil::DimensionKind::Unknown(mil::UnknownDimension { variadic: true });
            (-1, vec![mil::Dimension { dimension: Some(any) }])
        }
    };
    mil::TensorType { data_type: wire::dtype_number(t.dtype), rank, dimensions, ..mil::TensorType::default() }
}

fn dimension(d: Dim) -> mil::Dimension {
    mil::Dimension {
        dimension: Some(match d {
            Dim::Known(n) => mil::DimensionKind::Constant(mil::ConstantDimension { size: n as u64 }),
            Dim::Unknown => mil::DimensionKind::Unknown(mil::UnknownDimension { variadic: false }),
        }),
    }
}
