//! Some columns of a row-major matrix: what one piece of a product writes, beside others that write theirs.

#![allow(unsafe_code, reason = "columns of one matrix are disjoint, though no slices express it")]

use std::marker::PhantomData;
use std::ops::Range;

/// Adjacent columns of a matrix in a slice, writable row by row. Two that do not overlap may be written by two threads.
#[derive(Debug)]
pub struct Columns<'a> {
    start: *mut f32,
    rows: usize,
    width: usize,
    stride: usize,
    matrix: PhantomData<&'a mut [f32]>,
}

// SAFETY: it is an exclusive borrow of its elements, which are `Send`.
unsafe impl Send for Columns<'_> {}
// SAFETY: a shared `Columns` gives out elements only by `Columns::piece`, whose caller answers for their being disjoint.
unsafe impl Sync for Columns<'_> {}

impl<'a> Columns<'a> {
    /// All columns of `matrix`, rows of `width` without gaps.
    ///
    /// # Panics
    /// If `matrix` is no whole number of rows.
    pub fn new(matrix: &'a mut [f32], width: usize) -> Self {
        let rows = matrix.len().checked_div(width).unwrap_or(0);
        assert_eq!(matrix.len(), rows * width, "columns: {} values are not rows of {width}", matrix.len());
        Self { start: matrix.as_mut_ptr(), rows, width, stride: width, matrix: PhantomData }
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// How many columns there are.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Row `row` of these columns.
    ///
    /// # Panics
    /// If there is no such row.
    #[inline(always)]
    pub fn row(&mut self, row: usize) -> &mut [f32] {
        assert!(row < self.rows, "columns: row {row} of {}", self.rows);
        // SAFETY: the row lies in the matrix that is borrowed for `'a`; the elements are exclusively those of `self`.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(row * self.stride), self.width) }
    }

    /// The columns `range` of these.
    ///
    /// # Panics
    /// If they are not all there.
    pub fn part(&mut self, range: Range<usize>) -> Columns<'_> {
        // SAFETY: `self` is borrowed for as long as the part lives.
        unsafe { self.piece(range) }
    }

    /// The columns `range` of these, from a shared reference: for those who give pieces to several threads.
    ///
    /// # Safety
    /// No two pieces that live at the same time overlap, and `self` is not written meanwhile.
    ///
    /// # Panics
    /// If they are not all there.
    pub unsafe fn piece(&self, range: Range<usize>) -> Columns<'_> {
        assert!(range.start <= range.end && range.end <= self.width, "columns: {range:?} of {}", self.width);
        let (width, start) = (range.len(), if self.rows == 0 { 0 } else { range.start });
        // SAFETY: `start` is at most the width, so it lies in the first row or just behind it.
        let start = unsafe { self.start.add(start) };
        Columns { start, rows: self.rows, width, stride: self.stride, matrix: PhantomData }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_columns_of_every_row() {
        let mut matrix: Vec<f32> = (0..12_u8).map(f32::from).collect();
        let mut all = Columns::new(&mut matrix, 4);
        let mut middle = all.part(1..3);
        assert_eq!((middle.rows(), middle.width()), (3, 2));
        assert_eq!(middle.row(2), [9.0, 10.0]);
        middle.part(1..2).row(1)[0] = -1.0;
        assert_eq!(all.row(1), [4.0, 5.0, -1.0, 7.0]);
        assert_eq!(all.part(4..4).row(2), [0.0; 0]);
    }

    #[test]
    #[should_panic(expected = "columns: 3..5 of 4")]
    fn columns_that_are_not_there_are_refused() {
        Columns::new(&mut [0.0; 8], 4).part(3..5);
    }

    #[test]
    fn nothing_has_no_columns() {
        let mut none = Columns::new(&mut [], 4);
        assert_eq!(none.part(2..4).rows(), 0);
    }
}
