//! What one package computes of a model, and where its key-value cache is kept.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use crate::source::config::Config;

/// Where the key-value cache is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kv {
    /// In states of the package, which it writes in place.
    #[default]
    State,
    /// With the host: the cache is an input, the new columns are an output, and the host writes them.
    Io,
}

impl Kv {
    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kv::State => "state",
            Kv::Io => "io",
        }
    }
}

impl fmt::Display for Kv {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Kv {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = [Kv::State, Kv::Io].into_iter().find(|kv| kv.name() == text);
        found.ok_or_else(|| "expected state or io".to_owned())
    }
}

/// What one package computes: layers, and perhaps what comes before and after all layers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// Whether it begins with token ids; else with what the part before gives.
    pub(crate) embeddings: bool,
    pub(crate) layers: Range<usize>,
    /// Whether it ends with logits; else with what the next part takes.
    pub(crate) head: bool,
}

impl Part {
    /// All of a model.
    pub(crate) fn whole(config: &Config) -> Self {
        Self { embeddings: true, layers: 0..config.layers, head: true }
    }

    /// Whether it is all of a model.
    pub(crate) fn is_whole(&self) -> bool {
        self.embeddings && self.head
    }

    /// The index of a layer among those of the part.
    pub(crate) fn index(&self, layer: usize) -> usize {
        layer - self.layers.start
    }
}

/// The input of a part that does not begin with token ids.
pub(crate) const TAKES: &str = "hidden_states";
/// The output of a part that does not end with logits.
pub(crate) const GIVES: &str = "output_hidden_states";
/// The output of the new columns of a cache that the host keeps.
pub(crate) const COLUMNS: &str = "kv_columns";

/// What a function is built for.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    /// Tokens per call.
    pub(crate) width: usize,
    /// Positions that the cache has room for.
    pub(crate) context: usize,
    pub(crate) part: Part,
    pub(crate) kv: Kv,
}
