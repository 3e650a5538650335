//! What makes the elements of weights, shared by the functions of a package: each weight is made once, not once for each
//! function.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use anemone_mil::Const;
use anemone_mil::constant::Deferred;
use anemone_mil::types::StaticType;

/// Makers by the name of their constant.
#[derive(Clone, Default)]
pub(crate) struct Shared(Arc<Mutex<HashMap<String, Arc<dyn Deferred>>>>);

impl Shared {
    /// The constant `name` of type `ty`, made by what `make` gives if no other function has it already.
    pub(crate) fn constant(&self, name: &str, ty: StaticType, make: impl FnOnce() -> Arc<dyn Deferred>) -> Const {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let maker = all.entry(name.to_owned()).or_insert_with(make);
        Const::deferred(ty, Arc::clone(maker))
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        write!(f, "{} constants", all.len())
    }
}
