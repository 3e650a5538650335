//! How near one distribution over tokens is to another, position by position.

use serde::Serialize;

/// Positions whose best token leads by less than this in the reference may go either way.
const MARGIN: f32 = 0.05;

/// How near a model is to its reference.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Agreement {
    /// Positions compared.
    pub positions: usize,
    /// Of them, those with the same best token.
    pub same: usize,
    /// Positions whose best token leads clearly in the reference.
    pub clear: usize,
    /// Of those, the ones with the same best token.
    pub clear_same: usize,
    /// Mean Kullback-Leibler divergence from the reference, in nats.
    pub mean_divergence: f64,
    /// That which 99 % of positions stay below.
    pub divergence_99: f64,
    /// The largest.
    pub worst_divergence: f64,
    /// Where it is.
    pub worst_position: usize,
    /// The reference's perplexity on the text; 1 if no position has a next token.
    pub reference_perplexity: f64,
    /// The model's.
    pub perplexity: f64,
}

/// Gathers positions.
#[derive(Debug, Default)]
pub struct Comparison {
    divergences: Vec<(f64, usize)>,
    same: usize,
    clear: usize,
    clear_same: usize,
    /// Sums of surprise at the next token, and how many there were.
    surprise: [f64; 2],
    surprised: usize,
}

impl Comparison {
    /// Adds a position: logits of the reference and of the model, and the token that came next, if one did.
    pub fn add(&mut self, position: usize, reference: &[f32], found: &[f32], next: Option<u32>) {
        let (best, lead) = best(reference);
        let same = best == self::best(found).0;
        self.same += usize::from(same);
        if lead > MARGIN {
            self.clear += 1;
            self.clear_same += usize::from(same);
        }
        self.divergences.push((divergence(reference, found), position));
        if let Some(next) = next {
            for (sum, logits) in self.surprise.iter_mut().zip([reference, found]) {
                *sum += log_sum(logits) - f64::from(logits[next as usize]);
            }
            self.surprised += 1;
        }
    }

    /// What was found.
    #[must_use]
    pub fn agreement(mut self) -> Agreement {
        self.divergences.sort_by(|a, b| a.0.total_cmp(&b.0));
        let n = self.divergences.len();
        let Some(&(worst_divergence, worst_position)) = self.divergences.last() else { return Agreement::default() };
        let perplexity = |sum: f64| (sum / self.surprised.max(1) as f64).exp();
        Agreement {
            positions: n,
            same: self.same,
            clear: self.clear,
            clear_same: self.clear_same,
            mean_divergence: self.divergences.iter().map(|(d, _)| d).sum::<f64>() / n as f64,
            divergence_99: self.divergences[(n * 99).div_ceil(100) - 1].0,
            worst_divergence,
            worst_position,
            reference_perplexity: perplexity(self.surprise[0]),
            perplexity: perplexity(self.surprise[1]),
        }
    }
}

impl Agreement {
    /// The share of positions with the same best token.
    #[must_use]
    pub fn top1(&self) -> f64 {
        self.same as f64 / self.positions.max(1) as f64
    }
}

/// The best token, and by how much it leads.
fn best(logits: &[f32]) -> (usize, f32) {
    let (mut first, mut second, mut at) = (f32::NEG_INFINITY, f32::NEG_INFINITY, 0);
    for (i, &x) in logits.iter().enumerate() {
        if x > first {
            (first, second, at) = (x, first, i);
        } else if x > second {
            second = x;
        }
    }
    (at, first - second)
}

/// The logarithm of the sum of exponentials.
fn log_sum(logits: &[f32]) -> f64 {
    let top = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    f64::from(top) + logits.iter().map(|&x| f64::from(x - top).exp()).sum::<f64>().ln()
}

/// Kullback-Leibler divergence of the softmax of `found` from that of `reference`, in nats.
#[must_use]
pub fn divergence(reference: &[f32], found: &[f32]) -> f64 {
    let (a, b) = (log_sum(reference), log_sum(found));
    let term = |(&e, &f): (&f32, &f32)| {
        let (p, q) = (f64::from(e) - a, f64::from(f) - b);
        p.exp() * (p - q)
    };
    reference.iter().zip(found).map(term).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn divergence_is_zero_for_equal_distributions_and_positive_otherwise() {
        assert!(divergence(&[1.0, 2.0, 3.0], &[11.0, 12.0, 13.0]).abs() < 1e-6);
        let half = divergence(&[0.0, 0.0], &[0.0, 3f32.ln()]);
        assert!((half - (0.5 * 2f64.ln() + 0.5 * (2f64 / 3.0).ln())).abs() < 1e-6, "{half}");
    }

    #[test]
    fn the_worst_position_and_perplexities() {
        let mut comparison = Comparison::default();
        comparison.add(4, &[0.0, 1.0], &[0.0, 1.0], Some(0));
        comparison.add(5, &[0.0, 1.0], &[2.0, 1.0], Some(0));
        comparison.add(6, &[0.0, 0.01], &[0.02, 0.01], None);
        let found = comparison.agreement();
        assert_eq!((found.positions, found.same, found.clear, found.clear_same), (3, 1, 2, 1));
        assert_eq!(found.worst_position, 5);
        assert!(found.divergence_99 == found.worst_divergence && found.mean_divergence < found.worst_divergence);
        assert!((found.reference_perplexity - (1.0 + 1f64.exp())).abs() < 1e-6);
        assert!(found.perplexity < found.reference_perplexity);
    }
}
