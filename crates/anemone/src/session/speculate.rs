//! Prompt look-up: what the transcript said after the same tokens before is read along with the next token, and need not be
//! read again if the answer goes on like that.
//!
//! Every token is drawn from the logits that follow the ones before it, just as without: a guess only decides whether these
//! logits are there already. For a guess that is certain of one token, drawing from the model's distribution and comparing *is*
//! the acceptance rule of speculative sampling (Leviathan and others, 2023): the guess is taken with the probability that the
//! model gives it, and another token in its place has the distribution of the rest. So answers are those of plain decoding,
//! greedy or drawn, seed by seed.
//!
//! A call that checks guesses costs more than one of a single token. Both are timed, and guesses are made only while they
//! pay.

use std::time::Duration;

/// Lengths of endings that are looked for, the longest first.
const ENDINGS: [usize; 2] = [4, 2];
/// How far back is looked.
const REACH: usize = 4096;
/// Weight of the newest sample in averages.
const NEWEST: f32 = 0.15;
/// After so many tokens without a guess one is made, to see whether it pays by now.
const PATIENCE: u32 = 64;

/// What `tokens` went on with, at most `most` tokens, the last time that they ended as they end now.
pub(super) fn guess(tokens: &[u32], most: usize) -> &[u32] {
    let past = &tokens[tokens.len().saturating_sub(REACH)..];
    for length in ENDINGS {
        let Some(before) = past.len().checked_sub(length) else { continue };
        let (head, ending) = past.split_at(before);
        // The ending itself does not count, but what precedes it may overlap it.
        let found = (0..head.len()).rev().find(|&at| past[at..at + length] == *ending);
        if let Some(at) = found {
            let from = at + length;
            return &past[from..past.len().min(from + most)];
        }
    }
    &[]
}

/// Tokens that were read beyond the transcript's end, with the logits that follow each.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    /// The token that was accepted when the guesses were made, then those.
    tokens: Vec<u32>,
    logits: Vec<f32>,
    /// How many guesses came true.
    taken: usize,
    pace: Pace,
    counts: Guessed,
}

/// How many tokens were guessed and read, and how many of those came true.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Guessed {
    pub(super) drafted: usize,
    pub(super) accepted: usize,
}

/// What calls cost and what guesses gave.
#[derive(Debug, Default)]
struct Pace {
    /// Seconds of a call of one token, and of one with guesses.
    one: Option<f32>,
    many: Option<f32>,
    /// Guesses that came true, of a call.
    gained: Option<f32>,
    waited: u32,
}

fn mix(average: &mut Option<f32>, sample: f32) {
    *average = Some(average.map_or(sample, |a| a + NEWEST * (sample - a)));
}

impl Ahead {
    /// Whether a guess would pay.
    pub(super) fn pays(&mut self) -> bool {
        let p = &mut self.pace;
        let pays = match (p.one, p.many, p.gained) {
            // The cost of single tokens comes first.
            (None, ..) => false,
            (Some(one), Some(many), Some(gained)) => (1.0 + gained) * one > many,
            _ => true,
        };
        p.waited = if pays { 0 } else { p.waited + 1 };
        pays || (p.one.is_some() && p.waited.is_multiple_of(PATIENCE))
    }

    /// What was guessed so far.
    pub(super) fn counts(&self) -> Guessed {
        self.counts
    }

    /// A call of one token took so long.
    pub(super) fn read_one(&mut self, time: Duration) {
        mix(&mut self.pace.one, time.as_secs_f32());
    }

    /// The tokens of a call that reads `token` and `guesses`, and room for its logits, `vocabulary` for each.
    pub(super) fn begin(&mut self, token: u32, guesses: &[u32], vocabulary: usize) -> (&[u32], &mut [f32]) {
        self.settle();
        self.tokens.push(token);
        self.tokens.extend_from_slice(guesses);
        self.taken = 0;
        self.counts.drafted += guesses.len();
        self.logits.resize(self.tokens.len() * vocabulary, 0.0);
        (&self.tokens, &mut self.logits)
    }

    /// That call took so long; gives the logits that follow its first token.
    pub(super) fn began(&mut self, time: Duration) -> &[f32] {
        mix(&mut self.pace.many, time.as_secs_f32());
        &self.logits[..self.logits.len() / self.tokens.len()]
    }

    /// The logits that follow `token`, if it is the next of those that were read ahead.
    pub(super) fn take(&mut self, token: u32) -> Option<&[f32]> {
        if self.tokens.get(self.taken + 1) != Some(&token) {
            self.settle();
            return None;
        }
        self.taken += 1;
        self.counts.accepted += 1;
        let vocabulary = self.logits.len() / self.tokens.len();
        Some(&self.logits[self.taken * vocabulary..][..vocabulary])
    }

    /// Forgets what was read ahead: the transcript has become another one.
    pub(super) fn settle(&mut self) {
        if !self.tokens.is_empty() {
            mix(&mut self.pace.gained, self.taken as f32);
            self.tokens.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_of_the_longest_endings_is_followed() {
        assert_eq!(guess(&[1, 2, 3, 4, 5, 9, 1, 2, 3, 4], 8), [5, 9, 1, 2, 3, 4]);
        assert_eq!(guess(&[1, 2, 7, 1, 2, 8, 1, 2], 2), [8, 1]);
        assert_eq!(guess(&[5, 5, 5], 4), [5]);
        for none in [&[][..], &[1], &[1, 2], &[1, 2, 3, 2]] {
            assert!(guess(none, 8).is_empty(), "{none:?}");
        }
    }

    #[test]
    fn logits_are_given_as_long_as_guesses_come_true() {
        let mut ahead = Ahead::default();
        let (call, rows) = ahead.begin(5, &[7, 8], 2);
        assert_eq!(call, [5, 7, 8]);
        rows.copy_from_slice(&[0.0, 0.5, 1.0, 1.5, 2.0, 2.5]);
        assert_eq!(ahead.began(Duration::from_millis(3)), [0.0, 0.5]);
        assert_eq!(ahead.take(7), Some(&[1.0, 1.5][..]));
        assert_eq!(ahead.take(9), None);
        assert_eq!(ahead.take(8), None, "the guess was wrong, so what follows it is");
        assert_eq!(ahead.counts(), Guessed { drafted: 2, accepted: 1 });
    }

    #[test]
    fn guesses_are_made_only_while_they_pay() {
        let mut ahead = Ahead::default();
        assert!(!ahead.pays(), "nothing is known of single tokens");
        ahead.read_one(Duration::from_millis(10));
        assert!(ahead.pays(), "one is tried");
        let mut call = |right: bool| {
            ahead.begin(9, &[1], 1);
            ahead.began(Duration::from_millis(15));
            assert_eq!(ahead.take(if right { 1 } else { 2 }).is_some(), right);
            ahead.settle();
            ahead.pays()
        };
        assert!(call(true));
        let wrong = (0..100).filter(|_| call(false)).count();
        assert!(wrong < 10, "{wrong}");
        assert!((0..100).any(|_| call(true)));
    }
}
