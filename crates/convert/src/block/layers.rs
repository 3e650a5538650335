//! The layers that all families and profiles share: attention and a feed-forward part, each with its norms.

use anemone_mil::ValueId;

use crate::error::Result;
use crate::net::Net;

/// How a profile spells what a layer is made of. Names are those of the source.
pub(crate) struct Parts<A> {
    /// `(x, name, scale of x)`.
    pub(crate) norm: fn(&mut Net<'_>, ValueId, &str, f64) -> Result<ValueId>,
    /// `(x, layer, name)`.
    pub(crate) attention: A,
    /// `(x, name)`.
    pub(crate) mlp: fn(&mut Net<'_>, ValueId, &str) -> Result<ValueId>,
}

/// All layers of the part over `x`, of the same shape. What is added up over them is kept multiplied by
/// [`residual_scale`](crate::source::config::Config::residual_scale); what is added comes so out of the norms.
pub(crate) fn layers<A>(net: &mut Net<'_>, mut x: ValueId, mut parts: Parts<A>) -> Result<ValueId>
where
    A: FnMut(&mut Net<'_>, ValueId, usize, &str) -> Result<ValueId>,
{
    let config = net.config();
    let (shape, residual, layers) = (&config.family.layer, config.residual_scale, net.part.layers.clone());
    let norm = |net: &mut Net<'_>, x, layer: &str, norm: Option<&str>, scale| {
        norm.map_or(Ok(x), |norm| (parts.norm)(net, x, &format!("{layer}.{norm}"), scale))
    };
    for layer in layers {
        let name = format!("model.layers.{layer}");
        let read = norm(net, x, &name, shape.before_attention, residual)?;
        let attended = (parts.attention)(net, read, layer, &format!("{name}.self_attn"))?;
        let attended = norm(net, attended, &name, shape.after_attention, 1.0)?;
        x = net.op("add", &format!("{name}_attended"), &[("x", x.into()), ("y", attended.into())])?;
        let read = norm(net, x, &name, shape.before_mlp, residual)?;
        let fed = (parts.mlp)(net, read, &format!("{name}.mlp"))?;
        let fed = norm(net, fed, &name, shape.after_mlp, 1.0)?;
        x = net.op("add", &format!("{name}_fed"), &[("x", x.into()), ("y", fed.into())])?;
    }
    Ok(x)
}
