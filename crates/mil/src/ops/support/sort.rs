//! Selecting and sorting without further memory, in place along any axis.

use std::cmp::Ordering;

/// An element that can be put in order.
pub trait Ordered: Copy {
    /// The order, ascending. NaN stands above every number, as in PyTorch.
    fn order(self, other: Self) -> Ordering;
}

impl Ordered for f32 {
    fn order(self, other: Self) -> Ordering {
        self.partial_cmp(&other).unwrap_or_else(|| self.is_nan().cmp(&other.is_nan()))
    }
}

impl Ordered for i32 {
    fn order(self, other: Self) -> Ordering {
        self.cmp(&other)
    }
}

/// A line of elements inside a tensor.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    /// Index of its first element.
    pub start: usize,
    /// From one element to the next.
    pub step: usize,
    /// The number of elements.
    pub len: usize,
}

impl Line {
    /// Index of element `i`.
    #[must_use]
    pub fn at(self, i: usize) -> usize {
        self.start + i * self.step
    }
}

/// Puts into `line` of `slots` those of `items` that come first by `before`, in that order. `line` has no more elements
/// than there are items.
pub fn select<T: Copy>(
    slots: &mut [T],
    line: Line,
    items: impl Iterator<Item = T>,
    before: impl Fn(T, T) -> bool + Copy,
) {
    if line.len == 0 {
        return;
    }
    // A heap whose root is the last of those kept so far.
    for (i, item) in items.enumerate() {
        if i < line.len {
            slots[line.at(i)] = item;
            if i + 1 == line.len {
                for root in (0..line.len / 2).rev() {
                    sift(slots, line, root, before);
                }
            }
        } else if before(item, slots[line.at(0)]) {
            slots[line.at(0)] = item;
            sift(slots, line, 0, before);
        }
    }
    for len in (1..line.len).rev() {
        slots.swap(line.at(0), line.at(len));
        sift(slots, Line { len, ..line }, 0, before);
    }
}

/// Restores the heap below `root`.
fn sift<T: Copy>(slots: &mut [T], line: Line, mut root: usize, before: impl Fn(T, T) -> bool) {
    loop {
        let mut last = root;
        for child in [2 * root + 1, 2 * root + 2] {
            if child < line.len && before(slots[line.at(last)], slots[line.at(child)]) {
                last = child;
            }
        }
        if last == root {
            return;
        }
        slots.swap(line.at(root), line.at(last));
        root = last;
    }
}

/// Puts into `line` of `indices` the indices of those elements of `values` along `source` that come first, ascending or
/// descending; of equal ones the lower index first. `line` has no more elements than `source`.
pub fn select_indices<T: Ordered>(values: &[T], source: Line, ascending: bool, indices: &mut [i32], line: Line) {
    let key = |i: i32| values[source.at(i as usize)];
    select(indices, line, 0..source.len as i32, |a, b| match key(a).order(key(b)) {
        Ordering::Equal => a < b,
        order => (order == Ordering::Less) == ascending,
    });
}

/// The lines along the middle axis of `[outer, len, inner]`.
pub fn lines(outer: usize, len: usize, inner: usize) -> impl Iterator<Item = Line> {
    (0..outer).flat_map(move |o| (0..inner).map(move |i| Line { start: o * len * inner + i, step: inner, len }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selection_agrees_with_a_stable_sort() {
        let mut seed = 1u32;
        for n in 0..50usize {
            let values: Vec<f32> = (0..n)
                .map(|_| {
                    seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    if seed >> 28 == 0 { f32::NAN } else { (seed >> 28) as f32 }
                })
                .collect();
            for ascending in [false, true] {
                let mut expected: Vec<i32> = (0..n as i32).collect();
                expected.sort_by(|&a, &b| {
                    let order = values[a as usize].order(values[b as usize]);
                    if ascending { order } else { order.reverse() }
                });
                for k in 0..=n {
                    let mut found = vec![0; k];
                    let source = Line { start: 0, step: 1, len: n };
                    select_indices(&values, source, ascending, &mut found, Line { len: k, ..source });
                    assert_eq!(found, expected[..k]);
                }
            }
        }
    }
}
