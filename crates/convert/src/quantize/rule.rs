//! Rules: matrices, by their names, that are stored otherwise than the rest.

use std::fmt;

use super::{Form, Scheme, find, names};
use crate::error::{ConvertError, Result};
use crate::source::{Source, Tensor};

/// The matrix from tokens, and other words for it.
const EMBEDDING: &str = "embed_tokens";
/// The matrix to logits.
const HEAD: &str = "lm_head";
/// What else parts of names may be called.
const ALIASES: [(&str, &str); 2] = [("embed", EMBEDDING), ("attention", "self_attn")];

/// Stores the matrices whose names match in a way of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    pattern: String,
    scheme: &'static Scheme,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.pattern, self.scheme.name)
    }
}

impl Rule {
    /// Reads `PATTERN=SCHEME`. The pattern matches names such as `model.layers.3.mlp.down_proj`, whole or any part between
    /// dots: `down_proj`, `layers.3`, `mlp`. `*` stands for any letters, `?` for one. `embed` and `lm_head` are the matrices
    /// of the vocabulary, also where they are one; `attention` is `self_attn`.
    ///
    /// # Errors
    /// What is wrong with it, for people.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (pattern, scheme) =
            text.rsplit_once('=').ok_or_else(|| format!("{text:?}: expected PATTERN=SCHEME, as in lm_head=int8"))?;
        let (pattern, scheme) = (pattern.trim(), scheme.trim());
        if pattern.is_empty() {
            return Err(format!("{text:?}: the pattern is empty; * matches every matrix"));
        }
        let found = find(&scheme.to_ascii_lowercase());
        let scheme = found.ok_or_else(|| format!("{text:?}: there is no scheme {scheme:?}; expected {}", names()))?;
        Ok(Self { pattern: pattern.to_owned(), scheme })
    }

    /// How it stores them.
    #[must_use]
    pub fn scheme(&self) -> &'static Scheme {
        self.scheme
    }

    /// Whether it is for the matrix called `tensor` in Hugging Face's models; `tied` if the matrices of the vocabulary are one.
    fn matches(&self, tensor: &str, tied: bool) -> bool {
        let name = layer(tensor);
        let runs = |name: &str| {
            let parts: Vec<&str> = name.split('.').collect();
            let run = |from: usize, to: usize| glob(self.pattern.as_bytes(), parts[from..to].join(".").as_bytes());
            (0..parts.len()).any(|from| (from + 1..=parts.len()).any(|to| run(from, to)))
        };
        let aliased = |(alias, word): &(&str, &str)| name.contains(word) && runs(&name.replace(word, alias));
        runs(name)
            || glob(self.pattern.as_bytes(), tensor.as_bytes())
            || ALIASES.iter().any(aliased)
            || tied && name.ends_with(EMBEDDING) && runs(HEAD)
    }
}

/// The name of the layer whose weight, or part of one, is `tensor`.
fn layer(tensor: &str) -> &str {
    tensor.rsplit_once(".weight").map_or(tensor, |(name, _)| name)
}

/// Whether `text` is as `pattern` says.
fn glob(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    // After the last star: where the pattern goes on, and where the text was tried last.
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match (pattern.get(p), star) {
            (Some(b'*'), _) => {
                p += 1;
                star = Some((p, t));
            }
            (Some(&c), _) if c == b'?' || c == text[t] => (p, t) = (p + 1, t + 1),
            (_, Some((after, tried))) => {
                (p, t) = (after, tried + 1);
                star = Some((after, tried + 1));
            }
            _ => return false,
        }
    }
    pattern[p..].iter().all(|&c| c == b'*')
}

/// A scheme and rules, for people and for packages.
pub(crate) fn name(scheme: &Scheme, rules: &[Rule]) -> String {
    rules.iter().fold(scheme.name.to_owned(), |name, rule| format!("{name} {rule}"))
}

/// How every matrix is stored.
#[derive(Clone, Debug)]
pub(crate) struct Recipe {
    pub(crate) scheme: &'static Scheme,
    pub(crate) rules: Vec<Rule>,
    /// Whether the matrices of the vocabulary are one.
    pub(crate) tied: bool,
    /// Whether it is for the Neural Engine.
    pub(crate) engine: bool,
}

impl Recipe {
    /// The rule for a matrix: the last that matches.
    pub(crate) fn rule(&self, tensor: &str) -> Option<&Rule> {
        self.rules.iter().rev().find(|rule| rule.matches(tensor, self.tied))
    }

    pub(crate) fn form(&self, matrix: &Tensor) -> Form {
        let form = match self.rule(matrix.name()) {
            // Schemes know matrices that they treat with more care by their names. A rule means what it says.
            Some(rule) => rule.scheme.form(&matrix.clone().with_name("")),
            None => self.scheme.form(matrix),
        };
        match form {
            Form::Blocks(blocks) if self.engine => blocks.on_engine.unwrap_or(Form::Blocks(blocks)),
            form => form,
        }
    }

    /// Bytes that a matrix takes in the package.
    pub(crate) fn bytes(&self, matrix: &Tensor) -> u64 {
        self.form(matrix).bytes(matrix)
    }

    pub(crate) fn name(&self) -> String {
        name(self.scheme, &self.rules)
    }

    /// Refuses rules that match no matrix of the source, and forms that the profile's hardware does not compute with.
    pub(crate) fn check(&self, source: &Source) -> Result<()> {
        let config = source.config();
        let tied = |name: &str| config.tie_embeddings && name == "lm_head.weight";
        let all = (config.family.tensors)(config).into_iter();
        let matrices: Vec<String> = all.filter(|(n, shape)| shape.len() == 2 && !tied(n)).map(|(n, _)| n).collect();
        self.check_rules(&matrices)?;
        if !self.engine {
            return Ok(());
        }
        for name in matrices {
            let form = self.form(&source.tensor(&name)?);
            if !form.for_engine() {
                let rule = self.rule(&name).map(ToString::to_string);
                let option = if rule.is_some() { "rule" } else { "weights" };
                let problem = format!(
                    "{} is nothing for the Neural Engine: {name} would be {}; palettes (lut4, lut6, lut8), int8 and f16 run \
                     there",
                    rule.as_deref().unwrap_or(self.scheme.name),
                    form.name()
                );
                return Err(ConvertError::Options { option, problem });
            }
        }
        Ok(())
    }

    fn check_rules(&self, matrices: &[String]) -> Result<()> {
        let idle = self.rules.iter().find(|rule| !matrices.iter().any(|name| rule.matches(name, self.tied)));
        match idle {
            None => Ok(()),
            Some(rule) => {
                let example = matrices.last().map_or("", |name| layer(name));
                let problem = format!("{rule}: no matrix of the model is called so; they are called as in {example}");
                Err(ConvertError::Options { option: "rule", problem })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, tensor: &str, tied: bool) -> bool {
        Rule::parse(&format!("{pattern}=int8")).unwrap().matches(tensor, tied)
    }

    #[test]
    fn names_parts_of_names_and_roles() {
        let down = "model.layers.12.mlp.down_proj.weight";
        for pattern in [
            down,
            "model.layers.12.mlp.down_proj",
            "down_proj",
            "mlp",
            "layers.12",
            "layers.1?",
            "layers.*.down_proj",
            "*down*",
            "*",
        ] {
            assert!(matches(pattern, down, true), "{pattern}");
        }
        for pattern in ["layers.1", "down", "mlp.up_proj", "attention", "embed", "lm_head", "layers.?", "*.up_proj"] {
            assert!(!matches(pattern, down, true), "{pattern}");
        }
        assert!(matches("attention", "model.layers.0.self_attn.q_proj.weight", false));
        assert!(matches("attention.q_proj", "model.layers.0.self_attn.q_proj.weight", false));
        for part in ["model.embed_tokens.weight", "model.embed_tokens.weight.3"] {
            assert!(matches("embed", part, false) && matches("embed_tokens", part, false));
            assert!(matches("lm_head", part, true) && !matches("lm_head", part, false));
        }
        assert!(matches("lm_head", "lm_head.weight.0", false));
    }

    #[test]
    fn the_last_rule_that_matches_counts() {
        let rules = ["mlp=int8", "down_proj=f16", "layers.0=lut6"].map(|text| Rule::parse(text).unwrap()).to_vec();
        let recipe = Recipe { scheme: find("int4").unwrap(), rules, tied: true, engine: false };
        let rule = |name: &str| recipe.rule(name).map(ToString::to_string);
        assert_eq!(rule("model.layers.0.mlp.down_proj.weight").unwrap(), "layers.0=lut6");
        assert_eq!(rule("model.layers.1.mlp.down_proj.weight").unwrap(), "down_proj=f16");
        assert_eq!(rule("model.layers.1.mlp.up_proj.weight").unwrap(), "mlp=int8");
        assert_eq!(rule("model.layers.1.self_attn.q_proj.weight"), None);
        assert_eq!(recipe.name(), "int4 mlp=int8 down_proj=f16 layers.0=lut6");
    }

    #[test]
    fn wrong_rules_are_named() {
        for (text, says) in [("lm_head", "PATTERN=SCHEME"), ("=int8", "empty"), ("mlp=int5", "int5"), ("mlp=", "lut4")]
        {
            let error = Rule::parse(text).unwrap_err();
            assert!(error.contains(says) && error.contains(text), "{error}");
        }
        let idle = Recipe {
            scheme: find("f16").unwrap(),
            rules: vec![Rule::parse("mpl=int8").unwrap()],
            tied: true,
            engine: false,
        };
        let error = idle.check_rules(&["model.layers.0.mlp.up_proj.weight".to_owned()]).unwrap_err().to_string();
        assert!(error.contains("mpl=int8") && error.contains("model.layers.0.mlp.up_proj"), "{error}");
    }

    #[test]
    fn stars_try_every_place() {
        for (pattern, text, expected) in [
            ("a*b*c", "axxbxbc", true),
            ("a*b*c", "axxcb", false),
            ("**", "", true),
            ("?", "", false),
            ("*a?", "aab", true),
        ] {
            assert_eq!(glob(pattern.as_bytes(), text.as_bytes()), expected, "{pattern} {text}");
        }
    }
}
