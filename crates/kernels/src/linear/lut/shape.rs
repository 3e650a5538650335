//! The shape of a palettized matrix, and where its packed sections lie.

use super::super::PANEL;
use super::integer::IntegerTable;
use crate::buffer::{ALIGN, round_up};

/// The shape of a palettized matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LutShape {
    /// Rows of the matrix.
    pub rows: usize,
    /// Columns of the matrix.
    pub k: usize,
    /// Bits of an index: 1, 2, 3, 4, 6 or 8.
    pub bits: usize,
    /// How many groups the rows are cut into, each with tables of its own; divides `rows`.
    pub row_groups: usize,
    /// How many groups the columns are cut into: 1, or a divisor of `k` that leaves multiples of 32.
    pub col_groups: usize,
}

impl LutShape {
    /// Whether the kernels can compute with this shape.
    pub fn supported(&self) -> bool {
        let rows = self.row_groups > 0 && self.rows.is_multiple_of(self.row_groups);
        let cols = self.col_groups == 1
            || (self.col_groups > 0 && self.k.is_multiple_of(self.col_groups) && self.group_cols().is_multiple_of(32));
        rows && cols && matches!(self.bits, 1 | 2 | 3 | 4 | 6 | 8)
    }

    pub(super) fn group_rows(&self) -> usize {
        self.rows / self.row_groups
    }

    pub(super) fn group_cols(&self) -> usize {
        self.k / self.col_groups
    }

    pub(super) fn panels(&self) -> usize {
        self.rows.div_ceil(PANEL)
    }

    /// How many tables a panel needs side by side, a power of two; 1 if all its rows share one.
    pub(super) fn beside(&self) -> usize {
        let group = self.group_rows();
        if self.row_groups == 1 || group.is_multiple_of(PANEL) {
            return 1;
        }
        if PANEL.is_multiple_of(group) { PANEL / group } else { ((PANEL - 1) / group + 2).next_power_of_two() }
    }

    /// Whether there are tables for integer products: up to 4 bits, and no four rows of a panel with two tables, or 6 bits, and no
    /// sixteen rows with two.
    pub(super) fn integers(&self) -> bool {
        let together = if self.bits == 6 { PANEL } else { 4 };
        matches!(self.bits, 1 | 2 | 3 | 4 | 6) && (self.row_groups == 1 || self.group_rows().is_multiple_of(together))
    }

    /// Entries of one table as stored: small ones are repeated to fill a register.
    pub(super) fn entries(&self) -> usize {
        if self.beside() == 1 { (1 << self.bits).max(16) } else { self.beside() << self.bits }
    }

    /// How many sets of tables there are: one a group of rows where panels lie within groups, else one a panel.
    pub(super) fn sets(&self) -> usize {
        if self.beside() == 1 { self.row_groups } else { self.panels() }
    }

    /// The lengths of the three sections: indices, tables, tables for integer products.
    pub(super) fn sections(&self) -> [usize; 3] {
        let sets = self.sets() * self.col_groups;
        [
            self.panels() * round_up(self.k, 32) * 2 * self.bits,
            round_up(sets * self.entries() * 4, ALIGN),
            if self.integers() { sets * size_of::<IntegerTable>() } else { 0 },
        ]
    }

    /// Where in the given tables that of `row`, a group of columns, and a set starts.
    pub(super) fn table(&self, row: usize, cols: usize) -> usize {
        let group = (row / self.group_rows()).min(self.row_groups - 1);
        (group * self.col_groups + cols) << self.bits
    }
}
