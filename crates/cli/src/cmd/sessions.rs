//! `anemone sessions`: conversations that are kept.

mod export;

use std::fs;
use std::io::{ErrorKind, Write, stdout};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anemone::{SavedSession, SessionStore};
use anemone_cli::home::Home;
use anemone_cli::units;
use anyhow::{Context, Result};
use clap::{Args, Subcommand, ValueEnum};
use serde_json::json;

use crate::terminal;

/// List the conversations that are kept, show, export or delete one
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  anemone chat --session travel                   have a conversation that is kept
  anemone sessions                                what is kept, with sizes
  anemone sessions --json                         the same for programs
  anemone sessions show travel                    read it
  anemone sessions export travel -o travel.md     as Markdown
  anemone sessions export travel --to json        as JSON, the messages as chat APIs have them
  anemone sessions delete travel                  remove it for good

The folder is sessions in ANEMONE_HOME, or anemone/sessions in the user's data folder. docs/sessions.md describes it.")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Option<Action>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List what is kept, as `anemone sessions` does
    #[command(after_help = "Example:\n  anemone sessions list --json")]
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print a conversation
    #[command(after_help = "Example:\n  anemone sessions show travel")]
    Show {
        /// Its name
        name: String,
    },
    /// Write a conversation as Markdown or JSON
    #[command(after_help = "Example:\n  anemone sessions export travel --to json -o travel.json")]
    Export {
        /// Its name
        name: String,
        /// The form; --format is the same
        #[arg(long = "to", alias = "format", value_enum, default_value_t = Form::Markdown)]
        form: Form,
        /// The file to write, which must not exist yet [default: standard output]
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Remove a conversation for good
    #[command(alias = "remove", after_help = "Example:\n  anemone sessions delete travel")]
    Delete {
        /// Its name
        name: String,
    },
}

/// What a conversation is written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    Markdown,
    Json,
}

/// The conversations of this user.
pub(crate) fn store() -> Result<SessionStore> {
    Ok(SessionStore::new(Home::locate()?.sessions(), anemone::KeepLimits::default()))
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let store = store()?;
    match &arguments.action {
        None => list(&store, arguments.json),
        Some(Action::List { json }) => list(&store, *json || arguments.json),
        Some(Action::Show { name }) => {
            let saved = readable(&store, name)?;
            let text = if terminal::colours_on_stdout() {
                terminal::printable(&export::markdown(&saved))
            } else {
                export::markdown(&saved)
            };
            stdout().write_all(text.as_bytes())?;
            Ok(())
        }
        Some(Action::Export { name, form, output }) => {
            let saved = readable(&store, name)?;
            let text = match form {
                Form::Markdown => export::markdown(&saved),
                Form::Json => export::json(&saved)?,
            };
            match output {
                None => stdout().write_all(text.as_bytes())?,
                Some(path) => write_new(path, &text)?,
            }
            Ok(())
        }
        Some(Action::Delete { name }) => {
            store.delete(name)?;
            terminal::note(&format!("Deleted {name}."));
            Ok(())
        }
    }
}

/// Writes a file that must not exist yet.
fn write_new(path: &Path, text: &str) -> Result<()> {
    let place = || format!("cannot write {}", path.display());
    let mut file = match fs::File::create_new(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            anyhow::bail!(
                "{}: it is there already, and is not replaced; give -o another name, or remove it first",
                place()
            )
        }
        file => file.with_context(place)?,
    };
    let written = file.write_all(text.as_bytes()).with_context(place);
    if written.is_err() {
        // What is left would only be half of it.
        let _gone = fs::remove_file(path);
    }
    written
}

/// A session that can be read, at least in part.
fn readable(store: &SessionStore, name: &str) -> Result<SavedSession> {
    let saved = store.look(name)?;
    match &saved.problem {
        Some(problem) if saved.messages.is_empty() => anyhow::bail!("{problem}"),
        Some(problem) => terminal::note(problem),
        None if saved.unfinished > 0 => terminal::note(&match saved.unfinished_is_read {
            true => format!("The last answer was interrupted after {} tokens.", saved.unfinished),
            false => format!(
                "An answer was interrupted after {} tokens. Its text is not shown, since the model's tokenizer is not where it \
                 was; `anemone chat MODEL --session {name}` makes a message of it.",
                saved.unfinished
            ),
        }),
        None => {}
    }
    Ok(saved)
}

fn list(store: &SessionStore, as_json: bool) -> Result<()> {
    let saved = store.list()?;
    let mut out = stdout().lock();
    if as_json {
        let seconds = |time: SystemTime| time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let all: Vec<_> = saved
            .iter()
            .map(|s| {
                json!({
                    "name": s.name,
                    "folder": s.folder,
                    "messages": s.messages.len(),
                    "tokens": s.tokens.len(),
                    "changed": s.changed.map(seconds),
                    "log_bytes": s.log_bytes,
                    "snapshots": s.snapshots,
                    "snapshot_bytes": s.snapshot_bytes,
                    "problem": s.problem,
                })
            })
            .collect();
        writeln!(out, "{}", serde_json::to_string_pretty(&all)?)?;
        return Ok(());
    }
    if saved.is_empty() {
        terminal::note("No conversation is kept yet: `anemone chat --session NAME` begins one.");
    }
    let width = saved.iter().map(|s| s.name.chars().count()).max().unwrap_or(0);
    for s in &saved {
        let (messages, tokens) = (units::count(s.messages.len() as u64), units::count(s.tokens.len() as u64));
        let of = |n: usize, noun| if n == 1 { format!("{noun} ") } else { format!("{noun}s") };
        let (messages, tokens) = (
            format!("{messages:>6} {}", of(s.messages.len(), "message")),
            format!("{tokens:>8} {}", of(s.tokens.len(), "token")),
        );
        let size = units::bytes(s.log_bytes + s.snapshot_bytes);
        writeln!(
            out,
            "{:<width$}  {messages}  {tokens}  {size:>10}  {}",
            s.name,
            s.changed.map(ago).unwrap_or_default()
        )?;
        if let Some(problem) = &s.problem {
            writeln!(out, "  {problem}")?;
        }
    }
    Ok(())
}

/// How long ago something was.
fn ago(time: SystemTime) -> String {
    let seconds = time.elapsed().map_or(0, |since| since.as_secs());
    match seconds {
        0..60 => "just now".to_owned(),
        60..3600 => format!("{} min ago", seconds / 60),
        3600..86_400 => format!("{} h ago", seconds / 3600),
        _ => format!("{} days ago", seconds / 86_400),
    }
}
