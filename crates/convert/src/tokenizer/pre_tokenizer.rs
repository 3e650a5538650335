//! How byte-level vocabularies cut a text into words before merging: what each value of `tokenizer.ggml.pre` means.
//!
//! The names, and which of them belong together, are those of llama.cpp (`llama_vocab::impl::load`); the patterns are
//! those of the models' own `tokenizer.json`.

/// One way of cutting.
#[derive(Debug)]
pub(super) struct Recipe {
    /// Values of `tokenizer.ggml.pre` that mean it.
    names: &'static [&'static str],
    /// Whether the text is brought to Unicode's composed form first.
    pub(super) compose: bool,
    /// Patterns, each applied to what the earlier ones left: matches and gaps are words.
    pub(super) split: &'static [&'static str],
    /// Whether the pattern of GPT-2 comes last.
    pub(super) gpt2: bool,
    /// Whether a word that is a token is taken whole, without merging.
    pub(super) ignore_merges: bool,
    /// Whether a text begins with the begin-of-sequence token where the file does not say.
    adds_bos: bool,
}

const PLAIN: Recipe =
    Recipe { names: &[], compose: false, split: &[], gpt2: false, ignore_merges: false, adds_bos: false };

/// A single digit, as `Digits(individual_digits)` cuts.
const DIGIT: &str = r"\p{N}";

const LLAMA3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN2: &str =
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const TEKKEN: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const GPT4O: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// The list.
const RECIPES: &[Recipe] = &[
    Recipe {
        names: &["smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b"],
        split: &[DIGIT],
        gpt2: true,
        ..PLAIN
    },
    Recipe {
        names: &["llama-bpe", "llama3", "llama-v3", "falcon3", "pixtral"],
        split: &[LLAMA3],
        ignore_merges: true,
        adds_bos: true,
        ..PLAIN
    },
    // OLMo 2 and Phi-4 among others.
    Recipe { names: &["dbrx", "smaug-bpe"], split: &[LLAMA3], ..PLAIN },
    Recipe {
        names: &["gpt-2", "phi-2", "mpt", "olmo", "jais", "gigachat", "exaone4", "trillion", "granite-docling"],
        gpt2: true,
        ..PLAIN
    },
    Recipe { names: &["qwen2", "deepseek-r1-qwen", "megrez", "hunyuan"], compose: true, split: &[QWEN2], ..PLAIN },
    Recipe { names: &["stablelm2"], split: &[QWEN2], ..PLAIN },
    Recipe { names: &["tekken"], split: &[TEKKEN], ignore_merges: true, adds_bos: true, ..PLAIN },
    Recipe { names: &["gpt-4o", "llama4"], split: &[GPT4O], ..PLAIN },
    Recipe {
        names: &["deepseek-coder"],
        split: &[r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[一-龥ࠀ-一가-\u{d7ff}]+", DIGIT],
        ..PLAIN
    },
    Recipe {
        names: &["deepseek-v3"],
        split: &[
            r"\p{N}{1,3}",
            "[一-龥぀-ゟ゠-ヿ]+",
            r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"##,
        ],
        ..PLAIN
    },
    Recipe { names: &["falcon"], split: &[r"[\p{P}\$\+<=>\^~\|`]+"], gpt2: true, ..PLAIN },
    Recipe {
        names: &["default", ""],
        split: &[
            r"[\p{P}\$\+<=>\^~\|]+",
            r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)",
            r"\p{N}+",
            "[0-9][0-9][0-9]",
        ],
        ..PLAIN
    },
];

/// The way of cutting of that name.
pub(super) fn recipe(name: &str) -> Option<&'static Recipe> {
    RECIPES.iter().find(|recipe| recipe.names.contains(&name))
}

/// The names that are known, for error messages.
pub(super) fn known() -> String {
    RECIPES
        .iter()
        .flat_map(|recipe| recipe.names)
        .filter(|name| !name.is_empty())
        .copied()
        .collect::<Vec<_>>()
        .join(", ")
}

/// Whether texts begin with the begin-of-sequence token where the file does not say.
pub(super) fn adds_bos(name: &str) -> bool {
    recipe(name).is_some_and(|recipe| recipe.adds_bos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_occurs_once() {
        let names: Vec<_> = RECIPES.iter().flat_map(|recipe| recipe.names).collect();
        for (i, name) in names.iter().enumerate() {
            assert!(!names[..i].contains(name), "{name}");
        }
        assert!(!adds_bos("dbrx") && !recipe("dbrx").unwrap().ignore_merges);
        assert!(adds_bos("llama-bpe") && !adds_bos("smollm") && !adds_bos("nonsense"));
        assert!(known().contains("smollm, ") && recipe("").is_some() && recipe("nonsense").is_none());
    }
}
