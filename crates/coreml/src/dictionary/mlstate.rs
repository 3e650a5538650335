//! The entry `mlstate`.

use super::Entry;

pub(super) const ENTRY: Entry = Entry {
    name: "mlstate",
    title: "the input feature must be an MLState, but it was not",
    marks: &["must be an mlstate"],
    aliases: &["must be an MLState", "MLState"],
    cause: "A function that declares states was called without one, through a call for stateless models. Profilers and older \
            wrappers do so. Through Anemone it cannot happen: a function with states is not called without a state.",
    evidence: &[
        "apple/coremltools#2519: predict without a state",
        "pytorch/executorch#21855: an export whose buffers became states unasked",
        "fguzman82/CoreMLProfiler#2: a profiler that knew no states",
    ],
    remedies: &[
        "Call the prediction that takes a state, with one that `makeState()` (Objective-C: `newState`) of that model gave.",
        "If no state was wanted, convert without `states`.",
    ],
    example: "The input feature for kv_cache must be an MLState, but it was not.",
};
