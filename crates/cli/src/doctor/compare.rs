//! How alike two rows of logits are.

use serde::Serialize;

/// How alike two rows of logits are.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Likeness {
    /// The cosine of the angle between them: 1 for the same direction.
    pub cosine: f64,
    /// The largest difference.
    pub max_error: f64,
    /// The root of the mean square of the differences.
    pub rms_error: f64,
    /// Whether the likeliest token is the same.
    pub same_top: bool,
    /// By how much the trusted row prefers its likeliest token to the one that the other row takes.
    pub top_margin: f64,
    /// Whether any of the examined numbers is none.
    pub finite: bool,
}

/// Compares a row with one that is trusted, of the same length.
#[must_use]
pub fn likeness(row: &[f32], trusted: &[f32]) -> Likeness {
    let (mut dot, mut one, mut other, mut squares, mut max_error) = (0.0, 0.0, 0.0, 0.0, 0f64);
    for (&a, &b) in row.iter().zip(trusted) {
        let (a, b) = (f64::from(a), f64::from(b));
        dot += a * b;
        one += a * a;
        other += b * b;
        squares += (a - b).powi(2);
        max_error = max_error.max((a - b).abs());
    }
    let (top, trusted_top) = (top(row), top(trusted));
    let finite = row.iter().all(|v| v.is_finite());
    let cosine =
        if one == 0.0 || other == 0.0 { f64::from(u8::from(one == other)) } else { dot / (one * other).sqrt() };
    let top_margin = f64::from(trusted[trusted_top]) - f64::from(trusted[top]);
    let rms_error = (squares / row.len().max(1) as f64).sqrt();
    Likeness { cosine, max_error, rms_error, same_top: top == trusted_top, top_margin, finite }
}

/// The index of the largest element, the first of several; not-a-number is never the largest.
pub(super) fn top(row: &[f32]) -> usize {
    let better = |best: usize, i: usize| if row[i] > row[best] || row[best].is_nan() { i } else { best };
    (0..row.len()).reduce(better).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_and_others() {
        let row = [1.0, 3.0, -2.0];
        let same = likeness(&row, &row);
        assert!((same.cosine - 1.0).abs() < 1e-12 && same.max_error == 0.0 && same.same_top && same.finite);
        let other = likeness(&[3.0, 2.5, -2.0], &row);
        assert!(!other.same_top && other.top_margin == 2.0 && other.max_error == 2.0);
        assert!(likeness(&[-1.0, -3.0, 2.0], &row).cosine < -0.99);
        let broken = likeness(&[f32::NAN, 1.0, 0.0], &row);
        assert!(!broken.finite && broken.same_top);
        assert_eq!(likeness(&[0.0; 3], &row).cosine, 0.0);
    }
}
