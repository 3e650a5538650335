//! Turns the names of a function's values into ids while it is being read, from a package or from text.

use std::collections::HashMap;

use crate::program::{Value, ValueId};
use crate::types::Type;

/// Values of a function under construction, with the names that are in scope.
///
/// Names that are used before they are defined, or never defined, are given an id all the same: the verifier reports them,
/// with every other fault of the program.
#[derive(Debug)]
pub(crate) struct Names {
    pub(crate) values: Vec<Value>,
    scopes: Vec<HashMap<String, ValueId>>,
    awaited: HashMap<String, ValueId>,
    /// Names of blocks that have ended: a use of one is a fault, which the verifier can then name.
    ended: HashMap<String, ValueId>,
}

impl Names {
    pub(crate) fn new() -> Self {
        Self { values: Vec::new(), scopes: vec![HashMap::new()], awaited: HashMap::new(), ended: HashMap::new() }
    }

    /// Enters a nested block.
    pub(crate) fn enter(&mut self) {
        self.scopes.push(HashMap::new());
    }

    /// Leaves a nested block: its names are no longer in scope.
    pub(crate) fn leave(&mut self) {
        let scope = self.scopes.pop().expect("every block that is left was entered");
        self.ended.extend(scope);
    }

    /// Defines a value in the innermost scope.
    pub(crate) fn define(&mut self, name: &str, ty: Type) -> ValueId {
        let id = match self.awaited.remove(name) {
            Some(id) => {
                self.values[id.index()].ty = ty;
                id
            }
            None => self.push(name, ty),
        };
        self.scopes.last_mut().expect("the function's own scope is never left").insert(name.to_owned(), id);
        id
    }

    /// The value that `name` means here.
    pub(crate) fn resolve(&mut self, name: &str) -> ValueId {
        if let Some(&id) = self.scopes.iter().rev().find_map(|scope| scope.get(name)) {
            return id;
        }
        if let Some(&id) = self.ended.get(name).or(self.awaited.get(name)) {
            return id;
        }
        let id = self.push(name, Type::Tuple(Vec::new()));
        self.awaited.insert(name.to_owned(), id);
        id
    }

    fn push(&mut self, name: &str, ty: Type) -> ValueId {
        let id = ValueId(u32::try_from(self.values.len()).expect("a file of under 2^32 bytes names fewer values"));
        self.values.push(Value { name: name.to_owned(), ty });
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inner_names_end_with_their_block_and_early_uses_meet_their_definition() {
        let ty = || Type::Tuple(Vec::new());
        let mut names = Names::new();
        let early = names.resolve("late");
        names.enter();
        let inner = names.define("x", ty());
        assert_eq!(names.resolve("x"), inner);
        names.leave();
        assert_eq!(names.resolve("x"), inner, "for the verifier to report");
        assert_ne!(names.define("x", ty()), inner);
        assert_eq!(names.define("late", ty()), early);
    }
}
