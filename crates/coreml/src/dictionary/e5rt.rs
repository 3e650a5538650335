//! The entry `e5rt`.

use super::Entry;

pub(super) const ENTRY: Entry = Entry {
    name: "e5rt",
    title: "E5RT: the runtime under Core ML reports an exception",
    marks: &["e5rt"],
    aliases: &["E5RT"],
    cause: "E5RT is the part of Core ML that plans and runs ML Programs. What stands after `msg =` is the cause; this line \
            itself says only where it was caught.",
    evidence: &[
        "apple/coremltools#2503: followed by ANECCompile() FAILED",
        "huggingface/swift-transformers#136: followed by shapes that do not fit",
        "microsoft/onnxruntime#22275: thrown as an exception that no Swift `catch` sees",
    ],
    remedies: &[
        "Look up what follows `msg =`: `anemone explain \"…\"` takes the whole line.",
        "`anemone inspect PACKAGE` verifies shapes and types without a Mac.",
        "Load with cpu-only to see whether the program itself is sound.",
    ],
    example: "E5RT encountered an STL exception. msg = Espresso exception: \"Network translation error\": MIL->EIR translation \
              error at model.mlmodelc/model.mil:7:12",
};
