//! Anemone's own packages: positions are an input, the mask is made inside. `decode` takes one token a call, `prefill` more.

use super::{Feed, Signature};

pub(super) const SIGNATURE: Signature = Signature {
    name: "anemone",
    inputs: &[("input_ids", Feed::Tokens), ("cache_position", Feed::Positions)],
    logits: "logits",
    caches: &[],
};
