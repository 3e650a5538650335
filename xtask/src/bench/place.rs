//! Where llama.cpp and the models are, for all measurements against it.

use std::path::PathBuf;

use anyhow::Result;

use super::models;
use super::peer::Peer;

/// Where llama.cpp and the models are.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct Place {
    /// Where llama.cpp and the models are kept [default: a folder in Anemone's own]
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,
    /// A folder with the programs of llama.cpp, instead of building them
    #[arg(long, value_name = "DIR")]
    peer: Option<PathBuf>,
}

impl Place {
    /// The folder, and llama.cpp as it runs on this machine.
    pub(super) fn ready(&self) -> Result<(PathBuf, Peer)> {
        let cache = match &self.cache {
            Some(cache) => cache.clone(),
            None => anemone_cli::home::Home::locate()?.root().join("bench"),
        };
        let mut peer = match &self.peer {
            Some(folder) => Peer::at(folder)?,
            None => Peer::build(&cache)?,
        };
        // Weights of four bits go where half floats do not: to tiles.
        peer.settle(&models::gguf(&cache, &peer, "Q4_0")?)?;
        Ok((cache, peer))
    }
}
