//! One planned call: inputs are filled, the plan runs, logits are taken out.

use std::sync::{Arc, Mutex, PoisonError};

use anemone_cpu::{Instance, Plan, Pool, RunError, State};
use anemone_mil::types::elements;
use anemone_mil::{Data, DataMut};

use crate::signature::{Call, Feed, MASKED};

/// A call with its plan, and the instances that no run has borrowed.
#[derive(Debug)]
pub(super) struct PlannedCall {
    call: Call,
    plan: Arc<Plan>,
    pool: Pool,
    /// Indices of the inputs, with what they are fed.
    inputs: Vec<(usize, Feed)>,
    logits: usize,
    /// Whether logits come for every token, not for the last alone.
    every_token: bool,
    idle: Mutex<Vec<Instance>>,
}

impl PlannedCall {
    /// Makes the first instance too, so that runs of one conversation at a time allocate nothing.
    ///
    /// # Errors
    /// What is wrong with the shape of the logits.
    pub(super) fn new(call: Call, plan: Plan, pool: Pool) -> Result<Self, String> {
        let instance = Instance::new(Arc::new(plan), pool.clone());
        let fits = "the plan has the ports of the function that was recognized";
        let inputs = call.inputs.iter().map(|&(name, feed)| (instance.input_index(name).expect(fits), feed)).collect();
        let logits = instance.output_index(call.logits).expect(fits);
        let plan = Arc::clone(instance.plan());
        let (shape, rows) = (&plan.outputs()[logits].shape, call.width);
        let every_token = elements(shape) == rows * call.vocabulary;
        if !every_token && elements(shape) != call.vocabulary {
            return Err(format!(
                "its output `{}` is {:?} for {rows} tokens; expected logits of every token, or of the last one",
                call.logits,
                shape.as_slice()
            ));
        }
        Ok(Self { call, plan, pool, inputs, logits, every_token, idle: Mutex::new(vec![instance]) })
    }

    pub(super) fn width(&self) -> usize {
        self.call.width
    }

    pub(super) fn context(&self) -> usize {
        self.call.context
    }

    pub(super) fn vocabulary(&self) -> usize {
        self.call.vocabulary
    }

    pub(super) fn function(&self) -> &str {
        &self.call.function
    }

    pub(super) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// How many tokens must remain for this call to be the better choice over single ones. A call costs the same however
    /// few of its tokens are real ones.
    pub(super) fn least(&self) -> usize {
        // Where the last token is found by its place and not by its position, all must be real.
        let by_position = self.call.inputs.iter().any(|(_, feed)| *feed == Feed::Positions);
        let partial = self.every_token || by_position;
        if partial { (self.call.width / 8).max(4).min(self.call.width) } else { self.call.width }
    }

    /// Feeds `tokens`, at most as many as the width, from `position` on. Allocates nothing unless several runs meet or
    /// it fails.
    pub(super) fn run(
        &self,
        state: &mut State,
        position: usize,
        tokens: &[u32],
        logits: Option<&mut [f32]>,
    ) -> Result<(), RunError> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut instance = idle.unwrap_or_else(|| Instance::new(Arc::clone(&self.plan), self.pool.clone()));
        let result = self.run_on(&mut instance, state, position, tokens, logits);
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(instance);
        result
    }

    fn run_on(
        &self,
        instance: &mut Instance,
        state: &mut State,
        position: usize,
        tokens: &[u32],
        logits: Option<&mut [f32]>,
    ) -> Result<(), RunError> {
        if self.call.varying.is_some() {
            instance.set_extent(position + self.call.width)?;
        }
        for &(index, feed) in &self.inputs {
            fill(feed, instance.input_mut(index), self.call.width, position, tokens);
        }
        instance.run(state)?;
        if let Some(logits) = logits {
            let Data::F32(all) = instance.output(self.logits) else { unreachable!("logits were recognized as floats") };
            let row = if self.every_token { tokens.len() - 1 } else { 0 };
            let vocabulary = self.call.vocabulary;
            logits.copy_from_slice(&all[row * vocabulary..(row + 1) * vocabulary]);
        }
        Ok(())
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
        (Feed::Mask, DataMut::F32(to)) => {
            for (row, to) in to.chunks_exact_mut(position + width).enumerate() {
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
