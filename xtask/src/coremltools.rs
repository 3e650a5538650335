//! coremltools as a judge of our packages: `check/with_coremltools.py` in a Python environment below `target/`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anemone_package::bundle::PACKAGE;
use anyhow::{Context, Result, bail, ensure};

/// What the script needs. Without these versions it may read packages differently than it was tried with.
const REQUIREMENTS: [&str; 2] = ["coremltools==9.0", "numpy"];

/// Runs the script on a package, or on that of a converted model's folder. What it finds wrong, if anything.
///
/// # Errors
/// If Python, or what the script needs, cannot be had.
pub fn check(package: &Path, checkpoint: Option<&Path>) -> Result<Option<String>> {
    let inside = package.join(PACKAGE);
    let package = if inside.is_dir() { &inside } else { package };
    ensure!(package.is_dir(), "{} is no package", package.display());
    let mut command = Command::new(python()?);
    command.arg(crate::root().join("xtask/check/with_coremltools.py")).arg(package);
    if let Some(checkpoint) = checkpoint {
        command.arg("--checkpoint").arg(checkpoint);
    }
    let status = command.status().context("cannot run Python")?;
    Ok((!status.success()).then(|| format!("coremltools finds fault with {}", package.display())))
}

/// Python with what the script needs: that of `ANEMONE_PYTHON`, or an environment made here the first time.
fn python() -> Result<PathBuf> {
    if let Some(python) = std::env::var_os("ANEMONE_PYTHON") {
        return Ok(python.into());
    }
    let folder = crate::root().join("target/coremltools");
    let python = folder.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" });
    // Written last, so that an installation that was broken off is done again.
    let complete = folder.join("complete");
    if std::fs::read_to_string(&complete).is_ok_and(|with| with == REQUIREMENTS.join("\n")) {
        return Ok(python);
    }
    let base = if cfg!(windows) { "python" } else { "python3" };
    succeed(Command::new(base).args(["-m", "venv", "--clear"]).arg(&folder))?;
    succeed(Command::new(&python).args(["-m", "pip", "install", "--quiet"]).args(REQUIREMENTS))?;
    std::fs::write(&complete, REQUIREMENTS.join("\n"))?;
    Ok(python)
}

fn succeed(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot run {}", command.get_program().to_string_lossy()))?;
    if !status.success() {
        bail!("{command:?} failed: is Python 3 installed, with its module venv?");
    }
    Ok(())
}
