//! Anemone's own packages whose cache is a plain input: a call gives the new columns, and the host writes them.

use super::{Feed, Signature};

pub(super) const SIGNATURE: Signature = Signature {
    name: "anemone-io",
    inputs: &[("input_ids", Feed::Tokens), ("cache_position", Feed::Positions), ("kv_cache", Feed::Cache(0))],
    logits: "logits",
    caches: &[("kv_cache", "kv_columns")],
};
