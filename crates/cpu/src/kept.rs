//! Plans as bytes: what was found out about a function, for the next process, which need not find it out again.
//!
//! What is written is the graph after all passes, with constants as places in the package's files, and the schedule with the
//! lines through its tables. Kernels are made anew of the graph, and memory is laid out anew: both take next to no time.

use std::collections::BTreeMap;
use std::sync::Arc;

use anemone_mil::kept::{Keep, Reader, Writer};
use anemone_mil::lower::PackCache;
use anemone_mil::types::{StaticType, elements};
use anemone_mil::{TensorConst, ValueId, keep_fields};
use smallvec::SmallVec;

use crate::family::Lines;
use crate::graph::{Graph, GraphValue, Known, Node, ValueKind};
use crate::plan::{Note, Varying};
use crate::schedule::{Action, At, BufferSpec, LayoutId, Schedule, ShapeId, Source, Step, Tables, Target};
use crate::specialize::MAX_ELEMENTS;
use crate::state::{StateLayout, StateSpec};

/// What a plan is made of besides kernels.
pub(crate) struct Draft {
    pub graph: Graph,
    pub schedule: Schedule,
    pub lines: Lines,
    /// Elements that each buffer has at most.
    pub sizes: Vec<usize>,
    pub states: Arc<StateLayout>,
    pub varying: Option<Varying>,
    pub tokens: Option<Varying>,
    pub strict: bool,
}

impl Draft {
    /// The bytes; `None` if there is something in it that cannot be written.
    pub(crate) fn to_bytes(&self, cache: &PackCache) -> Option<Vec<u8>> {
        let mut to = Writer::new(cache);
        pruned(&self.graph).put(&mut to)?;
        self.schedule.put(&mut to)?;
        self.lines.put(&mut to)?;
        self.sizes.put(&mut to)?;
        self.states.owner.put(&mut to)?;
        self.states.states.put(&mut to)?;
        self.varying.put(&mut to)?;
        self.tokens.put(&mut to)?;
        self.strict.put(&mut to)?;
        Some(to.into_bytes())
    }

    /// What the bytes say, if it holds together.
    pub(crate) fn from_bytes(bytes: &[u8], cache: &PackCache) -> Option<Self> {
        let from = &mut Reader::new(bytes, cache);
        let (graph, schedule) = (Keep::get(from)?, Keep::get(from)?);
        let (lines, sizes) = (Keep::get(from)?, Keep::get(from)?);
        let states = Arc::new(StateLayout { owner: Keep::get(from)?, states: Keep::get(from)? });
        let (varying, tokens, strict) = (Keep::get(from)?, Keep::get(from)?, Keep::get(from)?);
        let draft = Self { graph, schedule, lines, sizes, states, varying, tokens, strict };
        (from.is_empty() && draft.holds()).then_some(draft)
    }

    /// Whether everything that is referred to is there.
    fn holds(&self) -> bool {
        let (graph, schedule) = (&self.graph, &self.schedule);
        let (tables, states) = (&schedule.tables, self.states.states.len());
        let is_value = |id: &ValueId| id.index() < graph.values.len();
        let value = |v: &GraphValue| match &v.kind {
            ValueKind::State(state) => *state < states,
            ValueKind::Packed(packed) => *packed.ty() == v.ty,
            ValueKind::Known(known) => known.ty().is_some_and(|ty| *ty == v.ty),
            ValueKind::Computed | ValueKind::Text(_) => true,
        };
        let node = |n: &Node| {
            n.args.len() == n.op.params().len() && n.values().chain(n.outputs.iter().copied()).all(|id| is_value(&id))
        };
        let shape = |id: ShapeId| (id.0 as usize) < tables.shapes.len();
        let layout = |id: LayoutId| (id.0 as usize) < tables.layouts.len();
        let buffer = |id: u32| (id as usize) < schedule.buffers.len();
        let source = |s: &Source| {
            shape(s.shape)
                && match s.at {
                    At::Whole(b) => buffer(b),
                    At::Part(b, l) | At::View(b, l) => buffer(b) && layout(l),
                    At::State(state, l) => state < states && layout(l),
                    At::Constant(c) => (c as usize) < tables.constants.len(),
                    At::Text(_) | At::Held => true,
                }
        };
        let step = |s: &Step| {
            let action = match s.action {
                Action::Node(i) => i < graph.nodes.len(),
                Action::Copy => s.outs.len() == 1 && s.args.iter().flatten().count() == 1,
                Action::Update { node, update, state } => {
                    node < graph.nodes.len() && state < states && update.target.max(update.source) < s.args.len()
                }
                Action::Store { state } => state < states && s.args.iter().flatten().count() == 1,
            };
            action && s.args.iter().flatten().all(source) && s.outs.iter().all(|t| shape(t.shape) && buffer(t.buffer))
        };
        let sized = schedule.buffers.len() == self.sizes.len() && self.sizes.iter().all(|&n| n <= MAX_ELEMENTS);
        graph.values.iter().all(value)
            && graph.nodes.iter().all(node)
            && graph.inputs.iter().chain(&graph.outputs).all(is_value)
            && schedule.steps.iter().all(step)
            && schedule.buffers.iter().all(|b| shape(b.shape))
            && schedule.inputs.len() == graph.inputs.len()
            && schedule.inputs.iter().all(|&b| buffer(b))
            && schedule.outputs.len() == graph.outputs.len()
            && schedule.outputs.iter().all(source)
            && sized
            && self.lines.fit(tables)
    }
}

impl Known {
    /// Its type.
    fn ty(&self) -> Option<&StaticType> {
        Some(self.stored.as_ref().map_or_else(|| &self.tensor().ty, |stored| &stored.ty))
    }
}

/// The graph with the values that it still has a use for, which alone are written. Only ports keep their names.
fn pruned(graph: &Graph) -> Graph {
    let ports = || graph.inputs.iter().chain(&graph.outputs).copied();
    let inside = graph.nodes.iter().flat_map(|n| n.values().chain(n.outputs.iter().copied()));
    let mut new: BTreeMap<ValueId, ValueId> = inside.chain(ports()).map(|id| (id, id)).collect();
    new.values_mut().zip(0..).for_each(|(to, index)| *to = ValueId(index));
    let mut values: Vec<GraphValue> = new.keys().map(|&id| graph.value(id).clone()).collect();
    let named: Vec<ValueId> = ports().map(|id| new[&id]).collect();
    for (value, index) in values.iter_mut().zip(0..) {
        if !named.contains(&ValueId(index)) {
            value.name = String::new();
        }
    }
    let all = |ids: &[ValueId]| ids.iter().map(|id| new[id]).collect::<Vec<_>>();
    let node = |n: &Node| Node {
        args: n.args.iter().map(|ids| all(ids).into()).collect(),
        outputs: all(&n.outputs).into(),
        ..n.clone()
    };
    let nodes = graph.nodes.iter().map(node).collect();
    Graph { values, nodes, inputs: all(&graph.inputs), outputs: all(&graph.outputs), ..*graph }
}

keep_fields! {
    Graph { values, nodes, inputs, outputs, exact, strict }
    GraphValue { name, ty, kind }
    Node { op, args, outputs, declared, place }
    Schedule { steps, buffers, tables, inputs, outputs, notes }
    BufferSpec { class, shape }
    ShapeId { 0 }
    LayoutId { 0 }
    Source { dtype, shape, at }
    Target { dtype, shape, buffer }
    Step { action, args, outs, place }
    StateSpec { name, shape }
    Varying { axes, low, high }
}

impl Keep for ValueKind {
    fn put(&self, to: &mut Writer<'_>) -> Option<()> {
        match self {
            Self::Computed => 0u8.put(to),
            Self::State(state) => (1u8, *state).put(to),
            Self::Known(Known { stored: Some(stored), .. }) => {
                2u8.put(to)?;
                stored.put(to)
            }
            Self::Known(known) => {
                3u8.put(to)?;
                known.tensor().put(to)
            }
            Self::Packed(packed) => {
                4u8.put(to)?;
                packed.put(to)
            }
            Self::Text(text) => {
                5u8.put(to)?;
                text.put(to)
            }
        }
    }
    fn get(from: &mut Reader<'_>) -> Option<Self> {
        Some(match u8::get(from)? {
            0 => Self::Computed,
            1 => Self::State(Keep::get(from)?),
            2 => Self::Known(Known::stored(&TensorConst::get(from)?).ok()?),
            3 => Self::Known(anemone_mil::Tensor::get(from)?.into()),
            4 => Self::Packed(Keep::get(from)?),
            5 => Self::Text(Keep::get(from)?),
            _ => return None,
        })
    }
}

impl Keep for Tables {
    fn put(&self, to: &mut Writer<'_>) -> Option<()> {
        self.shapes.put(to)?;
        self.layouts.put(to)?;
        self.constants.len().put(to)?;
        self.constants.iter().try_for_each(|constant| constant.put(to))
    }
    fn get(from: &mut Reader<'_>) -> Option<Self> {
        let (shapes, layouts): (Vec<SmallVec<[usize; 6]>>, _) = (Keep::get(from)?, Keep::get(from)?);
        let constants = Vec::<anemone_mil::Tensor>::get(from)?.into_iter().map(Arc::new).collect();
        let counted = |shape: &[usize]| shape.iter().try_fold(1usize, |all, &n| all.checked_mul(n.max(1)));
        let bounded = shapes.iter().all(|shape| counted(shape).is_some() && elements(shape) <= MAX_ELEMENTS);
        bounded.then_some(Self { shapes, layouts, constants })
    }
}

impl Keep for At {
    fn put(&self, to: &mut Writer<'_>) -> Option<()> {
        match self {
            Self::Whole(b) => (0u8, *b).put(to),
            Self::Part(b, l) => (1u8, (*b, *l)).put(to),
            Self::View(b, l) => (2u8, (*b, *l)).put(to),
            Self::State(s, l) => (3u8, (*s, *l)).put(to),
            Self::Constant(c) => (4u8, *c).put(to),
            Self::Text(text) => {
                5u8.put(to)?;
                text.put(to)
            }
            Self::Held => 6u8.put(to),
        }
    }
    fn get(from: &mut Reader<'_>) -> Option<Self> {
        Some(match u8::get(from)? {
            0 => Self::Whole(Keep::get(from)?),
            1 => Self::Part(Keep::get(from)?, Keep::get(from)?),
            2 => Self::View(Keep::get(from)?, Keep::get(from)?),
            3 => Self::State(Keep::get(from)?, Keep::get(from)?),
            4 => Self::Constant(Keep::get(from)?),
            5 => Self::Text(Keep::get(from)?),
            6 => Self::Held,
            _ => return None,
        })
    }
}

impl Keep for Action {
    fn put(&self, to: &mut Writer<'_>) -> Option<()> {
        match self {
            Self::Node(i) => (0u8, *i).put(to),
            Self::Copy => 1u8.put(to),
            Self::Update { node, update, state } => {
                (2u8, (*node, *state)).put(to)?;
                update.put(to)
            }
            Self::Store { state } => (3u8, *state).put(to),
        }
    }
    fn get(from: &mut Reader<'_>) -> Option<Self> {
        Some(match u8::get(from)? {
            0 => Self::Node(Keep::get(from)?),
            1 => Self::Copy,
            2 => {
                let (node, state) = Keep::get(from)?;
                Self::Update { node, state, update: Keep::get(from)? }
            }
            3 => Self::Store { state: Keep::get(from)? },
            _ => return None,
        })
    }
}

impl Keep for Note {
    fn put(&self, to: &mut Writer<'_>) -> Option<()> {
        match self {
            Self::StateCopied { place, state, elements } => {
                (0u8, (*state, *elements)).put(to)?;
                place.put(to)
            }
            Self::Expanded { place, name, bytes } => {
                (1u8, *bytes).put(to)?;
                place.put(to)?;
                name.put(to)
            }
        }
    }
    fn get(from: &mut Reader<'_>) -> Option<Self> {
        Some(match u8::get(from)? {
            0 => {
                let (state, elements) = Keep::get(from)?;
                Self::StateCopied { state, elements, place: Keep::get(from)? }
            }
            1 => Self::Expanded { bytes: Keep::get(from)?, place: Keep::get(from)?, name: Keep::get(from)? },
            _ => return None,
        })
    }
}
