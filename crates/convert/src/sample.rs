//! What a form of weights does to a model, by a sample: a few rows of each matrix are encoded and decoded in memory.

use anemone_mil::{Const, Function};

use crate::check::{Fidelity, MatrixFidelity, measure};
use crate::error::{ConvertError, Result};
use crate::net::Net;
use crate::part::{Frame, Kv, Part};
use crate::quantize::{Recipe, Weights};
use crate::source::{Source, Tensor};

/// Rows of each matrix that are looked at, in its middle.
const ROWS: usize = 64;

/// How near a sample of the weights of `source` would be to it if they were stored by `recipe`, without a text. Matrices whose rows cannot be taken by
/// themselves (queries and keys of some GGUF files) are left out.
pub(crate) fn sample(source: &Source, recipe: &Recipe) -> Result<Fidelity> {
    let config = source.config();
    let mut fidelity = Fidelity::default();
    for (name, shape) in (config.family.tensors)(config) {
        if shape.len() != 2 || (config.tie_embeddings && name == "lm_head.weight") {
            continue;
        }
        let tensor = source.tensor(&name)?;
        let rows = tensor.rows();
        let start = (rows.saturating_sub(ROWS) / 2).next_multiple_of(ROWS).min(rows.saturating_sub(ROWS));
        if let Some(part) = tensor.of_rows(start..rows.min(start + ROWS)) {
            fidelity.matrices.extend(one(source, recipe, &part)?);
        }
    }
    Ok(fidelity)
}

fn one(source: &Source, recipe: &Recipe, part: &Tensor) -> Result<Option<MatrixFidelity>> {
    let weights = Weights::unwatched(recipe);
    let frame = Frame { width: 1, context: 1, part: Part::whole(source.config()), kv: Kv::State };
    let mut net = Net::new(source, &weights, frame);
    let value = weights.add(&mut net, part)?;
    let mut function = net.f.finish(&[value]);
    make(&mut function).map_err(|e| ConvertError::Internal { problem: format!("{}: {e}", part.name()) })?;
    Ok(measure(&function, part, recipe.form(part)))
}

/// Makes the elements of all constants that are made when a package is written.
fn make(function: &mut Function) -> std::io::Result<()> {
    for op in &mut function.body.ops {
        if let Some(Const::Tensor(tensor)) = op.attributes.get_mut("val")
            && let Some(maker) = tensor.deferred.take()
        {
            let mut bytes = Vec::new();
            maker.write(&mut |piece| {
                bytes.extend_from_slice(piece);
                Ok(())
            })?;
            tensor.bytes = bytes.into();
        }
    }
    Ok(())
}
