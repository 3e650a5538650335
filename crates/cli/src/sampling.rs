//! How tokens are drawn, as arguments say.

use anemone::Generation;
use clap::Args;

use crate::numbers;

/// Answers end here if nothing else ends them: a model that repeats itself would fill the whole context.
pub const MAX_TOKENS: usize = 1024;

/// Settings for answers. What is not given is as the model's makers recommend, or else greedy.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Sampling")]
pub struct Sampling {
    /// 0 takes the likeliest token always; the higher, the livelier [default: what the model's makers recommend, else 0]
    #[arg(long, value_name = "X", value_parser = numbers::number, allow_negative_numbers = true)]
    pub temperature: Option<f32>,
    /// Draw from so many of the likeliest tokens only; 0 for all
    #[arg(long, value_name = "N", value_parser = numbers::whole::<usize>, allow_negative_numbers = true)]
    pub top_k: Option<usize>,
    /// Draw from the likeliest tokens that together have this probability
    #[arg(long, value_name = "P", value_parser = numbers::number, allow_negative_numbers = true)]
    pub top_p: Option<f32>,
    /// Draw from tokens that have at least this share of the likeliest token's probability
    #[arg(long, value_name = "P", value_parser = numbers::number, allow_negative_numbers = true)]
    pub min_p: Option<f32>,
    /// Make tokens that have occurred less likely, by this factor; 1 is not at all
    #[arg(long, value_name = "X", value_parser = numbers::number, allow_negative_numbers = true)]
    pub repetition_penalty: Option<f32>,
    /// Make what is drawn repeatable
    #[arg(long, value_name = "N", value_parser = numbers::whole::<u64>, allow_negative_numbers = true)]
    pub seed: Option<u64>,
    /// Most tokens of an answer [default: 1024]
    #[arg(long, value_name = "N", value_parser = numbers::tokens, allow_negative_numbers = true)]
    pub max_tokens: Option<usize>,
}

impl Sampling {
    /// The settings to use with a model that recommends `recommended`.
    ///
    /// A limit on what is drawn from makes sense only where something is drawn: without a temperature, from anywhere, it
    /// brings the temperature 1 along.
    #[must_use]
    pub fn generation(&self, recommended: &Generation) -> Generation {
        let limits = self.top_k.is_some() || self.top_p.is_some() || self.min_p.is_some();
        let drawn = if limits && recommended.temperature == 0.0 { 1.0 } else { recommended.temperature };
        Generation {
            temperature: self.temperature.unwrap_or(drawn),
            top_k: self.top_k.unwrap_or(recommended.top_k),
            top_p: self.top_p.unwrap_or(recommended.top_p),
            min_p: self.min_p.unwrap_or(recommended.min_p),
            repetition_penalty: self.repetition_penalty.unwrap_or(recommended.repetition_penalty),
            seed: self.seed.or(recommended.seed),
            max_tokens: Some(self.max_tokens.or(recommended.max_tokens).unwrap_or(MAX_TOKENS)),
            stop: recommended.stop.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_wins_over_what_is_recommended() {
        let recommended = Generation { temperature: 0.7, top_p: 0.9, ..Generation::default() };
        let asked = Sampling { top_p: Some(0.5), seed: Some(3), ..Sampling::default() };
        let got = asked.generation(&recommended);
        assert_eq!((got.temperature, got.top_p, got.seed, got.max_tokens), (0.7, 0.5, Some(3), Some(MAX_TOKENS)));
        let greedy = Sampling { temperature: Some(0.0), ..asked };
        assert_eq!(greedy.generation(&recommended).temperature, 0.0);
    }

    #[test]
    fn limits_alone_ask_for_drawing() {
        let plain = Generation::default();
        assert_eq!(Sampling::default().generation(&plain).temperature, 0.0);
        assert_eq!(Sampling { top_k: Some(5), ..Sampling::default() }.generation(&plain).temperature, 1.0);
        let greedy = Sampling { top_k: Some(5), temperature: Some(0.0), ..Sampling::default() };
        assert_eq!(greedy.generation(&plain).temperature, 0.0);
    }
}
