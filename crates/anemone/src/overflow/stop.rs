//! A prompt that does not fit is refused, and nothing changes.

use super::Room;
use crate::{Error, Result};

pub(crate) fn admit(needed: usize, room: Room) -> Result<()> {
    if needed > room.limit() {
        return Err(Error::ContextFull { needed, context: room.context, reserved: room.reserved });
    }
    Ok(())
}
