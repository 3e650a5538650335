//! Two functions side by side.

use std::collections::HashMap;

use anemone_mil::program::{Arg, Operation};
use anemone_mil::types::{Dim, Type};
use anemone_mil::{Const, Function, Kind, ValueId};

use super::{Change, Place};

/// Constants of more elements are compared as a whole.
const COUNTED: usize = 4096;

/// How a function (the template) is like another one.
#[derive(Debug, Default)]
pub(super) struct Alike {
    /// What differs, as lines.
    pub changes: Vec<Change>,
    /// Operations of the template that the other does not have: one run of them.
    pub extra: Vec<usize>,
    /// A result of those, and what the other function has in its place.
    pub bound: Option<(ValueId, ValueId)>,
    /// If the other function has more: values of the template that come after that.
    pub after: Vec<ValueId>,
}

/// Compares operation by operation. None if they differ in more than numbers and one run of operations.
pub(super) fn compare(template: (&Function, usize), other: (&Function, usize)) -> Option<Alike> {
    let (a, b) = (Side::new(template.0)?, Side::new(other.0)?);
    let mut pairs = Pairs {
        a: &a,
        b: &b,
        widths: (template.1, other.1),
        values: HashMap::new(),
        constants: HashMap::new(),
        bound: None,
        found: Alike::default(),
    };
    pairs.inputs()?;
    let least = a.ops.len().min(b.ops.len());
    let mut front = 0;
    while front < least && pairs.operation(a.ops[front], b.ops[front], None).is_some() {
        front += 1;
    }
    let like = |back: usize| {
        let [x, y] = [&a.ops, &b.ops].map(|ops| ops[ops.len() - 1 - back]);
        same_kind(&a.function.body.ops[x], &b.function.body.ops[y])
    };
    let back = (0..least - front).take_while(|&i| like(i)).count();
    if front + back < least {
        return None;
    }
    let (more_a, more_b) = (&a.ops[front..a.ops.len() - back], &b.ops[front..b.ops.len() - back]);
    let outputs = |side: &Side<'_>, ops: &[usize]| -> Vec<ValueId> {
        ops.iter().flat_map(|&i| side.function.body.ops[i].outputs.iter().copied()).collect()
    };
    let made = (outputs(&a, more_a), outputs(&b, more_b));
    for i in (0..back).rev() {
        let [x, y] = [&a.ops, &b.ops].map(|ops| ops[ops.len() - 1 - i]);
        pairs.operation(x, y, Some(&made))?;
    }
    for (&x, &y) in a.function.body.outputs.iter().zip(&b.function.body.outputs) {
        pairs.values(x, y, Some(&made))?;
    }
    if a.function.body.outputs.len() != b.function.body.outputs.len() {
        return None;
    }
    let mut found = pairs.found;
    found.extra = more_a.to_vec();
    found.bound = pairs.bound;
    if !more_b.is_empty() {
        found.after = outputs(&a, &a.ops[front..]);
        let after = |c: &Change| matches!(c.place, Place::Extent { value, .. } if found.after.contains(&value));
        found.changes.retain(|c| !after(c));
    }
    Some(found)
}

/// A function with its constants apart.
struct Side<'f> {
    function: &'f Function,
    /// Operations that are no constants.
    ops: Vec<usize>,
    /// By value, the operation that gives the constant.
    constants: Vec<Option<usize>>,
}

impl<'f> Side<'f> {
    fn new(function: &'f Function) -> Option<Self> {
        let mut side = Self { function, ops: Vec::new(), constants: vec![None; function.values.len()] };
        for (i, op) in function.body.ops.iter().enumerate() {
            match op.kind {
                Kind::Const => side.constants[op.outputs.first()?.index()] = Some(i),
                Kind::Op(_) if op.blocks.is_empty() => side.ops.push(i),
                Kind::Op(_) | Kind::Unknown => return None,
            }
        }
        Some(side)
    }
}

fn same_kind(a: &Operation, b: &Operation) -> bool {
    let params = |op: &Operation| op.inputs.iter().map(|(p, args)| (p.clone(), args.len())).collect::<Vec<_>>();
    a.name_of_kind == b.name_of_kind && a.outputs.len() == b.outputs.len() && params(a) == params(b)
}

struct Pairs<'f> {
    a: &'f Side<'f>,
    b: &'f Side<'f>,
    widths: (usize, usize),
    /// What each value of the template is in the other function.
    values: HashMap<ValueId, ValueId>,
    /// What each constant of the template is compared with.
    constants: HashMap<usize, usize>,
    bound: Option<(ValueId, ValueId)>,
    found: Alike,
}

impl Pairs<'_> {
    fn inputs(&mut self) -> Option<()> {
        let (a, b) = (self.a.function, self.b.function);
        if a.inputs.len() != b.inputs.len() {
            return None;
        }
        for &x in &a.inputs {
            let y = *b.inputs.iter().find(|&&y| b.value(y).name == a.value(x).name)?;
            self.pair(x, y)?;
        }
        Some(())
    }

    /// Two values that mean the same: their types differ in extents on lines.
    fn pair(&mut self, x: ValueId, y: ValueId) -> Option<()> {
        self.values.insert(x, y);
        let (a, b) = (&self.a.function.value(x).ty, &self.b.function.value(y).ty);
        let (Type::Tensor(s), Type::Tensor(t)) = (a, b) else { return (a == b).then_some(()) };
        let (Some(from), Some(to)) = (&s.shape, &t.shape) else { return (a == b).then_some(()) };
        if s.dtype != t.dtype || from.len() != to.len() {
            return None;
        }
        for (axis, dims) in from.iter().zip(to).enumerate() {
            match dims {
                (Dim::Known(n), Dim::Known(m)) if n != m => {
                    let place = Place::Extent { value: x, axis };
                    let (from, to) = ((self.widths.0, *n as i64), (self.widths.1, *m as i64));
                    self.found.changes.push(Change::through(place, from, to)?);
                }
                (n, m) if n == m => {}
                _ => return None,
            }
        }
        Some(())
    }

    /// Two operations of the same kind with the same arguments. `made` is what the operations that only one of the
    /// functions has give.
    fn operation(&mut self, i: usize, j: usize, made: Option<&(Vec<ValueId>, Vec<ValueId>)>) -> Option<()> {
        let (x, y) = (&self.a.function.body.ops[i], &self.b.function.body.ops[j]);
        if !same_kind(x, y) {
            return None;
        }
        for ((_, args), (_, others)) in x.inputs.iter().zip(&y.inputs) {
            for (arg, other) in args.iter().zip(others) {
                match (arg, other) {
                    (anemone_mil::Argument::Value(v), anemone_mil::Argument::Value(w)) => self.values(*v, *w, made)?,
                    (anemone_mil::Argument::Literal(c), anemone_mil::Argument::Literal(d)) if same(c, d) => {}
                    _ => return None,
                }
            }
        }
        // The compressions of iOS 16 keep their parameters in attributes.
        for (name, c) in x.attributes.iter().filter(|(name, _)| *name != "name") {
            let Arg::Literal(d) = y.operand_args(name).iter().next()? else { return None };
            same(c, d).then_some(())?;
        }
        x.outputs.iter().zip(&y.outputs).try_for_each(|(&v, &w)| self.pair(v, w))
    }

    fn values(&mut self, v: ValueId, w: ValueId, made: Option<&(Vec<ValueId>, Vec<ValueId>)>) -> Option<()> {
        match (self.a.constants[v.index()], self.b.constants[w.index()]) {
            (Some(i), Some(j)) => self.constant(i, j),
            (None, None) if self.values.get(&v) == Some(&w) => Some(()),
            (None, None) => {
                let (mine, others) = made?;
                let free = mine.contains(&v) && !others.contains(&w) || others.contains(&w) && !mine.contains(&v);
                (free && *self.bound.get_or_insert((v, w)) == (v, w)).then_some(())
            }
            _ => None,
        }
    }

    fn constant(&mut self, i: usize, j: usize) -> Option<()> {
        if let Some(&known) = self.constants.get(&i) {
            let [one, two] = [known, j].map(|j| self.b.function.body.ops[j].constant());
            return (known == j || same(one?, two?)).then_some(());
        }
        self.constants.insert(i, j);
        let (c, d) = (self.a.function.body.ops[i].constant()?, self.b.function.body.ops[j].constant()?);
        if same(c, d) {
            return Some(());
        }
        let (c, d) = (c.tensor()?, d.tensor()?);
        let n = c.ty.elements();
        if c.ty != d.ty || !c.ty.dtype.is_int() || n > COUNTED || !c.strings.is_empty() {
            return None;
        }
        for (index, (x, y)) in c.ints(0..n).zip(d.ints(0..n)).enumerate() {
            if x != y {
                let place = Place::Element { op: i, index };
                self.found.changes.push(Change::through(place, (self.widths.0, x), (self.widths.1, y))?);
            }
        }
        Some(())
    }
}

/// Whether two constants are the same numbers or text.
fn same(a: &Const, b: &Const) -> bool {
    match (a, b) {
        (Const::Tensor(a), Const::Tensor(b)) => {
            let stored = a.blob.is_some() && a.blob == b.blob;
            a.ty == b.ty && a.strings == b.strings && (stored || a.bytes == b.bytes)
        }
        _ => a == b,
    }
}
