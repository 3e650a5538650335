//! One plan for a family of shapes.
//!
//! Where one extent of the inputs varies (the width of a mask that grows with the transcript), the function is scheduled at
//! several extents. The schedules must be the same but for their tables of shapes, layouts and folded integers, and each
//! number in those must lie on a straight line through all of them. A run then only evaluates the lines.

use std::sync::Arc;

use anemone_mil::{Buffer, Tensor};

use crate::error::PlanError;
use crate::schedule::{Schedule, Tables};

/// Straight lines through the tables of several schedules: `value = base + slope · (extent − origin)`.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    pub origin: usize,
    shapes: Vec<Line>,
    layouts: Vec<Line>,
    constants: Vec<Line>,
}

#[derive(Debug)]
struct Line {
    /// Which entry of the table.
    entry: usize,
    /// Which number of the entry.
    index: usize,
    base: i64,
    slope: i64,
}

impl Lines {
    /// Whether nothing varies.
    pub(crate) fn is_empty(&self) -> bool {
        self.shapes.is_empty() && self.layouts.is_empty() && self.constants.is_empty()
    }

    /// Moves the tables to `extent`. Allocates nothing.
    pub(crate) fn move_to(&self, extent: usize, tables: &mut Tables) {
        let d = extent as i64 - self.origin as i64;
        let at = |l: &Line| l.base + l.slope * d;
        for l in &self.shapes {
            tables.shapes[l.entry][l.index] = at(l) as usize;
        }
        for l in &self.layouts {
            *number(&mut tables.layouts[l.entry], l.index) = at(l) as usize;
        }
        for l in &self.constants {
            if let Some(Tensor { data: Buffer::I32(v), .. }) = Arc::get_mut(&mut tables.constants[l.entry]) {
                v[l.index] = at(l) as i32;
            }
        }
    }

    /// A copy of the tables whose varying constants nobody shares, so that [`Lines::move_to`] can write them.
    pub(crate) fn own(&self, tables: &Tables) -> Tables {
        let mut own = tables.clone();
        for l in &self.constants {
            let entry = &mut own.constants[l.entry];
            *entry = Arc::new(Tensor::clone(entry));
        }
        own
    }
}

fn number(layout: &mut anemone_mil::layout::Layout, index: usize) -> &mut usize {
    let rank = layout.shape.len();
    match index {
        0 => &mut layout.offset,
        i if i <= rank => &mut layout.shape[i - 1],
        i => &mut layout.strides[i - 1 - rank],
    }
}

fn numbers(layout: &anemone_mil::layout::Layout) -> Vec<i64> {
    std::iter::once(&layout.offset).chain(&layout.shape).chain(&layout.strides).map(|&n| n as i64).collect()
}

/// Finds the lines through schedules at increasing extents. The tables of the last are what plans keep.
///
/// # Errors
/// If the schedules differ in more than numbers, or a number lies on no line.
pub(crate) fn lines(probes: &[(usize, &Schedule)]) -> Result<Lines, PlanError> {
    let Some(((origin, first), rest)) = probes.split_first() else { return Ok(Lines::default()) };
    for (extent, other) in rest {
        let same = first.steps == other.steps
            && first.buffers == other.buffers
            && first.outputs == other.outputs
            && first.tables.shapes.len() == other.tables.shapes.len()
            && first.tables.layouts.len() == other.tables.layouts.len()
            && first.tables.constants.len() == other.tables.constants.len();
        if !same {
            return Err(PlanError::NotAffine {
                what: "the list of steps".to_owned(),
                found: format!(
                    "{} steps at {origin}, {} at {extent}, or of another kind",
                    first.steps.len(),
                    other.steps.len()
                ),
            });
        }
    }
    let mut lines = Lines { origin: *origin, ..Lines::default() };
    for entry in 0..first.tables.shapes.len() {
        let rows = rows(probes, |t| t.shapes[entry].iter().map(|&n| n as i64).collect());
        fit(&mut lines.shapes, entry, &rows, "a shape")?;
    }
    for entry in 0..first.tables.layouts.len() {
        fit(&mut lines.layouts, entry, &rows(probes, |t| numbers(&t.layouts[entry])), "a view")?;
    }
    for entry in 0..first.tables.constants.len() {
        let ints = |t: &Tables| match &t.constants[entry].data {
            Buffer::I32(v) => v.iter().map(|&n| i64::from(n)).collect(),
            _ => Vec::new(),
        };
        if rest.iter().any(|(_, s)| !same_but_ints(&first.tables.constants[entry], &s.tables.constants[entry])) {
            let found =
                probes.iter().map(|(e, s)| format!("{} at {e}", s.tables.constants[entry].ty)).collect::<Vec<_>>();
            return Err(PlanError::NotAffine { what: "a folded constant".to_owned(), found: found.join(", ") });
        }
        fit(&mut lines.constants, entry, &rows(probes, ints), "a folded constant")?;
    }
    Ok(lines)
}

fn same_but_ints(a: &Arc<Tensor>, b: &Arc<Tensor>) -> bool {
    Arc::ptr_eq(a, b) || a.ty == b.ty && (matches!(a.data, Buffer::I32(_)) || a.data == b.data)
}

fn rows(probes: &[(usize, &Schedule)], of: impl Fn(&Tables) -> Vec<i64>) -> Vec<(i64, Vec<i64>)> {
    probes.iter().map(|(extent, s)| (*extent as i64, of(&s.tables))).collect()
}

fn fit(lines: &mut Vec<Line>, entry: usize, rows: &[(i64, Vec<i64>)], what: &str) -> Result<(), PlanError> {
    let (e0, first) = &rows[0];
    let (e1, last) = &rows[rows.len() - 1];
    for (index, (&base, &end)) in first.iter().zip(last).enumerate() {
        let slope = if e0 == e1 { 0 } else { (end - base) / (e1 - e0) };
        let on_line = rows.iter().all(|(e, row)| row.len() == first.len() && row[index] == base + slope * (e - e0));
        if !on_line {
            let found =
                rows.iter().map(|(e, row)| format!("{:?} at {e}", row.get(index))).collect::<Vec<_>>().join(", ");
            return Err(PlanError::NotAffine { what: what.to_owned(), found });
        }
        if slope != 0 {
            lines.push(Line { entry, index, base, slope });
        }
    }
    Ok(())
}
