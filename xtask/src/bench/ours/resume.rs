//! A conversation that is kept in a file, and one that goes on from it in another process.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anemone::{Generation, Model, ModelOptions, Request, Session, SnapshotInfo};
use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::{start, tokens};
use crate::bench::process::Ran;

#[derive(Debug, Clone, clap::Args)]
pub(super) struct Kept {
    /// The snapshot.
    path: PathBuf,
    /// Tokens in it.
    tokens: usize,
}

/// Keeps so many tokens in a file, in a process of its own.
pub(in crate::bench) fn run_keep(package: &Path, threads: usize, path: &Path, tokens: usize) -> Result<(Value, Ran)> {
    start(package, threads, &["keep".into(), path.display().to_string(), tokens.to_string()])
}

/// Goes on from that file, in a process of its own.
pub(in crate::bench) fn run_resume(package: &Path, threads: usize, path: &Path, tokens: usize) -> Result<(Value, Ran)> {
    start(package, threads, &["resume".into(), path.display().to_string(), tokens.to_string()])
}

/// A prompt that was read and kept.
pub(in crate::bench) struct Written {
    /// From nothing to the first token.
    pub(in crate::bench) read: Duration,
    /// Until the file was complete on the disk.
    pub(in crate::bench) written: Duration,
    pub(in crate::bench) info: SnapshotInfo,
    /// The prompt and the token after it.
    pub(in crate::bench) transcript: Vec<u32>,
}

/// A prompt that was found in a file.
pub(in crate::bench) struct Restored {
    /// From an empty session to one that has read the prompt.
    pub(in crate::bench) restored: Duration,
    /// From there to the first token, for which one token is computed.
    pub(in crate::bench) first_token: Duration,
    pub(in crate::bench) transcript: Vec<u32>,
}

/// Reads a prompt and keeps it.
pub(in crate::bench) fn write(model: &Arc<Model>, prompt: &[u32], path: &Path) -> Result<Written> {
    let mut session = Session::new(Arc::clone(model))?;
    let read = session.complete(prompt, &one(), &mut |_| {})?.first_token;
    let begin = Instant::now();
    let info = session.snapshot(path)?;
    Ok(Written { read, written: begin.elapsed(), info, transcript: session.transcript().to_vec() })
}

/// Restores a prompt and goes on.
pub(in crate::bench) fn restore(model: &Arc<Model>, prompt: &[u32], path: &Path) -> Result<Restored> {
    let mut session = Session::new(Arc::clone(model))?;
    let begin = Instant::now();
    session.restore(path)?;
    let restored = begin.elapsed();
    let turn = session.complete(prompt, &one(), &mut |_| {})?;
    ensure!(turn.tokens_reused + 1 == prompt.len(), "the restore was of no use");
    Ok(Restored { restored, first_token: turn.first_token, transcript: session.transcript().to_vec() })
}

fn one() -> Request {
    Request::new(Generation { max_tokens: Some(1), ..Generation::default() })
}

pub(super) fn keep(package: &Path, model: &ModelOptions, kept: &Kept) -> Result<Value> {
    let model = Arc::new(Model::open(package, model)?);
    let prompt = tokens(kept.tokens);
    // The first call of a process finds nothing in the processor's caches.
    Session::new(Arc::clone(&model))?.complete(&prompt[..kept.tokens.min(64)], &one(), &mut |_| {})?;
    let Written { read, written, info, transcript } = write(&model, &prompt, &kept.path)?;
    let [read, written] = [read, written].map(|time| time.as_secs_f64() * 1e3);
    Ok(json!({"read_ms": read, "written_ms": written, "bytes": info.bytes, "last": transcript.last()}))
}

pub(super) fn resume(package: &Path, model: &ModelOptions, kept: &Kept) -> Result<Value> {
    let begin = Instant::now();
    let model = Arc::new(Model::open(package, model)?);
    let opened = begin.elapsed();
    let Restored { restored, first_token, transcript } = restore(&model, &tokens(kept.tokens), &kept.path)?;
    let [opened, restored, first_token] = [opened, restored, first_token].map(|time| time.as_secs_f64() * 1e3);
    Ok(json!({
        "opened_ms": opened, "restored_ms": restored, "first_token_ms": first_token, "last": transcript.last(),
    }))
}
