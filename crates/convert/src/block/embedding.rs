//! From token ids to vectors, and the vector of the last token.

use anemone_mil::ValueId;

use crate::error::Result;
use crate::net::{Net, int};

/// The rows of the embedding for `ids` (1, width), scaled where the model does so: (1, width, hidden size).
pub(crate) fn embedding(net: &mut Net<'_>, ids: ValueId) -> Result<ValueId> {
    let table = net.matrix("model.embed_tokens.weight")?;
    let scale = (net.config().embedding_scale * net.config().residual_scale) as f32;
    let rows = net.op("gather", "embedding", &[("x", table.into()), ("indices", ids.into()), ("axis", 0.into())])?;
    if scale == 1.0 {
        return Ok(rows);
    }
    net.op("mul", "embedding_scaled", &[("x", rows.into()), ("y", Net::half(scale))])
}

/// Of `hidden` (1, width, hidden size), the row of the last token: a call of fewer tokens than the width repeats its last
/// position, so that row lies at the last position less the first.
pub(crate) fn last_token(net: &mut Net<'_>, hidden: ValueId, positions: ValueId) -> Result<ValueId> {
    let width = int(net.width);
    if width == 1 {
        return Ok(hidden);
    }
    let mut at = |name: &str, i: i32| {
        net.op("slice_by_index", name, &[("x", positions.into()), ("begin", [i].into()), ("end", [i + 1].into())])
    };
    let (first, last) = (at("first_position", 0)?, at("last_position", width - 1)?);
    let row = net.op("sub", "last_row", &[("x", last.into()), ("y", first.into())])?;
    net.op("gather", "last_hidden", &[("x", hidden.into()), ("indices", row.into()), ("axis", 1.into())])
}
