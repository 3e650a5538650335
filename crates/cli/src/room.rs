//! What happens when a conversation outgrows its context, as arguments say.

use anemone::Overflow;
use clap::{Args, ValueEnum};

/// Arguments about the context's room.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Long conversations")]
pub struct RoomArguments {
    /// What to do when the conversation outgrows the context
    #[arg(long, value_name = "POLICY", value_enum, default_value_t)]
    pub overflow: Policy,
    /// Tokens of the context that stay free for each answer [default: an eighth of the context, at most 512]
    #[arg(long, value_name = "TOKENS")]
    pub margin: Option<usize>,
}

/// The policies, by their names on the command line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Policy {
    /// The model sums up the older turns
    #[default]
    Summarize,
    /// The oldest turns are dropped
    DropOldest,
    /// The message is refused
    Stop,
}

impl From<Policy> for Overflow {
    fn from(policy: Policy) -> Self {
        match policy {
            Policy::Summarize => Self::Summarize,
            Policy::DropOldest => Self::DropOldest,
            Policy::Stop => Self::Stop,
        }
    }
}

impl RoomArguments {
    /// The margin that was asked for, if one was.
    ///
    /// # Errors
    /// If it leaves nothing of the context, a sentence that says so.
    pub fn margin(&self, context: usize) -> Result<Option<usize>, String> {
        match self.margin {
            Some(margin) if margin >= context => Err(format!(
                "--margin {margin} leaves nothing of the context of {context} tokens; give less, or convert the model with \
                 a longer --context"
            )),
            margin => Ok(margin),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_have_the_names_of_the_library() {
        for policy in Policy::value_variants() {
            let name = policy.to_possible_value().unwrap();
            assert_eq!(name.get_name(), Overflow::from(*policy).name());
        }
        assert_eq!(Overflow::from(Policy::default()), Overflow::default());
    }

    #[test]
    fn a_margin_leaves_something() {
        let margin = |margin| RoomArguments { margin, ..RoomArguments::default() }.margin(100);
        assert_eq!((margin(None), margin(Some(99))), (Ok(None), Ok(Some(99))));
        assert!(margin(Some(100)).unwrap_err().contains("context of 100"));
    }
}
