//! What a kept cache is worth: the time to the first token by turn, beside reading the whole conversation again; and a
//! restored snapshot beside reading its tokens.

use std::fmt::Write as _;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anemone::{Generation, Model, ModelOptions, Request, Session};
use anyhow::{Context, Result, ensure};
use plotters::style::RGBColor;
use serde_json::{Value, json};

use super::ours::resume::{self, Written};
use super::plot::{Line, draw};

/// What to measure.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The folder of a converted model.
    pub model: PathBuf,
    /// Where the drawings and figures go.
    pub output: PathBuf,
    /// Threads; all if none.
    pub threads: Option<usize>,
    /// Reading everything again is measured each so many turns.
    pub every: usize,
    /// Most turns of the long conversation.
    pub turns: usize,
}

/// How much faster a restore must be than reading.
pub const RESTORE_AT_LEAST: f64 = 20.0;
/// How many tokens are restored.
const RESTORED: usize = 1000;

/// A conversation to measure.
struct Script {
    turns: usize,
    /// Most tokens of an answer.
    answer: usize,
    /// How often a message repeats its sentence.
    length: usize,
}

/// A turn's account. Times are to the first token.
struct Measured {
    turn: usize,
    prompt: usize,
    reused: usize,
    computed: usize,
    warm: Duration,
    /// The same prompt, read from its beginning.
    cold: Option<Duration>,
}

const SENTENCES: [&str; 5] = [
    "Tell me about the sea.",
    "What lives in a tide pool?",
    "Why is the water salty?",
    "And how deep is it there?",
    "Say that in other words.",
];

/// Measures, prints a table, writes the drawings and `session.json`. Gives what is not as it must be.
pub fn run(settings: &Settings, out: &mut dyn Write) -> Result<Vec<String>> {
    let options = ModelOptions { threads: settings.threads, ..ModelOptions::default() };
    let model = Arc::new(Model::open(&settings.model, &options)?);
    std::fs::create_dir_all(&settings.output)?;
    let info = model.info();
    let machine = machine(info.threads);
    writeln!(out, "{}, context {}, {machine}", info.name, info.context)?;
    let (mut errors, mut figures) = (Vec::new(), Vec::new());
    let scripts = [
        Script { turns: 10.min(settings.turns), answer: 48, length: 4 },
        Script { turns: settings.turns, answer: 8, length: 1 },
    ];
    for script in scripts {
        let measured = converse(&model, &script, settings.every, out)?;
        let [first, last] = [0, measured.len() - 1].map(|index| &measured[index]);
        let growth = |of: &dyn Fn(&Measured) -> f64| of(last) / of(measured.get(1).unwrap_or(first));
        let flat = growth(&|m| m.warm.as_secs_f64());
        writeln!(out, "  last turn beside the second: {flat:.2} times with the cache")?;
        if let Some(cold) = last.cold {
            let gain = cold.as_secs_f64() / last.warm.as_secs_f64();
            writeln!(out, "  last turn: {gain:.1} times faster than reading everything again\n")?;
            if gain < 2.0 {
                errors.push(format!("{} turns: the cache gains no more than {gain:.1} times", script.turns));
            }
        }
        let path = settings.output.join(format!("session-{}.svg", script.turns));
        plot(&path, &info.name, &script, &measured)?;
        figures.push(json!({"answer_tokens": script.answer, "turns": measured.iter().map(row).collect::<Vec<_>>()}));
    }
    let (restored, figure) = restore(&model, out)?;
    errors.extend(restored);
    let all = json!({
        "model": info.name, "context": info.context, "machine": machine, "conversations": figures, "restore": figure,
    });
    let path = settings.output.join("session.json");
    std::fs::write(&path, serde_json::to_string_pretty(&all)? + "\n").with_context(|| path.display().to_string())?;
    Ok(errors)
}

fn converse(model: &Arc<Model>, script: &Script, every: usize, out: &mut dyn Write) -> Result<Vec<Measured>> {
    writeln!(out, "{} turns, answers of {} tokens", script.turns, script.answer)?;
    writeln!(out, "  turn  prompt  reused  computed  first token  reading it all")?;
    let request = Request::new(Generation { max_tokens: Some(script.answer), ..Generation::default() });
    let first = Request::new(Generation { max_tokens: Some(1), ..Generation::default() });
    let (mut warm, mut cold) = (Session::new(Arc::clone(model))?, Session::new(Arc::clone(model))?);
    let mut measured = Vec::new();
    for index in 0..script.turns {
        let text = [SENTENCES[index % SENTENCES.len()]].repeat(script.length).join(" ");
        let turn = warm.say(&text, &request, &mut |_| {})?;
        let prompt = turn.tokens_reused + turn.tokens_computed;
        let read = if index % every == 0 || index + 1 == script.turns {
            cold.reset()?;
            let all = cold.complete(&warm.transcript()[..prompt], &first, &mut |_| {})?;
            ensure!(all.tokens_reused == 0, "a new state had tokens");
            Some(all.first_token)
        } else {
            None
        };
        let (reused, computed) = (turn.tokens_reused, turn.tokens_computed);
        let now = Measured { turn: index + 1, prompt, reused, computed, warm: turn.first_token, cold: read };
        if index < 10 || (index + 1) % 10 == 0 {
            let read = read.map_or_else(String::new, |read| format!("{:.1} ms", ms(read)));
            let warm = format!("{:.1} ms", ms(now.warm));
            writeln!(out, "  {:>4}  {prompt:>6}  {reused:>6}  {computed:>8}  {warm:>11}  {read:>14}", now.turn)?;
        }
        measured.push(now);
    }
    Ok(measured)
}

fn restore(model: &Arc<Model>, out: &mut dyn Write) -> Result<(Option<String>, Value)> {
    let text = SENTENCES.join(" ").repeat(RESTORED / 20);
    let mut prompt = model.tokenizer.encode(&text, false)?;
    ensure!(prompt.len() >= RESTORED, "the text has {} tokens only", prompt.len());
    prompt.truncate(RESTORED);
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("bench.snapshot");
    let Written { read, written: write, info: written, transcript } = resume::write(model, &prompt, &path)?;
    let mut times = Vec::new();
    for _ in 0..5 {
        let again = resume::restore(model, &prompt, &path)?;
        ensure!(again.transcript == transcript, "the restored state went on in another way");
        times.push(again.restored);
    }
    times.sort();
    let restored = times[times.len() / 2];
    let gain = read.as_secs_f64() / restored.as_secs_f64();
    let mut line = format!("{RESTORED} tokens: read in {:.1} ms, ", ms(read));
    write!(line, "restored in {:.1} ms ({gain:.0} times faster), ", ms(restored))?;
    write!(line, "written in {:.1} ms with {:.1} MB, synced", ms(write), written.bytes as f64 / 1e6)?;
    writeln!(out, "{line}")?;
    let error = (gain < RESTORE_AT_LEAST)
        .then(|| format!("a restore is {gain:.1} times faster than reading; at least {RESTORE_AT_LEAST} are promised"));
    let figure = json!({
        "tokens": RESTORED, "bytes": written.bytes, "read_ms": ms(read), "restored_ms": ms(restored),
        "written_ms": ms(write), "times_faster": gain,
    });
    Ok((error, figure))
}

fn plot(path: &Path, model: &str, script: &Script, measured: &[Measured]) -> Result<()> {
    let warm: Vec<_> = measured.iter().map(|m| (m.turn as f64, ms(m.warm))).collect();
    let cold: Vec<_> = measured.iter().filter_map(|m| Some((m.turn as f64, ms(m.cold?)))).collect();
    let title = format!("Time to the first token by turn: {model}, {} turns", script.turns);
    let lines = [
        Line { name: "reading everything again", colour: RGBColor(200, 60, 40), points: &cold },
        Line { name: "with the kept cache", colour: RGBColor(30, 90, 180), points: &warm },
    ];
    draw(path, &title, ["turn", "ms"], &lines)
}

fn row(m: &Measured) -> Value {
    json!({
        "turn": m.turn, "prompt": m.prompt, "reused": m.reused, "computed": m.computed, "first_token_ms": ms(m.warm),
        "reading_all_ms": m.cold.map(ms),
    })
}

/// Milliseconds to the microsecond.
fn ms(duration: Duration) -> f64 {
    duration.as_micros() as f64 / 1000.0
}

/// The processor's name, as far as the system tells.
fn machine(threads: usize) -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": ").map(|(_, name)| name));
    format!("{}, {threads} threads", name.unwrap_or(std::env::consts::ARCH))
}
