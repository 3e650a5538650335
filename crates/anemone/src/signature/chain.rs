//! How the functions of a model's packages follow each other, for those who look at them.

use anemone_mil::model::Model;

use super::{Call, Feed, Misfit, recognize};

/// One way to feed a model: a function of each of its packages, one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainStep {
    /// Tokens that it takes.
    pub tokens: usize,
    /// What is called, in order. That of the last package is missing where it gives no logits for so many tokens.
    pub calls: Vec<ChainCall>,
}

/// The call of one function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainCall {
    /// The function.
    pub function: String,
    /// The inputs that it is fed with what the package before gave.
    pub from_before: Vec<String>,
    /// The inputs that the host feeds it with.
    pub from_host: Vec<String>,
    /// The outputs that the next package takes, or the logits.
    pub gives: Vec<String>,
}

/// How these packages, the parts of one model in order, are called: by the number of tokens, one first.
///
/// # Errors
/// Why no conversation can be held with them.
pub fn chain(models: &[&Model]) -> Result<Vec<ChainStep>, Vec<Misfit>> {
    let call = |call: Call| {
        let (before, host): (Vec<_>, Vec<_>) = call.inputs.into_iter().partition(|(_, feed)| *feed == Feed::Hidden);
        let names = |all: Vec<(String, Feed)>| all.into_iter().map(|(name, _)| name).collect();
        let (function, gives) = (call.function, call.outputs);
        ChainCall { function, from_before: names(before), from_host: names(host), gives }
    };
    let steps = recognize(models)?.steps.into_iter();
    let steps = steps.map(|step| ChainStep {
        tokens: step.calls.first().map_or(0, |call| call.width),
        calls: step.calls.into_iter().map(call).collect(),
    });
    Ok(steps.collect())
}
