//! One plan for a family of shapes.
//!
//! Where one extent of the inputs varies (the width of a mask that grows with the transcript), the function is scheduled at
//! several extents. The schedules must be the same but for their tables of shapes, layouts and folded integers, and each
//! number in those must lie on a straight line through all of them. A run then only evaluates the lines. Where two extents vary
//! (the number of tokens besides), a number is on a line along each of them.

mod shared;

use std::sync::Arc;

use anemone_mil::{Buffer, Tensor, keep_fields};

use crate::error::PlanError;
use crate::schedule::{Schedule, Tables};

/// The extents that vary: the first, and the number of tokens. What does not vary is 0.
pub(crate) type Point = [usize; 2];

/// Straight lines through the tables of several schedules: `value = base + s₀·d₀ + s₁·d₁ + s₂·d₀·d₁`, where `d` is how far an
/// extent is from the origin.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    pub origin: Point,
    shapes: Vec<Line>,
    layouts: Vec<Line>,
    constants: Vec<Line>,
    ramps: Vec<Ramp>,
}

/// Integers in steps of one size, as many as an axis has: the positions of the tokens.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Ramp {
    entry: usize,
    axis: usize,
    step: i64,
    /// The extent of the axis, and the first integer.
    extent: Line,
    first: Line,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Line {
    /// Which entry of the table.
    entry: usize,
    /// Which number of the entry.
    index: usize,
    base: i64,
    slopes: [i64; 3],
}

impl Line {
    fn at(&self, d: [i64; 2]) -> i64 {
        let [first, second, both] = self.slopes;
        self.base + first * d[0] + second * d[1] + both * d[0] * d[1]
    }
}

impl Ramp {
    /// The same of another entry.
    fn of(&self, entry: usize) -> Self {
        let [extent, first] = [&self.extent, &self.first].map(|line| Line { entry, ..line.clone() });
        Self { entry, extent, first, ..*self }
    }
}

keep_fields! {
    Line { entry, index, base, slopes }
    Ramp { entry, axis, step, extent, first }
    Lines { origin, shapes, layouts, constants, ramps }
}

fn distance(point: Point, origin: Point) -> [i64; 2] {
    [0, 1].map(|i| point[i] as i64 - origin[i] as i64)
}

impl Lines {
    /// Whether nothing varies.
    pub(crate) fn is_empty(&self) -> bool {
        self.shapes.is_empty() && self.layouts.is_empty() && self.constants.is_empty() && self.ramps.is_empty()
    }

    /// Whether every line leads to a number that the tables have.
    pub(crate) fn fit(&self, tables: &Tables) -> bool {
        let shapes = self.shapes.iter().all(|l| tables.shapes.get(l.entry).is_some_and(|shape| l.index < shape.len()));
        let number = |layout: &anemone_mil::layout::Layout, index: usize| index <= 2 * layout.shape.len();
        let layouts = self.layouts.iter().all(|l| tables.layouts.get(l.entry).is_some_and(|at| number(at, l.index)));
        let ints = |entry: usize| match tables.constants.get(entry).map(|constant| &constant.data) {
            Some(Buffer::I32(all)) => Some(all.len()),
            _ => None,
        };
        let constants = self.constants.iter().all(|l| ints(l.entry).is_some_and(|count| l.index < count));
        let along = |r: &Ramp| ints(r.entry).is_some() && r.axis < tables.constants[r.entry].ty.shape.len();
        shapes && layouts && constants && self.ramps.iter().all(along)
    }

    /// Moves the tables to a point. Allocates nothing.
    pub(crate) fn move_to(&self, point: Point, tables: &mut Tables) {
        let d = distance(point, self.origin);
        let at = |l: &Line| l.at(d);
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
        for r in &self.ramps {
            if let Some(Tensor { data: Buffer::I32(v), ty }) = Arc::get_mut(&mut tables.constants[r.entry]) {
                let (extent, first) = (at(&r.extent).max(0), at(&r.first));
                ty.shape[r.axis] = extent as usize;
                v.clear();
                v.extend((0..extent).map(|i| (first + i * r.step) as i32));
            }
        }
    }

    /// A copy of the tables whose varying constants nobody shares, so that [`Lines::move_to`] can write them: without allocating,
    /// if these tables are at the widest point.
    pub(crate) fn own(&self, tables: &Tables) -> Tables {
        let mut own = tables.clone();
        for entry in self.constants.iter().map(|l| l.entry).chain(self.ramps.iter().map(|r| r.entry)) {
            let entry = &mut own.constants[entry];
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

/// Finds the lines through schedules at several points. The tables of the last are what plans keep. Where both extents vary, the
/// first four are the corners of a rectangle: (low, low), (high, low), (low, high), (high, high).
///
/// # Errors
/// If the schedules differ in more than numbers, or a number lies on no line.
pub(crate) fn lines(probes: &[(Point, &Schedule)]) -> Result<Lines, PlanError> {
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
                    "{} steps at {origin:?}, {} at {extent:?}, or of another kind",
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
        if let Some(ramp) = ramp(entry, probes) {
            lines.ramps.push(ramp);
            continue;
        }
        if rest.iter().any(|(_, s)| !same_but_ints(&first.tables.constants[entry], &s.tables.constants[entry])) {
            let found =
                probes.iter().map(|(e, s)| format!("{} at {e:?}", s.tables.constants[entry].ty)).collect::<Vec<_>>();
            return Err(PlanError::NotAffine { what: "a folded constant".to_owned(), found: found.join(", ") });
        }
        fit(&mut lines.constants, entry, &rows(probes, ints), "a folded constant")?;
    }
    Ok(lines)
}

fn same_but_ints(a: &Arc<Tensor>, b: &Arc<Tensor>) -> bool {
    Arc::ptr_eq(a, b) || a.ty == b.ty && (matches!(a.data, Buffer::I32(_)) || a.data == b.data)
}

fn rows(probes: &[(Point, &Schedule)], of: impl Fn(&Tables) -> Vec<i64>) -> Vec<(Point, Vec<i64>)> {
    probes.iter().map(|(point, s)| (*point, of(&s.tables))).collect()
}

/// A constant whose extent along one axis varies, all others being 1, if it is integers in steps of one size.
fn ramp(entry: usize, probes: &[(Point, &Schedule)]) -> Option<Ramp> {
    let of = |s: &Schedule| Arc::clone(&s.tables.constants[entry]);
    let all: Vec<(Point, Arc<Tensor>)> = probes.iter().map(|(point, s)| (*point, of(s))).collect();
    let (_, widest) = all.iter().max_by_key(|(_, t)| t.ty.elements())?;
    let axis = widest.ty.shape.iter().position(|&n| n > 1)?;
    let step = match &widest.data {
        Buffer::I32(v) => i64::from(*v.get(1)?) - i64::from(*v.first()?),
        _ => return None,
    };
    let mut rows = Vec::new();
    for (point, t) in &all {
        let Buffer::I32(v) = &t.data else { return None };
        let first = i64::from(*v.first()?);
        let in_steps = v.iter().zip(0..).all(|(&n, i)| i64::from(n) == first + i * step);
        let along = t.ty.dtype == widest.ty.dtype
            && t.ty.shape.len() == widest.ty.shape.len()
            && t.ty.shape.iter().enumerate().all(|(i, &n)| i == axis || n == 1);
        (in_steps && along).then_some(())?;
        rows.push((*point, vec![v.len() as i64, first]));
    }
    rows.iter().any(|(_, row)| row[0] != rows[0].1[0]).then_some(())?;
    let line = |index: usize| {
        let of_one: Vec<_> = rows.iter().map(|(point, row)| (*point, vec![row[index]])).collect();
        let mut found = Vec::new();
        fit(&mut found, entry, &of_one, "a folded constant").ok()?;
        Some(found.pop().unwrap_or(Line { entry, index: 0, base: of_one[0].1[0], slopes: [0; 3] }))
    };
    Some(Ramp { entry, axis, step, extent: line(0)?, first: line(1)? })
}

fn fit(lines: &mut Vec<Line>, entry: usize, rows: &[(Point, Vec<i64>)], what: &str) -> Result<(), PlanError> {
    let (origin, first) = &rows[0];
    // What lies farthest along each extent alone, and along both.
    let along = |i: usize| rows.iter().rfind(|(p, _)| p[i] != origin[i] && p[1 - i] == origin[1 - i]);
    let corners = [along(0), along(1)];
    let both = corners[0].zip(corners[1]).and_then(|((p, _), (q, _))| rows.iter().find(|(r, _)| *r == [p[0], q[1]]));
    for (index, &base) in first.iter().enumerate() {
        let value = |row: &Vec<i64>| row.get(index).copied().unwrap_or(base);
        let slope = |i: usize| corners[i].map_or(0, |(p, row)| (value(row) - base) / (p[i] as i64 - origin[i] as i64));
        let mut line = Line { entry, index, base, slopes: [slope(0), slope(1), 0] };
        if let Some((point, row)) = both {
            let d = distance(*point, *origin);
            line.slopes[2] = (value(row) - line.at(d)) / (d[0] * d[1]);
        }
        let on_line =
            rows.iter().all(|(p, row)| row.len() == first.len() && row[index] == line.at(distance(*p, *origin)));
        if !on_line {
            let found = rows.iter().map(|(p, row)| format!("{:?} at {p:?}", row.get(index)));
            return Err(PlanError::NotAffine { what: what.to_owned(), found: found.collect::<Vec<_>>().join(", ") });
        }
        if line.slopes != [0; 3] {
            lines.push(line);
        }
    }
    Ok(())
}
