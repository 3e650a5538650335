//! Models in parts: packages that are run one after the other, each with the states of its own layers. What one gives is what
//! the next is fed with.
//!
//! A part is recognized by the names of its ports, which are those of Anemone's own parts and of ANEMLL's (as its
//! `llama_converter.py` and `chat.py` have them). ANEMLL's `prefill` leaves out what its author does not need of the last
//! layer, so nothing but the cache comes of it; and its head takes one token. Where the last part has no function of a
//! width, calls of that width give no logits.

use std::collections::{BTreeMap, BTreeSet};

use anemone_mil::model::Model;
use anemone_mil::types::elements;
use anemone_mil::{Function, PortShape};

use super::fit::Look;
use super::{Call, Feed, Gives, HostCache, Misfit, Recognized, Step};

/// What the interface of models in parts is called.
pub(super) const NAME: &str = "parts";

/// What inputs of these names are fed with.
const INPUTS: &[(&str, Feed)] = &[
    ("input_ids", Feed::Tokens),
    ("cache_position", Feed::Positions),
    ("hidden_states", Feed::Hidden),
    ("position_ids", Feed::Positions),
    ("causal_mask", Feed::WholeMask),
    ("current_pos", Feed::Start),
    (CACHE.0, Feed::Cache(0)),
];
/// A cache that is an input, and its new columns.
const CACHE: (&str, &str) = ("kv_cache", "kv_columns");
/// Outputs of what the next part is fed with.
const HIDDEN: [&str; 2] = ["hidden_states", "output_hidden_states"];
/// Outputs with logits: one of all, or several numbered from 1.
const LOGITS: [&str; 2] = ["logits", "output_logits"];
/// Most outputs that logits are split into.
const MOST_LOGITS: usize = 256;
/// What is said of the ports.
const PORTS: &str = "input_ids or hidden_states, cache_position or position_ids, causal_mask, current_pos → hidden_states, \
                     output_hidden_states or logits, and states";

/// How the model is fed of which these are the parts.
pub(super) fn recognize(models: &[&Model]) -> Result<Recognized, Vec<Misfit>> {
    let name = NAME;
    let misfit = |missing| vec![Misfit { signature: name, ports: PORTS.to_owned(), missing }];
    let Some((last, others)) = models.split_last() else { return Err(misfit(vec!["there are no parts".to_owned()])) };
    let mut steps = Vec::new();
    let mut why = Vec::new();
    for width in models.iter().flat_map(|model| widths(model)).collect::<BTreeSet<_>>() {
        let calls = others.iter().enumerate().map(|(part, model)| call(part, model, width, Gives::Hidden));
        match calls.collect::<Result<Vec<_>, _>>() {
            Ok(mut calls) => {
                match call(others.len(), last, width, Gives::Logits) {
                    Ok(call) => calls.push(call),
                    Err(missing) if width == 1 => why.push(missing),
                    Err(_) => {}
                }
                steps.push(Step { calls });
            }
            Err(missing) => why.push(missing),
        }
    }
    if steps.first().is_none_or(|step| step.calls.len() < models.len() || step.calls[0].width != 1) {
        why.truncate(1);
        why.push("no functions of all parts take 1 token a call".to_owned());
        return Err(misfit(why));
    }
    let calls = || steps.iter().flat_map(|step| &step.calls);
    let contexts: BTreeSet<usize> = calls().map(|call| call.context).filter(|&n| n != usize::MAX).collect();
    let context = match contexts.iter().collect::<Vec<_>>()[..] {
        [&one] => one,
        [] => return Err(misfit(vec!["states are missing".to_owned()])),
        _ => return Err(misfit(vec![format!("parts differ: their states have {contexts:?} positions")])),
    };
    let vocabularies: BTreeSet<usize> =
        calls().filter(|call| call.gives == Gives::Logits).map(|call| call.vocabulary).collect();
    if vocabularies.len() > 1 {
        return Err(misfit(vec![format!("functions differ: there are {vocabularies:?} logits")]));
    }
    let vocabulary = vocabularies.into_iter().next().unwrap_or(0);
    steps.retain(|step| step.calls[0].width <= context);
    for call in steps.iter_mut().flat_map(|step| &mut step.calls) {
        (call.context, call.vocabulary) = (context, vocabulary);
    }
    Ok(Recognized { name, steps })
}

/// The numbers of tokens that the functions of a package are made for.
fn widths(model: &Model) -> Vec<usize> {
    let mut all = Vec::new();
    for function in model.program.functions.values() {
        let mut look = Look { function, missing: Vec::new() };
        for &(name, feed) in INPUTS.iter().filter(|(_, feed)| matches!(feed, Feed::Tokens | Feed::Positions)) {
            if !has(function, name) {
                continue;
            }
            let axis = usize::from(feed == Feed::Tokens);
            match look.input(name, feed) {
                Some(PortShape::Fixed(shape)) => all.extend(shape.get(axis)),
                Some(PortShape::Enumerated { shapes, .. }) => all.extend(shapes.iter().filter_map(|s| s.get(axis))),
                Some(PortShape::Range { bounds, .. }) => {
                    all.extend(bounds.get(axis).filter(|(low, high)| Some(*low) == *high).map(|(low, _)| low));
                }
                _ => {}
            }
        }
    }
    all
}

fn has(function: &Function, input: &str) -> bool {
    function.inputs.iter().any(|&id| function.value(id).name == input && function.value(id).ty.state().is_none())
}

/// The call of a part at a width; or what its nearest function lacks.
fn call(part: usize, model: &Model, width: usize, gives: Gives) -> Result<Call, String> {
    let mut nearest: Option<Vec<String>> = None;
    for (name, function) in &model.program.functions {
        match fit(name, function, (part == 0, width), gives) {
            Ok(call) => return Ok(call),
            Err(missing) if nearest.as_ref().is_none_or(|n| missing.len() < n.len()) => nearest = Some(missing),
            Err(_) => {}
        }
    }
    let missing = nearest.unwrap_or_else(|| vec!["it has no functions".to_owned()]);
    Err(format!("part {}, {width} token(s) a call: {}", part + 1, missing.join("; ")))
}

/// The call of a function of the first part, or of a later one, at a width.
fn fit(name: &str, function: &Function, (first, width): (bool, usize), gives: Gives) -> Result<Call, Vec<String>> {
    let mut look = Look { function, missing: Vec::new() };
    let stateful = function.states().next().is_some();
    // Of a part without states the context is that of the others.
    let mut context = if stateful { look.context().unwrap_or(0) } else { usize::MAX };
    let mut inputs = Vec::new();
    let mut shapes = BTreeMap::new();
    let mut caches = Vec::new();
    let values = function.inputs.iter().map(|&id| function.value(id)).filter(|v| v.ty.state().is_none());
    for value in values {
        let Some(&(port, feed)) = INPUTS.iter().find(|(known, _)| *known == value.name) else {
            look.missing.push(format!("input `{}` is not part of it", value.name));
            continue;
        };
        if let Feed::Cache(_) = feed {
            let cache = HostCache::named(CACHE);
            context = look.host_cache(&cache, Some(width)).unwrap_or(0);
            caches.push(cache);
        } else if let Some(shape) = look.input(port, feed) {
            let wanted = match (feed, &shape) {
                (Feed::WholeMask, PortShape::Fixed(found)) => {
                    // The mask is as long as the cache, which a part without one does not tell.
                    feed.shape(width, if context == usize::MAX { found.last().copied().unwrap_or(0) } else { context })
                }
                (Feed::Hidden, PortShape::Fixed(found)) if tokens(found) == Some(width) => found.clone(),
                (Feed::Hidden, _) => vec![0],
                _ => feed.shape(width, context),
            };
            if !shape.admits(&wanted) || elements(&wanted) == 0 {
                look.missing.push(format!("input `{port}` does not take {width} token(s): {}", feed.words()));
            }
            shapes.insert(port.to_owned(), wanted);
        }
        inputs.push((port.to_owned(), feed));
    }
    let begins = if first { Feed::Tokens } else { Feed::Hidden };
    if !inputs.iter().any(|(_, feed)| *feed == begins) || inputs.iter().any(|(_, feed)| first && *feed == Feed::Hidden)
    {
        let wanted = if first { "begin with input `input_ids`" } else { "take input `hidden_states`" };
        look.missing.push(format!("it does not {wanted}"));
    }
    let (outputs, vocabulary) = match gives {
        Gives::Hidden => (look.hidden(), 0),
        Gives::Logits => look.logits(),
    };
    match look.missing.as_slice() {
        [] => Ok(Call {
            function: name.to_owned(),
            width,
            context,
            vocabulary,
            inputs,
            gives,
            outputs,
            caches,
            shapes,
            varying: None,
            tokens: None,
        }),
        _ => Err(look.missing),
    }
}

/// For how many tokens activations of this shape are: (1, tokens, hidden size), or (1, hidden size, 1, tokens).
fn tokens(shape: &[usize]) -> Option<usize> {
    match *shape {
        [1, tokens, _] | [1, _, 1, tokens] => Some(tokens),
        _ => None,
    }
}

impl Look<'_> {
    fn gives(&self, name: &str) -> bool {
        self.function.body.outputs.iter().any(|&id| self.function.value(id).name == name)
    }

    /// The output that the next part is fed with.
    fn hidden(&mut self) -> Vec<String> {
        let found = HIDDEN.iter().find(|name| self.gives(name));
        if found.is_none() {
            self.missing.push(format!("it gives none of {}", HIDDEN.join(", ")));
        }
        found.map(|name| (*name).to_owned()).into_iter().collect()
    }

    /// The outputs with logits, and how many those are.
    fn logits(&mut self) -> (Vec<String>, usize) {
        let one = LOGITS.iter().find(|name| self.gives(name)).map(|name| vec![(*name).to_owned()]);
        let numbered = || (1..=MOST_LOGITS).map(|i| format!("logits{i}")).take_while(|name| self.gives(name));
        let names = one.unwrap_or_else(|| numbered().collect());
        if names.is_empty() {
            self.missing.push("it gives no logits".to_owned());
        }
        let vocabulary = names.iter().filter_map(|name| self.vocabulary(name)).sum();
        (names, vocabulary)
    }
}
