//! `fp32-island`: half floats throughout.

use anemone_mil::types::DType;

use super::look::Subject;
use super::{Found, Grades, Rule, Severity};

pub(super) static RULE: Rule = Rule {
    id: "fp32-island",
    asks: "Everything is computed in half floats",
    reason: "Operations on fp32 run on the CPU, and each change of device costs about 0.6 ms.",
    source: "Apple's rules for authors of models: any fp32 literal or operation falls back; CoreML-LLM's \
             measurements",
    remedy: "Convert with fp16 as the precision of computation; cast inputs once and outputs last.",
    grades: Grades::ane(Severity::Warning),
    from: None,
    check,
};

fn check(subject: &Subject<'_>, found: &mut Found<'_>) {
    for look in &subject.functions {
        for (i, op) in look.computing() {
            // Casts at the borders are how fp32 inputs and outputs come about.
            let border =
                op.name_of_kind == "cast" && op.outputs.iter().all(|id| look.function.body.outputs.contains(id));
            let wide = |dtype| matches!(dtype, DType::F32 | DType::F64);
            if !border && op.outputs.iter().filter_map(|&id| look.ty(id)).any(|ty| wide(ty.dtype)) {
                found.add(look.at(i), "its result is fp32");
            }
        }
    }
}
