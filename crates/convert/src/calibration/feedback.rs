//! How the error of one weight is made up for by those after it.
//!
//! The error of a layer's results is `dᵀ H d` for the errors `d` of a row, with `H` the sum of `x xᵀ` over what the layer read.
//! Where `H = V D Vᵀ`, `V` unit upper triangular, rounding weight `k` after adding `Σ Vᵢₖ dᵢ` over those before it leaves
//! `Σ Dₖ rₖ²` of the roundings `r` alone (LDLQ in "QuIP", arXiv:2307.13304, which is GPTQ's rule, arXiv:2210.17323).

use std::ops::Range;

use half::f16;
use rayon::prelude::*;

/// Columns whose errors make up for each other. Wider matrices are cut.
const SPAN: usize = 2048;
/// Added to the diagonal, as a share of its mean: what was not read on the text counts a little, too.
const DAMPING: f32 = 0.1;
/// Columns of a factor that are made together.
const BLOCK: usize = 64;

/// How errors in the columns of a matrix count and make up for each other.
#[derive(Debug)]
pub(crate) struct Feedback {
    /// How much each column counts: 1 on average.
    pub(crate) importance: Vec<f32>,
    spans: Vec<Span>,
}

#[derive(Debug)]
struct Span {
    columns: Range<usize>,
    /// Columns, counted from the first of the span, in the order in which they are rounded.
    order: Vec<usize>,
    /// Row `k`: `Vᵢₖ` for the columns `i` before `k`, then anything.
    factor: Vec<f32>,
}

impl Feedback {
    /// That of a layer which read rows of `columns`, in units of `scale`.
    pub(crate) fn of(columns: usize, values: &[f16], scale: f32) -> Self {
        let spans: Vec<Range<usize>> = (0..columns).step_by(SPAN).map(|at| at..(at + SPAN).min(columns)).collect();
        let mut importance = Vec::with_capacity(columns);
        let spans = spans
            .into_iter()
            .map(|span| {
                let n = span.len();
                let squares = squares(columns, values, scale, span.clone());
                let mut order: Vec<usize> = (0..n).collect();
                // Columns that matter most come first, while all others can still make up for them.
                order.sort_by(|&a, &b| squares[b].total_cmp(&squares[a]).then(a.cmp(&b)));
                let moments = moments(columns, values, scale, &span, &order);
                let mut own = vec![0.0; n];
                order.iter().rev().enumerate().for_each(|(i, &column)| own[column] = moments[i * n + i]);
                importance.extend(own);
                Span { columns: span, order, factor: factor(moments, n) }
            })
            .collect();
        let mean = importance.iter().sum::<f32>() / columns.max(1) as f32;
        let mean = if mean > 0.0 { mean } else { 1.0 };
        importance.iter_mut().for_each(|v| *v /= mean);
        Self { importance, spans }
    }

    /// Rounds four rows, side by side in columns: `round(column, row, wanted) -> taken`. Each error is made up for by the columns
    /// that are rounded after it, as far as they can.
    pub(crate) fn round(&self, columns: &[[f32; 4]], mut round: impl FnMut(usize, usize, f32) -> f32) {
        let mut errors: Vec<[f32; 4]> = Vec::with_capacity(columns.len().min(SPAN));
        for span in &self.spans {
            errors.clear();
            for (k, &column) in span.order.iter().enumerate() {
                let owed = products(&errors, &span.factor[k * span.columns.len()..][..k]);
                let column = span.columns.start + column;
                let weights = columns[column];
                errors.push(std::array::from_fn(|row| weights[row] - round(column, row, weights[row] + owed[row])));
            }
        }
    }
}

/// `Σ factor · errors`, four rows side by side.
fn products(errors: &[[f32; 4]], factor: &[f32]) -> [f32; 4] {
    let mut sums = [[0f32; 4]; 8];
    let (eights, rest) = errors.as_chunks::<8>();
    let (factors, last) = factor.as_chunks::<8>();
    for (errors, factors) in eights.iter().zip(factors) {
        for ((sum, error), factor) in sums.iter_mut().zip(errors).zip(factors) {
            sum.iter_mut().zip(error).for_each(|(s, e)| *s += e * factor);
        }
    }
    for (error, factor) in rest.iter().zip(last) {
        sums[0].iter_mut().zip(error).for_each(|(s, e)| *s += e * factor);
    }
    std::array::from_fn(|row| sums.iter().map(|sum| sum[row]).sum())
}

/// The sum of the squares of each column.
fn squares(columns: usize, values: &[f16], scale: f32, span: Range<usize>) -> Vec<f32> {
    let mut all = vec![0.0; span.len()];
    for row in values.chunks_exact(columns) {
        all.iter_mut().zip(&row[span.clone()]).for_each(|(s, v)| *s += (v.to_f32() * scale).powi(2));
    }
    all
}

/// The sum of `x xᵀ` with damping, its lower half, the columns of the span in the reverse of `order`.
fn moments(columns: usize, values: &[f16], scale: f32, span: &Range<usize>, order: &[usize]) -> Vec<f32> {
    let (n, tokens) = (span.len(), values.len() / columns.max(1));
    let mut turned = vec![0.0; n * tokens];
    turned.par_chunks_mut(tokens.max(1)).enumerate().for_each(|(i, out)| {
        let column = span.start + order[n - 1 - i];
        out.iter_mut().enumerate().for_each(|(t, out)| *out = values[t * columns + column].to_f32() * scale);
    });
    let mut all = vec![0.0; n * n];
    all.par_chunks_mut(n.max(1)).enumerate().for_each(|(i, row)| {
        let own = &turned[i * tokens..][..tokens];
        row[..=i].iter_mut().enumerate().for_each(|(j, out)| *out = dot(own, &turned[j * tokens..][..tokens]));
    });
    let mean = (0..n).map(|i| all[i * n + i]).sum::<f32>() / n.max(1) as f32;
    let damping = if mean > 0.0 { DAMPING * mean } else { 1.0 };
    (0..n).for_each(|i| all[i * n + i] += damping);
    all
}

/// `V` of `moments`, a symmetric matrix whose columns are in reverse; row by row of its transpose, in the order of rounding.
fn factor(mut moments: Vec<f32>, n: usize) -> Vec<f32> {
    lower(&mut moments, n);
    let mut factor = vec![0.0; n * n];
    factor.par_chunks_mut(n.max(1)).enumerate().for_each(|(k, out)| {
        let column = n - 1 - k;
        let own = moments[column * n + column];
        out[..k].iter_mut().enumerate().for_each(|(i, out)| *out = moments[(n - 1 - i) * n + column] / own);
    });
    factor
}

/// Replaces the lower half of a positive matrix by `L` with `L Lᵀ` equal to it (Cholesky's).
fn lower(a: &mut [f32], n: usize) {
    for start in (0..n).step_by(BLOCK) {
        let end = (start + BLOCK).min(n);
        let width = end - start;
        let (done, below) = a.split_at_mut(end * n);
        let top = &mut done[start * n..];
        // What the columns before contribute, and the block on the diagonal.
        for i in 0..width {
            let (before, own) = top.split_at_mut(i * n);
            for j in 0..=i {
                let at = start + j;
                let other = if j < i { &before[j * n..][..at] } else { &own[..at] };
                let rest = own[at] - dot(&own[..at], other);
                own[at] = if j < i { rest / before[j * n + at] } else { rest.max(f32::MIN_POSITIVE).sqrt() };
            }
        }
        let top = &*top;
        below.par_chunks_mut(n).with_min_len(8).for_each(|row| {
            for j in 0..width {
                let at = start + j;
                let other = &top[j * n..][..=at];
                row[at] = (row[at] - dot(&row[..at], &other[..at])) / other[at];
            }
        });
    }
}

/// In sixteen sums, which a processor does side by side.
fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0f32; 16];
    let (a16, a_rest) = a.as_chunks::<16>();
    let (b16, b_rest) = b.as_chunks::<16>();
    for (a, b) in a16.iter().zip(b16) {
        for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
            *sum += a * b;
        }
    }
    sums.iter().sum::<f32>() + a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum::<f32>()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(n: usize) -> Vec<f32> {
        let mut x = 7u32;
        (0..n)
            .map(|_| {
                x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (x >> 8) as f32 / (1 << 24) as f32 - 0.5
            })
            .collect()
    }

    /// Rows of inputs that go together: each column is much like the one before.
    fn inputs(tokens: usize, columns: usize) -> Vec<f32> {
        let mut all = noise(tokens * columns);
        for row in all.chunks_exact_mut(columns) {
            (1..columns).for_each(|i| row[i] = 0.8 * row[i - 1] + 0.3 * row[i]);
        }
        all
    }

    fn feedback(columns: usize, inputs: &[f32]) -> Feedback {
        let values: Vec<f16> = inputs.iter().map(|&v| f16::from_f32(v)).collect();
        Feedback::of(columns, &values, 1.0)
    }

    #[test]
    fn the_factor_gives_the_moments_again() {
        let n = 150;
        let x = inputs(400, n);
        let values: Vec<f16> = x.iter().map(|&v| f16::from_f32(v)).collect();
        let order: Vec<usize> = (0..n).collect();
        let mut l = moments(n, &values, 1.0, &(0..n), &order);
        let before = l.clone();
        lower(&mut l, n);
        for i in 0..n {
            for j in 0..=i {
                let found = dot(&l[i * n..][..=j], &l[j * n..][..=j]);
                assert!((found - before[i * n + j]).abs() < 1e-3 * before[0], "{i} {j}");
            }
        }
    }

    #[test]
    fn results_are_nearer_with_errors_made_up_for() {
        let (n, tokens) = (96, 300);
        let x = inputs(tokens, n);
        let feedback = feedback(n, &x);
        assert!((feedback.importance.iter().sum::<f32>() / n as f32 - 1.0).abs() < 1e-3);
        let weights: Vec<[f32; 4]> = noise(4 * n).as_chunks::<4>().0.to_vec();
        let grid = |v: f32| (v * 8.0).round() / 8.0;
        let (mut plain, mut better) = (0.0, 0.0);
        let mut taken = vec![[0f32; 4]; n];
        feedback.round(&weights, |column, row, wanted| {
            taken[column][row] = grid(wanted);
            taken[column][row]
        });
        for x in x.chunks_exact(n) {
            for row in 0..4 {
                let result = |w: &dyn Fn(usize) -> f32| (0..n).map(|c| w(c) * x[c]).sum::<f32>();
                let exact = result(&|c| weights[c][row]);
                plain += (result(&|c| grid(weights[c][row])) - exact).powi(2);
                better += (result(&|c| taken[c][row]) - exact).powi(2);
            }
        }
        assert!(better < 0.5 * plain, "{better} against {plain}");
    }

    #[test]
    fn the_largest_column_comes_first_wherever_it_is() {
        let (n, tokens) = (96, 300);
        let mut x = inputs(tokens, n);
        for row in x.chunks_exact_mut(n) {
            row[n - 1] = 10.0 * row[n - 4..n - 1].iter().sum::<f32>();
        }
        let feedback = feedback(n, &x);
        let weights: Vec<[f32; 4]> = noise(4 * n).as_chunks::<4>().0.to_vec();
        let mut taken = vec![[0f32; 4]; n];
        let mut order = Vec::new();
        feedback.round(&weights, |column, row, wanted| {
            order.push(column);
            taken[column][row] = (wanted * 8.0).round() / 8.0;
            taken[column][row]
        });
        assert_eq!(order[..4], [n - 1; 4], "four rows of it");
        order.sort_unstable();
        assert!(order.chunks(4).enumerate().all(|(c, rows)| rows == [c; 4]), "each column once");
        let (mut left, mut alone) = (0.0, 0.0);
        for x in x.chunks_exact(n) {
            for row in 0..4 {
                left += (0..n).map(|c| (taken[c][row] - weights[c][row]) * x[c]).sum::<f32>().powi(2);
                alone += ((taken[n - 1][row] - weights[n - 1][row]) * x[n - 1]).powi(2);
            }
        }
        assert!(left < 0.3 * alone, "{left} is left of {alone}");
    }

    #[test]
    fn nothing_read_means_plain_rounding() {
        let feedback = feedback(3, &[]);
        feedback.round(&[[0.3; 4], [0.6; 4], [0.2; 4]], |column, _, wanted| {
            assert_eq!(wanted, [0.3, 0.6, 0.2][column]);
            0.0
        });
    }
}
