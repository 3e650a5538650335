//! States between calls: a file of half floats that knows its package.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anemone_cli::tensor_file;
use anemone_mil::interpret::Tensors;
use anemone_mil::model::Model;
use anemone_mil::types::StaticType;
use anemone_mil::{Function, Tensor};
use anemone_package::Package;
use anemone_package::bundle::hex;
use anyhow::{Context, Result, bail};

/// The metadata entry with the digest of the package whose states these are.
const OWNER: &str = "anemone.package.sha256";

/// The file of states: all that the package's functions have, whichever of them is called.
pub(super) struct StateFile {
    path: PathBuf,
    owner: String,
    states: Tensors,
}

/// States that have read nothing.
pub(super) fn fresh(function: &Function) -> Tensors {
    function.states().filter_map(|(_, name, ty)| Some((name.to_owned(), Tensor::zeros(ty?)))).collect()
}

impl StateFile {
    /// Reads the file, or makes fresh states if there is none.
    pub(super) fn open(path: &Path, package: &Package, model: &Model) -> Result<Self> {
        let mut states: Tensors = model.program.functions.values().flat_map(fresh).collect();
        if states.is_empty() {
            bail!("--state: {} has no states", package.path().display());
        }
        let owner = hex(&package.digest()?);
        let place = || format!("the state file {}", path.display());
        match anemone_package::map_file(path) {
            Ok(bytes) => fill(&mut states, &bytes, &owner).with_context(place)?,
            Err(error) if error.kind() == ErrorKind::NotFound => tracing::info!("fresh states"),
            Err(error) => return Err(error).with_context(place),
        }
        Ok(Self { path: path.to_owned(), owner, states })
    }

    /// The states that a function reads and writes.
    pub(super) fn of(&self, function: &Function) -> Result<Tensors> {
        let own = function.states().map(|(_, name, _)| {
            let state = self.states.get(name).with_context(|| format!("state `{name}` has no fixed type"))?;
            Ok((name.to_owned(), state.clone()))
        });
        own.collect()
    }

    /// Writes the file anew, with these states for those that were.
    pub(super) fn replace(mut self, states: Tensors) -> Result<()> {
        self.states.extend(states);
        let metadata = HashMap::from([(OWNER.to_owned(), self.owner)]);
        tensor_file::write(&self.path, &self.states, metadata)
    }
}

fn fill(states: &mut Tensors, bytes: &[u8], owner: &str) -> Result<()> {
    let file = tensor_file::read(bytes)?;
    // A file without the entry was made by somebody else, who must know.
    if let Some(found) = file.metadata.get(OWNER)
        && found != owner
    {
        let short = |digest: &str| digest.chars().take(12).collect::<String>();
        bail!(
            "these are states of another package (sha256 {}…; this one is {}…); name another file to begin anew",
            short(found),
            short(owner)
        );
    }
    if let Some(unknown) = file.tensors.keys().find(|name| !states.contains_key(*name)) {
        let known: Vec<&str> = states.keys().map(String::as_str).collect();
        bail!("there is no state `{unknown}`; the package has {}", known.join(", "));
    }
    for (name, state) in states {
        let values = file.tensors.get(name).with_context(|| format!("the state `{name}` is missing"))?;
        if values.shape != state.ty.shape.as_slice() {
            let found = StaticType::new(state.ty.dtype, &values.shape);
            bail!("state `{name}`: expected {}, found {found}", state.ty);
        }
        *state = values.to_tensor(&state.ty).with_context(|| format!("state `{name}`"))?;
    }
    Ok(())
}
