//! Ports, as the features of model descriptions.

use anemone_package::proto::spec::{
    ArrayFeatureType, DefaultOptionalValue, EnumeratedShapes, FeatureDescription, FeatureKind, FeatureType, Shape,
    ShapeFlexibility, ShapeRange, SizeRange, StateFeatureType, StateKind,
};

use crate::error::Fault;
use crate::port::{Port, PortDefault, PortKind, PortShape, StatePort};
use crate::types::DType;
use crate::wire;

/// Inputs or outputs.
pub(super) fn inputs(ports: &[Port]) -> Result<Vec<FeatureDescription>, Fault> {
    ports
        .iter()
        .map(|port| {
            let feature = match &port.kind {
                PortKind::Array { dtype, shape } => FeatureType {
                    r#type: Some(FeatureKind::MultiArrayType(
                        array(*dtype, shape, port.optional)
                            .map_err(|e| e.in_part(|| format!("port `{}`", port.name)))?,
                    )),
                    is_optional: port.optional.is_some(),
                },
                PortKind::Other(feature) => FeatureType { is_optional: port.optional.is_some(), ..(**feature).clone() },
            };
            Ok(description(&port.name, &port.description, feature))
        })
        .collect()
}

pub(super) fn states(ports: &[StatePort]) -> Result<Vec<FeatureDescription>, Fault> {
    ports
        .iter()
        .map(|port| {
            let shape = PortShape::Fixed(port.ty.shape.to_vec());
            let array =
                array(port.ty.dtype, &shape, None).map_err(|e| e.in_part(|| format!("state `{}`", port.name)))?;
            let state = StateFeatureType { r#type: Some(StateKind::ArrayType(array)) };
            let feature = FeatureType { r#type: Some(FeatureKind::StateType(state)), is_optional: false };
            Ok(description(&port.name, &port.description, feature))
        })
        .collect()
}

fn description(name: &str, text: &str, feature: FeatureType) -> FeatureDescription {
    FeatureDescription { name: name.to_owned(), short_description: text.to_owned(), r#type: Some(feature) }
}

fn array(dtype: DType, shape: &PortShape, optional: Option<PortDefault>) -> Result<ArrayFeatureType, Fault> {
    let data_type = wire::array_number(dtype)
        .ok_or_else(|| Fault::new("fp16, fp32, fp64, int8 or int32 elements of a port", dtype.name()))?;
    let flexibility = match shape {
        PortShape::Unspecified | PortShape::Fixed(_) => None,
        PortShape::Enumerated { shapes, .. } => Some(ShapeFlexibility::EnumeratedShapes(EnumeratedShapes {
            shapes: shapes.iter().map(|s| Ok(Shape { shape: extents(s)? })).collect::<Result<_, Fault>>()?,
        })),
        PortShape::Range { bounds, .. } => Some(ShapeFlexibility::ShapeRange(ShapeRange {
            size_ranges: bounds
                .iter()
                .map(|&(low, high)| {
                    let upper_bound = high.map_or(Ok(-1), extent)?;
                    Ok(SizeRange { lower_bound: low as u64, upper_bound })
                })
                .collect::<Result<_, Fault>>()?,
        })),
    };
    Ok(ArrayFeatureType {
        shape: extents(shape.default_shape().unwrap_or_default())?,
        data_type,
        shape_flexibility: flexibility,
        default_optional_value: match optional {
            Some(PortDefault::Fill(v)) => Some(default(dtype, v)),
            Some(PortDefault::Zero) | None => None,
        },
    })
}

/// The default in the field that is for the element type, if it fits there.
fn default(dtype: DType, v: f64) -> DefaultOptionalValue {
    match dtype {
        DType::I8 | DType::I32 if f64::from(v as i32) == v => DefaultOptionalValue::IntDefaultValue(v as i32),
        DType::F16 | DType::F32 if f64::from(v as f32) == v => DefaultOptionalValue::FloatDefaultValue(v as f32),
        _ => DefaultOptionalValue::DoubleDefaultValue(v),
    }
}

fn extents(shape: &[usize]) -> Result<Vec<i64>, Fault> {
    shape.iter().copied().map(extent).collect()
}

fn extent(n: usize) -> Result<i64, Fault> {
    i64::try_from(n).map_err(|_| Fault::new("an extent of at most 2^63 - 1", n.to_string()))
}
