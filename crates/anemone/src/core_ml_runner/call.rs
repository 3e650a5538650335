//! One way to call a loaded function.

use anemone_coreml::{CoreMlError, Framework, Function};
use anemone_mil::DataMut;

use super::Kept;
use crate::package_runner::{columns, fill};
use crate::signature::{Call, Feed, Gives};
use crate::step::ReadyCall;

/// A call, with the function that is loaded for it.
#[derive(Debug)]
pub(super) struct LoadedCall {
    call: Call,
    /// Its index in the model.
    pub(super) function: usize,
    /// The inputs: index, what it is fed with.
    inputs: Vec<(usize, Feed)>,
    /// The outputs: what the call gives, then the new columns of its caches.
    outputs: Vec<String>,
    /// Shapes of the inputs, except those that follow the position, of a function that takes several.
    shapes: Vec<(usize, Vec<usize>)>,
    /// Whether logits come for every token, as far as the description says.
    every_token: bool,
    /// Whether it keeps nothing.
    stateless: bool,
}

/// Room for the numbers of a call, so that none is made for each.
#[derive(Debug)]
pub(super) struct Room {
    numbers: Vec<i32>,
    mask: Vec<f32>,
    /// What the part before gave.
    hidden: Vec<f32>,
    /// What the part that runs gives.
    given: Vec<f32>,
    /// New columns of each cache that is no state.
    columns: Vec<Vec<f32>>,
}

impl Room {
    pub(super) fn for_width(width: usize) -> Self {
        let (mask, hidden, given, columns) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { numbers: Vec::with_capacity(width), mask, hidden, given, columns }
    }
}

impl LoadedCall {
    /// Fits a call to the function `index`, which is loaded; `several` if it is called with other shapes too.
    ///
    /// # Errors
    /// What is wrong with the function's ports.
    pub(super) fn new<F: Framework>(
        call: Call,
        index: usize,
        several: bool,
        function: &Function<F>,
    ) -> Result<Self, String> {
        let inputs: Result<Vec<_>, _> =
            call.inputs.iter().map(|(name, feed)| function.input(name).map(|i| (i, *feed))).collect();
        let inputs = inputs.map_err(|error| error.to_string())?;
        // Shapes that follow the position, and those that the package alone says, are not set beforehand.
        let set = |feed: Feed| matches!(feed, Feed::Tokens | Feed::Positions);
        let fixed =
            |&(i, feed): &(usize, Feed)| !set(feed) || function.ports().inputs[i].shape == feed.shape(call.width, 0);
        let several = several || !inputs.iter().all(fixed);
        let shapes = inputs.iter().filter(|(_, feed)| set(*feed)).map(|&(i, feed)| (i, feed.shape(call.width, 0)));
        let shapes = if several { shapes.collect() } else { Vec::new() };
        let ports = &function.ports().outputs;
        let given: Option<Vec<_>> =
            call.outputs.iter().map(|name| ports.iter().find(|port| port.name == *name)).collect();
        let found = given.as_ref().and_then(|ports| ports.iter().map(|port| port.elements()).sum::<Option<usize>>());
        // Outputs of flexible shape have none in the description: signatures with such have logits of every token.
        let every_token = found != Some(call.vocabulary) || call.width == 1;
        let known = given.filter(|ports| ports.iter().all(|port| !port.shape.is_empty()) && call.varying.is_none());
        if let (Gives::Logits, Some(ports)) = (call.gives, known) {
            let fits = [Some(call.vocabulary), call.vocabulary.checked_mul(call.width)].contains(&found);
            let last = ports.iter().map(|port| port.shape.last().copied().unwrap_or(0)).sum::<usize>();
            if !fits && last != call.vocabulary {
                let (name, width) = (call.outputs.join("`, `"), call.width);
                let shapes: Vec<_> = ports.iter().map(|port| &port.shape).collect();
                return Err(format!("its output `{name}` is {shapes:?} for {width} tokens"));
            }
        }
        let stateless = function.ports().states.is_empty() && call.caches.is_empty();
        let columns = call.caches.iter().map(|cache| &cache.columns);
        let outputs = call.outputs.iter().chain(columns).cloned().collect();
        Ok(Self { call, function: index, inputs, outputs, shapes, every_token, stateless })
    }

    /// Positions that the states have room for, and logits for each token.
    pub(super) fn sizes(&self) -> (usize, usize) {
        (self.call.context, self.call.vocabulary)
    }

    /// The function's name.
    pub(super) fn name(&self) -> &str {
        &self.call.function
    }

    /// Feeds tokens, at most as many as the width, from a position on.
    pub(super) fn run<F: Framework>(
        &self,
        function: &Function<F>,
        kept: &mut Kept<F>,
        room: &mut Room,
        (position, tokens): (usize, &[u32]),
        logits: Option<&mut [f32]>,
    ) -> anemone_coreml::Result<()> {
        let width = self.call.width;
        let moving;
        let shapes = if self.call.varying.is_some() {
            let mask = self.inputs.iter().filter(|(_, feed)| *feed == Feed::Mask);
            let mask = mask.map(|&(i, feed)| (i, feed.shape(width, position + width)));
            moving = self.shapes.iter().cloned().chain(mask).collect::<Vec<_>>();
            &moving[..]
        } else {
            &self.shapes[..]
        };
        let (caches, Room { numbers, mask, hidden, given, columns: new }) = (&kept.caches, room);
        let mut fill_one = |index: usize, mut view: anemone_coreml::ViewMut<'_>| {
            let Some(&(_, feed)) = self.inputs.iter().find(|(i, _)| *i == index) else { return Ok(()) };
            match feed {
                Feed::Hidden => view.write_f32(hidden),
                Feed::Cache(which) => {
                    let name = &self.call.caches[which].input;
                    let found = caches.iter().find(|(tensor, _)| tensor.name == *name);
                    let (tensor, halves) = found.ok_or_else(|| absent(&self.call.function, name))?;
                    view.write_columns(0..tensor.rows(), 0..tensor.shape[tensor.axis], halves)
                }
                Feed::Mask | Feed::WholeMask => {
                    let row = if feed == Feed::Mask { position + width } else { self.call.context };
                    mask.resize(width * row, 0.0);
                    fill(feed, DataMut::F32(mask), width, position, tokens);
                    view.write_f32(mask)
                }
                Feed::Tokens | Feed::Positions | Feed::Start => {
                    numbers.resize(if feed == Feed::Start { 1 } else { width }, 0);
                    fill(feed, DataMut::I32(numbers), width, position, tokens);
                    view.write_i32(numbers)
                }
            }
        };
        given.clear();
        new.resize_with(self.call.caches.len(), Vec::new);
        let (mut logits, mut filled) = (logits, 0);
        function.call(kept.state.as_mut(), shapes, &mut fill_one, &self.outputs, &mut |output, view| {
            let elements = view.shape().iter().product::<usize>();
            if let Some(cache) = output.checked_sub(self.call.outputs.len()) {
                new[cache].resize(elements, 0.0);
                return view.read_f32(0, &mut new[cache]);
            }
            match (self.call.gives, &mut logits) {
                (Gives::Hidden, _) => {
                    let start = given.len();
                    given.resize(start + elements, 0.0);
                    view.read_f32(0, &mut given[start..])
                }
                (Gives::Logits, Some(logits)) => {
                    // Rows of all tokens, or one: what came says it.
                    let size = match self.call.outputs.len() {
                        1 => logits.len(),
                        _ => view.shape().last().copied().unwrap_or(0).min(logits.len() - filled),
                    };
                    let row = if elements > size { tokens.len() - 1 } else { 0 };
                    view.read_f32(row * size, &mut logits[filled..filled + size])?;
                    filled += size;
                    Ok(())
                }
                (Gives::Logits, None) => Ok(()),
            }
        })?;
        for (cache, new) in self.call.caches.iter().zip(new) {
            if let Some((tensor, halves)) = kept.caches.iter_mut().find(|(tensor, _)| tensor.name == cache.input) {
                columns::put(tensor, new, halves, width, position..position + tokens.len());
            }
        }
        if self.call.gives == Gives::Hidden {
            std::mem::swap(hidden, given);
        }
        Ok(())
    }
}

impl ReadyCall for LoadedCall {
    fn width(&self) -> usize {
        self.call.width
    }

    fn takes_fewer(&self) -> bool {
        self.every_token || self.call.by_position()
    }

    fn gives_logits_alone(&self) -> bool {
        self.call.gives == Gives::Logits && self.stateless
    }
}

fn absent(function: &str, name: &str) -> CoreMlError {
    CoreMlError::Port {
        function: function.to_owned(),
        what: "cache",
        port: name.to_owned(),
        expected: "one of the state's".to_owned(),
        found: "none: the state belongs to another package".to_owned(),
    }
}
