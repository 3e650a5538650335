//! Layers of weights over channels: 1×1 convolutions.

use anemone_mil::build::Arg;
use anemone_mil::types::DType;
use anemone_mil::{Const, TensorType, ValueId};

use crate::block::mask::Masks;
use crate::block::rope::Rotations;
use crate::error::Result;
use crate::net::Net;

/// `weight · x + bias` over the channels of `x` (1, inputs, 1, tokens): (1, outputs, 1, tokens).
pub(super) fn linear(net: &mut Net<'_>, x: ValueId, tensor: &str) -> Result<ValueId> {
    let weight = net.matrix(&format!("{tensor}.weight"))?;
    let bias = match net.config().has_bias(tensor) {
        true => Some(net.vector(&format!("{tensor}.bias"))?),
        false => None,
    };
    convolution(net, x, weight, bias, tensor)
}

/// The same with a weight (outputs, inputs), which [`give_four_axes`](super::weights::give_four_axes) makes one of
/// (outputs, inputs, 1, 1) in the end.
pub(super) fn convolution(
    net: &mut Net<'_>,
    x: ValueId,
    weight: ValueId,
    bias: Option<ValueId>,
    name: &str,
) -> Result<ValueId> {
    let (outputs, tokens) = (net.shape(weight)[0], net.shape(x)[3]);
    let mut args: Vec<(&str, Arg)> = vec![("x", x.into()), ("weight", weight.into())];
    args.extend(bias.map(|bias| ("bias", bias.into())));
    args.extend([
        ("strides", [1, 1].into()),
        ("pad_type", "valid".into()),
        ("pad", [0, 0, 0, 0].into()),
        ("dilations", [1, 1].into()),
        ("groups", 1.into()),
    ]);
    net.op_typed("conv", name, &args, TensorType::fixed(DType::F16, &[1, outputs, 1, tokens]))
}

/// A vector of the source in half floats, its elements along the axis of `shape` that is 0.
pub(super) fn vector(net: &mut Net<'_>, tensor: &str, shape: &[usize; 4]) -> Result<ValueId> {
    let values = net.halves(tensor)?;
    let shape = shape.map(|n| if n == 0 { values.len() } else { n });
    Ok(net.f.constant(tensor, Const::floats(DType::F16, &shape, &values)))
}

/// Angles for heads of (1, heads, head size, tokens): (1, 1, rotated dimensions ÷ 2, tokens).
pub(super) fn columns_of_angles(net: &mut Net<'_>, rotations: Rotations) -> Result<Rotations> {
    rotations.try_map(|rotation| {
        let mut turn = |x: ValueId, name: &str| {
            let turned = net.op("transpose", &format!("{name}_turned"), &[("x", x.into()), ("perm", [1, 0].into())])?;
            net.op("expand_dims", &format!("{name}_columns"), &[("x", turned.into()), ("axes", [0, 1].into())])
        };
        let (cos, sin) = (turn(rotation.cos, "rope_cos")?, turn(rotation.sin, "rope_sin")?);
        let mut turned = rotation;
        (turned.cos, turned.sin) = (cos, sin);
        Ok(turned)
    })
}

/// Masks for scores of (1, heads, tokens, context): (1, 1, tokens, context).
pub(super) fn masks_of_heads(net: &mut Net<'_>, masks: Masks) -> Result<Masks> {
    masks.try_map(|mask| net.op("expand_dims", "mask_of_heads", &[("x", mask.into()), ("axes", [0, 1].into())]))
}
