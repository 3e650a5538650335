//! Choosing kernels.

use std::sync::Arc;

use anemone_mil::lower::{Kernel, PackCache};

use crate::graph::Graph;

/// The kernel of each node, where its operation has one for these operands.
pub(crate) fn lower(graph: &Graph, cache: &PackCache) -> Vec<Option<Arc<dyn Kernel>>> {
    graph.nodes.iter().map(|node| node.op.lower(&graph.operands(node.op, &node.args, cache)).map(Arc::from)).collect()
}
