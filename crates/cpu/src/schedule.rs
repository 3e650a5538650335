//! From a graph to steps over buffers: views are resolved, states are updated in place where that is provably the same, and
//! copies are made where it is not, with a note.

use std::sync::Arc;

use anemone_mil::layout::Layout;
use anemone_mil::lower::{Kernel, PackCache};
use anemone_mil::op::{Effect, OpError, Update};
use anemone_mil::types::{Class, DType, Shape, elements};
use anemone_mil::{Tensor, ValueId};
use smallvec::{SmallVec, smallvec};

use crate::graph::{Graph, Node, ValueKind};
use crate::specialize::unpack;

/// Steps over buffers, with everything that depends on shapes kept apart in [`Tables`].
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    pub steps: Vec<Step>,
    /// One for each tensor that is computed or given; memory is shared later.
    pub buffers: Vec<BufferSpec>,
    pub tables: Tables,
    /// The buffer of each input of the graph.
    pub inputs: Vec<u32>,
    /// Where each output of the graph lies at the end.
    pub outputs: Vec<Source>,
    pub notes: Vec<Note>,
}

/// What depends on shapes. Two schedules of one function for different shapes differ in nothing else.
#[derive(Debug, Default, Clone)]
pub(crate) struct Tables {
    pub shapes: Vec<Shape>,
    pub layouts: Vec<Layout>,
    pub constants: Vec<Arc<Tensor>>,
}

/// A tensor that is computed or given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BufferSpec {
    pub class: Class,
    pub shape: ShapeId,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ShapeId(pub u32);
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LayoutId(pub u32);

/// One step of a run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Step {
    pub action: Action,
    /// Arguments by parameter.
    pub args: Vec<SmallVec<[Source; 1]>>,
    pub outs: SmallVec<[Target; 1]>,
    pub place: Arc<str>,
}

/// What a step does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// Runs a node of the graph: its kernel, or its plain evaluation.
    Node(usize),
    /// Copies argument 0 to a buffer without gaps.
    Copy,
    /// Overwrites the part of a state that the node says, with the node's source.
    Update { node: usize, update: Update, state: usize },
    /// Overwrites a whole state with argument 0.
    Store { state: usize },
}

/// An argument of a step.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Source {
    pub dtype: DType,
    pub shape: ShapeId,
    pub at: At,
}

/// Where an argument lies.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum At {
    /// A buffer from its start.
    Whole(u32),
    /// A part of a buffer without gaps.
    Part(u32, LayoutId),
    /// A strided view of a buffer.
    View(u32, LayoutId),
    /// A view of a state.
    State(usize, LayoutId),
    /// A constant.
    Constant(u32),
    /// Text.
    Text(Arc<str>),
    /// The kernel holds it.
    Held,
}

/// A result of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    pub dtype: DType,
    pub shape: ShapeId,
    pub buffer: u32,
}

/// Something that a plan does though nobody would wish it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// The content of a state is copied at every run.
    StateCopied {
        /// Where the operation stands that needs the copy.
        place: String,
        /// The state.
        state: usize,
        /// Elements copied.
        elements: usize,
    },
    /// A compressed constant is kept unpacked, because the operation that uses it has no kernel for the packed form.
    Expanded {
        /// Where the operation stands.
        place: String,
        /// The constant.
        name: String,
        /// Bytes that it takes.
        bytes: usize,
    },
}

#[derive(Debug, Clone)]
enum Loc {
    Nowhere,
    Buffer(u32),
    Part { buffer: u32, layout: Layout },
    State { state: usize, layout: Layout },
}

/// Schedules a graph. `kernels` has the lowered form of each node, where there is one.
pub(crate) fn schedule(
    graph: &Graph,
    kernels: &[Option<Arc<dyn Kernel>>],
    states: usize,
    cache: &PackCache,
) -> Schedule {
    let mut last_use = vec![0; graph.values.len()];
    let mut users: Vec<SmallVec<[usize; 2]>> = vec![SmallVec::new(); graph.values.len()];
    for (i, node) in graph.nodes.iter().enumerate() {
        for v in node.values() {
            last_use[v.index()] = i;
            users[v.index()].push(i);
        }
    }
    graph.outputs.iter().for_each(|v| last_use[v.index()] = usize::MAX);
    let mut s = Scheduler {
        graph,
        kernels,
        cache,
        out: Schedule::default(),
        loc: vec![Loc::Nowhere; graph.values.len()],
        dense: vec![None; graph.values.len()],
        constant: vec![None; graph.values.len()],
        views: vec![Vec::new(); states],
        last_use,
        users,
        uses: graph.uses(),
    };
    for &id in &graph.inputs {
        let buffer = s.buffer(id);
        s.out.inputs.push(buffer);
        s.loc[id.index()] = Loc::Buffer(buffer);
    }
    for (i, node) in graph.nodes.iter().enumerate() {
        s.node(i, node);
    }
    s.out.outputs = graph.outputs.iter().map(|&id| s.contiguous(id, &"the outputs".into())).collect();
    s.out
}

struct Scheduler<'g> {
    graph: &'g Graph,
    kernels: &'g [Option<Arc<dyn Kernel>>],
    cache: &'g PackCache,
    out: Schedule,
    loc: Vec<Loc>,
    /// Copies without gaps of values that are views.
    dense: Vec<Option<u32>>,
    constant: Vec<Option<u32>>,
    /// Values that lie in each state as its content is now.
    views: Vec<Vec<ValueId>>,
    last_use: Vec<usize>,
    users: Vec<SmallVec<[usize; 2]>>,
    uses: Vec<usize>,
}

impl Scheduler<'_> {
    fn node(&mut self, i: usize, node: &Node) {
        match node.op.effect() {
            Effect::ReadState => self.read(node),
            Effect::WriteState => self.write(i, node),
            Effect::Pure if self.view(node) || self.update(i, node) => {}
            Effect::Pure => self.compute(i, node),
        }
    }

    fn read(&mut self, node: &Node) {
        let out = node.outputs[0];
        if let ValueKind::State(state) = self.graph.value(node.args[0][0]).kind {
            let layout = Layout::contiguous(&self.graph.value(out).ty.shape);
            self.loc[out.index()] = Loc::State { state, layout };
            self.views[state].push(out);
        }
    }

    fn write(&mut self, i: usize, node: &Node) {
        let ValueKind::State(state) = self.graph.value(node.args[0][0]).kind else { return };
        let data = node.args[1][0];
        let in_place = self.views[state].contains(&data)
            && matches!(&self.loc[data.index()], Loc::State { state: s, layout } if *s == state && layout.is_contiguous() && layout.offset == 0);
        if in_place {
            return;
        }
        let source = self.contiguous(data, &node.place);
        self.note_copy(state, node, elements(&self.graph.value(data).ty.shape));
        self.overwrite(state, i, &[]);
        self.step(Action::Store { state }, vec![smallvec![source]], SmallVec::new(), &node.place);
    }

    /// Whether the result is only another view of an operand.
    fn view(&mut self, node: &Node) -> bool {
        let first = node.args.first().and_then(|a| a.first());
        let Some(&x) = first.filter(|x| !self.graph.rounds(node, **x)) else { return false };
        let layout = match &self.loc[x.index()] {
            Loc::Nowhere => return false,
            Loc::Buffer(_) => Layout::contiguous(&self.graph.value(x).ty.shape),
            Loc::Part { layout, .. } | Loc::State { layout, .. } => layout.clone(),
        };
        let operands = self.graph.operands(node.op, &node.args, self.cache);
        let Some(layout) = node.op.view(&operands, &layout) else { return false };
        let out = node.outputs[0];
        self.loc[out.index()] = match self.loc[x.index()] {
            Loc::State { state, .. } => {
                // What lies in the state as it is now, if `x` still does.
                self.views[state].push(out);
                Loc::State { state, layout }
            }
            Loc::Buffer(buffer) | Loc::Part { buffer, .. } => Loc::Part { buffer, layout },
            Loc::Nowhere => return false,
        };
        true
    }

    /// Whether the operation overwrites a part of a state that nothing else looks at in between.
    fn update(&mut self, i: usize, node: &Node) -> bool {
        let Some(update) = node.op.update() else { return false };
        let (target, out) = (node.args[update.target][0], node.outputs[0]);
        let Loc::State { state, layout } = &self.loc[target.index()] else { return false };
        let state = *state;
        let whole =
            layout.is_contiguous() && layout.offset == 0 && elements(&layout.shape) == self.state_elements(state);
        if !whole || !self.views[state].contains(&target) || !self.is_written(i, out, state) {
            return false;
        }
        let operands = self.graph.operands(node.op, &node.args, self.cache);
        if matches!(node.op.region(&operands, layout), Err(OpError::Unsupported { .. })) {
            return false;
        }
        let mut args: Vec<SmallVec<[Source; 1]>> = Vec::with_capacity(node.args.len());
        for (param, list) in node.args.iter().enumerate() {
            args.push(if param == update.target {
                smallvec![Source { dtype: DType::F16, shape: self.shape(target), at: At::Held }]
            } else {
                // What is written may have gaps where it lies.
                let gaps =
                    |s: &Self, v: ValueId| param == update.source && matches!(s.loc[v.index()], Loc::Part { .. });
                let lies =
                    |v| if gaps(self, v) { self.as_view(v) } else { None }.unwrap_or_else(|| self.copied(v, node));
                list.iter().copied().map(lies).collect()
            });
        }
        self.overwrite(state, i, &[target]);
        self.step(Action::Update { node: i, update, state }, args, SmallVec::new(), &node.place);
        let layout = Layout::contiguous(&self.graph.value(out).ty.shape);
        self.loc[out.index()] = Loc::State { state, layout };
        self.views[state].push(out);
        true
    }

    /// Whether `v` goes into `state` and nowhere else, and nothing reads the state before.
    fn is_written(&self, from: usize, v: ValueId, state: usize) -> bool {
        let [user] = self.users[v.index()][..] else { return false };
        if self.uses[v.index()] != 1 {
            return false;
        }
        let names_state = |n: &Node| {
            n.args
                .first()
                .and_then(|a| a.first())
                .is_some_and(|&id| matches!(self.graph.value(id).kind, ValueKind::State(s) if s == state))
        };
        let between = &self.graph.nodes[from + 1..user];
        if between.iter().any(|n| n.op.effect() != Effect::Pure && names_state(n)) {
            return false;
        }
        let n = &self.graph.nodes[user];
        match (n.op.effect(), n.op.update()) {
            (Effect::WriteState, _) => names_state(n),
            (Effect::Pure, Some(u)) => n.args[u.target][0] == v && self.is_written(user, n.outputs[0], state),
            (Effect::Pure, None) => self.is_whole_view(n, v) && self.is_written(user, n.outputs[0], state),
            _ => false,
        }
    }

    /// Whether the node's result is all of `v` as it lies, perhaps of another shape or floating type.
    fn is_whole_view(&self, n: &Node, v: ValueId) -> bool {
        let whole = Layout::contiguous(&self.graph.value(v).ty.shape);
        let operands = self.graph.operands(n.op, &n.args, self.cache);
        n.args.first().and_then(|a| a.first()) == Some(&v)
            && n.op.view(&operands, &whole).is_some_and(|l| {
                l.is_contiguous() && l.offset == whole.offset && elements(&l.shape) == elements(&whole.shape)
            })
    }

    fn state_elements(&self, state: usize) -> usize {
        self.graph
            .values
            .iter()
            .find(|v| matches!(v.kind, ValueKind::State(s) if s == state))
            .map_or(0, |v| elements(&v.ty.shape))
    }

    /// Saves what later operations still want of a state that is about to change, except `done_with`.
    fn overwrite(&mut self, state: usize, i: usize, done_with: &[ValueId]) {
        for v in std::mem::take(&mut self.views[state]) {
            let again = self.last_use[v.index()] > i;
            if again && !(done_with.contains(&v) && self.uses[v.index()] == 1) {
                let place = self.graph.nodes[i].place.clone();
                if self.dense[v.index()].is_none() {
                    self.note_copy(state, &self.graph.nodes[i], elements(&self.graph.value(v).ty.shape));
                }
                if let At::Whole(buffer) = self.contiguous(v, &place).at {
                    self.loc[v.index()] = Loc::Buffer(buffer);
                }
            }
        }
    }

    fn compute(&mut self, i: usize, node: &Node) {
        let kernel = self.kernels[i].as_deref();
        let mut args = Vec::with_capacity(node.args.len());
        let in_states = kernel.is_some_and(|k| self.all_in_states(k, node));
        for (param, list) in node.args.iter().enumerate() {
            let holds = kernel.is_some_and(|k| k.holds(param));
            let mut sources: SmallVec<[Source; 1]> = SmallVec::with_capacity(list.len());
            for &v in list {
                let source = if holds {
                    Source { dtype: self.graph.value(v).ty.dtype, shape: self.shape(v), at: At::Held }
                } else if self.accepted(kernel, param, v)
                    && (in_states || !matches!(self.loc[v.index()], Loc::State { .. }))
                    && let Some(view) = self.as_view(v)
                {
                    view
                } else {
                    self.copied(v, node)
                };
                sources.push(source);
            }
            args.push(sources);
        }
        let mut outs = SmallVec::with_capacity(node.outputs.len());
        for &v in &node.outputs {
            let buffer = self.buffer(v);
            self.loc[v.index()] = Loc::Buffer(buffer);
            let BufferSpec { shape, .. } = self.out.buffers[buffer as usize];
            outs.push(Target { dtype: self.graph.value(v).ty.dtype, shape, buffer });
        }
        self.step(Action::Node(i), args, outs, &node.place);
    }

    /// Whether every operand that the kernel would accept as a view is one of a state.
    fn all_in_states(&self, kernel: &dyn Kernel, node: &Node) -> bool {
        node.args.iter().enumerate().all(|(param, list)| {
            list.iter().all(|&v| match &self.loc[v.index()] {
                Loc::State { layout, .. } => {
                    let copy = Layout::contiguous(&layout.shape);
                    kernel.accepts_view(param, layout) || !kernel.accepts_view(param, &copy)
                }
                _ => !kernel.accepts_view(param, &Layout::contiguous(&self.graph.value(v).ty.shape)),
            })
        })
    }

    /// The value without gaps, with a note if that takes a copy of a state.
    fn copied(&mut self, v: ValueId, node: &Node) -> Source {
        if let Loc::State { state, .. } = self.loc[v.index()]
            && self.dense[v.index()].is_none()
        {
            self.note_copy(state, node, elements(&self.graph.value(v).ty.shape));
        }
        self.contiguous(v, &node.place)
    }

    /// Whether the value lies as a view that the kernel accepts.
    fn accepted(&self, kernel: Option<&dyn Kernel>, param: usize, v: ValueId) -> bool {
        match &self.loc[v.index()] {
            Loc::Part { layout, .. } | Loc::State { layout, .. } => {
                kernel.is_some_and(|k| k.accepts_view(param, layout))
            }
            Loc::Nowhere | Loc::Buffer(_) => false,
        }
    }

    /// The value as it lies, gaps and all; nothing for constants.
    fn as_view(&mut self, v: ValueId) -> Option<Source> {
        let at = match self.loc[v.index()].clone() {
            Loc::Nowhere => return None,
            Loc::Buffer(b) => At::Whole(b),
            Loc::Part { buffer, layout } => At::View(buffer, self.layout(layout)),
            Loc::State { state, layout } => At::State(state, self.layout(layout)),
        };
        Some(Source { dtype: self.graph.value(v).ty.dtype, shape: self.shape(v), at })
    }

    /// The value without gaps, copied there if need be.
    fn contiguous(&mut self, v: ValueId, place: &Arc<str>) -> Source {
        let (dtype, shape) = (self.graph.value(v).ty.dtype, self.shape(v));
        let at = match (&self.graph.value(v).kind, self.loc[v.index()].clone()) {
            (ValueKind::Text(s), _) => At::Text(s.clone()),
            (ValueKind::Known(..) | ValueKind::Packed(_), _) => At::Constant(self.constant(v, place)),
            (_, Loc::Buffer(b)) => At::Whole(b),
            (_, Loc::Part { buffer, layout }) if layout.is_contiguous() => At::Part(buffer, self.layout(layout)),
            _ => At::Whole(self.copy(v, place)),
        };
        Source { dtype, shape, at }
    }

    fn copy(&mut self, v: ValueId, place: &Arc<str>) -> u32 {
        if let Some(buffer) = self.dense[v.index()] {
            return buffer;
        }
        let source = self.as_view(v).expect("a value that is used was computed");
        let buffer = self.buffer(v);
        let target = Target { dtype: source.dtype, shape: source.shape, buffer };
        self.step(Action::Copy, vec![smallvec![source]], smallvec![target], place);
        self.dense[v.index()] = Some(buffer);
        buffer
    }

    fn constant(&mut self, v: ValueId, place: &Arc<str>) -> u32 {
        if let Some(id) = self.constant[v.index()] {
            return id;
        }
        let value = self.graph.value(v);
        let tensor = match &value.kind {
            ValueKind::Packed(p) => {
                let t = unpack(p);
                let bytes = t.data.len() * 4;
                self.out.notes.push(Note::Expanded { place: place.to_string(), name: value.name.clone(), bytes });
                Arc::new(t)
            }
            ValueKind::Known(known) => Arc::clone(known.tensor()),
            other => unreachable!("{other:?} is no constant of numbers"),
        };
        self.out.tables.constants.push(tensor);
        let id = u32::try_from(self.out.tables.constants.len() - 1).expect("fewer than 2^32 constants");
        self.constant[v.index()] = Some(id);
        id
    }

    fn buffer(&mut self, v: ValueId) -> u32 {
        let class = self.graph.value(v).ty.dtype.class();
        let shape = self.shape(v);
        self.out.buffers.push(BufferSpec { class, shape });
        u32::try_from(self.out.buffers.len() - 1).expect("fewer than 2^32 buffers")
    }

    fn shape(&mut self, v: ValueId) -> ShapeId {
        self.out.tables.shapes.push(self.graph.value(v).ty.shape.clone());
        ShapeId(u32::try_from(self.out.tables.shapes.len() - 1).expect("fewer than 2^32 shapes"))
    }

    fn layout(&mut self, layout: Layout) -> LayoutId {
        self.out.tables.layouts.push(layout);
        LayoutId(u32::try_from(self.out.tables.layouts.len() - 1).expect("fewer than 2^32 layouts"))
    }

    fn step(
        &mut self,
        action: Action,
        args: Vec<SmallVec<[Source; 1]>>,
        outs: SmallVec<[Target; 1]>,
        place: &Arc<str>,
    ) {
        self.out.steps.push(Step { action, args, outs, place: place.clone() });
    }

    fn note_copy(&mut self, state: usize, node: &Node, elements: usize) {
        self.out.notes.push(Note::StateCopied { place: node.place.to_string(), state, elements });
    }
}
