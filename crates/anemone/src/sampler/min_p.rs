//! Min-p (Nguyen et al., 2024, <https://arxiv.org/abs/2407.01082>): those stay that have a share of the likeliest
//! token's probability.

use super::candidates::Candidates;

pub(super) fn apply(candidates: &mut Candidates, min_p: f32) {
    if min_p > 0.0 {
        candidates.retain_from(min_p * candidates.largest());
    }
}
