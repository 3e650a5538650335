//! Types of values.

use anemone_package::proto::mil::{self, DimensionKind, TypeKind};

use super::{Context, MAX_DEPTH, MAX_ELEMENTS, MAX_RANK};
use crate::error::Fault;
use crate::types::{Dim, TensorType, Type};
use crate::wire;

impl Context<'_> {
    pub(super) fn ty(&self, ty: Option<&mil::ValueType>, depth: usize) -> Result<Type, Fault> {
        if depth > MAX_DEPTH {
            return Err(Fault::new(format!("types nested at most {MAX_DEPTH} deep"), "a deeper one"));
        }
        let inner = |ty: &Option<Box<mil::ValueType>>| self.ty(ty.as_deref(), depth + 1);
        match ty.and_then(|t| t.r#type.as_ref()) {
            None => Err(Fault::new("a type", "none")),
            Some(TypeKind::TensorType(t)) => Ok(Type::Tensor(self.tensor_type(t)?)),
            Some(TypeKind::StateType(t)) => match inner(&t.wrapped_type)? {
                Type::Tensor(t) => Ok(Type::State(t)),
                other => Err(Fault::new("a state that wraps a tensor", format!("one that wraps {other}"))),
            },
            Some(TypeKind::ListType(t)) => {
                let length = match t.length.as_ref().and_then(|l| l.dimension) {
                    Some(DimensionKind::Constant(n)) => {
                        Some(usize::try_from(n.size).map_err(|_| Fault::new("a list that fits in memory", "more"))?)
                    }
                    Some(DimensionKind::Unknown(_)) | None => None,
                };
                Ok(Type::List(Box::new(inner(&t.r#type)?), length))
            }
            Some(TypeKind::TupleType(t)) => {
                Ok(Type::Tuple(t.types.iter().map(|t| self.ty(Some(t), depth + 1)).collect::<Result<_, _>>()?))
            }
            Some(TypeKind::DictionaryType(t)) => {
                Ok(Type::Dictionary(Box::new(inner(&t.key_type)?), Box::new(inner(&t.value_type)?)))
            }
        }
    }

    fn tensor_type(&self, t: &mil::TensorType) -> Result<TensorType, Fault> {
        if !t.attributes.is_empty() {
            self.leave_out("attributes of tensor types");
        }
        let dtype = wire::dtype(t.data_type)
            .ok_or_else(|| Fault::new("an element type of MIL", format!("number {}", t.data_type)))?;
        let variadic =
            |d: &mil::Dimension| matches!(d.dimension, Some(DimensionKind::Unknown(unknown)) if unknown.variadic);
        if t.rank < 0 || t.dimensions.iter().any(variadic) {
            if t.dimensions.iter().any(|d| !variadic(d)) {
                self.leave_out("known axes of tensor types of unknown rank");
            }
            return Ok(TensorType { dtype, shape: None });
        }
        if usize::try_from(t.rank) != Ok(t.dimensions.len()) {
            return Err(Fault::new(format!("{} axes, as the rank says", t.rank), t.dimensions.len().to_string()));
        }
        let mut dims = Vec::with_capacity(t.dimensions.len());
        for d in &t.dimensions {
            dims.push(match d.dimension {
                Some(DimensionKind::Constant(n)) => Dim::Known(
                    usize::try_from(n.size)
                        .map_err(|_| Fault::new("an extent that fits in memory", n.size.to_string()))?,
                ),
                Some(DimensionKind::Unknown(_)) => Dim::Unknown,
                None => return Err(Fault::new("an extent, known or not", "neither")),
            });
        }
        check_size(&dims)?;
        Ok(TensorType { dtype, shape: Some(dims) })
    }
}

/// Holds axes to the stated bounds, so that a number of elements can be computed from them without overflow.
pub(crate) fn check_size(dims: &[Dim]) -> Result<(), Fault> {
    if dims.len() > MAX_RANK {
        return Err(Fault::new(format!("at most {MAX_RANK} axes"), dims.len().to_string()));
    }
    let size = dims.iter().try_fold(1usize, |size, d| match d {
        Dim::Known(n) => size.checked_mul((*n).max(1)).filter(|&size| size <= MAX_ELEMENTS),
        Dim::Unknown => Some(size),
    });
    match size {
        Some(_) => Ok(()),
        None => Err(Fault::new(format!("at most {MAX_ELEMENTS} elements"), format!("axes {dims:?}"))),
    }
}
