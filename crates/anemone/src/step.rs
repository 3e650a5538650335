//! The calls that are ready to be made with a model, and which of them comes next.

use crate::RunnerError;

/// A call of one part of a model, for tokens up to a width.
pub(crate) trait ReadyCall {
    /// Tokens that it takes.
    fn width(&self) -> usize;

    /// The fewest tokens, if it computes any number from there up to its width. Else it costs the same however few of its
    /// tokens are real ones.
    fn fewest(&self) -> Option<usize> {
        None
    }

    /// Whether fewer tokens than the width may be fed: the last one is found by its place, or by its position. Else all must
    /// be real.
    fn takes_fewer(&self) -> bool;

    /// Whether it keeps nothing and gives logits alone, so that nobody misses it who wants none.
    fn gives_logits_alone(&self) -> bool;
}

/// A call of each part, all of one width.
#[derive(Debug)]
pub(crate) struct ReadyStep<C> {
    /// In order of the parts.
    pub(crate) calls: Vec<C>,
    /// Whether the last part is among them.
    pub(crate) logits: bool,
}

impl<C: ReadyCall> ReadyStep<C> {
    pub(crate) fn width(&self) -> usize {
        self.calls[0].width()
    }

    pub(crate) fn fewest(&self) -> Option<usize> {
        self.calls[0].fewest()
    }

    /// The calls that are needed, with or without logits in the end.
    pub(crate) fn calls_for(&self, logits: bool) -> impl Iterator<Item = &C> {
        self.calls.iter().take_while(move |call| logits || !call.gives_logits_alone())
    }

    /// How many tokens must remain for this step to be the better choice over single ones.
    fn least(&self) -> usize {
        let width = self.width();
        let partial = || !self.logits || self.calls.last().is_some_and(C::takes_fewer);
        match self.fewest() {
            Some(fewest) => fewest,
            None if partial() => (width / 8).max(4).min(width),
            None => width,
        }
    }

    /// Of `remaining` tokens at `position` those that it may be fed with, if it is worth it and fits. Without logits it leaves
    /// the last token to another.
    fn fitting(&self, position: usize, remaining: usize, context: usize) -> Option<usize> {
        let width = self.fewest().map_or(self.width(), |_| self.width().min(remaining));
        let feedable = if self.logits { remaining } else { remaining - 1 };
        (feedable >= self.least() && position + width <= context).then(|| feedable.min(width))
    }
}

/// Feeds `tokens` from `position` on: of `steps` (by width, that of one token first) always the widest that is worth it and
/// fits. `feed(step, position, tokens, last)` does one of them; `last` says that no tokens are left after it.
pub(crate) fn in_steps<C: ReadyCall>(
    steps: &[ReadyStep<C>],
    context: usize,
    mut position: usize,
    mut tokens: &[u32],
    mut feed: impl FnMut(&ReadyStep<C>, usize, &[u32], bool) -> Result<(), RunnerError>,
) -> Result<(), RunnerError> {
    while !tokens.is_empty() {
        let fits = |step: &ReadyStep<C>| step.fitting(position, tokens.len(), context);
        let widest = steps.iter().rev().find_map(|step| Some((step, fits(step)?)));
        let (step, count) = widest.unwrap_or((&steps[0], 1));
        let (now, later) = tokens.split_at(count);
        feed(step, position, now, later.is_empty())?;
        position += count;
        tokens = later;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy)]
    struct Fake {
        width: usize,
        fewest: Option<usize>,
        takes_fewer: bool,
    }

    impl ReadyCall for Fake {
        fn width(&self) -> usize {
            self.width
        }

        fn fewest(&self) -> Option<usize> {
            self.fewest
        }

        fn takes_fewer(&self) -> bool {
            self.takes_fewer
        }

        fn gives_logits_alone(&self) -> bool {
            self.width == 1
        }
    }

    /// The counts of tokens that are fed at a time.
    fn counts(wide: Fake, logits: bool, position: usize, tokens: usize) -> Vec<usize> {
        let one = Fake { width: 1, fewest: None, takes_fewer: true };
        let steps = [ReadyStep { calls: vec![one], logits: true }, ReadyStep { calls: vec![wide], logits }];
        let (mut all, mut ends) = (Vec::new(), Vec::new());
        in_steps(&steps, 100, position, &vec![7; tokens], |step, at, now, last| {
            assert_eq!(
                (at, step.calls_for(false).count()),
                (position + all.iter().sum::<usize>(), usize::from(step.width() > 1))
            );
            all.push(now.len());
            ends.push(last);
            Ok(())
        })
        .unwrap();
        assert_eq!(ends.iter().filter(|&&last| last).count(), 1);
        all
    }

    #[test]
    fn the_widest_step_that_is_worth_it_comes_next() {
        let wide = Fake { width: 32, fewest: None, takes_fewer: true };
        assert_eq!(counts(wide, true, 0, 70), [32, 32, 6]);
        assert_eq!(counts(wide, true, 0, 3), [1, 1, 1], "filled up for nothing");
        assert_eq!(counts(Fake { takes_fewer: false, ..wide }, true, 0, 34), [32, 1, 1]);
        assert_eq!(counts(wide, false, 0, 33), [32, 1], "the last token is for a step with logits");
        assert_eq!(counts(wide, true, 95, 5), [1; 5], "all columns must fit");
        assert_eq!(counts(Fake { fewest: Some(2), ..wide }, true, 95, 5), [5], "no more columns than tokens");
    }
}
