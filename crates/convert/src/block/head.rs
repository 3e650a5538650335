//! The logits.

use anemone_mil::ValueId;

use super::softcap::softcap;
use crate::error::Result;
use crate::net::Net;

/// The output `logits` of what the last norm gave, capped where the family caps them.
pub(crate) fn logits(net: &mut Net<'_>, normed: ValueId) -> Result<ValueId> {
    let head = net.matrix("lm_head.weight")?;
    let args = [("x", normed.into()), ("weight", head.into())];
    match net.config().logit_softcap {
        None => net.op("linear", "logits", &args),
        Some(cap) => {
            let logits = net.op("linear", "logits_uncapped", &args)?;
            softcap(net, logits, cap, "logits")
        }
    }
}
