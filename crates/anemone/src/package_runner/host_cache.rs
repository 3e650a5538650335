//! Caches that a package takes as inputs, as states of its plan: read in place, in half floats, instead of copied into an
//! input at every call. What a function computes is the same.

use std::collections::BTreeMap;

use anemone_mil::program::{Argument, Kind, Operation};
use anemone_mil::types::Type;
use anemone_mil::{Block, Const, Function, ValueId, ops};

use crate::signature::HostCache;

/// The function with the inputs of `caches` as states that it reads and does not write.
pub(super) fn as_states(function: &Function, caches: &[HostCache]) -> Function {
    let mut f = function.clone();
    let mut reads = Vec::new();
    let mut instead: BTreeMap<ValueId, ValueId> = BTreeMap::new();
    for cache in caches {
        let named = |id: &&ValueId| f.value(**id).name == cache.input;
        let Some(&id) = f.inputs.iter().find(named) else { continue };
        let Some(ty) = f.value(id).ty.tensor().cloned() else { continue };
        let name = format!("{}@read", cache.input);
        let read = f.add_value(name.clone(), Type::Tensor(ty.clone()));
        f.values[id.index()].ty = Type::State(ty);
        instead.insert(id, read);
        reads.push(Operation {
            name_of_kind: "read_state".to_owned(),
            kind: ops::find("read_state").map_or(Kind::Unknown, Kind::Op),
            inputs: vec![("input".to_owned(), vec![Argument::Value(id)])],
            outputs: vec![read],
            blocks: Vec::new(),
            attributes: BTreeMap::from([("name".to_owned(), Const::from(name.as_str()))]),
        });
    }
    replace(&mut f.body, &instead);
    f.body.ops.splice(0..0, reads);
    f
}

fn replace(block: &mut Block, instead: &BTreeMap<ValueId, ValueId>) {
    for op in &mut block.ops {
        for argument in op.inputs.iter_mut().flat_map(|(_, arguments)| arguments) {
            if let Argument::Value(id) = argument {
                *id = instead.get(id).copied().unwrap_or(*id);
            }
        }
        op.blocks.iter_mut().for_each(|block| replace(block, instead));
    }
    for id in &mut block.outputs {
        *id = instead.get(id).copied().unwrap_or(*id);
    }
}
