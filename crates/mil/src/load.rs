//! Open, decode, verify: [`load`].

use std::path::Path;

use anemone_package::Package;

use crate::decode::decode;
use crate::error::MilError;
use crate::model::Model;
use crate::verify::{Problem, verify_model};

/// Opens a package and reads its program, which is then known to be valid and to use no operation that is not in the
/// registry.
///
/// # Errors
/// If the package cannot be read, its program makes no sense ([`MilError::Malformed`]), uses operations that are not in
/// the registry ([`MilError::UnknownOps`], all at once) or is not valid ([`MilError::Invalid`], everything at once).
pub fn load(path: &Path) -> Result<Model, MilError> {
    load_package(&Package::open(path)?)
}

/// As [`load`], for a package that is open already.
///
/// # Errors
/// As [`load`].
pub fn load_package(package: &Package) -> Result<Model, MilError> {
    let model = decode(package)?;
    let all = verify_model(&model);
    let (unknown, other): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|d| matches!(d.problem, Problem::UnknownOp { .. }));
    if !unknown.is_empty() {
        Err(MilError::UnknownOps { all: unknown })
    } else if !other.is_empty() {
        Err(MilError::Invalid { all: other })
    } else {
        Ok(model)
    }
}
