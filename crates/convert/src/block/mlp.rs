//! The gated feed-forward part: `down(activation(gate(x)) · up(x))`.

use anemone_mil::ValueId;

use crate::error::Result;
use crate::net::Net;
use crate::source::family::Activation;

pub(crate) fn gated_mlp(net: &mut Net<'_>, x: ValueId, name: &str) -> Result<ValueId> {
    let gate = net.linear(x, &format!("{name}.gate_proj"))?;
    let up = net.linear(x, &format!("{name}.up_proj"))?;
    let active = match net.config().family.layer.activation {
        Activation::Silu => net.op("silu", &format!("{name}_silu"), &[("x", gate.into())])?,
        Activation::GeluTanh => {
            let args = [("x", gate.into()), ("mode", "TANH_APPROXIMATION".into())];
            net.op("gelu", &format!("{name}_gelu"), &args)?
        }
    };
    let gated = net.op("mul", &format!("{name}_gated"), &[("x", active.into()), ("y", up.into())])?;
    net.linear(gated, &format!("{name}.down_proj"))
}
