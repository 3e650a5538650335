//! The runtimes that logits are compared with.

use std::time::{Duration, Instant};

use anemone::Runner;

use super::compare::{Likeness, likeness};
use super::event::Grade;
use super::probe::{Problem, Said, feed};

/// Below this cosine something computes another function.
const DIFFERENT: f64 = 0.98;
/// Below this one it is worth a look: products of integers stay above it (docs/numerics.md), half floats too.
const ODD: f64 = 0.999;
/// A likeliest token that the trusted runtime prefers by less than this is a tie.
const TIE: f64 = 0.05;
/// So is one that it prefers by less than three deviations of what the difference of two logits is off by, which is √2 of one's.
const NOISE: f64 = 3.0 * std::f64::consts::SQRT_2;
/// Tokens that are compared with the interpreter at most.
const PLAIN_TOKENS: usize = 4;
/// No further token is begun after so long.
const PLAIN_TIME: Duration = Duration::from_secs(10);

/// Feeds a trusted runtime what another was fed, and compares the rows of logits.
pub(super) fn compared<T: Runner>(
    trusted: &T,
    tokens: &[u32],
    generated: &[u32],
    rows: &[Vec<f32>],
) -> Result<((), Said), Problem> {
    if trusted.vocabulary() != rows[0].len() {
        return Err("the runtime to compare with gives another number of logits".into());
    }
    let mut state = trusted.new_state()?;
    let mut all = Vec::new();
    let mut position = 0;
    let steps = std::iter::once(tokens).chain(generated.chunks(1));
    for (step, row) in steps.zip(rows) {
        let (logits, _) = feed(trusted, &mut state, position, step)?;
        position += step.len();
        all.push(likeness(row, &logits));
    }
    Ok(((), judged("exact arithmetic", &all)))
}

/// Feeds the first tokens one by one to both runtimes, as many as time allows, and compares each.
pub(super) fn plainly<R: Runner, P: Runner>(runner: &R, plain: &P, tokens: &[u32]) -> Result<((), Said), Problem> {
    let (mut state, mut plain_state) = (runner.new_state()?, plain.new_state()?);
    let begin = Instant::now();
    let mut all = Vec::new();
    for (position, token) in tokens.iter().take(PLAIN_TOKENS).enumerate() {
        if position > 0 && begin.elapsed() > PLAIN_TIME {
            break;
        }
        let (row, _) = feed(runner, &mut state, position, &[*token])?;
        let (trusted, _) = feed(plain, &mut plain_state, position, &[*token])?;
        if trusted.len() != row.len() {
            return Err("the interpreter gives another number of logits".into());
        }
        all.push(likeness(&row, &trusted));
    }
    Ok(((), judged("the interpreter", &all)))
}

fn judged(with: &str, all: &[Likeness]) -> Said {
    // What is not a number counts as the worst.
    let cosine = all.iter().map(|l| if l.cosine.is_nan() { -1.0 } else { l.cosine }).fold(1.0, f64::min);
    let max_error = all.iter().map(|l| l.max_error).fold(0.0, f64::max);
    let agreed = all.iter().filter(|l| l.same_top).count();
    let only_ties = all.iter().all(|l| l.same_top || l.top_margin < TIE.max(NOISE * l.rms_error));
    let grade = match () {
        () if cosine < DIFFERENT => Grade::Fail,
        () if cosine < ODD || !only_ties => Grade::Warning,
        () => Grade::Ok,
    };
    let text = format!(
        "{agreed} of {} likeliest tokens agree with {with}, cosine at least {cosine:.6}, largest difference {max_error:.4}",
        all.len()
    );
    let numbers =
        [("cosine", cosine), ("max_error", max_error), ("agreed", agreed as f64), ("compared", all.len() as f64)];
    Said::new(grade, text, &numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grades_are_by_angle_and_by_tokens_that_are_no_ties() {
        let like = |cosine, same_top, top_margin| Likeness {
            cosine,
            max_error: 0.1,
            rms_error: 0.02,
            same_top,
            top_margin,
            finite: true,
        };
        let grade = |l| judged("it", &[like(1.0, true, 0.0), l]).grade;
        assert_eq!(grade(like(0.9995, true, 0.0)), Grade::Ok);
        assert_eq!(grade(like(0.9995, false, 0.01)), Grade::Ok, "a tie");
        assert_eq!(grade(like(0.9995, false, 0.08)), Grade::Ok, "less than the noise");
        assert_eq!(grade(like(0.9995, false, 0.5)), Grade::Warning);
        assert_eq!(grade(like(0.99, true, 0.0)), Grade::Warning);
        assert_eq!(grade(like(0.9, true, 0.0)), Grade::Fail);
        assert_eq!(grade(like(f64::NAN, true, 0.0)), Grade::Fail);
    }
}
