//! From what `--model` says to an open model: fetched and converted first, if need be.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anemone::{Model, ModelOptions, Speculation};
use anemone_cli::acquire::lock::Lock;
use anemone_cli::acquire::{self, DEFAULT_MODEL, Terminal};
use anemone_cli::home::{Cached, Home, Kind, bytes_under};
use anemone_cli::{cache_name, numbers, units};
use anemone_convert::{Kv, Source, Watch};
use anemone_package::bundle::{self, BundleManifest};
use anyhow::{Context, Result, bail};
use clap::Args;
use indicatif::ProgressBar;

use crate::backends::Where;
use crate::cmd::convert::{Shape, Use, convert};
use crate::exit::{Interrupted, Usage};
use crate::progress::Interruptible;
use crate::{interrupt, terminal};

/// Which model, and how it runs.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Model")]
pub(crate) struct Choice {
    /// A name that `anemone models` lists, a converted folder, a .mlpackage with its tokenizer.json beside it, or a
    /// checkpoint, which is converted into the cache first: a GGUF file, a folder in Hugging Face's form, hf:OWNER/NAME
    /// [default: SmolLM2-135M-Instruct, which is fetched]
    #[arg(short, long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    #[command(flatten)]
    shape: Shape,
    /// Threads to use [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = numbers::threads, allow_negative_numbers = true)]
    threads: Option<u16>,
    /// Compute in floats throughout: slower for weights of integers, whose inputs are else rounded to 16 bits
    #[arg(long)]
    exact: bool,
    /// Round every half float as soon as it is computed, as a Neural Engine would: slow, for finding packages that break there
    #[arg(long)]
    strict_fp16: bool,
    /// Guess what comes from what was said before, and check several tokens in one call: `auto` where that measures faster,
    /// `off`, or so many guesses always. Answers are the same
    #[arg(long, value_name = "auto|off|N", default_value = "auto", value_parser = numbers::speculation)]
    speculate: Speculation,
    #[command(flatten)]
    place: Where,
}

/// A model that is ready, and what the user calls it.
pub(crate) struct Opened {
    pub(crate) model: Model,
    pub(crate) name: String,
}

/// A model on disk that can be opened.
struct Found {
    path: PathBuf,
    /// Its name in the cache, if it is there.
    cached: Option<String>,
}

impl Choice {
    /// Opens the model: `positional` if that is given, else that of `--model`, else the default one.
    pub(crate) fn open(&self, positional: Option<&str>) -> Result<Opened> {
        let found = self.find(positional.or(self.model.as_deref()))?;
        let spinner = ProgressBar::new_spinner().with_message(format!("opening {}", found.path.display()));
        spinner.enable_steady_tick(Duration::from_millis(120));
        // Without a home nothing is kept, and every start packs.
        let packed = Home::locate().ok().map(|home| home.packed_path());
        let threads = self.threads.map(usize::from);
        if self.strict_fp16 && self.place.uses_core_ml() {
            return Err(Usage("--strict-fp16 is of Anemone's own runtime: add --backend cpu".into()).into());
        }
        let backend = self.place.options()?;
        self.place.say_where_it_runs();
        // What is rounded is packed in another way.
        let packed = packed.filter(|_| !self.strict_fp16);
        let (exact, strict_fp16, speculation) = (self.exact, self.strict_fp16, self.speculate);
        let options =
            ModelOptions { threads, exact, strict_fp16, packed, speculation, backend, ..ModelOptions::default() };
        let guard = interrupt::stops({
            let spinner = spinner.clone();
            move || {
                spinner.finish_and_clear();
                interrupt::end()
            }
        });
        let opened = Model::open(&found.path, &options);
        drop(guard);
        spinner.finish_and_clear();
        let model = opened.with_context(|| match &found.cached {
            Some(name) => format!("the cached model {name} cannot be used (`anemone models remove {name}` removes it)"),
            None => "the model cannot be used".to_owned(),
        })?;
        let name = found.cached.unwrap_or_else(|| terminal::printable(&found.path.display().to_string()));
        Ok(Opened { model, name })
    }

    fn find(&self, model: Option<&str>) -> Result<Found> {
        let home = Home::locate()?;
        let stop = Arc::new(AtomicBool::new(false));
        let guard = interrupt::sets(&stop);
        let found = self.prepare(&home, model, &stop);
        drop(guard);
        if found.is_err() && stop.load(Ordering::SeqCst) {
            return Err(Interrupted.into());
        }
        found.map_err(|error| home.advise(error))
    }

    fn prepare(&self, home: &Home, model: Option<&str>, stop: &Arc<AtomicBool>) -> Result<Found> {
        let terminal = Terminal::default();
        let progress = Interruptible::new(&terminal, stop);
        let Some(model) = model else { return self.default_model(home, &progress, stop) };
        if let Some(acquired) = acquire::by_id(model, &progress)? {
            return self.converted(home, &acquired.path, stop);
        }
        let path = Path::new(model);
        if path.exists() {
            if is_checkpoint(path) {
                return self.converted(home, path, stop);
            }
            self.check_shape(path)?;
            return Ok(Found { path: path.to_owned(), cached: None });
        }
        if model == cache_name::of_default(DEFAULT_MODEL, &self.shape.options()) || model == DEFAULT_MODEL {
            return self.default_model(home, &progress, stop);
        }
        let listed = home.list()?;
        let exact = listed.iter().find(|c| c.name == model);
        let begins = |c: &&Cached| c.kind == Kind::Model && c.name.to_lowercase().starts_with(&model.to_lowercase());
        let begin: Vec<&Cached> = listed.iter().filter(|c| !model.is_empty() && begins(c)).collect();
        let names = |all: &[&Cached]| all.iter().map(|c| c.name.as_str()).collect::<Vec<_>>().join(", ");
        let cached = exact.or(match begin[..] {
            [one] => Some(one),
            _ => None,
        });
        match cached {
            Some(c) if c.kind == Kind::Checkpoint => self.converted(home, &c.path, stop),
            Some(c) => {
                self.check_shape(&c.path)?;
                Ok(Found { path: c.path.clone(), cached: Some(c.name.clone()) })
            }
            None if !begin.is_empty() => {
                bail!("{model}: the names of several cached models begin so: {}; give one of them", names(&begin))
            }
            None => {
                let all = names(&listed.iter().collect::<Vec<_>>());
                let all = if all.is_empty() { "nothing is cached yet".to_owned() } else { format!("cached: {all}") };
                bail!("{model}: there is no such file or folder, and no cached model of that name ({all})")
            }
        }
    }

    fn default_model(&self, home: &Home, progress: &Interruptible<'_>, stop: &Arc<AtomicBool>) -> Result<Found> {
        let name = cache_name::of_default(DEFAULT_MODEL, &self.shape.options());
        let checkpoint = || {
            let acquired = acquire::default_model(progress)?;
            terminal::note(&format!("Using {DEFAULT_MODEL} from {}", acquired.source));
            Ok(acquired.path)
        };
        self.in_cache(home, &name, checkpoint, progress, stop)
    }

    fn converted(&self, home: &Home, checkpoint: &Path, stop: &Arc<AtomicBool>) -> Result<Found> {
        let name = cache_name::of_checkpoint(checkpoint, &self.shape.options())?;
        let terminal = Terminal::default();
        let progress = Interruptible::new(&terminal, stop);
        self.in_cache(home, &name, || Ok(checkpoint.to_owned()), &progress, stop)
    }

    /// The cached model `name`, made from `checkpoint` if it is not there.
    fn in_cache(
        &self,
        home: &Home,
        name: &str,
        checkpoint: impl FnOnce() -> Result<PathBuf>,
        progress: &Interruptible<'_>,
        stop: &Arc<AtomicBool>,
    ) -> Result<Found> {
        let path = home.model(name)?;
        let found = Found { path: path.clone(), cached: Some(name.to_owned()) };
        // A folder has its name only once it is complete.
        if BundleManifest::read(&path).is_ok() {
            return Ok(found);
        }
        let _lock = Lock::take(&home.tmp().join(format!("{name}.lock")), progress)?;
        if BundleManifest::read(&path).is_err() {
            let mut watch = Watch::default();
            watch.stop.clone_from(stop);
            convert(&Source::open(checkpoint()?)?, &path, &self.shape, None, &watch, Use::Conversation)?;
            let size = units::bytes(bytes_under(&path));
            terminal::note(&format!("  kept as {name}, {size}; `anemone models remove {name}` frees its room"));
        }
        Ok(found)
    }

    /// Refuses options that a converted model can no longer choose.
    fn check_shape(&self, path: &Path) -> Result<()> {
        let manifest = BundleManifest::read(path).ok();
        let Shape { context, weights, rules, prefill, profile, kv, parts, part_size } = &self.shape;
        let baked = |option: &str, asked: String, has: Option<String>| match has {
            Some(has) if has == asked => Ok(()),
            has => {
                let has = has.map_or_else(String::new, |has| format!(", here as {has}"));
                Err(Usage(format!(
                    "{option} {asked}: {} is converted already, and this is baked into it{has}; convert its source again",
                    path.display()
                )))
            }
        };
        if let Some(n) = context {
            baked("--context", n.to_string(), manifest.as_ref().map(|m| m.context.to_string()))?;
        }
        if weights.is_some() || !rules.is_empty() {
            let option = if weights.is_some() { "--weights" } else { "--rule" };
            let asked = self.shape.options().weights_name();
            baked(option, asked, manifest.as_ref().map(|m| m.weights.clone()))?;
        }
        if let Some(n) = prefill {
            let width = manifest.as_ref().and_then(|m| m.functions.get(anemone_convert::PREFILL));
            baked("--prefill", n.to_string(), width.map(ToString::to_string))?;
        }
        if let Some(kv) = kv {
            let has = |m: &BundleManifest| if m.roles.columns.is_empty() { Kv::State } else { Kv::Io }.to_string();
            baked("--kv", kv.to_string(), manifest.as_ref().map(has))?;
        }
        if let Some(n) = parts {
            baked("--parts", n.to_string(), manifest.as_ref().map(|m| m.parts.len().max(1).to_string()))?;
        }
        if let Some(megabytes) = part_size {
            baked("--part-size", megabytes.to_string(), None)?;
        }
        if let Some(profile) = profile {
            baked("--profile", profile.to_string(), None)?;
        }
        Ok(())
    }
}

/// Whether a path leads to something to convert rather than to something converted.
fn is_checkpoint(path: &Path) -> bool {
    if !path.is_dir() {
        // A folder of ANEMLL may be named by its description.
        return !path.extension().is_some_and(|e| e.eq_ignore_ascii_case("mlmodel")) && !path.ends_with("meta.yaml");
    }
    if [bundle::MANIFEST, "Manifest.json", "meta.yaml"].iter().any(|name| path.join(name).is_file()) {
        return false;
    }
    let names = |ending: &str| {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        entries.filter(|e| Path::new(&e.file_name()).extension().is_some_and(|found| found == ending)).count()
    };
    names("mlpackage") == 0 && (path.join("config.json").is_file() || names("gguf") > 0)
}
