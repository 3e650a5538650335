//! The steps themselves, taken in the process under examination.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anemone::{Runner, RunnerError};

use super::compare::top;
use super::event::{Event, Finding, Grade, Step};
use super::oracle::{compared, plainly};
use crate::memory;
use crate::units::bytes;

/// How much is done.
#[derive(Clone, Copy, Debug)]
pub struct Probe {
    /// Tokens of the prompt.
    pub prompt: usize,
    /// Tokens generated after it.
    pub decode: usize,
    /// Predictions of the soak.
    pub soak: usize,
}

impl Default for Probe {
    /// A short prompt, and as many predictions as some packages needed to crash.
    fn default() -> Self {
        Self { prompt: 19, decode: 4, soak: 256 }
    }
}

/// Memory that a soak may add without a word, in bytes.
const GROWTH: u64 = 64 << 20;

pub(super) type Problem = RunnerError;

/// Opens a runner and takes every step, telling of each. `trusted` opens the runner to compare with; `plain`, if given, one
/// that computes operation by operation, which a few tokens are compared with as well.
///
/// A step that fails is told of, and ends it: nothing after it would be worth anything.
pub fn probe<R: Runner, T: Runner, P: Runner>(
    open: impl FnOnce() -> Result<R, Problem>,
    trusted: impl FnOnce() -> Result<T, Problem>,
    plain: Option<impl FnOnce() -> Result<P, Problem>>,
    options: Probe,
    tell: &mut dyn FnMut(Event),
) -> Grade {
    let mut course = Course { tell, worst: Grade::Ok };
    // The error was told when it came.
    drop(course.run(open, trusted, plain, options));
    if course.worst != Grade::Fail {
        (course.tell)(Event::Done);
    }
    course.worst
}

struct Course<'t> {
    tell: &'t mut dyn FnMut(Event),
    worst: Grade,
}

/// What a step says of itself.
pub(super) struct Said {
    pub(super) grade: Grade,
    text: String,
    numbers: BTreeMap<String, f64>,
}

impl Said {
    pub(super) fn new(grade: Grade, text: String, numbers: &[(&str, f64)]) -> Self {
        Self { grade, text, numbers: numbers.iter().map(|&(name, value)| (name.to_owned(), value)).collect() }
    }
}

/// That a step failed, and that was told.
struct Stop;

impl Course<'_> {
    fn step<T>(&mut self, step: Step, take: impl FnOnce() -> Result<(T, Said), Problem>) -> Result<T, Stop> {
        (self.tell)(Event::Begin { step });
        let begin = Instant::now();
        let taken = take();
        let seconds = begin.elapsed().as_secs_f64();
        let (value, said) = match taken {
            Ok((value, said)) => (Some(value), said),
            Err(problem) => (None, Said::new(Grade::Fail, problem.to_string(), &[])),
        };
        self.worst = self.worst.max(said.grade);
        (self.tell)(Event::Found(Finding { step, grade: said.grade, text: said.text, seconds, numbers: said.numbers }));
        value.ok_or(Stop)
    }

    fn run<R: Runner, T: Runner, P: Runner>(
        &mut self,
        open: impl FnOnce() -> Result<R, Problem>,
        trusted: impl FnOnce() -> Result<T, Problem>,
        plain: Option<impl FnOnce() -> Result<P, Problem>>,
        options: Probe,
    ) -> Result<(), Stop> {
        let runner = self.step(Step::Load, || {
            let runner = open()?;
            let held = memory::resident(std::process::id()).unwrap_or(0);
            let text = format!("context {}, {} logits, {} held", runner.context(), runner.vocabulary(), bytes(held));
            Ok((runner, Said::new(Grade::Ok, text, &[("resident_bytes", held as f64)])))
        })?;
        let mut state = self.step(Step::State, || fresh(&runner))?;
        // At least one token is decoded, and the soak needs a column of its own.
        let prompt = options.prompt.min(runner.context() / 2).max(1);
        let decode = options.decode.min(runner.context().saturating_sub(prompt + 1)).max(1);
        let tokens = tokens(prompt, runner.vocabulary());
        let first = self.step(Step::Prefill, || {
            let (logits, took) = feed(&runner, &mut state, 0, &tokens)?;
            let text = format!("{prompt} tokens in {}", millis(took));
            Ok((logits, Said::new(Grade::Ok, text, &[("tokens", prompt as f64), ("seconds", took.as_secs_f64())])))
        })?;
        let (generated, rows) = self.step(Step::Decode, || decoded(&runner, &mut state, prompt, decode, first))?;
        self.step(Step::Compare, || compared(&trusted()?, &tokens, &generated, &rows))?;
        if let Some(plain) = plain {
            self.step(Step::Plain, || plainly(&runner, &plain()?, &tokens))?;
        }
        self.step(Step::Again, || again(&runner, &tokens, &generated, &rows))?;
        self.step(Step::End, || end(&runner))?;
        self.step(Step::Soak, || soak(&runner, &mut state, prompt, options.soak))
    }
}

/// Tokens that look like nothing in particular, the same every time.
fn tokens(count: usize, vocabulary: usize) -> Vec<u32> {
    let mut seed = 0x2545_f491u32;
    let mut next = || {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (seed >> 8) as usize % vocabulary
    };
    (0..count).map(|_| next() as u32).collect()
}

pub(super) fn feed<R: Runner>(
    runner: &R,
    state: &mut R::State,
    position: usize,
    tokens: &[u32],
) -> Result<(Vec<f32>, Duration), Problem> {
    let mut logits = vec![0.0; runner.vocabulary()];
    let begin = Instant::now();
    runner.feed(state, position, tokens, &mut logits)?;
    let took = begin.elapsed();
    match logits.iter().position(|v| !v.is_finite()) {
        None => Ok((logits, took)),
        Some(token) => Err(format!("the logit of token {token} is {} at position {position}", logits[token]).into()),
    }
}

fn fresh<R: Runner>(runner: &R) -> Result<(R::State, Said), Problem> {
    let state = runner.new_state()?;
    let Some(layout) = runner.cache_layout() else {
        return Ok((state, Said::new(Grade::Ok, "made; it cannot be looked into".to_owned(), &[])));
    };
    let mut held = 0;
    for (index, tensor) in layout.tensors.iter().enumerate() {
        let columns = tensor.shape[tensor.axis];
        let mut row = vec![1; columns * tensor.column_bytes()];
        for i in 0..tensor.rows() {
            runner.read_columns(&state, index, i..i + 1, columns, &mut row)?;
            if row.iter().any(|&byte| byte != 0) {
                return Err(format!("a fresh state is not zero: `{}`, row {i}", tensor.name).into());
            }
            held += row.len();
        }
    }
    let text = format!("{}, all zero", bytes(held as u64));
    Ok((state, Said::new(Grade::Ok, text, &[("bytes", held as f64)])))
}

/// Generated tokens, and the logits that they were taken from and lead to.
type Generated = (Vec<u32>, Vec<Vec<f32>>);

fn decoded<R: Runner>(
    runner: &R,
    state: &mut R::State,
    prompt: usize,
    count: usize,
    first: Vec<f32>,
) -> Result<(Generated, Said), Problem> {
    let (mut generated, mut rows, mut times) = (Vec::new(), vec![first], Vec::new());
    for i in 0..count {
        let token = top(&rows[i]) as u32;
        let (logits, took) = feed(runner, state, prompt + i, &[token])?;
        generated.push(token);
        rows.push(logits);
        times.push(took);
    }
    let median = median(&mut times);
    let text = format!("{count} tokens, {} each (median)", millis(median));
    Ok(((generated, rows), Said::new(Grade::Ok, text, &[("tokens", count as f64), ("seconds", median.as_secs_f64())])))
}

fn again<R: Runner>(runner: &R, tokens: &[u32], generated: &[u32], rows: &[Vec<f32>]) -> Result<((), Said), Problem> {
    let mut state = runner.new_state()?;
    let (mut position, mut differ) = (0, 0);
    for (step, row) in std::iter::once(tokens).chain(generated.chunks(1)).zip(rows) {
        let (logits, _) = feed(runner, &mut state, position, step)?;
        position += step.len();
        differ += logits.iter().zip(row).filter(|(a, b)| a.to_bits() != b.to_bits()).count();
    }
    let (grade, text) = match differ {
        0 => (Grade::Ok, "the same bits a second time".to_owned()),
        n => (Grade::Warning, format!("{n} logits have other bits a second time: it is not deterministic")),
    };
    Ok(((), Said::new(grade, text, &[("differ", differ as f64)])))
}

fn end<R: Runner>(runner: &R) -> Result<((), Said), Problem> {
    let (mut state, context) = (runner.new_state()?, runner.context());
    let (before, _) = feed(runner, &mut state, context - 1, &[0])?;
    let mut logits = vec![0.0; runner.vocabulary()];
    if runner.feed(&mut state, context, &[0], &mut logits).is_ok() {
        return Err(format!("position {context} was taken, and the context holds {context} tokens").into());
    }
    // What was refused must have left everything as it was.
    let (after, _) = feed(runner, &mut state, context - 1, &[0])?;
    let same = before.iter().zip(&after).all(|(a, b)| a.to_bits() == b.to_bits());
    let grade = if same { Grade::Ok } else { Grade::Warning };
    let text = format!("position {} is taken, {context} is refused", context - 1);
    Ok(((), Said::new(grade, text, &[("context", context as f64)])))
}

fn soak<R: Runner>(runner: &R, state: &mut R::State, prompt: usize, count: usize) -> Result<((), Said), Problem> {
    let room = runner.context() - prompt;
    let mut logits = vec![0.0; runner.vocabulary()];
    let (mut times, mut held) = (Vec::with_capacity(count), (0, 0));
    for i in 0..count {
        let begin = Instant::now();
        runner.feed(state, prompt + i % room, &[(i % runner.vocabulary()) as u32], &mut logits)?;
        times.push(begin.elapsed());
        if let Some(bad) = logits.iter().find(|v| !v.is_finite()) {
            return Err(format!("prediction {i} gives the logit {bad}").into());
        }
        // The first few fill caches.
        if i == count / 8 || i + 1 == count {
            let now = memory::resident(std::process::id()).unwrap_or(0);
            held = if i == count / 8 { (now, now) } else { (held.0, now) };
        }
    }
    let growth = held.1.saturating_sub(held.0);
    let quarter = (count / 4).max(1).min(times.len().max(1));
    let rest = times.len().saturating_sub(quarter);
    let (early, late) = (median(&mut times[..quarter.min(count)].to_vec()), median(&mut times[rest..].to_vec()));
    let grade = if growth > GROWTH { Grade::Warning } else { Grade::Ok };
    let text = format!(
        "{count} predictions, {} each at first and {} at the end, memory grew by {}",
        millis(early),
        millis(late),
        bytes(growth)
    );
    let numbers = [
        ("predictions", count as f64),
        ("early_seconds", early.as_secs_f64()),
        ("late_seconds", late.as_secs_f64()),
        ("growth_bytes", growth as f64),
    ];
    Ok(((), Said::new(grade, text, &numbers)))
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn millis(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1000.0)
}
