//! The same weights for both sides: a GGUF file made by llama.cpp's own quantizer, and a package that keeps its blocks.

use std::path::{Path, PathBuf};

use anemone_cli::acquire::{Terminal, reference_model};
use anemone_convert::quantize::find;
use anemone_convert::{Conversion, Options, Source, Watch};
use anyhow::{Context, Result};

use super::peer::Peer;
use super::process::run;

/// Positions of the packages: for 2 048 tokens and what is measured after them.
const CONTEXT: usize = 4096;

/// One kind of weights, for both sides.
#[derive(Debug, Clone)]
pub(super) struct Models {
    pub(super) gguf: PathBuf,
    /// The converted folder.
    pub(super) package: PathBuf,
    /// Bytes of weights that a decoded token reads, in the package's form.
    pub(super) weight_bytes: u64,
    /// Bytes of the cache for each position.
    pub(super) cache_bytes: u64,
    /// Whether every weight is the same number on both sides.
    pub(super) exact: bool,
}

/// The reference model with its weights unpacked to half floats.
pub(super) fn plain(cache: &Path, peer: &Peer) -> Result<PathBuf> {
    let folder = cache.join("models");
    std::fs::create_dir_all(&folder)?;
    let plain = folder.join("smollm2-F16.gguf");
    if !plain.is_file() {
        let source = reference_model(&Terminal::default())?;
        quantize(peer, &source.path, &plain, "F16")?;
    }
    Ok(plain)
}

/// The file with weights of this kind, made of the plain model unless it is there.
pub(super) fn gguf(cache: &Path, peer: &Peer, quant: &str) -> Result<PathBuf> {
    let plain = plain(cache, peer)?;
    let gguf = plain.with_file_name(format!("smollm2-{quant}.gguf"));
    if !gguf.is_file() {
        quantize(peer, &plain, &gguf, quant)?;
    }
    Ok(gguf)
}

/// Makes what is not there yet, from the plain model.
pub(super) fn make(cache: &Path, peer: &Peer, quant: &str) -> Result<Models> {
    let gguf = gguf(cache, peer, quant)?;
    let weights = find("keep").context("the converter can keep blocks")?;
    package(&gguf, &format!("smollm2-{quant}"), Options { weights, ..options() })
}

/// A package for 2 048 tokens and what is measured after them.
pub(super) fn options() -> Options {
    Options { context: Some(CONTEXT), ..Options::default() }
}

/// Converts a GGUF file to the folder `name` beside it, unless that is there.
pub(super) fn package(gguf: &Path, name: &str, options: Options) -> Result<Models> {
    let source = Source::open(gguf)?;
    let conversion = Conversion::new(&source, &options)?;
    let estimate = conversion.estimate();
    let package = gguf.with_file_name(name);
    let kept = gguf.with_file_name(format!("{name}.exact"));
    if !package.is_dir() || !kept.is_file() {
        let fidelity = conversion.run(&package, &Watch::default())?;
        std::fs::write(&kept, fidelity.matrices.iter().all(|m| m.exact).to_string())?;
    }
    let exact = std::fs::read_to_string(&kept)?.trim() == "true";
    let cache_bytes = estimate.cache_bytes / estimate.context as u64;
    let gguf = gguf.to_owned();
    Ok(Models { gguf, package, weight_bytes: estimate.weight_bytes, cache_bytes, exact })
}

fn quantize(peer: &Peer, from: &Path, to: &Path, kind: &str) -> Result<()> {
    let part = to.with_extension("part");
    run(peer.command("llama-quantize").arg("--allow-requantize").args([from, part.as_path()]).arg(kind))?;
    std::fs::rename(part, to)?;
    Ok(())
}
