//! The tokens that may still be drawn.

use std::cmp::Ordering;

/// A token with its value: the logit first, from the temperature step on the weight relative to the likeliest (0 to 1).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Candidate {
    pub(super) id: u32,
    pub(super) value: f32,
}

/// Likelier first; among equals the lower id.
pub(super) fn by_likelihood(a: &Candidate, b: &Candidate) -> Ordering {
    b.value.total_cmp(&a.value).then(a.id.cmp(&b.id))
}

#[derive(Debug)]
pub(super) struct Candidates {
    list: Vec<Candidate>,
    /// How many at the beginning are in order, all of them likelier than the rest.
    sorted: usize,
}

impl Candidates {
    pub(super) fn with_capacity(capacity: usize) -> Self {
        Self { list: Vec::with_capacity(capacity), sorted: 0 }
    }

    pub(super) fn clear(&mut self) {
        self.list.clear();
        self.sorted = 0;
    }

    pub(super) fn push(&mut self, id: u32, value: f32) {
        self.list.push(Candidate { id, value });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// Changes every value by a function that keeps their order.
    pub(super) fn map(&mut self, change: impl Fn(f32) -> f32) {
        self.list.iter_mut().for_each(|candidate| candidate.value = change(candidate.value));
    }

    pub(super) fn largest(&self) -> f32 {
        self.list.iter().map(|candidate| candidate.value).fold(f32::NEG_INFINITY, f32::max)
    }

    pub(super) fn sum(&self) -> f64 {
        self.list.iter().map(|candidate| f64::from(candidate.value)).sum()
    }

    /// Puts the `count` likeliest in order at the beginning and gives them.
    pub(super) fn sort_first(&mut self, count: usize) -> &[Candidate] {
        let count = count.min(self.list.len());
        if count > self.sorted {
            let rest = &mut self.list[self.sorted..];
            let more = count - self.sorted;
            if more < rest.len() {
                rest.select_nth_unstable_by(more, by_likelihood);
            }
            rest[..more].sort_unstable_by(by_likelihood);
            self.sorted = count;
        }
        &self.list[..count]
    }

    /// Keeps the first `count`.
    pub(super) fn truncate(&mut self, count: usize) {
        self.list.truncate(count);
        self.sorted = self.sorted.min(count);
    }

    /// Keeps those whose value is at least `least`.
    pub(super) fn retain_from(&mut self, least: f32) {
        self.list.retain(|candidate| candidate.value >= least);
        self.sorted = self.sorted.min(self.list.len());
    }

    /// The token at a point from 0 (inclusive) to 1 (exclusive) of the summed values.
    pub(super) fn pick(&self, unit: f64) -> u32 {
        let mut left = unit * self.sum();
        for candidate in &self.list {
            left -= f64::from(candidate.value);
            if left < 0.0 {
                return candidate.id;
            }
        }
        let drawable = self.list.iter().rev().find(|candidate| candidate.value > 0.0);
        drawable.or(self.list.last()).expect("at least the likeliest is never ruled out").id
    }
}
