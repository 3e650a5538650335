//! `singleton-axis`: no wasted rows.

use anemone_mil::types::elements;

use super::look::{Subject, extents};
use super::placement::Device;
use super::{Found, Grades, Rule, Severity};

pub(super) static RULE: Rule = Rule {
    id: "singleton-axis",
    asks: "Large tensors do not end in an axis of 1",
    reason: "Rows are padded to 64 bytes, so a last axis of one half float takes 32 times the memory.",
    source: "Apple's rules for authors of models",
    remedy: "Put another axis last, with `transpose` or `reshape`.",
    grades: Grades::ane(Severity::Warning),
    from: None,
    check,
};

/// Elements that may so be wasted: a MiB of padding.
const MOST: usize = 16_384;

fn check(subject: &Subject<'_>, found: &mut Found<'_>) {
    for look in &subject.functions {
        for (i, op) in look.computing().filter(|(i, _)| look.predictions[*i].device == Device::NeuralEngine) {
            let wasteful = |shape: &Vec<usize>| shape.last() == Some(&1) && elements(shape) > MOST;
            if let Some(shape) = op.outputs.iter().filter_map(|&id| look.shape(id)).find(wasteful) {
                found.add(look.at(i), format!("its result is {}", extents(&shape)));
            }
        }
    }
}
