//! Temperature: logits become weights, relative to the likeliest token's, sharper below 1 and flatter above.

use super::candidates::Candidates;

pub(super) fn apply(candidates: &mut Candidates, temperature: f32) {
    let largest = candidates.largest();
    candidates.map(|logit| ((logit - largest) / temperature).exp());
}
