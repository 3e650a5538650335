//! Whether a package computes what its source does: weights decoded and compared, logits against the source's own computation in
//! single floats, and the arithmetic of hardware that computes in half floats.

mod agreement;
mod reference;
mod strict;
mod weights;

pub use agreement::{Agreement, Comparison, divergence};
pub(crate) use reference::inputs;
pub use reference::logits as reference_logits;
pub use strict::{Strict, StrictError, strict};
pub use weights::{WeightError, WeightReport, weights};

use crate::runner::{Runner, RunnerError};

/// Logits of a model after each of `tokens` from position `from` on, token by token but for those before `from`; and the state
/// that has read all of them.
///
/// # Errors
/// The runtime's own.
pub fn model_logits<R: Runner>(
    runner: &R,
    tokens: &[u32],
    from: usize,
) -> Result<(Vec<Vec<f32>>, R::State), RunnerError> {
    let mut state = runner.new_state()?;
    let mut logits = vec![0.0; runner.vocabulary()];
    let from = from.min(tokens.len());
    if from > 0 {
        runner.feed(&mut state, 0, &tokens[..from], &mut logits)?;
    }
    let mut all = Vec::with_capacity(tokens.len() - from);
    for position in from..tokens.len() {
        runner.feed(&mut state, position, &tokens[position..=position], &mut logits)?;
        all.push(logits.clone());
    }
    Ok((all, state))
}

/// A text to compare with where none is given.
pub const TEXT: &str = "The lighthouse stood at the end of a long spit of sand, and the road that led to it was under water \
twice a day. Anna kept the light for eleven years. In summer she painted the rails white and the door red, wrote the weather \
into a book with a green cover, and counted the ships: three on a quiet Monday, nineteen on the day before the regatta. In \
winter she read. She liked long novels in which people travelled for a reason that they forgot on the way. When the storm of \
1987 took the pier, it also took the telephone, so she climbed the 94 steps every two hours, trimmed the lamp, and told the \
dog what she saw. \"Two lights to the north,\" she said, \"and one that should not be there.\" The third light was a fishing \
boat from the next village, whose engine had failed. By morning the wind had turned, and the four men on board drank tea in \
her kitchen, and nobody spoke about the night. Later, when the light was made to work without a keeper, an engineer asked her \
what she would miss. She thought about it for a while. The numbers, she said; they were always true when I wrote them down.";

#[cfg(test)]
mod tests {
    use std::path::Path;

    use anemone_convert::Source;
    use safetensors::SafeTensors;

    /// The plain formulas give what PyTorch gives, for every architecture.
    #[test]
    fn the_reference_is_pytorchs() {
        let goldens = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../goldens/archs");
        let mut seen = 0;
        for entry in std::fs::read_dir(goldens).unwrap() {
            let folder = entry.unwrap().path();
            let bytes = std::fs::read(folder.join("golden.safetensors")).unwrap();
            let file = SafeTensors::deserialize(&bytes).unwrap();
            let tokens: Vec<u32> =
                file.tensor("tokens").unwrap().data().as_chunks().0.iter().map(|b| u32::from_le_bytes(*b)).collect();
            let expected = file.tensor("logits").unwrap();
            let expected: Vec<f32> = expected.data().as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
            let mean = expected.iter().sum::<f32>() / expected.len() as f32;
            let unit = (expected.iter().map(|l| (l - mean).powi(2)).sum::<f32>() / expected.len() as f32).sqrt();
            let source = Source::open(&folder).unwrap();
            let found = super::reference_logits(&source, &tokens, 64, 0).unwrap().concat();
            assert_eq!(found.len(), expected.len());
            let off = found.iter().zip(&expected).map(|(a, b)| (a - b).abs() / unit).fold(0.0, f32::max);
            assert!(off < 1e-3, "{}: off by {off} deviations", folder.display());
            seen += 1;
        }
        assert!(seen > 10);
    }
}
