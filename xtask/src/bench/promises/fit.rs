//! A line through points.

/// The line that is nearest to points, by the squares of its distances.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Line {
    pub(super) start: f64,
    pub(super) slope: f64,
    /// The largest distance of a point from it, as a share of the line there.
    pub(super) farthest: f64,
}

/// Fits a line; a level one to fewer than two points.
pub(super) fn fit(points: &[(f64, f64)]) -> Line {
    let count = points.len().max(1) as f64;
    let [x, y] = points.iter().fold([0.0, 0.0], |[x, y], p| [x + p.0, y + p.1]).map(|sum| sum / count);
    let spread: f64 = points.iter().map(|p| (p.0 - x).powi(2)).sum();
    let together: f64 = points.iter().map(|p| (p.0 - x) * (p.1 - y)).sum();
    let slope = if spread > 0.0 { together / spread } else { 0.0 };
    let start = y - slope * x;
    let off = points.iter().map(|p| {
        let line = start + slope * p.0;
        (p.1 - line).abs() / line.abs().max(f64::MIN_POSITIVE)
    });
    Line { start, slope, farthest: off.fold(0.0, f64::max) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_on_a_line_give_it() {
        let line = fit(&[(0.0, 1.0), (2.0, 2.0), (8.0, 5.0)]);
        assert!((line.start - 1.0).abs() < 1e-12 && (line.slope - 0.5).abs() < 1e-12 && line.farthest < 1e-12);
        let bent = fit(&[(0.0, 1.0), (1.0, 4.0), (2.0, 1.0)]);
        assert_eq!((bent.slope, bent.start), (0.0, 2.0));
        assert_eq!(bent.farthest, 1.0);
        assert_eq!(fit(&[(3.0, 7.0)]), Line { start: 7.0, slope: 0.0, farthest: 0.0 });
    }
}
