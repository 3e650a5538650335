//! Interfaces of packages that hold a conversation: the list, and how a package is recognized.
//!
//! A signature says which ports a function has and what they are fed with. A function that [fits](fit) gives [`Call`]s,
//! which are all that a runner needs to know. To add a signature is to add its file and its line in the list. Packages that
//! are the [parts] of one model are recognized together, by the names of their ports.

mod causal_mask;
mod chain;
mod fit;
mod input_ids;
mod input_ids_io;
mod parts;
mod token_position;

use std::collections::BTreeMap;

use anemone_cpu::Varying;
use anemone_mil::Function;
use anemone_mil::model::Model;
use anemone_mil::op::Effect;
use anemone_mil::program::Arg;
use serde::{Deserialize, Serialize};

pub use chain::{ChainCall, ChainStep, chain};

/// An interface that packages for chatting may have. The states are found by themselves: axes but the last are layers,
/// heads and the like, the last but one is the position.
#[derive(Debug)]
pub(crate) struct Signature {
    pub(crate) name: &'static str,
    /// Inputs that are not states, and what they are fed with. There may be no others.
    inputs: &'static [(&'static str, Feed)],
    /// The output with the logits: of every token, or of the last one.
    logits: &'static str,
    /// Inputs that hold the cache in place of states, each with the output of its new columns.
    caches: &'static [(&'static str, &'static str)],
}

/// Every signature of whole models, the most wanted first.
const SIGNATURES: &[&Signature] =
    &[&input_ids::SIGNATURE, &input_ids_io::SIGNATURE, &causal_mask::SIGNATURE, &token_position::SIGNATURE];

/// What an input is fed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Feed {
    /// (1, width): token ids, the last one repeated up to the width.
    Tokens,
    /// (width): the position of each token, the last one repeated up to the width.
    Positions,
    /// (1, 1, width, past + width): 0 where a token may look, [`MASKED`] elsewhere.
    Mask,
    /// (1, 1, width, context): the same over the whole cache.
    WholeMask,
    /// (1): the position of the first token.
    Start,
    /// What the part before gave.
    Hidden,
    /// The cache, of that index among the call's.
    Cache(usize),
}

/// What a call gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Gives {
    /// The logits of every token, or of the last one.
    Logits,
    /// What the next part is fed with.
    Hidden,
}

/// A cache that is no state: the host keeps it, gives it to each call, and writes the new columns into it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HostCache {
    /// The input that it is given as, (…, context, head dim).
    pub(crate) input: String,
    /// The output of the new columns, (…, width, head dim).
    pub(crate) columns: String,
}

/// Added to the scores of what must not be seen. Half floats hold it, and their scores are far smaller.
pub(crate) const MASKED: f32 = -1e4;

/// One way to call a function: with so many tokens.
///
/// It writes `width` columns of the states, so all of them must fit into the context. When there are fewer tokens, the
/// columns behind them hold nothing that is ever read: the next call writes them anew.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Call {
    /// The function's name.
    pub(crate) function: String,
    /// Tokens that a call takes.
    pub(crate) width: usize,
    /// Positions that the states have room for.
    pub(crate) context: usize,
    /// Logits for each token; 0 if it gives none.
    pub(crate) vocabulary: usize,
    /// What each input is fed with.
    pub(crate) inputs: Vec<(String, Feed)>,
    /// What it gives.
    pub(crate) gives: Gives,
    /// The outputs with that, one after the other.
    pub(crate) outputs: Vec<String>,
    /// The caches that are no states.
    pub(crate) caches: Vec<HostCache>,
    /// The shape of each input.
    pub(crate) shapes: BTreeMap<String, Vec<usize>>,
    /// The extent that follows the position, if one does: that of past and new tokens together.
    #[serde(with = "extent")]
    pub(crate) varying: Option<Varying>,
    /// The axes of the tokens, if the function takes any number of them from 2 up to the width.
    #[serde(with = "extent")]
    pub(crate) tokens: Option<Varying>,
}

/// How an extent that varies is written.
mod extent {
    use anemone_cpu::Varying;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    type Written = Option<(Vec<(String, usize)>, usize, usize)>;

    pub(super) fn serialize<S: Serializer>(extent: &Option<Varying>, to: S) -> Result<S::Ok, S::Error> {
        extent.as_ref().map(|v| (&v.axes, v.low, v.high)).serialize(to)
    }

    pub(super) fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<Option<Varying>, D::Error> {
        Ok(Written::deserialize(from)?.map(|(axes, low, high)| Varying { axes, low, high }))
    }
}

impl Call {
    /// Whether a call of fewer tokens than its width finds the last one by its position.
    pub(crate) fn by_position(&self) -> bool {
        self.inputs.iter().any(|(_, feed)| matches!(feed, Feed::Positions | Feed::Start))
    }
}

/// One way to feed a model: a call of each of its parts, all of one width.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    /// The calls in order of the parts. That of the last part is missing if it gives no logits at this width.
    pub(crate) calls: Vec<Call>,
}

/// How a model is fed.
#[derive(Clone, Debug)]
pub(crate) struct Recognized {
    /// The interface.
    pub(crate) name: &'static str,
    /// By width, that of one token first.
    pub(crate) steps: Vec<Step>,
}

/// Why a signature does not fit a package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfit {
    /// The signature's name.
    pub signature: &'static str,
    /// Its ports.
    pub ports: String,
    /// What is missing or different, one phrase each.
    pub missing: Vec<String>,
}

impl std::fmt::Display for Misfit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({}): {}", self.signature, self.ports, self.missing.join("; "))
    }
}

impl Signature {
    /// The ports in words.
    fn ports(&self) -> String {
        let inputs: Vec<&str> = self.inputs.iter().map(|(name, _)| *name).collect();
        let caches: Vec<&str> = self.caches.iter().map(|(_, columns)| *columns).collect();
        let caches = if caches.is_empty() { "and states".to_owned() } else { caches.join(", ") };
        format!("{} → {}, {caches}", inputs.join(", "), self.logits)
    }

    /// The calls of a package's functions by width, that of one token first; or what is missing.
    fn calls(&self, model: &Model) -> Result<Vec<Call>, Vec<String>> {
        let mut calls: Vec<Call> = Vec::new();
        let mut nearest: Option<Vec<String>> = None;
        let functions = &model.program.functions;
        for (name, function) in functions {
            match fit::fit(self, name, function) {
                Ok(found) => calls.extend(found),
                Err(missing) if nearest.as_ref().is_none_or(|n| missing.len() < n.len()) => {
                    let of = |p| if functions.len() == 1 { p } else { format!("function `{name}`: {p}") };
                    nearest = Some(missing.into_iter().map(of).collect());
                }
                Err(_) => {}
            }
        }
        calls.sort_by_key(|call| call.width);
        calls.dedup_by_key(|call| call.width);
        let Some(first) = calls.first() else {
            return Err(nearest.unwrap_or_else(|| vec!["the package has no functions".to_owned()]));
        };
        if first.width != 1 {
            return Err(vec![format!("no function takes 1 token a call; the narrowest takes {}", first.width)]);
        }
        match calls.iter().find(|c| (c.context, c.vocabulary) != (first.context, first.vocabulary)) {
            None => Ok(calls),
            Some(other) => Err(vec![format!(
                "functions differ: `{}` has {} positions and {} logits, `{}` {} and {}",
                first.function, first.context, first.vocabulary, other.function, other.context, other.vocabulary
            )]),
        }
    }
}

/// Finds the signature of a package, and its calls by width, that of one token first; or why none fits.
fn recognize_one(model: &Model) -> Result<(&'static Signature, Vec<Call>), Vec<Misfit>> {
    let mut misfits = Vec::new();
    for &signature in SIGNATURES {
        match signature.calls(model) {
            Ok(calls) => return Ok((signature, calls)),
            Err(missing) => misfits.push(Misfit { signature: signature.name, ports: signature.ports(), missing }),
        }
    }
    Err(misfits)
}

/// Finds how a model of one or several packages is fed, or why it cannot be.
pub(crate) fn recognize(models: &[&Model]) -> Result<Recognized, Vec<Misfit>> {
    match models {
        [model] => {
            let (signature, calls) = recognize_one(model)?;
            let steps = calls.into_iter().map(|call| Step { calls: vec![call] }).collect();
            Ok(Recognized { name: signature.name, steps })
        }
        _ => parts::recognize(models),
    }
}

/// The signature of a name.
pub(crate) fn named(name: &str) -> Option<&'static str> {
    SIGNATURES.iter().map(|signature| signature.name).chain([parts::NAME]).find(|&known| known == name)
}

/// A state that a function declares and never writes, so that it remembers nothing.
pub(crate) fn unwritten_state(function: &Function) -> Option<&str> {
    let writes = |id| {
        function.body.ops.iter().any(|op| {
            let Some(known) = op.op().filter(|known| known.effect() == Effect::WriteState) else { return false };
            let state = known.params().first().and_then(|param| op.operand_args(param.name).iter().next());
            matches!(state, Some(Arg::Value(target)) if target == id)
        })
    };
    function.states().find(|&(id, ..)| !writes(id)).map(|(_, name, _)| name)
}

#[cfg(test)]
mod tests;
