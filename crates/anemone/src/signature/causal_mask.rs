//! The kind that Apple and Hugging Face publish: states `keyCache` and `valueCache`; the position is what the mask is wider
//! than the tokens. One function of any width, or one for each width.

use super::{Feed, Signature};

pub(super) const SIGNATURE: Signature = Signature {
    name: "causal-mask",
    inputs: &[("inputIds", Feed::Tokens), ("causalMask", Feed::Mask)],
    logits: "logits",
    caches: &[],
};
