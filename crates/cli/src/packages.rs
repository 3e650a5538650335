//! Packages and models as arguments name them.

use std::path::{Path, PathBuf};

use anemone::Location;
use anemone_cli::home::Home;
use anemone_mil::model::Model;
use anemone_package::Package;
use anyhow::{Context, Result, bail};

use crate::exit::Usage;

/// The path that an argument names: a file, a folder, or the place of a cached model.
pub(crate) fn path(argument: &Path) -> Result<PathBuf> {
    if argument.exists() {
        return Ok(argument.to_owned());
    }
    let cached = argument.to_str().and_then(|name| Home::locate().ok()?.model(name).ok());
    match cached.filter(|path| path.is_dir()) {
        Some(path) => Ok(path),
        None => bail!(
            "{}: there is no such file or folder, and no cached model of that name (see `anemone models`)",
            argument.display()
        ),
    }
}

/// One package of a model.
pub(crate) struct Part {
    /// What to call it among several; none for a model in one package.
    pub(crate) name: Option<String>,
    pub(crate) path: PathBuf,
    pub(crate) package: Package,
    pub(crate) model: Model,
}

/// The packages of a model, to be looked at: one, or its parts in the order in which they run.
pub(crate) struct Opened {
    /// Where the model is.
    pub(crate) path: PathBuf,
    /// At least one.
    pub(crate) parts: Vec<Part>,
}

/// Opens the packages that an argument names: a package alone, or all those of a folder. Weights are not looked at.
pub(crate) fn open(argument: &Path) -> Result<Opened> {
    let path = path(argument)?;
    let location = Location::look(&path)?;
    let parts = location.parts().iter().enumerate().map(|(i, path)| {
        let package = Package::open(path)?;
        let model = anemone_mil::decode(&package).with_context(|| path.display().to_string())?;
        Ok(Part { name: location.part_name(i), path: path.clone(), package, model })
    });
    Ok(Opened { parts: parts.collect::<Result<_>>()?, path })
}

/// The one package that an argument names; of a model in parts that which `part` names.
pub(crate) fn one(argument: &Path, part: Option<&str>) -> Result<PathBuf> {
    let location = Location::look(&path(argument)?)?;
    let names: Vec<String> = (0..location.parts().len()).filter_map(|i| location.part_name(i)).collect();
    let listed = || names.join(", ");
    let shown = argument.display();
    match part {
        None if names.is_empty() => Ok(location.parts()[0].clone()),
        None => Err(Usage(format!("{shown}: the model is in parts; name one by --part: {}", listed())).into()),
        Some(part) if names.is_empty() => Err(Usage(format!("--part {part}: {shown} is one package")).into()),
        Some(part) => match names.iter().position(|name| name == part.strip_suffix(".mlpackage").unwrap_or(part)) {
            Some(i) => Ok(location.parts()[i].clone()),
            None => Err(Usage(format!("--part {part}: the parts of {shown} are {}", listed())).into()),
        },
    }
}
