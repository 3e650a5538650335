//! Root mean square norm, in a form that half floats survive.
//!
//! `x · weight / √(mean(x²) + ε)`. The squares of large activations (above 256) overflow half floats, so `x` is first divided
//! by its largest magnitude m, and ε by m²: both parts of the fraction shrink alike, and the result is the same.

use anemone_mil::ValueId;

use crate::error::Result;
use crate::net::Net;

/// The smallest magnitude that is divided by.
const TINY: f32 = 1e-4;

/// The norm of `x`, which is kept multiplied by `scale`.
pub(crate) fn rms_norm(net: &mut Net<'_>, x: ValueId, name: &str, scale: f64) -> Result<ValueId> {
    let weight = net.vector(&format!("{name}.weight"))?;
    let sqrt_eps = (net.config().norm_eps.sqrt() * scale) as f32;
    let last = || [-1].into();
    let abs = net.op("abs", &format!("{name}_abs"), &[("x", x.into())])?;
    let keep = || true.into();
    let max =
        net.op("reduce_max", &format!("{name}_max"), &[("x", abs.into()), ("axes", last()), ("keep_dims", keep())])?;
    let m = net.op("maximum", &format!("{name}_magnitude"), &[("x", max.into()), ("y", Net::half(TINY))])?;
    let y = net.op("real_div", &format!("{name}_scaled"), &[("x", x.into()), ("y", m.into())])?;
    let square = net.op("mul", &format!("{name}_square"), &[("x", y.into()), ("y", y.into())])?;
    let mean = net.op(
        "reduce_mean",
        &format!("{name}_mean"),
        &[("x", square.into()), ("axes", last()), ("keep_dims", keep())],
    )?;
    let e = net.op("real_div", &format!("{name}_epsilon"), &[("x", Net::half(sqrt_eps)), ("y", m.into())])?;
    let e2 = net.op("mul", &format!("{name}_epsilon_square"), &[("x", e.into()), ("y", e.into())])?;
    let sum = net.op("add", &format!("{name}_sum"), &[("x", mean.into()), ("y", e2.into())])?;
    let r = net.op("rsqrt", &format!("{name}_rsqrt"), &[("x", sum.into()), ("epsilon", Net::half(0.0))])?;
    let normed = net.op("mul", &format!("{name}_normed"), &[("x", y.into()), ("y", r.into())])?;
    net.op("mul", name, &[("x", normed.into()), ("y", weight.into())])
}
