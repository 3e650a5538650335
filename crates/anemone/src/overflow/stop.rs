//! A prompt that does not fit is refused, and nothing changes.

use crate::{Error, Result};

pub(super) fn admit(needed: usize, context: usize, margin: usize) -> Result<()> {
    // Without room for a single token there is no answer.
    let reserved = margin.max(1);
    if needed.saturating_add(reserved) > context {
        return Err(Error::ContextFull { needed, context, reserved });
    }
    Ok(())
}
