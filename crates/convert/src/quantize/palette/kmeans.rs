//! The best few numbers to stand for many: k-means in one dimension, weighted, without chance.
//!
//! Sorted numbers fall into intervals, so clusters are found by dynamic programming over where they end: exactly, but for the
//! numbers first being gathered into bins. Lloyd's steps over the numbers themselves then move the ends to where they belong.

/// A number and how much it counts.
type Point = (f32, f32);

/// Bins for each cluster, and at most in all.
const BINS_PER_CLUSTER: usize = 16;
const MOST_BINS: usize = 768;
/// Steps at most.
const STEPS: usize = 24;

/// Room for one search after the other.
#[derive(Debug, Default)]
pub(super) struct Search {
    /// Sums over the sorted points before each: of weights, of weighted numbers.
    weight: Vec<f64>,
    moment: Vec<f64>,
    /// Where bins start in the points, and the end of the last.
    bins: Vec<usize>,
    /// For each number of bins: the least cost with the clusters so far, and with one fewer.
    cost: [Vec<f64>; 2],
    /// For each number of clusters: where the last of them starts, for each number of bins.
    starts: Vec<u32>,
}

impl Search {
    /// Fills `centres` with numbers, in ascending order, to which `points` are near in weighted squares. Sorts the points.
    /// Points without weight do not count; with fewer different ones than there are centres, some centres are equal.
    pub(super) fn run(&mut self, points: &mut Vec<Point>, centres: &mut [f32]) {
        points.retain(|p| p.1 > 0.0);
        points.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let Some(&(last, _)) = points.last() else { return centres.fill(0.0) };
        self.sum(points);
        self.gather(points, centres.len());
        let mut ends = self.cut(centres.len().min(self.bins.len() - 1));
        let (found, spare) = centres.split_at_mut(ends.len());
        for _ in 0..STEPS {
            self.centre(&ends, found);
            if !self.settle(points, &mut ends, found) {
                break;
            }
        }
        self.centre(&ends, found);
        spare.fill(last);
    }

    fn sum(&mut self, points: &[Point]) {
        let (mut weight, mut moment) = (0.0, 0.0);
        self.weight.clear();
        self.moment.clear();
        self.weight.push(0.0);
        self.moment.push(0.0);
        for &(value, w) in points {
            weight += f64::from(w);
            moment += f64::from(w) * f64::from(value);
            self.weight.push(weight);
            self.moment.push(moment);
        }
    }

    /// Cuts the points into bins, by rank, by value and by weight alike.
    fn gather(&mut self, points: &[Point], clusters: usize) {
        let most = (clusters * BINS_PER_CLUSTER).min(MOST_BINS);
        let few = points.len() <= most;
        let (low, high) = (points[0].0, points[points.len() - 1].0);
        let share = |i: usize| {
            let by_value = if high > low { (points[i].0 - low) / (high - low) } else { 0.0 };
            f64::from(by_value) + (i + 1) as f64 / points.len() as f64 + self.weight[i + 1] / self.weight[points.len()]
        };
        self.bins.clear();
        self.bins.push(0);
        let mut passed = 0;
        for i in 0..points.len() - 1 {
            // Equal numbers stay together.
            let bin = if few { i + 1 } else { (share(i) * most as f64 / 3.0) as usize };
            if bin > passed && points[i].0 < points[i + 1].0 {
                self.bins.push(i + 1);
                passed = bin;
            }
        }
        self.bins.push(points.len());
    }

    /// What one cluster of bins `from..to` adds to the sum of squares, less what does not depend on the cuts.
    fn cost_of(&self, from: usize, to: usize) -> f64 {
        let (a, b) = (self.bins[from], self.bins[to]);
        let (weight, moment) = (self.weight[b] - self.weight[a], self.moment[b] - self.moment[a]);
        if weight > 0.0 { -moment * moment / weight } else { 0.0 }
    }

    /// Ends of `clusters` intervals of points.
    fn cut(&mut self, clusters: usize) -> Vec<usize> {
        let n = self.bins.len() - 1;
        let width = n + 1;
        self.starts.clear();
        self.starts.resize(clusters * width, 0);
        let mut before: Vec<f64> = std::mem::take(&mut self.cost[0]);
        let mut now = std::mem::take(&mut self.cost[1]);
        before.clear();
        before.extend((0..=n).map(|to| self.cost_of(0, to)));
        for cluster in 1..clusters {
            now.clear();
            now.resize(width, f64::INFINITY);
            let mut starts = std::mem::take(&mut self.starts);
            let row = &mut starts[cluster * width..(cluster + 1) * width];
            self.divide(cluster + 1..width, cluster..n, &before, &mut now, row);
            self.starts = starts;
            std::mem::swap(&mut before, &mut now);
        }
        let mut ends = vec![self.bins[n]; clusters];
        let mut to = n;
        for cluster in (1..clusters).rev() {
            to = self.starts[cluster * width + to] as usize;
            ends[cluster - 1] = self.bins[to];
        }
        self.cost = [before, now];
        ends
    }

    /// Finds for each end in `ends` the best start in `starts`: the later the end, the later the start.
    fn divide(
        &self,
        ends: std::ops::Range<usize>,
        starts: std::ops::Range<usize>,
        before: &[f64],
        now: &mut [f64],
        best: &mut [u32],
    ) {
        if ends.is_empty() {
            return;
        }
        let middle = usize::midpoint(ends.start, ends.end);
        let (mut least, mut at) = (f64::INFINITY, starts.start);
        let tried = starts.start..starts.end.min(middle);
        for (start, before) in tried.clone().zip(&before[tried]) {
            let cost = before + self.cost_of(start, middle);
            if cost < least {
                (least, at) = (cost, start);
            }
        }
        now[middle] = least;
        best[middle] = at as u32;
        self.divide(ends.start..middle, starts.start..at + 1, before, now, best);
        self.divide(middle + 1..ends.end, at..starts.end, before, now, best);
    }

    /// The mean of each cluster.
    fn centre(&self, ends: &[usize], centres: &mut [f32]) {
        let mut start = 0;
        for (&end, centre) in ends.iter().zip(centres) {
            let weight = self.weight[end] - self.weight[start];
            if weight > 0.0 {
                *centre = ((self.moment[end] - self.moment[start]) / weight) as f32;
            }
            start = end;
        }
    }

    /// Moves the ends to halfway between centres; whether one moved.
    fn settle(&self, points: &[Point], ends: &mut [usize], centres: &[f32]) -> bool {
        let mut moved = false;
        for (end, pair) in ends.iter_mut().zip(centres.windows(2)) {
            let middle = f32::midpoint(pair[0], pair[1]);
            let new = points.partition_point(|p| p.0 <= middle);
            moved |= new != *end;
            *end = new;
        }
        let all = points.len();
        if let Some(last) = ends.last_mut() {
            *last = all;
        }
        moved
    }
}

/// Which of the ascending `centres` is nearest.
pub(super) fn nearest(centres: &[f32], value: f32) -> usize {
    let above = centres.partition_point(|&c| c < value).min(centres.len() - 1);
    if above > 0 && value - centres[above - 1] <= centres[above] - value { above - 1 } else { above }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn squares(points: &[Point], centres: &[f32]) -> f64 {
        let off = |p: &Point| f64::from(p.1) * f64::from(p.0 - centres[nearest(centres, p.0)]).powi(2);
        points.iter().map(off).sum()
    }

    fn noise(n: usize) -> Vec<Point> {
        let mut x = 1u32;
        let mut one = || {
            x ^= x << 13;
            x ^= x >> 17;
            x ^= x << 5;
            x as f32 / u32::MAX as f32 - 0.5
        };
        (0..n).map(|_| ((0..6).map(|_| one()).sum(), 0.5 + one().abs())).collect()
    }

    /// The best of all ways to cut few points.
    fn exhaustive(points: &[Point], clusters: usize) -> f64 {
        fn rest(points: &[Point], clusters: usize) -> f64 {
            let cost = |part: &[Point]| {
                let weight: f64 = part.iter().map(|p| f64::from(p.1)).sum();
                let mean = part.iter().map(|p| f64::from(p.1) * f64::from(p.0)).sum::<f64>() / weight;
                part.iter().map(|p| f64::from(p.1) * (f64::from(p.0) - mean).powi(2)).sum::<f64>()
            };
            if clusters == 1 {
                return cost(points);
            }
            let cut = |at: usize| cost(&points[..at]) + rest(&points[at..], clusters - 1);
            (1..=points.len() - clusters + 1).map(cut).fold(f64::INFINITY, f64::min)
        }
        rest(points, clusters)
    }

    #[test]
    fn few_points_are_cut_the_best_way() {
        for n in [5, 9, 14] {
            let mut points = noise(n);
            let mut centres = [0.0; 4];
            Search::default().run(&mut points, &mut centres);
            let (found, best) = (squares(&points, &centres), exhaustive(&points, 4));
            assert!(found <= best * 1.0001 + 1e-12, "{n}: {found}, {best} is possible");
        }
    }

    #[test]
    fn normal_numbers_reach_what_lloyd_and_max_found() {
        // Their quantizers for normal numbers: mean squares of 0.009497 with 16 levels, 0.000 82 or so with 64.
        for (levels, best) in [(16, 0.009_497), (64, 0.000_65)] {
            let mut points: Vec<Point> = noise(20_000).into_iter().map(|p| (p.0, 1.0)).collect();
            let power = points.iter().map(|p| f64::from(p.0).powi(2)).sum::<f64>();
            let mut centres = vec![0.0; levels];
            Search::default().run(&mut points, &mut centres);
            let found = squares(&points, &centres) / power;
            assert!(found < best * 1.01 && found > best * 0.5, "{levels}: {found}");
            assert!(centres.is_sorted());
        }
    }

    #[test]
    fn weight_draws_centres_to_it() {
        let mut points: Vec<Point> = (0..1000).map(|i| (i as f32, if i < 10 { 1e9 } else { 1.0 })).collect();
        let mut centres = [0.0; 8];
        Search::default().run(&mut points, &mut centres);
        assert!(centres[5] < 10.0, "{centres:?}");
    }

    #[test]
    fn few_different_numbers_are_kept_as_they_are() {
        let mut search = Search::default();
        for values in [&[0.0][..], &[0.25, -3.0], &[1.0, 2.0, 1.0, 3.0]] {
            let mut points: Vec<Point> = values.iter().map(|&v| (v, 1.0)).collect();
            let mut centres = [9.0; 16];
            search.run(&mut points, &mut centres);
            assert!(values.iter().all(|&v| centres[nearest(&centres, v)] == v), "{values:?}: {centres:?}");
            assert!(centres.is_sorted());
        }
        let mut centres = [9.0; 4];
        search.run(&mut vec![(1.0, 0.0)], &mut centres);
        assert_eq!(centres, [0.0; 4]);
    }
}
