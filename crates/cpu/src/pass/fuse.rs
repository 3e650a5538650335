//! Puts fused operations in place of their spellings. What the spelling computed in between stays as long as somebody else
//! uses it; dead code is another pass's.

use std::sync::Arc;

use anemone_mil::fused::pattern::{Look, find};
use anemone_mil::fused::{ALL, Argument, Fused};
use anemone_mil::lower::PackCache;
use anemone_mil::op::Op;
use anemone_mil::types::StaticType;
use anemone_mil::{Data, ValueId};
use smallvec::{SmallVec, smallvec};

use super::dead_code;
use crate::graph::{Graph, GraphValue, Node, ValueKind};

pub(super) fn run(graph: &mut Graph, cache: &PackCache) {
    for fused in ALL {
        let spellings = fused.spellings();
        // Without what earlier fusing left unused: that is no use of its operands.
        dead_code::run(graph, cache);
        let uses = graph.uses();
        for i in 0..graph.nodes.len() {
            let [root] = graph.nodes[i].outputs[..] else { continue };
            let found = {
                let look = Index { graph, upto: i, uses: &uses };
                spellings.iter().find_map(|p| fused.arguments(&find(p, root, &look)?, &look))
            };
            if let Some(args) = found {
                replace(graph, i, *fused, args);
            }
        }
    }
}

fn replace(graph: &mut Graph, i: usize, fused: &dyn Fused, args: Vec<(usize, Argument)>) {
    let op = fused.op();
    let mut all: Vec<SmallVec<[ValueId; 1]>> = vec![SmallVec::new(); op.params().len()];
    for (param, arg) in args {
        let id = match arg {
            Argument::Value(id) => id,
            Argument::Const(c) => constant(graph, &c),
        };
        all[param] = smallvec![id];
    }
    let place: Arc<str> = format!("{}, fused into `{}`", graph.nodes[i].place, op.name()).into();
    let outputs = graph.nodes[i].outputs.clone();
    graph.nodes[i] = Node { op, args: all, outputs, declared: false, place };
}

fn constant(graph: &mut Graph, c: &anemone_mil::Const) -> ValueId {
    let t = c.tensor().and_then(|t| t.to_tensor().ok()).expect("fused operations have constants of numbers");
    let id = ValueId(u32::try_from(graph.values.len()).expect("fewer than 2^32 values"));
    let ty = t.ty.clone();
    graph.values.push(GraphValue { name: format!("constant {}", id.0), ty, kind: ValueKind::Known(t.into()) });
    id
}

/// Who computes what, up to a node.
struct Index<'g> {
    graph: &'g Graph,
    upto: usize,
    /// How often each value was used before this kind of fusing began.
    uses: &'g [usize],
}

impl<'g> Index<'g> {
    fn node(&self, value: ValueId) -> Option<&'g Node> {
        // Spellings are short: what they use was computed shortly before.
        self.graph.nodes[..=self.upto].iter().rev().find(|n| n.outputs.contains(&value))
    }
}

impl Look for Index<'_> {
    fn producer(&self, value: ValueId) -> Option<&'static dyn Op> {
        self.node(value).filter(|n| n.outputs.len() == 1 && n.is_pure()).map(|n| n.op)
    }

    fn part(&self, value: ValueId) -> Option<(&'static dyn Op, usize)> {
        let node = self.node(value).filter(|n| n.outputs.len() > 1 && n.is_pure())?;
        Some((node.op, node.outputs.iter().position(|&v| v == value)?))
    }

    fn arguments(&self, value: ValueId, param: &str) -> &[ValueId] {
        let Some(node) = self.node(value) else { return &[] };
        let index = node.op.params().iter().position(|p| p.name == param);
        index.map_or(&[], |i| node.args[i].as_slice())
    }

    fn ty(&self, value: ValueId) -> &StaticType {
        &self.graph.value(value).ty
    }

    fn is_constant(&self, value: ValueId) -> bool {
        self.graph.is_constant(value)
    }

    fn used_once(&self, value: ValueId) -> bool {
        self.uses.get(value.index()) == Some(&1)
    }

    fn constant(&self, value: ValueId) -> Option<Vec<f32>> {
        let ValueKind::Known(known) = &self.graph.value(value).kind else { return None };
        let t = known.tensor();
        Some(match t.data.view(t.data.len()) {
            Data::F32(v) => v.to_vec(),
            Data::I32(v) => v.iter().map(|&n| n as f32).collect(),
            Data::Bool(v) => v.iter().map(|&b| f32::from(u8::from(b))).collect(),
        })
    }
}
