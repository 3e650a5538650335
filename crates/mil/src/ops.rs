//! The operations that Anemone knows: one file each, listed here. Decoding, verifying, documentation and the tests iterate
//! this list.

use crate::op::Op;

pub mod support;

macro_rules! registry {
    ($($module:ident::$op:ident,)*) => {
        $(mod $module;)*
        /// Every operation, by name.
        pub static ALL: &[&dyn Op] = &[$(&$module::$op,)*];
    };
}

registry! {
    add::Add,
    cast::Cast,
    linear::Linear,
    read_state::ReadState,
    write_state::WriteState,
}

/// The operation named `name`.
#[must_use]
pub fn find(name: &str) -> Option<&'static dyn Op> {
    // The list is in order of names; a test holds it to that.
    ALL.binary_search_by(|op| op.name().cmp(name)).ok().map(|i| ALL[i])
}
