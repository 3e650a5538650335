//! Packed weights in the cache: they go with the model that they are of.

use std::path::Path;

use anemone::PackedFolder;
use anemone_package::bundle::BundleManifest;
use anyhow::{Context, Result};

use super::{Home, Kind};

impl Home {
    /// Where weights are kept as they are packed for this processor. It may be deleted at any time.
    #[must_use]
    pub fn packed(&self) -> PackedFolder {
        PackedFolder::new(self.packed_path())
    }

    /// Removes what the packages of these digests were packed to, unless a cached model is made of them. Gives the bytes that
    /// are free now.
    ///
    /// # Errors
    /// Those of the system.
    pub fn forget_packed(&self, digests: &[String]) -> Result<u64> {
        let listed = self.list()?;
        let models = listed.iter().filter(|cached| cached.kind == Kind::Model);
        let needed: Vec<String> = models.flat_map(|cached| package_digests(&cached.path)).collect();
        let mut freed = 0;
        for digest in digests.iter().filter(|digest| !needed.contains(digest)) {
            let removed = self.packed().remove(digest);
            freed +=
                removed.with_context(|| format!("cannot remove packed weights in {}", self.packed_path().display()))?;
        }
        Ok(freed)
    }
}

/// The digests of the packages of a converted model, as its manifest has them; none if there is no manifest.
#[must_use]
pub fn package_digests(folder: &Path) -> Vec<String> {
    match BundleManifest::read(folder) {
        Ok(manifest) if manifest.parts.is_empty() => vec![manifest.package_sha256],
        Ok(manifest) => manifest.parts.into_iter().map(|part| part.sha256).collect(),
        Err(_) => Vec::new(),
    }
}
