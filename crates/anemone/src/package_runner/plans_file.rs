//! Plans on disk: a second start of the same program reads them instead of planning the package again.
//!
//! ```text
//! magic (16)  identity (32)  SHA-256 of what follows (32)
//! length of the outline (8)  the outline, as JSON  the plans, one after the other
//! ```
//!
//! The identity is a digest of all that plans follow from: the package's own digest, its manifest, the instruction set, how the
//! model is opened, and the program that plans, down to when its file was last written. A file of something else is as none.
//! Only packages whose digest was checked have their plans kept, and only for those are they read.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anemone_kernels::Isa;
use anemone_kernels::buffer::PACKING;
use anemone_package::bundle::{BundleManifest, hex};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::options::ModelOptions;
use crate::files;
use crate::packed::PackedFolder;
use crate::signature::Call;

const MAGIC: &[u8; 16] = b"anemone plans 1\0";
const HEADER: usize = 16 + 32 + 32;
/// Longer files are none.
const MOST: u64 = 64 << 20;

/// What there is besides the plans themselves.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Outline {
    /// The interface that was recognized.
    pub(super) signature: String,
    /// Of each part, the weight files that its model refers to.
    pub(super) weight_files: Vec<BTreeSet<String>>,
    /// By width and part.
    pub(super) steps: Vec<Vec<KeptCall>>,
    pub(super) checking: Option<KeptCall>,
}

/// A call, and how long its plan is.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct KeptCall {
    pub(super) call: Call,
    pub(super) fewest: Option<usize>,
    pub(super) bytes: usize,
}

/// Where the plans of a model are kept.
#[derive(Debug)]
pub(super) struct PlansFile {
    folder: PackedFolder,
    path: PathBuf,
    identity: [u8; 32],
}

impl PlansFile {
    /// The file for the model of digest `owner` when it is opened so; none where it is not known which program this is.
    pub(super) fn new(
        folder: &PackedFolder,
        owner: &[u8; 32],
        manifest: &BundleManifest,
        options: &ModelOptions,
    ) -> Option<Self> {
        let program = std::env::current_exe().ok()?;
        let metadata = fs::metadata(&program).ok()?;
        let written = metadata.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
        let how = format!(
            "{} {} {} {:?} {}",
            Isa::detect().name(),
            options.exact,
            options.strict_fp16,
            options.speculation,
            program.display()
        );
        // One program's file makes way for that of its next version.
        let name = hex(&Sha256::digest(&how));
        let mut identity = Sha256::new_with_prefix(owner);
        identity.update(format!("{how} {PACKING} {} {} {written:?} ", env!("CARGO_PKG_VERSION"), metadata.len()));
        identity.update(serde_json::to_vec(manifest).ok()?);
        let path = folder.file(owner, &format!("plans-{}", &name[..8]));
        Some(Self { folder: folder.clone(), path, identity: identity.finalize().into() })
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// What was kept, if it is there and whole: the outline, and the plans.
    pub(super) fn read(&self) -> Option<(Outline, Vec<u8>)> {
        let file = files::open(&self.path).ok()?;
        let mut bytes = Vec::new();
        (&file).take(MOST + 1).read_to_end(&mut bytes).ok()?;
        let (header, body) = bytes.split_at_checked(HEADER).filter(|_| bytes.len() as u64 <= MOST)?;
        if header[..16] != *MAGIC || header[16..48] != self.identity || header[48..] != *Sha256::digest(body) {
            tracing::debug!("{}: of another package, program or processor, or damaged", self.path.display());
            return None;
        }
        let (length, body) = body.split_first_chunk()?;
        let (outline, _) = body.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
        let (begin, outline) = (HEADER + 8 + outline.len(), serde_json::from_slice(outline).ok()?);
        bytes.drain(..begin);
        // Told by its time that it is still used. If that fails, it is made again some day.
        let _untold = file.set_modified(SystemTime::now());
        Some((outline, bytes))
    }

    /// Keeps plans, in the order of the outline. A failure is told to the log: the next start plans again.
    pub(super) fn write(&self, outline: &Outline, plans: &[Vec<u8>]) {
        let write = || -> io::Result<()> {
            let outline = serde_json::to_vec(outline)?;
            let length = (outline.len() as u64).to_le_bytes();
            let body = [&length[..], &outline].into_iter().chain(plans.iter().map(Vec::as_slice)).collect::<Vec<_>>();
            let mut sum = Sha256::new();
            body.iter().for_each(|piece| sum.update(piece));
            let mut file = self.folder.begin()?;
            file.write_all(&[&MAGIC[..], &self.identity, &sum.finalize()].concat())?;
            body.iter().try_for_each(|piece| file.write_all(piece))?;
            // Renamed when it is whole; what a power cut left half written has another sum.
            file.persist(&self.path).map_err(|e| e.error)?;
            Ok(())
        };
        if let Err(error) = write() {
            tracing::info!("{}: plans are not kept: {error}", self.path.display());
        }
    }
}
