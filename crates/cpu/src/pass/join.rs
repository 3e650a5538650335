//! Puts one operation in place of several of a kind that have the same first operand, where the kind says which one does all
//! of them at once. Their other operands are constants, so all can be computed where the first of them stands.

use std::collections::HashMap;
use std::sync::Arc;

use anemone_mil::ValueId;
use anemone_mil::lower::PackCache;
use smallvec::SmallVec;

use crate::graph::{Graph, Node};

pub(super) fn run(graph: &mut Graph, _cache: &PackCache) {
    // By kind, first operand, and which operands are given: the nodes, in order.
    let mut alike: HashMap<(&str, ValueId, Vec<usize>), Vec<usize>> = HashMap::new();
    for (i, node) in graph.nodes.iter().enumerate() {
        let [x] = node.args.first().map_or(&[][..], |a| a.as_slice()) else { continue };
        let constant = node.args[1..].iter().flatten().all(|&v| graph.is_constant(v));
        if node.op.joined().is_some() && constant && !node.declared && node.is_pure() {
            let given = node.args.iter().map(SmallVec::len).collect();
            alike.entry((node.op.name(), *x, given)).or_default().push(i);
        }
    }
    let mut gone = vec![false; graph.nodes.len()];
    for list in alike.into_values().filter(|list| list.len() > 1) {
        let first = list[0];
        let Some(op) = graph.nodes[first].op.joined() else { continue };
        let mut args = vec![SmallVec::new(); op.params().len()];
        args[0] = graph.nodes[first].args[0].clone();
        let mut outputs = SmallVec::new();
        for &i in &list {
            for (all, one) in args.iter_mut().zip(&graph.nodes[i].args).skip(1) {
                all.extend(one.iter().copied());
            }
            outputs.extend(graph.nodes[i].outputs.iter().copied());
            gone[i] = i != first;
        }
        let place: Arc<str> = format!("{}, joined into `{}`", graph.nodes[first].place, op.name()).into();
        graph.nodes[first] = Node { op, args, outputs, declared: false, place };
    }
    let mut gone = gone.into_iter();
    graph.nodes.retain(|_| gone.next() == Some(false));
}
