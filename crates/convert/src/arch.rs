//! Architectures: each turns a checkpoint of its families into a function.

use anemone_mil::Function;

use crate::error::Result;
use crate::net::Net;

mod llama;

/// Builds the function of one call: `input_ids` (1, width) and `cache_position` (width) to `logits` (1, 1, vocabulary) of
/// the last token.
pub(crate) type Build = fn(Net<'_>) -> Result<Function>;

/// The builder of each architecture, by family.
const ARCHITECTURES: &[(&str, Build)] = &[("llama", llama::build), ("mistral", llama::build)];

/// The builder for a family of checkpoints. Every family that [`Source`](crate::Source) opens has one; a test holds it to that.
pub(crate) fn find(family: &str) -> Option<Build> {
    ARCHITECTURES.iter().find(|(name, _)| *name == family).map(|(_, build)| *build)
}

#[cfg(test)]
mod tests {
    use crate::source::family::FAMILIES;

    #[test]
    fn every_family_has_a_builder() {
        for f in FAMILIES {
            assert!(super::find(f.name).is_some(), "{} can be opened, and not built", f.name);
        }
    }
}
