//! What happens when a conversation outgrows its context. One policy, one file.

mod stop;

use crate::Result;

/// What to do with a prompt that does not fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Overflow {
    /// Refuse it before anything changes, naming both sizes.
    #[default]
    Stop,
}

impl Overflow {
    /// Lets a prompt of `needed` tokens pass, or not. `margin` tokens of the context stay free for the answer.
    pub(crate) fn admit(self, needed: usize, context: usize, margin: usize) -> Result<()> {
        match self {
            Self::Stop => stop::admit(needed, context, margin),
        }
    }
}
