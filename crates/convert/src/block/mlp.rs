//! The gated feed-forward layer: `down(silu(gate(x)) · up(x))`.

use anemone_mil::ValueId;

use crate::error::Result;
use crate::net::Net;

pub(crate) fn gated_mlp(net: &mut Net<'_>, x: ValueId, name: &str) -> Result<ValueId> {
    let gate = net.linear(x, &format!("{name}.gate_proj"))?;
    let up = net.linear(x, &format!("{name}.up_proj"))?;
    let silu = net.op("silu", &format!("{name}_silu"), &[("x", gate.into())])?;
    let gated = net.op("mul", &format!("{name}_gated"), &[("x", silu.into()), ("y", up.into())])?;
    net.linear(gated, &format!("{name}.down_proj"))
}
