//! `weight-size`: weights that the Neural Engine loads.

use std::collections::HashSet;

use anemone_mil::place::Place;

use super::look::Subject;
use super::{Found, Grades, Rule, Severity};

pub(super) static RULE: Rule = Rule {
    id: "weight-size",
    asks: "The weights of a package stay below 2 GB",
    reason: "A program of more than about 2 GB of weights does not load on the Neural Engine; 5 to 6 GB failed on \
             an iPhone.",
    source: "coreai-model-zoo, `ane-silicon-reference.md`; coremltools#2503",
    remedy: "Compress the weights, or split the model into parts.",
    grades: Grades::ane(Severity::Error),
    from: None,
    check,
};

/// Bytes that are taken for sure.
pub(crate) const MOST: u64 = 2_000_000_000;

fn check(subject: &Subject<'_>, found: &mut Found<'_>) {
    let bytes = weight_bytes(subject);
    if bytes > MOST {
        found.add(Place::whole(), format!("its weights take {:.1} GB", bytes as f64 / 1e9));
    }
}

/// Bytes of all constants; what several functions share counts once.
fn weight_bytes(subject: &Subject<'_>) -> u64 {
    let mut stored = HashSet::new();
    let mut bytes = 0;
    for look in &subject.functions {
        for (op, constant) in look.function.body.ops.iter().filter_map(|op| Some((op, op.constant()?.tensor()?))) {
            let size = constant.ty.dtype.packed_bytes(constant.ty.elements()).unwrap_or(0) as u64;
            let name = op.outputs.first().map(|&id| look.function.value(id).name.as_str());
            let key = match &constant.blob {
                Some(blob) => (Some(blob.file.as_str()), blob.offset),
                // Not written yet: functions share what has the same name.
                None => (name, size),
            };
            if stored.insert(key) {
                bytes += size;
            }
        }
    }
    bytes
}
