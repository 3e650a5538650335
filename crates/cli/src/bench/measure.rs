//! The measuring.

use std::time::Instant;

use anemone::{Runner, RunnerError};
use serde::Serialize;

use super::{Measured, Point, TurnTimes};
use crate::energy::Meter;
use crate::host::Heat;
use crate::memory;

/// How much is done.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Plan {
    /// Tokens of the prompt before the first token.
    pub prompt: usize,
    /// Tokens generated under load.
    pub tokens: usize,
    /// Turns of the conversation.
    pub turns: usize,
    /// Tokens that a turn adds: question and answer.
    pub turn: usize,
}

impl Default for Plan {
    fn default() -> Self {
        Self { prompt: 128, tokens: 512, turns: 8, turn: 64 }
    }
}

/// Pieces of the curve.
const PIECES: usize = 16;

/// Opens a runner and measures it. `progress` is told what is under way.
///
/// # Errors
/// The runner's own, and a context that is too short for anything.
pub fn measure<R: Runner>(
    open: impl FnOnce() -> Result<R, RunnerError>,
    plan: &Plan,
    progress: &mut dyn FnMut(&str),
) -> Result<Measured, RunnerError> {
    progress("opening");
    let begin = Instant::now();
    let runner = open()?;
    let load = begin.elapsed().as_secs_f64();
    if runner.context() < 4 {
        return Err(format!("the context of {} tokens is too short to measure anything", runner.context()).into());
    }
    let plan = fitted(plan, runner.context());
    let mut clock = Clock { logits: vec![0.0; runner.vocabulary()], runner: &runner };
    progress("the first token");
    // Once before it counts: pages are touched, and clocks rise.
    clock.feed(&mut clock.runner.new_state()?, 0, &tokens(plan.prompt.min(8), &runner))?;
    let mut state = runner.new_state()?;
    let first_token = clock.feed(&mut state, 0, &tokens(plan.prompt, &runner))?;
    progress("under load");
    let meter = Meter::find();
    let before = meter.as_ref().ok().and_then(Meter::read);
    let (mut times, curve) = under_load(&mut clock, &mut state, &plan)?;
    let energy = meter.as_ref().ok().and_then(|meter| Some(meter.joules(&before?, &meter.read()?)));
    progress("a conversation, with the cache kept and without");
    let turns = conversation(&mut clock, &plan)?;
    let total: f64 = times.iter().sum();
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times[((times.len() - 1) as f64 * share).round() as usize];
    Ok(Measured {
        load,
        first_token,
        per_token_median: at(0.5),
        per_token_p95: at(0.95),
        tokens_per_second: times.len() as f64 / total,
        curve,
        memory: memory::peak(),
        energy,
        energy_missing: match (energy, meter) {
            (Some(_), _) => None,
            (None, Err(why)) => Some(why),
            (None, Ok(_)) => Some("no longer told by this system"),
        },
        turns,
    })
}

/// What of a plan a context has room for.
fn fitted(plan: &Plan, context: usize) -> Plan {
    let turn = plan.turn.clamp(1, context);
    Plan {
        prompt: plan.prompt.clamp(1, context - 2),
        tokens: plan.tokens.max(1),
        turns: plan.turns.min(context / turn).max(1),
        turn,
    }
}

struct Clock<'r, R: Runner> {
    runner: &'r R,
    logits: Vec<f32>,
}

impl<R: Runner> Clock<'_, R> {
    /// Seconds that a call takes.
    fn feed(&mut self, state: &mut R::State, position: usize, tokens: &[u32]) -> Result<f64, RunnerError> {
        let begin = Instant::now();
        self.runner.feed(state, position, tokens, &mut self.logits)?;
        Ok(begin.elapsed().as_secs_f64())
    }
}

fn tokens<R: Runner>(count: usize, runner: &R) -> Vec<u32> {
    (0..count).map(|i| (i * 7919 % runner.vocabulary()) as u32).collect()
}

/// Seconds of each token, and the curve. Where the context ends, it goes on from the prompt.
fn under_load<R: Runner>(
    clock: &mut Clock<'_, R>,
    state: &mut R::State,
    plan: &Plan,
) -> Result<(Vec<f64>, Vec<Point>), RunnerError> {
    let room = clock.runner.context() - plan.prompt;
    let piece = plan.tokens.div_ceil(PIECES);
    let (mut times, mut curve) = (Vec::with_capacity(plan.tokens), Vec::new());
    let (mut seconds, mut before) = (0.0, 0.0);
    for i in 0..plan.tokens {
        let token = (i * 31 % clock.runner.vocabulary()) as u32;
        let took = clock.feed(state, plan.prompt + i % room, &[token])?;
        times.push(took);
        seconds += took;
        if (i + 1) % piece == 0 || i + 1 == plan.tokens {
            let count = if (i + 1) % piece == 0 { piece } else { (i + 1) % piece };
            let tokens_per_second = count as f64 / (seconds - before);
            curve.push(Point { tokens: i + 1, seconds, tokens_per_second, heat: Heat::now() });
            before = seconds;
        }
    }
    Ok((times, curve))
}

fn conversation<R: Runner>(clock: &mut Clock<'_, R>, plan: &Plan) -> Result<Vec<TurnTimes>, RunnerError> {
    let all = tokens(plan.turns * plan.turn, clock.runner);
    let mut kept_state = clock.runner.new_state()?;
    let mut turns = Vec::new();
    for turn in 0..plan.turns {
        let (before, end) = (turn * plan.turn, (turn + 1) * plan.turn);
        let kept = clock.feed(&mut kept_state, before, &all[before..end])?;
        let again = clock.feed(&mut clock.runner.new_state()?, 0, &all[..end])?;
        turns.push(TurnTimes { before, new: plan.turn, kept, again });
    }
    Ok(turns)
}
