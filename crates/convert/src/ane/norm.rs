//! Root mean square norm over channels, in the form that half floats survive (see [`crate::block::norm`]).

use anemone_mil::ValueId;

use super::channels::vector;
use crate::error::Result;
use crate::net::Net;

/// The smallest magnitude that is divided by.
const TINY: f32 = 1e-4;

/// Norms `x` (1, channels, 1, tokens), which is kept multiplied by `scale`.
pub(super) fn rms_norm(net: &mut Net<'_>, x: ValueId, name: &str, scale: f64) -> Result<ValueId> {
    let weight = vector(net, &format!("{name}.weight"), &[1, 0, 1, 1])?;
    scaled(net, x, weight, 1, scale, name)
}

/// Norms each head of `x` (1, heads, head size, tokens).
pub(super) fn head_norm(net: &mut Net<'_>, x: ValueId, name: &str) -> Result<ValueId> {
    let weight = vector(net, &format!("{name}.weight"), &[1, 1, 0, 1])?;
    scaled(net, x, weight, 2, 1.0, name)
}

/// `x · weight / √(mean(x²) + ε)` along `axis`; `x` is kept multiplied by `input`.
fn scaled(net: &mut Net<'_>, x: ValueId, weight: ValueId, axis: i32, input: f64, name: &str) -> Result<ValueId> {
    let root_epsilon = (net.config().norm_eps.sqrt() * input) as f32;
    let over = |x: ValueId| [("x", x.into()), ("axes", [axis].into()), ("keep_dims", true.into())];
    let abs = net.op("abs", &format!("{name}_abs"), &[("x", x.into())])?;
    let max = net.op("reduce_max", &format!("{name}_max"), &over(abs))?;
    let m = net.op("maximum", &format!("{name}_magnitude"), &[("x", max.into()), ("y", Net::half(TINY))])?;
    let y = net.op("real_div", &format!("{name}_scaled"), &[("x", x.into()), ("y", m.into())])?;
    let square = net.op("mul", &format!("{name}_square"), &[("x", y.into()), ("y", y.into())])?;
    let mean = net.op("reduce_mean", &format!("{name}_mean"), &over(square))?;
    let e = net.op("real_div", &format!("{name}_epsilon"), &[("x", Net::half(root_epsilon)), ("y", m.into())])?;
    let e2 = net.op("mul", &format!("{name}_epsilon_square"), &[("x", e.into()), ("y", e.into())])?;
    let sum = net.op("add", &format!("{name}_sum"), &[("x", mean.into()), ("y", e2.into())])?;
    let r = net.op("rsqrt", &format!("{name}_rsqrt"), &[("x", sum.into()), ("epsilon", Net::half(0.0))])?;
    let normed = net.op("mul", &format!("{name}_normed"), &[("x", y.into()), ("y", r.into())])?;
    net.op("mul", name, &[("x", normed.into()), ("y", weight.into())])
}
