//! Chores of the workspace, one file each. The binary runs them by name; tests run those that must always hold.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

pub mod bench;
pub mod big;
pub mod coremltools;
pub mod fixtures;
pub mod fuzz;
pub mod licences;
pub mod lint;
pub mod ops;
pub mod parity;
pub mod quality;
pub mod tidy;

/// The root of the checkout.
pub fn root() -> PathBuf {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    root.canonicalize().unwrap_or(root)
}

/// Runs a command in the root of the checkout and returns what it prints.
pub fn output_of(program: &str, arguments: &[&str]) -> Result<String> {
    let output = Command::new(program).args(arguments).current_dir(root()).output();
    let output = output.with_context(|| format!("cannot run {program}"))?;
    if !output.status.success() {
        bail!("{program} {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    }
    String::from_utf8(output.stdout).with_context(|| format!("{program} printed something that is not UTF-8"))
}
