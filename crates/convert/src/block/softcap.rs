//! Soft caps: numbers bent to stay below a bound, and hardly changed far from it.

use anemone_mil::ValueId;

use crate::error::Result;
use crate::net::Net;

/// `cap · tanh(x / cap)`.
pub(crate) fn softcap(net: &mut Net<'_>, x: ValueId, cap: f64, name: &str) -> Result<ValueId> {
    let inside = net.op("mul", &format!("{name}_in_caps"), &[("x", x.into()), ("y", Net::half(cap.recip() as f32))])?;
    let bent = net.op("tanh", &format!("{name}_bent"), &[("x", inside.into())])?;
    net.op("mul", name, &[("x", bent.into()), ("y", Net::half(cap as f32))])
}
