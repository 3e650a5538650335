//! One planned call: inputs are filled, the plan runs, what it gives is taken out.

use std::sync::{Arc, Mutex, PoisonError};

use anemone_cpu::{Instance, Overflow, Plan, Pool, RunError, State};
use anemone_mil::types::elements;
use anemone_mil::{Data, DataMut};

use super::columns;
use crate::CacheTensor;
use crate::signature::{Call, Feed, Gives, MASKED};
use crate::step::ReadyCall;

/// A call of one part with its plan, and the instances that no run has borrowed.
#[derive(Debug)]
pub(super) struct PlannedCall {
    call: Call,
    /// The part whose function it is, of a model of several.
    part: Option<String>,
    plan: Arc<Plan>,
    pool: Pool,
    /// Indices of the inputs, with what they are fed.
    inputs: Vec<(usize, Feed)>,
    /// Indices of the outputs, with the elements of each that are for one token.
    outputs: Vec<(usize, usize)>,
    /// Whether outputs come for every token, not for the last alone.
    every_token: bool,
    /// Outputs of new columns, each with the tensor that they are written into.
    columns: Vec<(usize, CacheTensor)>,
    /// The fewest tokens, if the call takes any number from there up to its width.
    fewest: Option<usize>,
    idle: Mutex<Vec<Instance>>,
    /// What overflowed in half floats, of strict plans.
    overflows: Mutex<Vec<Overflow>>,
}

/// What one call reads and gives besides the state.
pub(super) struct Feeding<'a> {
    pub(super) position: usize,
    /// At most as many as the width.
    pub(super) tokens: &'a [u32],
    /// What the part before gave; after the call what this part gives.
    pub(super) hidden: &'a mut Vec<f32>,
    /// Whether the logits of every token are wanted, not of the last alone.
    pub(super) each: bool,
    /// Where the logits go, if they are wanted.
    pub(super) logits: Option<&'a mut [f32]>,
}

impl PlannedCall {
    /// Makes the first instance too, so that runs of one conversation at a time allocate nothing.
    ///
    /// # Errors
    /// What is wrong with the shape of the outputs.
    pub(super) fn new(call: Call, plan: Plan, pool: Pool) -> Result<Self, String> {
        let instance = Instance::new(Arc::new(plan), pool.clone());
        let fits = "the plan has the ports of the function that was recognized";
        // Caches are states of the plan.
        let inputs = call.inputs.iter().filter(|(_, feed)| !matches!(feed, Feed::Cache(_)));
        let inputs = inputs.map(|(name, feed)| (instance.input_index(name).expect(fits), *feed)).collect();
        let plan = Arc::clone(instance.plan());
        let output = |name: &String| instance.output_index(name).expect(fits);
        let shape = |index: usize| plan.outputs()[index].shape.as_slice();
        let (rows, given) = (call.width, call.outputs.iter().map(output));
        let outputs: Vec<(usize, usize)> = match call.gives {
            Gives::Logits => given.map(|i| (i, shape(i).last().copied().unwrap_or(0))).collect(),
            Gives::Hidden => given.map(|i| (i, elements(shape(i)))).collect(),
        };
        let every_token = outputs.iter().all(|&(i, size)| elements(shape(i)) == rows * size);
        if call.gives == Gives::Logits && !every_token && outputs.iter().any(|&(i, size)| elements(shape(i)) != size) {
            return Err(format!(
                "its output `{}` is {:?} for {rows} tokens; expected logits of every token, or of the last one",
                call.outputs.join("`, `"),
                outputs.iter().map(|&(i, _)| shape(i)).collect::<Vec<_>>(),
            ));
        }
        let states = &plan.states().states;
        let columns = call.caches.iter().map(|cache| {
            let state = states.iter().find(|state| state.name == cache.input).expect(fits);
            let context = state.shape[state.shape.len() - 2];
            let tensor = CacheTensor::of_halves(&state.name, &state.shape, context);
            (output(&cache.columns), tensor.expect("a cache is (…, context, head dim)"))
        });
        let columns = columns.collect();
        let (fewest, idle, overflows) = (None, Mutex::new(vec![instance]), Mutex::default());
        let part = None;
        Ok(Self { call, part, plan, pool, inputs, outputs, every_token, columns, fewest, idle, overflows })
    }

    /// Of a part that is called so.
    pub(super) fn of_part(self, name: Option<String>) -> Self {
        Self { part: name, ..self }
    }

    /// Where it is, for people.
    pub(super) fn place(&self) -> String {
        let function = &self.call.function;
        self.part
            .as_ref()
            .map_or_else(|| format!("function `{function}`"), |part| format!("part `{part}`, function `{function}`"))
    }

    /// What overflowed in half floats since the last time, each operation once.
    pub(super) fn take_overflows(&self) -> Vec<Overflow> {
        std::mem::take(&mut *self.overflows.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// As [`PlannedCall::new`], with a plan for any number of tokens up to the width.
    ///
    /// # Errors
    /// As [`PlannedCall::new`].
    pub(super) fn of_widths(call: Call, plan: Plan, fewest: usize, pool: Pool) -> Result<Self, String> {
        Ok(Self { fewest: Some(fewest), ..Self::new(call, plan, pool)? })
    }

    /// Whether there are logits of every token, in one output.
    pub(super) fn gives_each(&self) -> bool {
        self.every_token && self.outputs.len() == 1 && self.call.gives == Gives::Logits
    }

    pub(super) fn context(&self) -> usize {
        self.call.context
    }

    pub(super) fn vocabulary(&self) -> usize {
        self.call.vocabulary
    }

    pub(super) fn call(&self) -> &Call {
        &self.call
    }

    /// Whether a plan has the ports that a call asks for, so that it can be planned so.
    pub(super) fn fits(call: &Call, plan: &Plan) -> bool {
        let input = |name: &String| plan.inputs().iter().any(|port| port.name == *name);
        let output = |name: &String| plan.outputs().iter().any(|port| port.name == *name);
        let state = |name: &String| plan.states().states.iter().any(|state| state.name == *name);
        call.inputs.iter().all(|(name, feed)| matches!(feed, Feed::Cache(_)) || input(name))
            && call.outputs.iter().all(output)
            && call.caches.iter().all(|cache| state(&cache.input) && output(&cache.columns))
            && plan.states().states.iter().all(|state| state.shape.len() >= 2)
    }

    pub(super) fn function(&self) -> &str {
        &self.call.function
    }

    pub(super) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Elements that the part before must give, and those that this one gives to the next.
    pub(super) fn hidden(&self) -> (Option<usize>, Option<usize>) {
        let input = self.inputs.iter().find(|(_, feed)| *feed == Feed::Hidden);
        let taken = input.map(|&(index, _)| elements(&self.plan.inputs()[index].shape));
        let given = (self.call.gives == Gives::Hidden).then(|| self.outputs.iter().map(|(_, size)| size).sum());
        (taken, given)
    }

    /// Feeds tokens from a position on. Allocates nothing unless several runs meet or it fails.
    pub(super) fn run(&self, state: &mut State, feeding: &mut Feeding<'_>) -> Result<(), RunError> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut instance = idle.unwrap_or_else(|| Instance::new(Arc::clone(&self.plan), self.pool.clone()));
        let result = self.run_on(&mut instance, state, feeding);
        let overflows = instance.take_overflows();
        if !overflows.is_empty() {
            add(&mut self.overflows.lock().unwrap_or_else(PoisonError::into_inner), overflows);
        }
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(instance);
        result
    }

    /// Gives the memory of instances that no run has borrowed back to the system, until one is run again.
    pub(super) fn rest(&self) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).iter_mut().for_each(Instance::rest);
    }

    fn run_on(&self, instance: &mut Instance, state: &mut State, feeding: &mut Feeding<'_>) -> Result<(), RunError> {
        let (position, tokens) = (feeding.position, feeding.tokens);
        let width = self.fewest.map_or(self.call.width, |_| tokens.len());
        match (self.fewest.is_some(), self.call.varying.is_some()) {
            (true, true) => instance.set_extents(position + width, width)?,
            (true, false) => instance.set_extent(width)?,
            (false, true) => instance.set_extent(position + width)?,
            (false, false) => {}
        }
        for &(index, feed) in &self.inputs {
            match (feed, instance.input_mut(index)) {
                (Feed::Hidden, DataMut::F32(to)) => to.copy_from_slice(feeding.hidden),
                (feed, input) => fill(feed, input, width, position, tokens),
            }
        }
        instance.run(state)?;
        let floats = |index: usize| match instance.output(index) {
            Data::F32(all) => all,
            _ => unreachable!("outputs were recognized as floats"),
        };
        for (index, tensor) in &self.columns {
            let to = state.get_mut(&tensor.name).expect("it is a state of the plan");
            columns::put(tensor, floats(*index), to, width, position..position + tokens.len());
        }
        match (self.call.gives, &mut feeding.logits) {
            (Gives::Hidden, _) => {
                feeding.hidden.clear();
                self.outputs.iter().for_each(|&(index, _)| feeding.hidden.extend_from_slice(floats(index)));
            }
            (Gives::Logits, Some(logits)) if feeding.each => {
                assert!(self.gives_each(), "a row for each token");
                logits.copy_from_slice(&floats(self.outputs[0].0)[..logits.len()]);
            }
            (Gives::Logits, Some(logits)) => {
                let row = if self.every_token { tokens.len() - 1 } else { 0 };
                let mut rest: &mut [f32] = logits;
                for &(index, size) in &self.outputs {
                    let (to, later) = rest.split_at_mut(size);
                    to.copy_from_slice(&floats(index)[row * size..(row + 1) * size]);
                    rest = later;
                }
            }
            (Gives::Logits, None) => {}
        }
        Ok(())
    }
}

impl ReadyCall for PlannedCall {
    fn width(&self) -> usize {
        self.call.width
    }

    fn fewest(&self) -> Option<usize> {
        self.fewest
    }

    fn takes_fewer(&self) -> bool {
        self.every_token || self.call.by_position()
    }

    fn gives_logits_alone(&self) -> bool {
        self.call.gives == Gives::Logits && self.plan.states().states.is_empty()
    }
}

/// Adds what overflowed in a run to what did before: each operation is there once.
fn add(all: &mut Vec<Overflow>, of_run: Vec<Overflow>) {
    for one in of_run {
        match all.iter_mut().find(|known| known.place == one.place) {
            Some(known) => known.runs += one.runs,
            None => all.push(one),
        }
    }
}

/// Fills an input for `tokens` from `position` on, of which the last is repeated up to `width`.
pub(crate) fn fill(feed: Feed, input: DataMut<'_>, width: usize, position: usize, tokens: &[u32]) {
    let last = tokens.len() - 1;
    match (feed, input) {
        (Feed::Tokens, DataMut::I32(to)) => {
            to.iter_mut().enumerate().for_each(|(i, to)| *to = tokens[i.min(last)] as i32);
        }
        (Feed::Positions, DataMut::I32(to)) => {
            to.iter_mut().enumerate().for_each(|(i, to)| *to = (position + i.min(last)) as i32);
        }
        (Feed::Start, DataMut::I32(to)) => to.fill(position as i32),
        (Feed::Mask | Feed::WholeMask, DataMut::F32(to)) => {
            // The mask of new tokens alone, or of the whole cache: rows of (1, 1, width, …).
            let row_size = to.len() / width;
            for (row, to) in to.chunks_exact_mut(row_size).enumerate() {
                let (seen, hidden) = to.split_at_mut(position + row + 1);
                seen.fill(0.0);
                hidden.fill(MASKED);
            }
        }
        (feed, _) => unreachable!("{feed:?} was recognized by its type"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fewer_tokens_than_the_width_repeat_the_last() {
        let mut ids = [0; 4];
        fill(Feed::Tokens, DataMut::I32(&mut ids), 4, 7, &[5, 6]);
        assert_eq!(ids, [5, 6, 6, 6]);
        fill(Feed::Positions, DataMut::I32(&mut ids), 4, 7, &[5, 6]);
        assert_eq!(ids, [7, 8, 8, 8]);
    }

    #[test]
    fn a_mask_hides_what_comes_later() {
        let mut mask = [9.0; 6];
        fill(Feed::Mask, DataMut::F32(&mut mask), 2, 1, &[5, 6]);
        assert_eq!(mask, [0.0, 0.0, MASKED, 0.0, 0.0, 0.0]);
    }
}
