//! Fuzzing of everything that reads bytes from outside.
//!
//! A [`Target`] is a function that must survive any bytes. Two things drive it: libFuzzer, through `fuzz/fuzz_targets/`
//! (guided by coverage, for machines that have time), and the runner here, which mutates the seeds in a way that depends
//! on nothing but the round's number. So CI runs the same inputs each time, and whatever it finds can be made again from a
//! target's name and a number.
//!
//! The runner works in a child process for each target: a crash, even of the stack, is caught and named. Inputs that failed
//! once are kept under `fuzz/regressions/` and run by a test ever after.

mod execute;
mod gguf;
pub mod memory;
pub mod mutate;
mod programs;
mod run;
mod seeds;
mod targets;

use std::path::PathBuf;

use anyhow::{Context, Result};

pub use run::{all, child, one};
pub use seeds::seeds;

/// Something that reads bytes from outside.
pub struct Target {
    /// Its name, as in `fuzz/fuzz_targets/NAME.rs`.
    pub name: &'static str,
    /// Must return, whatever the bytes are: no panic, no hang, no memory beyond [`Target::memory_bound`].
    pub run: fn(&[u8]),
    /// How its inputs are built, which decides how they are mutated.
    pub shape: Shape,
    /// Memory that any input may make us take: so many bytes for each byte of input …
    pub memory_per_byte: usize,
    /// … and so many besides.
    pub memory_fixed: usize,
    /// Its share of the time.
    pub weight: u32,
}

/// What inputs look like.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Bytes with numbers and lengths in them.
    Binary,
    /// A protobuf message with its length (four bytes, little endian) before it, then other bytes.
    Protobuf,
    /// Text.
    Text,
}

impl Target {
    /// The most bytes that this input may make the target take.
    pub fn memory_bound(&self, input: &[u8]) -> usize {
        self.memory_fixed + self.memory_per_byte * input.len()
    }
}

/// All targets.
pub const TARGETS: &[Target] = targets::TARGETS;

/// Runs one target by its name; for the fuzz targets of libFuzzer.
///
/// # Panics
/// If there is no such target.
pub fn run_target(name: &str, input: &[u8]) {
    let target = TARGETS.iter().find(|target| target.name == name).expect("the name is in the list of targets");
    (target.run)(input);
}

/// The inputs that failed once: name and content.
pub fn regressions(target: &Target) -> Result<Vec<(String, Vec<u8>)>> {
    let folder = folder("regressions").join(target.name);
    let Ok(listing) = std::fs::read_dir(&folder) else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for entry in listing {
        let entry = entry?;
        let content = std::fs::read(entry.path()).with_context(|| format!("cannot read {}", entry.path().display()))?;
        found.push((entry.file_name().to_string_lossy().into_owned(), content));
    }
    found.sort();
    Ok(found)
}

/// A folder of `fuzz/`.
pub(crate) fn folder(name: &str) -> PathBuf {
    crate::root().join("fuzz").join(name)
}

/// Writes the seeds where `cargo fuzz` looks for them: `fuzz/corpus/TARGET/`.
pub fn write_seeds() -> Result<usize> {
    let mut count = 0;
    for target in TARGETS {
        let folder = folder("corpus").join(target.name);
        std::fs::create_dir_all(&folder)?;
        for (name, content) in seeds(target)? {
            std::fs::write(folder.join(name), content)?;
            count += 1;
        }
    }
    Ok(count)
}
