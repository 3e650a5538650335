//! The kind of guides to stateful models: one token a call, and its position.

use super::{Feed, Signature};

pub(super) const SIGNATURE: Signature = Signature {
    name: "token-position",
    inputs: &[("token", Feed::Tokens), ("pos", Feed::Positions)],
    logits: "logits",
    caches: &[],
};
