//! Ports, from the features of model descriptions.

use anemone_package::proto::spec::{
    ArrayFeatureType, DefaultOptionalValue, FeatureDescription, FeatureKind, ShapeFlexibility, StateKind,
};

use super::Context;
use super::types::check_size;
use crate::error::Fault;
use crate::port::{Port, PortDefault, PortKind, PortShape, StatePort};
use crate::types::{DType, Dim, StaticType};
use crate::wire;

impl Context<'_> {
    pub(super) fn port(&self, from: &FeatureDescription) -> Result<Port, Fault> {
        let fault = |e: Fault| e.in_part(|| format!("port `{}`", from.name));
        let feature = from.r#type.as_ref();
        let Some(kind) = feature.and_then(|f| f.r#type.as_ref()) else {
            return Err(fault(Fault::new("a type", "none")));
        };
        let is_optional = feature.is_some_and(|f| f.is_optional);
        let (kind, default) = match kind {
            FeatureKind::StateType(_) => return Err(fault(Fault::new("an input or output", "a state"))),
            FeatureKind::MultiArrayType(array) => (
                PortKind::Array { dtype: dtype(array).map_err(fault)?, shape: shape(array).map_err(fault)? },
                array.default_optional_value,
            ),
            _ => (PortKind::Other(Box::new(feature.expect("it has a kind").clone())), None),
        };
        let default = match default {
            None => PortDefault::Zero,
            Some(DefaultOptionalValue::IntDefaultValue(v)) => PortDefault::Fill(f64::from(v)),
            Some(DefaultOptionalValue::FloatDefaultValue(v)) => PortDefault::Fill(f64::from(v)),
            Some(DefaultOptionalValue::DoubleDefaultValue(v)) => PortDefault::Fill(v),
        };
        if !is_optional && default != PortDefault::Zero {
            self.leave_out("default values of inputs that are not optional");
        }
        Ok(Port {
            name: from.name.clone(),
            description: from.short_description.clone(),
            kind,
            optional: is_optional.then_some(default),
        })
    }

    pub(super) fn state_port(&self, from: &FeatureDescription) -> Result<StatePort, Fault> {
        let fault = |e: Fault| e.in_part(|| format!("state `{}`", from.name));
        let feature = from.r#type.as_ref();
        let Some(FeatureKind::StateType(state)) = feature.and_then(|f| f.r#type.as_ref()) else {
            return Err(fault(Fault::new("a state", "another type")));
        };
        let Some(StateKind::ArrayType(array)) = &state.r#type else {
            return Err(fault(Fault::new("a state that wraps an array", "one that wraps nothing")));
        };
        if feature.is_some_and(|f| f.is_optional) || array.default_optional_value.is_some() {
            self.leave_out("states declared optional");
        }
        match shape(array).map_err(fault)? {
            PortShape::Fixed(shape) => Ok(StatePort {
                name: from.name.clone(),
                description: from.short_description.clone(),
                ty: StaticType::new(dtype(array).map_err(fault)?, &shape),
            }),
            other => Err(fault(Fault::new("a state of one fixed shape", format!("{other:?}")))),
        }
    }
}

fn dtype(array: &ArrayFeatureType) -> Result<DType, Fault> {
    wire::array_dtype(array.data_type)
        .ok_or_else(|| Fault::new("an element type of arrays", format!("number {}", array.data_type)))
}

fn shape(array: &ArrayFeatureType) -> Result<PortShape, Fault> {
    let default = extents(&array.shape)?;
    Ok(match &array.shape_flexibility {
        None if default.is_empty() => PortShape::Unspecified,
        None => PortShape::Fixed(default),
        Some(ShapeFlexibility::EnumeratedShapes(all)) => PortShape::Enumerated {
            default,
            shapes: all.shapes.iter().map(|s| extents(&s.shape)).collect::<Result<_, _>>()?,
        },
        Some(ShapeFlexibility::ShapeRange(range)) => {
            let bounds = range.size_ranges.iter().map(|r| {
                let fault = || Fault::new("bounds of an extent", format!("{}..={}", r.lower_bound, r.upper_bound));
                let low = usize::try_from(r.lower_bound).map_err(|_| fault())?;
                let high = match r.upper_bound {
                    ..0 => None,
                    high => Some(usize::try_from(high).map_err(|_| fault())?),
                };
                Ok((low, high))
            });
            PortShape::Range { default, bounds: bounds.collect::<Result<_, Fault>>()? }
        }
    })
}

fn extents(shape: &[i64]) -> Result<Vec<usize>, Fault> {
    let extents = shape
        .iter()
        .map(|&n| usize::try_from(n).map_err(|_| Fault::new("extents of 0 and more", n.to_string())))
        .collect::<Result<Vec<_>, _>>()?;
    check_size(&extents.iter().map(|&n| Dim::Known(n)).collect::<Vec<_>>())?;
    Ok(extents)
}
