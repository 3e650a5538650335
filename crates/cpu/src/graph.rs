//! A function specialised to its shapes: every type is known, and constants are folded.

use std::fmt;
use std::sync::{Arc, OnceLock};

use anemone_mil::lower::{LowerOperands, PackCache};
use anemone_mil::op::{Effect, Op, Operands};
use anemone_mil::packed::Packed;
use anemone_mil::tensor::Data;
use anemone_mil::types::{Class, DType, StaticType};
use anemone_mil::{ConstError, Tensor, TensorConst, ValueId};
use smallvec::SmallVec;

/// A specialised function.
#[derive(Clone, Debug)]
pub struct Graph {
    /// Every value; [`ValueId`] indexes it.
    pub values: Vec<GraphValue>,
    /// Operations in order of execution.
    pub nodes: Vec<Node>,
    /// Inputs that are not states.
    pub inputs: Vec<ValueId>,
    /// Results.
    pub outputs: Vec<ValueId>,
    /// Whether kernels must compute as the plain evaluation does.
    pub exact: bool,
    /// Whether half floats are rounded as soon as they are computed.
    pub strict: bool,
}

/// A value of a graph.
#[derive(Clone, Debug)]
pub struct GraphValue {
    /// Its name in the program.
    pub name: String,
    /// Its type; of a state, the type that it wraps.
    pub ty: StaticType,
    /// What it is.
    pub kind: ValueKind,
}

/// What a value is.
#[derive(Clone, Debug)]
pub enum ValueKind {
    /// Known only at run time.
    Computed,
    /// A state: its index in the order of names.
    State(usize),
    /// A constant whose elements are at hand.
    Known(Known),
    /// A constant that stays packed.
    Packed(Packed),
    /// Text.
    Text(Arc<str>),
}

/// A small constant: computed, or as it is stored until somebody wants its elements.
#[derive(Clone, Debug)]
pub struct Known {
    pub(crate) stored: Option<TensorConst>,
    tensor: OnceLock<Arc<Tensor>>,
}

impl Known {
    /// A stored constant.
    ///
    /// # Errors
    /// If it is text, or holds an integer beyond 32 bits.
    pub fn stored(t: &TensorConst) -> Result<Self, ConstError> {
        let tensor = OnceLock::new();
        // There are millions of scales that nobody asks for.
        if t.ty.dtype.class() != Class::Float || t.deferred.is_some() {
            let _empty = tensor.set(Arc::new(t.to_tensor()?));
        }
        Ok(Self { stored: Some(t.clone()), tensor })
    }

    /// The elements.
    #[must_use]
    pub fn tensor(&self) -> &Arc<Tensor> {
        self.tensor.get_or_init(|| {
            let floats = self.stored.as_ref().and_then(|t| t.to_tensor().ok());
            Arc::new(floats.expect("what is not there yet is stored floats"))
        })
    }
}

impl From<Tensor> for Known {
    fn from(tensor: Tensor) -> Self {
        Self { stored: None, tensor: OnceLock::from(Arc::new(tensor)) }
    }
}

/// One operation of a graph.
#[derive(Clone)]
pub struct Node {
    /// The operation.
    pub op: &'static dyn Op,
    /// Arguments by parameter index.
    pub args: Vec<SmallVec<[ValueId; 1]>>,
    /// Results.
    pub outputs: SmallVec<[ValueId; 1]>,
    /// Whether its results have the types that the program declares because inference needs values known at run time only:
    /// each run then checks them.
    pub declared: bool,
    /// Where it stands in the program, for messages.
    pub place: Arc<str>,
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} = {}({:?})", self.outputs, self.op.name(), self.args)
    }
}

impl Node {
    /// All arguments.
    pub fn values(&self) -> impl Iterator<Item = ValueId> {
        self.args.iter().flatten().copied()
    }

    /// Whether it only computes its results.
    #[must_use]
    pub fn is_pure(&self) -> bool {
        self.op.effect() == Effect::Pure
    }
}

impl Graph {
    /// Whether the node's result must be rounded, of which `x` would else be a view: another width is another number.
    pub(crate) fn rounds(&self, node: &Node, x: ValueId) -> bool {
        let dtype = |v: ValueId| self.value(v).ty.dtype;
        self.strict && dtype(node.outputs[0]) == DType::F16 && dtype(x) != DType::F16
    }

    /// A value.
    #[must_use]
    pub fn value(&self, id: ValueId) -> &GraphValue {
        &self.values[id.index()]
    }

    /// Whether a value is a constant.
    #[must_use]
    pub fn is_constant(&self, id: ValueId) -> bool {
        matches!(self.value(id).kind, ValueKind::Known(..) | ValueKind::Packed(_) | ValueKind::Text(_))
    }

    /// For each value, how many arguments and outputs use it.
    #[must_use]
    pub fn uses(&self) -> Vec<usize> {
        let mut uses = vec![0; self.values.len()];
        self.nodes.iter().flat_map(Node::values).chain(self.outputs.iter().copied()).for_each(|v| uses[v.index()] += 1);
        uses
    }

    /// The operands of an operation, for inference and lowering.
    #[must_use]
    pub fn operands<'g>(
        &'g self,
        op: &'static dyn Op,
        args: &'g [SmallVec<[ValueId; 1]>],
        cache: &'g PackCache,
    ) -> NodeOperands<'g> {
        NodeOperands { graph: self, op, args, cache }
    }
}

impl fmt::Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for node in &self.nodes {
            let results: Vec<String> =
                node.outputs.iter().map(|&v| format!("{}: {}", self.value(v).name, self.value(v).ty)).collect();
            let args: Vec<String> = node
                .args
                .iter()
                .zip(node.op.params())
                .filter(|(a, _)| !a.is_empty())
                .map(|(a, p)| {
                    let names: Vec<&str> = a.iter().map(|&v| self.value(v).name.as_str()).collect();
                    format!("{} = {}", p.name, names.join(" "))
                })
                .collect();
            writeln!(f, "{} = {}({})", results.join(", "), node.op.name(), args.join(", "))?;
        }
        Ok(())
    }
}

/// The operands of one operation of a graph.
pub struct NodeOperands<'g> {
    graph: &'g Graph,
    op: &'static dyn Op,
    args: &'g [SmallVec<[ValueId; 1]>],
    cache: &'g PackCache,
}

impl NodeOperands<'_> {
    fn at(&self, param: usize, index: usize) -> &GraphValue {
        self.graph.value(self.args[param][index])
    }

    fn kind(&self, param: usize, index: usize) -> Option<&ValueKind> {
        self.args[param].get(index).map(|&id| &self.graph.value(id).kind)
    }
}

impl Operands for NodeOperands<'_> {
    fn count(&self, param: usize) -> usize {
        self.args[param].len()
    }

    fn ty_at(&self, param: usize, index: usize) -> (DType, &[usize]) {
        let ty = &self.at(param, index).ty;
        (ty.dtype, &ty.shape)
    }

    fn data_at(&self, param: usize, index: usize) -> Option<Data<'_>> {
        match self.kind(param, index)? {
            ValueKind::Known(known) => {
                let data = &known.tensor().data;
                Some(data.view(data.len()))
            }
            _ => None,
        }
    }

    fn text_at(&self, param: usize, index: usize) -> Option<&str> {
        match self.kind(param, index)? {
            ValueKind::Text(s) => Some(s),
            _ => None,
        }
    }

    fn name_of(&self, param: usize) -> &'static str {
        self.op.params()[param].name
    }
}

impl LowerOperands for NodeOperands<'_> {
    fn packed_at(&self, param: usize, index: usize) -> Option<Packed> {
        match self.kind(param, index)? {
            ValueKind::Packed(p) => Some(p.clone()),
            ValueKind::Known(known) => match &known.stored {
                Some(stored) => Some(Packed::Plain(stored.clone())),
                None => known_to_const(known.tensor()).map(Packed::Plain),
            },
            _ => None,
        }
    }

    fn exact(&self) -> bool {
        self.graph.exact
    }

    fn pack_cache(&self) -> &PackCache {
        self.cache
    }
}

/// A computed floating tensor as a constant of single floats.
fn known_to_const(t: &Tensor) -> Option<TensorConst> {
    let bytes: Vec<u8> = t.as_f32()?.iter().flat_map(|v| v.to_le_bytes()).collect();
    TensorConst::new(StaticType { dtype: DType::F32, shape: t.ty.shape.clone() }, bytes.into()).ok()
}
