//! Top-k: only the k likeliest stay.

use super::candidates::Candidates;

pub(super) fn apply(candidates: &mut Candidates, k: usize) {
    if k > 0 && k < candidates.len() {
        candidates.sort_first(k);
        candidates.truncate(k);
    }
}
