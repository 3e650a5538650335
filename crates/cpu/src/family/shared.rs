//! Layers of a model are alike, and so are the shapes, views and constants of their operations: each is kept once.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;
use std::sync::Arc;

use anemone_mil::types::StaticType;
use anemone_mil::{Buffer, Tensor};

use super::{Line, Lines, Ramp, numbers};
use crate::schedule::{At, LayoutId, Schedule, ShapeId};

/// Constants of more elements are not compared.
const LARGEST: usize = 4096;

/// Where entries have gone: the new place of each, and whether it is the one that was kept.
struct Moved(Vec<(u32, bool)>);

impl Moved {
    fn to(&self, entry: u32) -> u32 {
        self.0[entry as usize].0
    }

    /// A list whose elements are about entries, about those that were kept.
    fn follow<T>(&self, all: &mut Vec<T>, entry: impl Fn(&mut T) -> &mut usize) {
        all.retain_mut(|element| self.0[*entry(element)].1);
        all.iter_mut().for_each(|element| {
            let entry = entry(element);
            *entry = self.0[*entry].0 as usize;
        });
    }
}

impl Lines {
    /// Makes one entry of those of the schedule's tables that are equal at every point.
    pub(crate) fn share(&mut self, schedule: &mut Schedule) {
        let tables = &mut schedule.tables;
        let shapes = distinct(&mut tables.shapes, &by_entry(&self.shapes), |_, shape| shape.clone());
        let layouts = distinct(&mut tables.layouts, &by_entry(&self.layouts), |_, layout| numbers(layout));
        let ramps: HashMap<usize, Ramp> = self.ramps.iter().map(|ramp| (ramp.entry, ramp.of(0))).collect();
        let constants = distinct(&mut tables.constants, &by_entry(&self.constants), |entry, constant| {
            (content(constant).ok_or(entry), ramps.get(&entry).cloned())
        });
        shapes.follow(&mut self.shapes, |line| &mut line.entry);
        layouts.follow(&mut self.layouts, |line| &mut line.entry);
        constants.follow(&mut self.constants, |line| &mut line.entry);
        constants.follow(&mut self.ramps, |ramp| &mut ramp.entry);
        let shape = |id: &mut ShapeId| id.0 = shapes.to(id.0);
        let layout = |id: &mut LayoutId| id.0 = layouts.to(id.0);
        let arguments = schedule.steps.iter_mut().flat_map(|step| step.args.iter_mut().flatten());
        for source in arguments.chain(&mut schedule.outputs) {
            shape(&mut source.shape);
            match &mut source.at {
                At::Part(_, id) | At::View(_, id) | At::State(_, id) => layout(id),
                At::Constant(constant) => *constant = constants.to(*constant),
                At::Whole(_) | At::Text(_) | At::Held => {}
            }
        }
        schedule.steps.iter_mut().flat_map(|step| &mut step.outs).for_each(|target| shape(&mut target.shape));
        schedule.buffers.iter_mut().for_each(|buffer| shape(&mut buffer.shape));
    }
}

/// The lines of each entry, whichever it is.
fn by_entry(lines: &[Line]) -> HashMap<usize, Vec<Line>> {
    let mut all: HashMap<usize, Vec<Line>> = HashMap::new();
    lines.iter().for_each(|line| all.entry(line.entry).or_default().push(Line { entry: 0, ..line.clone() }));
    all
}

/// Leaves one of those that have the same key and the same lines.
fn distinct<T, K: Eq + Hash>(
    all: &mut Vec<T>,
    lines: &HashMap<usize, Vec<Line>>,
    key: impl Fn(usize, &T) -> K,
) -> Moved {
    let (mut known, mut moved) = (HashMap::new(), Vec::with_capacity(all.len()));
    for (entry, value) in all.iter().enumerate() {
        let new = u32::try_from(known.len()).expect("fewer than 2^32 entries");
        moved.push(match known.entry((key(entry, value), lines.get(&entry))) {
            Entry::Occupied(found) => (*found.get(), false),
            Entry::Vacant(free) => (*free.insert(new), true),
        });
    }
    drop(known);
    let mut kept = moved.iter().map(|&(_, kept)| kept);
    all.retain(|_| kept.next() == Some(true));
    all.shrink_to_fit();
    Moved(moved)
}

/// What makes a constant what it is, unless it is a large one.
fn content(constant: &Arc<Tensor>) -> Option<(StaticType, Vec<u32>)> {
    let bits = match &constant.data {
        data if data.len() > LARGEST => return None,
        Buffer::F32(all) => all.iter().map(|v| v.to_bits()).collect(),
        Buffer::I32(all) => all.iter().map(|v| v.cast_unsigned()).collect(),
        Buffer::Bool(all) => all.iter().map(|&v| u32::from(v)).collect(),
    };
    Some((constant.ty.clone(), bits))
}

#[cfg(test)]
mod tests {
    use anemone_mil::DType;
    use anemone_mil::layout::Layout;
    use anemone_mil::types::{Class, Shape};
    use smallvec::smallvec;

    use super::*;
    use crate::schedule::{Action, BufferSpec, Source, Step, Tables, Target};

    fn line(entry: usize, index: usize, slope: i64) -> Line {
        Line { entry, index, base: 4, slopes: [slope, 0, 0] }
    }

    #[test]
    fn what_is_equal_at_every_point_becomes_one() {
        let shape = |shape: &[usize]| Shape::from_slice(shape);
        let ints = |values: &[i32]| Arc::new(Tensor::ints(DType::I32, &[values.len()], values));
        let floats = |value: f32| Arc::new(Tensor::floats(DType::F16, &[1], &[value]));
        let tables = Tables {
            // Equal here; the second and the last grow, the third grows otherwise.
            shapes: vec![shape(&[4, 2]), shape(&[4, 2]), shape(&[4, 2]), shape(&[4, 2]), shape(&[8]), shape(&[4, 2])],
            layouts: vec![Layout::contiguous(&[4]), Layout::contiguous(&[2, 2]), Layout::contiguous(&[4])],
            constants: vec![ints(&[4]), floats(0.0), floats(-0.0), ints(&[4]), ints(&[4]), floats(0.0)],
        };
        let source = |id: u32, at: At| Source { dtype: DType::F16, shape: ShapeId(id), at };
        let step = Step {
            action: Action::Copy,
            args: vec![
                (0..6).map(|id| source(id, At::Constant(id))).collect(),
                smallvec![source(0, At::View(0, LayoutId(2))), source(0, At::State(0, LayoutId(1)))],
            ],
            outs: smallvec![Target { dtype: DType::F16, shape: ShapeId(5), buffer: 0 }],
            place: "here".into(),
        };
        let mut schedule = Schedule {
            steps: vec![step],
            buffers: vec![BufferSpec { class: Class::Float, shape: ShapeId(3) }],
            tables,
            outputs: vec![source(4, At::Part(0, LayoutId(2)))],
            ..Schedule::default()
        };
        let mut lines = Lines {
            origin: [4, 0],
            shapes: vec![line(1, 0, 1), line(2, 0, 2), line(5, 0, 1)],
            constants: vec![line(3, 0, 3)],
            ..Lines::default()
        };
        let seen = |schedule: &Schedule, lines: &Lines, extent: usize| {
            let mut tables = lines.own(&schedule.tables);
            lines.move_to([extent, 0], &mut tables);
            let all = schedule.steps[0].args.iter().flatten().chain(&schedule.outputs).map(|source| {
                let shape = tables.shapes[source.shape.0 as usize].clone();
                let layout = |id: LayoutId| tables.layouts[id.0 as usize].clone();
                match source.at {
                    At::Constant(c) => (shape, Some(format!("{:?}", tables.constants[c as usize])), None),
                    At::Part(_, id) | At::View(_, id) | At::State(_, id) => (shape, None, Some(layout(id))),
                    _ => (shape, None, None),
                }
            });
            let shape = |id: ShapeId| (tables.shapes[id.0 as usize].clone(), None, None);
            let others = [shape(schedule.steps[0].outs[0].shape), shape(schedule.buffers[0].shape)];
            all.chain(others).collect::<Vec<_>>()
        };
        let before = [4, 5, 9].map(|extent| seen(&schedule, &lines, extent));
        lines.share(&mut schedule);
        assert_eq!([4, 5, 9].map(|extent| seen(&schedule, &lines, extent)), before);
        let Tables { shapes, layouts, constants } = &schedule.tables;
        assert_eq!((shapes.len(), layouts.len(), constants.len()), (4, 2, 4));
        assert_eq!((lines.shapes.len(), lines.constants.len()), (2, 1));
    }
}
