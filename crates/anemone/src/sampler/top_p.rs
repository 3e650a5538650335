//! Top-p (nucleus sampling, Holtzman et al., 2019, <https://arxiv.org/abs/1904.09751>): the likeliest stay that together
//! reach the probability p.

use super::candidates::Candidates;

pub(super) fn apply(candidates: &mut Candidates, p: f32) {
    if p >= 1.0 {
        return;
    }
    let enough = candidates.sum() * f64::from(p);
    let (mut mass, mut kept, mut sorted) = (0.0, 0, 64);
    // Mostly a few candidates are enough, so no more are put in order than are needed.
    while kept < candidates.len() {
        for candidate in &candidates.sort_first(sorted)[kept..] {
            mass += f64::from(candidate.value);
            kept += 1;
            if mass >= enough {
                candidates.truncate(kept);
                return;
            }
        }
        sorted *= 8;
    }
}
