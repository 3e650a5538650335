//! Interfaces of packages that hold a conversation in their states: the list, and how a package is recognized.
//!
//! A signature says which ports a function has and what they are fed with. A function that [fits](fit) gives [`Call`]s,
//! which are all that a runner needs to know. To add a signature is to add its file and its line in the list.

mod causal_mask;
mod fit;
mod input_ids;
mod token_position;

use std::collections::BTreeMap;

use anemone_cpu::Varying;
use anemone_mil::Function;
use anemone_mil::model::Model;
use anemone_mil::op::Effect;
use anemone_mil::program::Arg;

/// An interface that packages for chatting may have. The states are found by themselves: axes but the last are layers,
/// heads and the like, the last but one is the position.
#[derive(Debug)]
pub(crate) struct Signature {
    pub(crate) name: &'static str,
    /// Inputs that are not states, and what they are fed with. There may be no others.
    inputs: &'static [(&'static str, Feed)],
    /// The output with the logits: of every token, or of the last one.
    logits: &'static str,
}

/// Every signature, the most wanted first.
const SIGNATURES: &[&Signature] = &[&input_ids::SIGNATURE, &causal_mask::SIGNATURE, &token_position::SIGNATURE];

/// What an input is fed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Feed {
    /// (1, width): token ids, the last one repeated up to the width.
    Tokens,
    /// (width): the position of each token, the last one repeated up to the width.
    Positions,
    /// (1, 1, width, past + width): 0 where a token may look, [`MASKED`] elsewhere.
    Mask,
}

/// Added to the scores of what must not be seen. Half floats hold it, and their scores are far smaller.
pub(crate) const MASKED: f32 = -1e4;

/// One way to call a function: with so many tokens.
///
/// It writes `width` columns of the states, so all of them must fit into the context. When there are fewer tokens, the
/// columns behind them hold nothing that is ever read: the next call writes them anew.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// The function's name.
    pub(crate) function: String,
    /// Tokens that a call takes.
    pub(crate) width: usize,
    /// Positions that the states have room for.
    pub(crate) context: usize,
    /// Logits for each token.
    pub(crate) vocabulary: usize,
    /// What each input is fed with.
    pub(crate) inputs: &'static [(&'static str, Feed)],
    /// The output with the logits.
    pub(crate) logits: &'static str,
    /// The shape of each input.
    pub(crate) shapes: BTreeMap<String, Vec<usize>>,
    /// The extent that follows the position, if one does: that of past and new tokens together.
    pub(crate) varying: Option<Varying>,
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
        format!("{} → {}, and states", inputs.join(", "), self.logits)
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
pub(crate) fn recognize(model: &Model) -> Result<(&'static Signature, Vec<Call>), Vec<Misfit>> {
    let mut misfits = Vec::new();
    for &signature in SIGNATURES {
        match signature.calls(model) {
            Ok(calls) => return Ok((signature, calls)),
            Err(missing) => misfits.push(Misfit { signature: signature.name, ports: signature.ports(), missing }),
        }
    }
    Err(misfits)
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
