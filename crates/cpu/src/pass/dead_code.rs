//! Drops operations whose results nobody uses.

use anemone_mil::lower::PackCache;

use crate::graph::Graph;

pub(super) fn run(graph: &mut Graph, _cache: &PackCache) {
    let mut live = vec![false; graph.values.len()];
    graph.outputs.iter().for_each(|v| live[v.index()] = true);
    let mut keep = vec![false; graph.nodes.len()];
    for (i, node) in graph.nodes.iter().enumerate().rev() {
        // Reading a state changes nothing; writing one does.
        let writes = node.op.effect() == anemone_mil::Effect::WriteState;
        keep[i] = writes || node.outputs.iter().any(|v| live[v.index()]);
        if keep[i] {
            node.values().for_each(|v| live[v.index()] = true);
        }
    }
    let mut keep = keep.into_iter();
    graph.nodes.retain(|_| keep.next() == Some(true));
}
