//! Architectures, a file each: what their checkpoints hold, and how their layers are put together. This is the list.

use anemone_mil::Function;

use crate::error::Result;
use crate::net::Net;
use crate::source::family::Family;

mod decoder;
mod gemma;
mod llama;
mod mistral;
mod olmo2;
mod phi3;
mod qwen2;
mod qwen3;
mod smollm3;
mod tensors;

/// All families of architectures.
pub static FAMILIES: &[&Family] = &[
    &llama::LLAMA,
    &mistral::MISTRAL,
    &smollm3::SMOLLM3,
    &qwen2::QWEN2,
    &qwen3::QWEN3,
    &gemma::GEMMA2,
    &gemma::GEMMA3,
    &phi3::PHI3,
    &olmo2::OLMO2,
];

/// Builds the function of one call: `input_ids` (1, width) and `cache_position` (width) to `logits` (1, 1, vocabulary) of
/// the last token.
pub(crate) type Build = fn(Net<'_>) -> Result<Function>;

/// What builds models of a family. Its [`LayerShape`](crate::source::family::LayerShape) and the settings say the rest.
pub(crate) fn build(_family: &Family) -> Build {
    decoder::build
}

#[cfg(test)]
mod tests {
    use super::FAMILIES;

    #[test]
    fn each_name_belongs_to_one_family() {
        type Names = fn(&crate::source::family::Family) -> &'static [&'static str];
        let kinds: [Names; 3] = [|f| f.gguf, |f| f.classes, |f| f.model_types];
        for names in kinds {
            let all: Vec<_> = FAMILIES.iter().flat_map(|f| names(f)).collect();
            for (i, name) in all.iter().enumerate() {
                assert!(!all[..i].contains(name), "{name}");
            }
        }
    }
}
