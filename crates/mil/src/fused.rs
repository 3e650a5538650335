//! Fused operations: each stands for a subgraph of ordinary ones, its spellings, and is computed in one go. No package holds
//! one; a pass puts it in place of a spelling that it finds.

use crate::constant::Const;
use crate::op::Op;
use crate::program::ValueId;

pub mod attention;
pub mod gated_projection;
pub mod gated_silu;
pub mod pattern;
pub mod projection;
pub mod projections;
pub mod rms_norm;
pub mod rope;

use pattern::{Bindings, Look, Pattern};

/// A fused operation.
pub trait Fused: Sync {
    /// What it computes.
    fn op(&self) -> &'static dyn Op;

    /// The subgraphs that it stands for.
    fn spellings(&self) -> Vec<Pattern>;

    /// Its arguments by parameter, from what a spelling bound; nothing if shapes or constants do not fit. The result must
    /// then be that of the spelling, in type and meaning.
    fn arguments(&self, found: &Bindings, graph: &dyn Look) -> Option<Vec<(usize, Argument)>>;
}

/// An argument of a fused operation.
#[derive(Clone, Debug)]
pub enum Argument {
    /// A value of the graph.
    Value(ValueId),
    /// A constant.
    Const(Const),
}

/// Every fused operation, in the order in which they are looked for.
pub static ALL: &[&dyn Fused] = &[
    &attention::Attention,
    &rms_norm::RmsNorm,
    &rope::Rope,
    &gated_projection::GatedProjection,
    &gated_silu::GatedSilu,
    &projection::Projection,
];
