//! Repetition penalty: what was said already becomes less likely (Keskar et al., 2019, <https://arxiv.org/abs/1909.05858>).

#[derive(Debug)]
pub(super) struct Repetition {
    penalty: f32,
    /// One bit for each token of the vocabulary; empty if there is no penalty.
    seen: Vec<u64>,
}

impl Repetition {
    pub(super) fn new(penalty: f32, vocabulary: usize) -> Self {
        let words = if penalty == 1.0 { 0 } else { vocabulary.div_ceil(64) };
        Self { penalty, seen: vec![0; words] }
    }

    pub(super) fn observe(&mut self, tokens: &[u32]) {
        for &token in tokens {
            if let Some(word) = self.seen.get_mut(token as usize / 64) {
                *word |= 1 << (token % 64);
            }
        }
    }

    pub(super) fn apply(&self, id: usize, logit: f32) -> f32 {
        let seen = self.seen.get(id / 64).is_some_and(|word| word & (1 << (id % 64)) != 0);
        match seen {
            true if logit > 0.0 => logit / self.penalty,
            true => logit * self.penalty,
            false => logit,
        }
    }
}
