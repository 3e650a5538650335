//! One way to call a loaded function.

use anemone_coreml::{Framework, Function, State};
use anemone_mil::DataMut;

use crate::package_runner::fill;
use crate::signature::{Call, Feed};

/// A call, with the function that is loaded for it.
#[derive(Debug)]
pub(super) struct LoadedCall {
    call: Call,
    /// Its index in the model.
    pub(super) function: usize,
    /// The inputs: index, what it is fed with.
    inputs: Vec<(usize, Feed)>,
    /// Shapes of the inputs, except those that follow the position, of a function that takes several.
    shapes: Vec<(usize, Vec<usize>)>,
    /// Whether logits come for every token, as far as the description says.
    every_token: bool,
}

/// Room for the numbers of a call, so that none is made for each.
#[derive(Debug)]
pub(super) struct Room {
    numbers: Vec<i32>,
    mask: Vec<f32>,
}

impl Room {
    pub(super) fn for_width(width: usize) -> Self {
        Self { numbers: Vec::with_capacity(width), mask: Vec::new() }
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
            call.inputs.iter().map(|&(name, feed)| function.input(name).map(|i| (i, feed))).collect();
        let inputs = inputs.map_err(|error| error.to_string())?;
        let fixed = |&(i, feed): &(usize, Feed)| {
            feed == Feed::Mask || function.ports().inputs[i].shape == shape(&call, feed, 0)
        };
        let several = several || !inputs.iter().all(fixed);
        let shapes = inputs.iter().filter(|(_, feed)| *feed != Feed::Mask).map(|&(i, feed)| (i, shape(&call, feed, 0)));
        let shapes = if several { shapes.collect() } else { Vec::new() };
        let logits = function.ports().outputs.iter().find(|port| port.name == call.logits);
        let found = logits.and_then(|port| port.elements());
        // Outputs of flexible shape have none in the description: signatures with such have logits of every token.
        let every_token = found != Some(call.vocabulary) || call.width == 1;
        if let Some(port) = logits.filter(|port| !port.shape.is_empty() && call.varying.is_none()) {
            let fits = [Some(call.vocabulary), call.vocabulary.checked_mul(call.width)].contains(&found);
            if !fits && port.shape.last() != Some(&call.vocabulary) {
                let (name, width) = (call.logits, call.width);
                return Err(format!("its output `{name}` is {:?} for {width} tokens", port.shape));
            }
        }
        Ok(Self { call, function: index, inputs, shapes, every_token })
    }

    /// Positions that the states have room for, and logits for each token.
    pub(super) fn sizes(&self) -> (usize, usize) {
        (self.call.context, self.call.vocabulary)
    }

    /// The function's name.
    pub(super) fn name(&self) -> &str {
        &self.call.function
    }

    pub(super) fn width(&self) -> usize {
        self.call.width
    }

    /// How many tokens must remain for this call to be the better choice over single ones.
    pub(super) fn least(&self) -> usize {
        let by_position = self.call.inputs.iter().any(|(_, feed)| *feed == Feed::Positions);
        let partial = self.every_token || by_position;
        if partial { (self.call.width / 8).max(4).min(self.call.width) } else { self.call.width }
    }

    /// Feeds `tokens`, at most as many as the width, from `position` on.
    pub(super) fn run<F: Framework>(
        &self,
        function: &Function<F>,
        state: &mut State<F>,
        room: &mut Room,
        position: usize,
        tokens: &[u32],
        logits: Option<&mut [f32]>,
    ) -> anemone_coreml::Result<()> {
        let width = self.call.width;
        let moving;
        let shapes = if self.call.varying.is_some() {
            let mask = self.inputs.iter().filter(|(_, feed)| *feed == Feed::Mask);
            let mask = mask.map(|&(i, feed)| (i, shape(&self.call, feed, position)));
            moving = self.shapes.iter().cloned().chain(mask).collect::<Vec<_>>();
            &moving[..]
        } else {
            &self.shapes[..]
        };
        let mut fill_one = |index: usize, mut view: anemone_coreml::ViewMut<'_>| {
            let Some(&(_, feed)) = self.inputs.iter().find(|(i, _)| *i == index) else { return Ok(()) };
            if feed == Feed::Mask {
                room.mask.resize(width * (position + width), 0.0);
                fill(feed, DataMut::F32(&mut room.mask), width, position, tokens);
                view.write_f32(&room.mask)
            } else {
                room.numbers.resize(width, 0);
                fill(feed, DataMut::I32(&mut room.numbers), width, position, tokens);
                view.write_i32(&room.numbers)
            }
        };
        function.call(Some(state), shapes, &mut fill_one, self.call.logits, &mut {
            let mut logits = logits;
            move |view| match &mut logits {
                Some(logits) => {
                    // Rows of all tokens, or one: what came says it.
                    let several = view.shape().iter().product::<usize>() > logits.len();
                    let row = if several { tokens.len() - 1 } else { 0 };
                    view.read_f32(row * logits.len(), logits)
                }
                None => Ok(()),
            }
        })
    }
}

/// The shape of an input at a position.
fn shape(call: &Call, feed: Feed, position: usize) -> Vec<usize> {
    match feed {
        Feed::Tokens => vec![1, call.width],
        Feed::Positions => vec![call.width],
        Feed::Mask => vec![1, 1, call.width, position + call.width],
    }
}
