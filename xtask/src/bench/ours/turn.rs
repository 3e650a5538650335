//! Turns after a history, in a session that keeps its state.

use std::path::Path;
use std::sync::Arc;

use anemone::{Generation, Model, ModelOptions, Request, Session};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::{start, tokens};
use crate::bench::process::memory;

#[derive(Debug, Clone, clap::Args)]
pub(super) struct Turns {
    /// Tokens that were read before.
    history: usize,
    /// Tokens of a turn.
    new: usize,
    #[arg(long)]
    repeats: usize,
}

/// The turns: all begin with the same history, and then differ.
pub(in crate::bench) fn prompts(history: usize, new: usize, repeats: usize) -> Vec<Vec<u32>> {
    let all = tokens(history + new * (repeats + 1));
    // The first warms up.
    all[history..].chunks_exact(new).map(|turn| [&all[..history], turn].concat()).collect()
}

/// What a process of its own measured.
pub(in crate::bench) struct Measured {
    /// Milliseconds to the first token of each turn.
    pub(in crate::bench) first_token: Vec<f64>,
    /// Bytes that were resident at the end, those of files that are mapped, and the most before.
    pub(in crate::bench) resident: [f64; 3],
}

/// Turns in a process of its own.
pub(in crate::bench) fn run(package: &Path, threads: usize, [history, new, repeats]: [usize; 3]) -> Result<Measured> {
    let mut work: Vec<String> = ["turn", "--repeats"].map(str::to_owned).into();
    work.extend([repeats, history, new].map(|n| n.to_string()));
    let (value, ran) = start(package, threads, &work)?;
    let samples = value["first_token_ms"].as_array().context("the timed process printed no times")?;
    let [now, files] = ["resident", "resident_files"].map(|key| value[key].as_f64().unwrap_or(0.0));
    let first_token = samples.iter().filter_map(Value::as_f64).collect();
    Ok(Measured { first_token, resident: [now, files, ran.resident as f64] })
}

pub(super) fn time(package: &Path, model: &ModelOptions, options: &Turns) -> Result<Value> {
    let model = Arc::new(Model::open(package, model)?);
    let mut session = Session::new(model)?;
    let one = Request::new(Generation { max_tokens: Some(1), ..Generation::default() });
    session.complete(&tokens(options.history), &one, &mut |_| {})?;
    let mut samples = Vec::new();
    for prompt in prompts(options.history, options.new, options.repeats) {
        let turn = session.complete(&prompt, &one, &mut |_| {})?;
        ensure!(turn.tokens_reused == options.history, "{} tokens of the history were kept", turn.tokens_reused);
        samples.push(turn.first_token.as_secs_f64() * 1e3);
    }
    let [_, resident, files] = memory(std::process::id());
    Ok(json!({"first_token_ms": samples[1..], "resident": resident, "resident_files": files}))
}
