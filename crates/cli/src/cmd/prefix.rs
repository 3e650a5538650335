//! `anemone prefix`: beginnings that many conversations share, computed once.

use std::io::{Write, stdout};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use anemone::{PrefixStore, SnapshotLimits};
use anemone_cli::home::Home;
use anemone_cli::units;
use anyhow::{Result, bail};
use clap::Args;
use indicatif::ProgressBar;

use crate::answer::Conversation;
use crate::exit::Usage;
use crate::models::{Choice, Opened};
use crate::terminal;

/// Most prefixes that are kept, and most bytes of them.
const LIMITS: SnapshotLimits = SnapshotLimits { count: 16, bytes: 2 << 30 };
/// The longest system message that is read, in bytes.
const TEXT_LIMIT: u64 = 16 << 20;

/// Compute a long system message once, for every conversation that begins with it
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  anemone prefix --system-file rules.txt        compute it and keep its cache
  anemone chat --system-file rules.txt          begins at once
  anemone prefix --list                         what is kept

The cache is found by its tokens: nothing has to be named. At most 16 are kept, 2 GiB of them; what was used longest ago \
goes first. The folder is prefixes in ANEMONE_HOME, or anemone/prefixes in the user's cache folder.")]
pub(crate) struct Arguments {
    /// The model, as for --model
    #[arg(value_name = "MODEL", conflicts_with = "model")]
    positional: Option<String>,
    #[command(flatten)]
    system: System,
    /// Print what is kept
    #[arg(long, conflicts_with_all = ["system", "system_file"])]
    list: bool,
    #[command(flatten)]
    choice: Choice,
}

/// What the model is told before a conversation.
#[derive(Clone, Debug, Args)]
pub(crate) struct System {
    /// What the model is told before the conversation
    #[arg(long, value_name = "TEXT")]
    system: Option<String>,
    /// The same from a file
    #[arg(long, value_name = "FILE", conflicts_with = "system")]
    system_file: Option<PathBuf>,
}

impl System {
    /// The text, if one is given.
    pub(crate) fn text(&self) -> Result<Option<String>> {
        let Some(path) = &self.system_file else { return Ok(self.system.clone()) };
        let failed = |error| anyhow::anyhow!("cannot read {}: {error}", path.display());
        let length = std::fs::metadata(path).map_err(failed)?.len();
        if length > TEXT_LIMIT {
            bail!(
                "{} has {}; a system message may have {}",
                path.display(),
                units::bytes(length),
                units::bytes(TEXT_LIMIT)
            );
        }
        std::fs::read_to_string(path).map(Some).map_err(failed)
    }
}

/// The prefixes of this user.
pub(crate) fn store() -> Result<PrefixStore> {
    Ok(PrefixStore::new(Home::locate()?.prefixes(), LIMITS))
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let store = store()?;
    if arguments.list {
        let mut out = stdout().lock();
        for kept in store.list() {
            let (tokens, size) = (units::count(kept.position as u64), units::bytes(kept.bytes));
            writeln!(out, "{tokens:>8} tokens  {size:>10}  {}", kept.path.display())?;
        }
        return Ok(());
    }
    let Some(text) = arguments.system.text()? else {
        return Err(Usage("give the system message with --system or --system-file".to_owned()).into());
    };
    let Opened { model, name } = arguments.choice.open(arguments.positional.as_deref())?;
    let mut session = Conversation::new(Arc::new(model))?;
    session.set_system(Some(&text));
    let (start, bar) = (Instant::now(), ProgressBar::new(0));
    let kept = session.keep_prefix(&store, &mut |done, total| {
        bar.set_length(total as u64);
        bar.set_position(done as u64);
    });
    bar.finish_and_clear();
    let kept = kept?;
    terminal::note(&format!(
        "{} tokens for {name}, computed in {:.1} s, kept with {}.",
        units::count(kept.position as u64),
        start.elapsed().as_secs_f64(),
        units::bytes(kept.bytes)
    ));
    Ok(())
}
