//! Looks at every weight before anything is written: what half floats cannot hold is refused by the tensor's name.

use std::sync::atomic::Ordering;

use rayon::prelude::*;

use crate::error::{ConvertError, Result};
use crate::quantize::Watch;
use crate::source::{Source, Tensor};

/// Weights that are looked at together.
const PIECE: usize = 1 << 16;
/// Half floats reach to 65504; what is nearer to it than to the next is rounded to it.
const LIMIT: f32 = 65520.0;

/// Refuses infinities, what is not a number, and numbers beyond half floats.
pub(crate) fn check(source: &Source, watch: &Watch) -> Result<()> {
    let config = source.config();
    (config.family.tensors)(config).iter().try_for_each(|(name, _)| check_tensor(&source.tensor(name)?, watch))
}

fn check_tensor(tensor: &Tensor, watch: &Watch) -> Result<()> {
    let (rows, columns) = (tensor.rows(), tensor.row_len());
    let per_piece = (PIECE / columns.max(1)).max(1);
    let starts: Vec<usize> = (0..rows).step_by(per_piece).collect();
    starts.into_par_iter().try_for_each_init(Vec::new, |values, start| {
        if watch.stop.load(Ordering::Relaxed) {
            return Err(ConvertError::Stopped);
        }
        let end = (start + per_piece).min(rows);
        values.resize((end - start) * columns, 0.0);
        tensor.decode_rows(start..end, values);
        match values.iter().find(|value| value.is_nan() || value.abs() >= LIMIT) {
            None => {
                watch.done.fetch_add(values.len() as u64, Ordering::Relaxed);
                Ok(())
            }
            Some(&value) => Err(ConvertError::Unrepresentable { tensor: tensor.name().to_owned(), value }),
        }
    })
}
