//! Passes over a graph, in order.

use anemone_mil::lower::PackCache;

use crate::graph::Graph;

mod dead_code;
mod fuse;
mod join;

/// A pass: its name and what it does. It may ask the cache for packed constants.
type Pass = (&'static str, fn(&mut Graph, &PackCache));

const PASSES: &[Pass] = &[("fuse", fuse::run), ("join", join::run), ("dead_code", dead_code::run)];
/// Those that leave every operation by itself.
const STRICT: &[Pass] = &[("dead_code", dead_code::run)];

/// Runs every pass that the graph is for.
pub(crate) fn run(graph: &mut Graph, cache: &PackCache) {
    for (name, pass) in if graph.strict { STRICT } else { PASSES } {
        let before = graph.nodes.len();
        pass(graph, cache);
        tracing::debug!(pass = name, before, after = graph.nodes.len(), "pass");
    }
}
