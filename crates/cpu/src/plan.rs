//! Plans: everything about running a function, decided beforehand.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use anemone_mil::lower::{Kernel, Lasting, PackCache};
use anemone_mil::op::{Op, Update};
use anemone_mil::types::{DType, elements};
use anemone_mil::{Function, Shape};
use smallvec::SmallVec;

use crate::error::PlanError;
use crate::family::{Lines, Point, lines};
use crate::graph::Graph;
use crate::kept::Draft;
use crate::lower::lower;
use crate::memory::{Memory, lay_out};
use crate::pass;
pub use crate::schedule::Note;
use crate::schedule::{Action, Schedule, Source, Tables, Target, schedule};
use crate::specialize::{MAX_ELEMENTS, specialize};
use crate::state::StateLayout;
use crate::variant::Variant;
use crate::widths::Widths;

/// What a plan is made for.
#[derive(Clone, Debug, Default)]
pub struct PlanOptions {
    /// Shapes of the inputs whose declared shape is flexible.
    pub shapes: BTreeMap<String, Vec<usize>>,
    /// The extent that may differ from run to run.
    pub varying: Option<Varying>,
    /// The number of tokens, where a function takes any and that may differ too. What varies besides counts them in: it is
    /// never less.
    pub tokens: Option<Varying>,
    /// Digest of the package, which states carry.
    pub owner: [u8; 32],
    /// Whether kernels must compute in floats where they could quantize activations and multiply integers.
    pub exact: bool,
    /// Whether whatever the program types as half floats is rounded to them as soon as it is computed, as hardware does that
    /// computes in half floats; such plans are exact otherwise, and fuse nothing. (Sums within one operation stay in single
    /// floats, and so do weights that are compressed.)
    pub strict: bool,
}

/// An extent that may differ from run to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Varying {
    /// The axes of inputs that have this extent.
    pub axes: Vec<(String, usize)>,
    /// The smallest extent.
    pub low: usize,
    /// The largest.
    pub high: usize,
}

/// An input or output of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// Its name.
    pub name: String,
    /// Its declared element type.
    pub dtype: DType,
    /// Its shape, at the largest extent where that varies.
    pub shape: Shape,
}

/// A compiled function: immutable, and shared by any number of instances.
#[derive(Debug)]
pub struct Plan {
    pub(crate) states: Arc<StateLayout>,
    pub(crate) inputs: Vec<Port>,
    pub(crate) outputs: Vec<Port>,
    pub(crate) input_buffers: Vec<u32>,
    pub(crate) output_sources: Vec<Source>,
    pub(crate) input_shapes: Vec<crate::schedule::ShapeId>,
    pub(crate) steps: Vec<RunStep>,
    pub(crate) tables: Tables,
    pub(crate) lines: Lines,
    pub(crate) memory: Memory,
    pub(crate) scratch: usize,
    /// Inputs and pieces of the largest lasting work.
    pub(crate) room: [usize; 2],
    pub(crate) varying: Option<Varying>,
    pub(crate) tokens: Option<Varying>,
    pub(crate) strict: bool,
    notes: Vec<Note>,
    /// Its written form, until somebody takes it.
    kept: Mutex<Option<Vec<u8>>>,
}

/// One step of a run, with what it runs.
#[derive(Debug)]
pub(crate) struct RunStep {
    pub action: RunAction,
    pub args: Vec<SmallVec<[Source; 1]>>,
    pub outs: SmallVec<[Target; 1]>,
    pub op: Option<OpRef>,
    /// Whether each run checks the types of the results.
    pub declared: bool,
    pub place: Arc<str>,
}

#[derive(Clone, Copy)]
pub(crate) struct OpRef(pub &'static dyn Op);

impl std::fmt::Debug for OpRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0.name())
    }
}

#[derive(Debug)]
pub(crate) enum RunAction {
    Eval,
    Kernel(Arc<dyn Kernel>),
    Copy,
    Update { update: Update, state: usize },
    Store { state: usize },
}

/// Temporary tensors of one plan may take this many elements.
const MAX_TEMPORARY: usize = MAX_ELEMENTS;

impl Plan {
    /// Plans a function.
    ///
    /// # Errors
    /// If a shape is missing, an operation does not accept its operands, or the shapes of a varying function do not follow
    /// straight lines.
    pub fn new(function: &Function, options: &PlanOptions, cache: &PackCache) -> Result<Self, PlanError> {
        Self::of(&|_| function.into(), options, cache)
    }

    /// Plans a function for any number of tokens: the extent that varies.
    ///
    /// # Errors
    /// As [`Plan::new`].
    pub fn of_widths(widths: &Widths, options: &PlanOptions, cache: &PackCache) -> Result<Self, PlanError> {
        let (low, high) = widths.range();
        let varying = Some(Varying { axes: Vec::new(), low, high });
        Self::of(&|width| widths.at(width), &PlanOptions { varying, ..options.clone() }, cache)
    }

    fn of<'f>(
        function: &dyn Fn(usize) -> Variant<'f>,
        options: &PlanOptions,
        cache: &PackCache,
    ) -> Result<Self, PlanError> {
        let (points, high) = points(options);
        let widest = function(high[0]);
        let states = Arc::new(StateLayout::of(widest.function, options.owner)?);
        let specialized = |variant: &Variant<'_>, point: Point| {
            let shapes = shapes_at(variant.function, options, point)?;
            let mut graph = specialize(variant, &shapes, &states, cache)?;
            graph.exact = options.exact || options.strict;
            graph.strict = options.strict;
            pass::run(&mut graph, cache);
            Ok(graph)
        };
        let graph = specialized(&widest, high)?;
        let kernels = lower(&graph, cache);
        let through = |points: &[Point]| -> Result<(Lines, Schedule), PlanError> {
            // One at a time: a graph has a name for each value.
            let mut schedules: Vec<Schedule> = Vec::new();
            for &point in points {
                let probe = (point != high).then(|| specialized(&function(point[0]), point)).transpose()?;
                let at = probe.as_ref().unwrap_or(&graph);
                if !same_nodes(at, &graph) {
                    return Err(PlanError::NotAffine {
                        what: "the list of operations".to_owned(),
                        found: format!("another at extents {point:?}"),
                    });
                }
                schedules.push(schedule(at, &kernels, states.states.len(), cache));
            }
            let pairs: Vec<(Point, &Schedule)> = points.iter().copied().zip(&schedules).collect();
            Ok((lines(&pairs)?, schedules.pop().expect("at least one probe")))
        };
        let with_the_widest = options.varying.as_ref().and_then(|v| few_probes(v, high[0]));
        let found = with_the_widest.and_then(|extents| through(&extents.map(|extent| [extent, 0])).ok());
        let (mut lines, mut schedule) = found.map_or_else(|| through(&points), Ok)?;
        let mut sizes = sizes(&schedule);
        for point in ends(options) {
            schedule.tables = lines.own(&schedule.tables);
            lines.move_to(point, &mut schedule.tables);
            sizes.iter_mut().zip(self::sizes(&schedule)).for_each(|(a, b)| *a = b.max(*a));
        }
        lines.share(&mut schedule);
        let draft = Draft {
            graph,
            schedule,
            lines,
            sizes,
            states,
            varying: options.varying.clone(),
            tokens: options.tokens.clone(),
            strict: options.strict,
        };
        let kept = cache.keeps_plans().then(|| draft.to_bytes(cache)).flatten();
        Ok(Self { kept: Mutex::new(kept), ..Self::finish(draft, kernels)? })
    }

    /// A plan that an earlier process wrote ([`Plan::take_kept`]) of the same package, for the same kind of processor. `None` if
    /// the bytes are none.
    #[must_use]
    pub fn from_kept(bytes: &[u8], cache: &PackCache) -> Option<Self> {
        let draft = Draft::from_bytes(bytes, cache)?;
        let kernels = lower(&draft.graph, cache);
        Self::finish(draft, kernels).ok()
    }

    /// The plan as bytes, if its cache asked for them and all of it can be written; once.
    #[must_use]
    pub fn take_kept(&self) -> Option<Vec<u8>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// A plan of what was found out about a function, and its kernels.
    fn finish(draft: Draft, kernels: Vec<Option<Arc<dyn Kernel>>>) -> Result<Self, PlanError> {
        let Draft { graph, schedule, lines, sizes, states, varying, tokens, strict } = draft;
        let memory = lay_out(&schedule, &sizes);
        let total: usize = memory.slots.iter().map(|s| s.1).fold(0, usize::saturating_add);
        if total > MAX_TEMPORARY {
            return Err(PlanError::TooLarge { elements: total, bound: MAX_TEMPORARY });
        }
        let port = |id: &anemone_mil::ValueId| {
            let v = graph.value(*id);
            Port { name: v.name.clone(), dtype: v.ty.dtype, shape: v.ty.shape.clone() }
        };
        let scratch = kernels.iter().flatten().map(|k| k.scratch()).max().unwrap_or(0);
        let lasting = || kernels.iter().flatten().filter_map(|k| k.lasting());
        let most = |of: fn(&Arc<dyn Lasting>) -> usize| lasting().map(of).max().unwrap_or(0);
        let room = [most(|work| work.inputs()), most(|work| work.pieces())];
        Ok(Self {
            states,
            inputs: graph.inputs.iter().map(port).collect(),
            outputs: graph.outputs.iter().map(port).collect(),
            input_shapes: schedule.inputs.iter().map(|&b| schedule.buffers[b as usize].shape).collect(),
            input_buffers: schedule.inputs,
            output_sources: schedule.outputs,
            steps: schedule.steps.into_iter().map(|s| resolve(s, &graph, &kernels)).collect(),
            tables: schedule.tables,
            lines,
            memory,
            scratch,
            room,
            varying,
            tokens,
            strict,
            notes: schedule.notes,
            kept: Mutex::default(),
        })
    }

    /// Inputs that are not states, in order of declaration.
    #[must_use]
    pub fn inputs(&self) -> &[Port] {
        &self.inputs
    }

    /// Outputs, in order of declaration.
    #[must_use]
    pub fn outputs(&self) -> &[Port] {
        &self.outputs
    }

    /// The states that a run reads and writes.
    #[must_use]
    pub fn states(&self) -> &Arc<StateLayout> {
        &self.states
    }

    /// Copies of states and unpacked constants: what costs more than it should.
    #[must_use]
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// Bytes of temporary tensors that each instance takes.
    #[must_use]
    pub fn temporary_bytes(&self) -> usize {
        self.memory.slots.iter().map(|(_, n)| n * 4).sum::<usize>() + self.scratch * 4
    }
}

impl std::fmt::Display for Plan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (i, step) in self.steps.iter().enumerate() {
            let what = match &step.action {
                RunAction::Eval => "plain".to_owned(),
                RunAction::Kernel(k) => format!("{k:?}"),
                RunAction::Copy => "copy".to_owned(),
                RunAction::Update { state, .. } => format!("in place, state {}", self.states.states[*state].name),
                RunAction::Store { state } => format!("whole state {}", self.states.states[*state].name),
            };
            let shapes: Vec<String> =
                step.outs.iter().map(|t| format!("{:?}", self.tables.shapes[t.shape.0 as usize].as_slice())).collect();
            writeln!(f, "{i:5} {} {} [{what}]", step.place, shapes.join(" "))?;
        }
        Ok(())
    }
}

/// The extents at which a function is looked at, and the largest. At either end of the range shapes can coincide that
/// differ everywhere else (a slice that is the whole), so the extents lie within where there is room.
fn probes(varying: Option<&Varying>) -> (Vec<usize>, usize) {
    let Some(v) = varying else { return (vec![0], 0) };
    let mut all =
        vec![v.low + 1, v.low + 2, v.low.midpoint(v.high), v.high.saturating_sub(2), v.high.saturating_sub(1)];
    if v.axes.is_empty() {
        // A whole function for each of them: fewer do.
        all = vec![v.low + 1, v.low.midpoint(v.high), v.high.saturating_sub(1)];
    }
    all.retain(|e| (v.low + 1..v.high).contains(e));
    all.sort_unstable();
    all.dedup();
    if all.len() < 2 {
        // No room for a line within: the ends take part.
        all.extend([v.low, v.high]);
    }
    all.sort_unstable();
    all.dedup();
    (all, v.high)
}

/// The points at which a function is looked at, and the widest.
fn points(options: &PlanOptions) -> (Vec<Point>, Point) {
    let (extents, high) = probes(options.varying.as_ref());
    let Some(tokens) = &options.tokens else {
        return (extents.into_iter().map(|extent| [extent, 0]).collect(), [high, 0]);
    };
    let (widths, widest) = probes(Some(tokens));
    let (Some(varying), [narrow, .., wide]) = (&options.varying, &widths[..]) else {
        return (widths.into_iter().map(|width| [0, width]).collect(), [high, widest]);
    };
    // Corners at which there is something besides the tokens, and a point within.
    let (short, long) = (tokens.high + 1, varying.high.saturating_sub(2).max(tokens.high + 2));
    let within = [short.midpoint(long), narrow.midpoint(*wide)];
    (vec![[short, *narrow], [long, *narrow], [short, *wide], [long, *wide], within], [high, widest])
}

/// The points between which all lie.
fn ends(options: &PlanOptions) -> Vec<Point> {
    let extents = |tokens: usize| match &options.varying {
        Some(v) => vec![[v.low.max(tokens), tokens], [v.high, tokens]],
        None => vec![[0, tokens]],
    };
    match &options.tokens {
        Some(tokens) => [tokens.low, tokens.high].into_iter().flat_map(extents).collect(),
        None if options.varying.is_some() => extents(0),
        None => Vec::new(),
    }
}

/// Of a function for any number of tokens, extents that come with one less to look at, since the widest is looked at already.
fn few_probes(v: &Varying, high: usize) -> Option<[usize; 3]> {
    let all = [v.low + 1, v.low.midpoint(high), high];
    (v.axes.is_empty() && all.is_sorted_by(|a, b| a < b)).then_some(all)
}

fn shapes_at(
    function: &Function,
    options: &PlanOptions,
    point: Point,
) -> Result<BTreeMap<String, Vec<usize>>, PlanError> {
    let mut shapes = options.shapes.clone();
    let of = |varying: &'_ Option<Varying>, extent: usize| {
        varying.iter().flat_map(|v| v.axes.clone()).map(|(name, axis)| (name, axis, extent)).collect::<Vec<_>>()
    };
    for (name, axis, extent) in [of(&options.varying, point[0]), of(&options.tokens, point[1])].concat() {
        let declared = function.inputs.iter().map(|&id| function.value(id)).find(|v| v.name == name);
        let shape = match (shapes.get_mut(&name), declared) {
            (Some(shape), _) => shape,
            (None, Some(v)) => {
                let fixed = v.ty.tensor().and_then(|t| t.to_static());
                shapes.entry(name.clone()).or_insert(fixed.map_or_else(Vec::new, |t| t.shape.to_vec()))
            }
            (None, None) => {
                let known: Vec<&str> = function.inputs.iter().map(|&id| function.value(id).name.as_str()).collect();
                return Err(PlanError::NotThere { what: "input", name: name.clone(), known: known.join(", ") });
            }
        };
        let rank = shape.len();
        *shape.get_mut(axis).ok_or_else(|| PlanError::NotThere {
            what: "axis",
            name: format!("{axis} of {name}"),
            known: format!("{rank} axes"),
        })? = extent;
    }
    Ok(shapes)
}

fn same_nodes(a: &Graph, b: &Graph) -> bool {
    a.nodes.len() == b.nodes.len()
        && a.outputs == b.outputs
        && a.nodes
            .iter()
            .zip(&b.nodes)
            .all(|(x, y)| x.op.name() == y.op.name() && x.args == y.args && x.outputs == y.outputs)
}

/// The elements that each buffer has.
fn sizes(schedule: &Schedule) -> Vec<usize> {
    schedule.buffers.iter().map(|b| elements(&schedule.tables.shapes[b.shape.0 as usize])).collect()
}

fn resolve(step: crate::schedule::Step, graph: &Graph, kernels: &[Option<Arc<dyn Kernel>>]) -> RunStep {
    let (action, op) = match step.action {
        Action::Node(i) => {
            let action = kernels[i].clone().map_or(RunAction::Eval, RunAction::Kernel);
            (action, Some(OpRef(graph.nodes[i].op)))
        }
        Action::Copy => (RunAction::Copy, None),
        Action::Update { node, update, state } => {
            (RunAction::Update { update, state }, Some(OpRef(graph.nodes[node].op)))
        }
        Action::Store { state } => (RunAction::Store { state }, None),
    };
    let declared = matches!(step.action, Action::Node(i) if graph.nodes[i].declared);
    RunStep { action, args: step.args, outs: step.outs, op, declared, place: step.place }
}
