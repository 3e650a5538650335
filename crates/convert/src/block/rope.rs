//! Rotary positions, by tables: the angles are computed here, in double precision, so no hardware multiplies a position in
//! half floats (which cannot even hold integers above 2048).

use anemone_mil::types::DType;
use anemone_mil::{Const, ValueId};

use crate::error::Result;
use crate::net::{Net, int};
use crate::source::config::Rope;

/// Cosines and sines of the positions of one call, each (width, rotated dimensions ÷ 2).
#[derive(Clone, Copy)]
pub(crate) struct Rotation {
    pub(crate) cos: ValueId,
    pub(crate) sin: ValueId,
    dimensions: usize,
}

/// The rotations of the layers of a model.
#[derive(Clone, Copy)]
pub(crate) struct Rotations {
    global: Rotation,
    /// Of layers with a window, where it is another.
    local: Option<Rotation>,
}

impl Rotations {
    /// That of layer `layer`, if it has one.
    pub(crate) fn of_layer(&self, net: &Net<'_>, layer: usize) -> Option<Rotation> {
        let config = net.config();
        let local = self.local.filter(|_| config.sliding_layers.contains(layer));
        config.rotary_layers.contains(layer).then(|| local.unwrap_or(self.global))
    }

    /// Each of them changed.
    pub(crate) fn try_map(self, mut change: impl FnMut(Rotation) -> Result<Rotation>) -> Result<Self> {
        Ok(Self { global: change(self.global)?, local: self.local.map(change).transpose()? })
    }
}

/// Looks the angles of `positions` up.
pub(crate) fn rotations(net: &mut Net<'_>, positions: ValueId) -> Result<Rotations> {
    let config = net.config();
    let global = rotation(net, positions, &config.rope, "rope")?;
    // A part may have none of the layers that it is for.
    let used = net.part.is_whole() || net.part.layers.clone().any(|layer| config.sliding_layers.contains(layer));
    let local = config.local_rope.as_ref().filter(|_| used);
    let local = local.map(|rope| rotation(net, positions, rope, "rope_local")).transpose()?;
    Ok(Rotations { global, local })
}

fn rotation(net: &mut Net<'_>, positions: ValueId, rope: &Rope, prefix: &str) -> Result<Rotation> {
    let (frequencies, magnitude) = (rope.inverse_frequencies(net.context), rope.magnitude());
    let mut look_up = |name: &str, f: fn(f64) -> f64| {
        let angles = (0..net.context).flat_map(|p| frequencies.iter().map(move |w| p as f64 * w));
        let table: Vec<f32> = angles.map(|a| (magnitude * f(a)) as f32).collect();
        let table = Const::floats(DType::F16, &[net.context, frequencies.len()], &table);
        let table = net.f.constant(&format!("{prefix}_{name}_table"), table);
        let args = [("x", table.into()), ("indices", positions.into()), ("axis", 0.into())];
        net.op("gather", &format!("{prefix}_{name}"), &args)
    };
    let (cos, sin) = (look_up("cos", f64::cos)?, look_up("sin", f64::sin)?);
    Ok(Rotation { cos, sin, dimensions: rope.dimensions })
}

/// Rotates the axis `axis` of `x` (-1 is the last), that of a head's elements: the first half of the rotated dimensions against the second.
/// Cosines and sines must meet what is left of `x`.
pub(crate) fn rotate(net: &mut Net<'_>, x: ValueId, r: Rotation, axis: i32, name: &str) -> Result<ValueId> {
    let shape = net.shape(x);
    let size = shape[usize::try_from(axis).unwrap_or(shape.len() - 1)];
    let half = r.dimensions / 2;
    let mut sizes = vec![int(half), int(half)];
    if size > r.dimensions {
        sizes.push(int(size - r.dimensions));
    }
    let axis = || axis.into();
    let parts = net.ops(
        "split",
        &format!("{name}_parts"),
        &[("x", x.into()), ("split_sizes", sizes.as_slice().into()), ("axis", axis())],
    )?;
    let mut term = |kind: &str, suffix: &str, a: ValueId, b: ValueId| {
        net.op(kind, &format!("{name}_{suffix}"), &[("x", a.into()), ("y", b.into())])
    };
    let ac = term("mul", "first_cos", parts[0], r.cos)?;
    let bs = term("mul", "second_sin", parts[1], r.sin)?;
    let first = term("sub", "first", ac, bs)?;
    let bc = term("mul", "second_cos", parts[1], r.cos)?;
    let a_s = term("mul", "first_sin", parts[0], r.sin)?;
    let second = term("add", "second", bc, a_s)?;
    let mut all = vec![first, second];
    all.extend(parts.get(2));
    net.op("concat", name, &[("values", all.as_slice().into()), ("axis", axis()), ("interleave", false.into())])
}
