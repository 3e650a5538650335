//! How an answer is generated.

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// Settings of one answer. The default is greedy: the likeliest token each time, without limits but the context.
///
/// The steps are taken in the order of the fields: penalty, then temperature, top-k, top-p, min-p, each on what the one
/// before left (the order of Hugging Face's `generate`).
///
/// ```
/// use anemone::Generation;
///
/// let lively = Generation { temperature: 0.8, top_p: 0.95, seed: Some(7), ..Generation::default() };
/// assert!(lively.check().is_ok());
/// assert!(Generation { top_p: 1.5, ..lively }.check().is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Generation {
    /// Logits of tokens that are in the transcript already are divided by this if positive, multiplied if negative.
    /// 1 changes nothing.
    pub repetition_penalty: f32,
    /// Logits are divided by this. 0 takes the likeliest token always.
    pub temperature: f32,
    /// Only so many of the likeliest tokens may be drawn; 0 for all.
    pub top_k: usize,
    /// Only the likeliest tokens that together reach this probability may be drawn; 1 for all.
    pub top_p: f32,
    /// Only tokens with at least this share of the likeliest token's probability may be drawn; 0 for all.
    pub min_p: f32,
    /// Makes an answer repeatable: same seed, same settings and same logits give the same tokens. Random if none.
    pub seed: Option<u64>,
    /// Most tokens of an answer; as many as the context holds if none.
    pub max_tokens: Option<usize>,
    /// Texts that end an answer. They are not part of it.
    pub stop: Vec<String>,
}

impl Default for Generation {
    fn default() -> Self {
        Self {
            repetition_penalty: 1.0,
            temperature: 0.0,
            top_k: 0,
            top_p: 1.0,
            min_p: 0.0,
            seed: None,
            max_tokens: None,
            stop: Vec::new(),
        }
    }
}

impl Generation {
    /// Checks that every setting is in its range.
    ///
    /// # Errors
    /// [`Error::Setting`] for the first that is not.
    pub fn check(&self) -> Result<()> {
        let check = |name, found: f32, fits: bool, expected| {
            if fits { Ok(()) } else { Err(Error::Setting { name, found: found.to_string(), expected }) }
        };
        let penalty = self.repetition_penalty;
        check("repetition_penalty", penalty, penalty.is_finite() && penalty > 0.0, "a finite number over 0")?;
        let temperature = self.temperature;
        check("temperature", temperature, temperature.is_finite() && temperature >= 0.0, "a finite number from 0 on")?;
        check("top_p", self.top_p, self.top_p > 0.0 && self.top_p <= 1.0, "a number over 0 and up to 1")?;
        check("min_p", self.min_p, (0.0..=1.0).contains(&self.min_p), "a number from 0 to 1")?;
        check("max_tokens", 0.0, self.max_tokens != Some(0), "at least 1")?;
        if self.stop.iter().any(String::is_empty) {
            return Err(Error::Setting { name: "stop", found: "\"\"".into(), expected: "texts that are not empty" });
        }
        Ok(())
    }
}
