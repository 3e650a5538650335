//! The entry `execution-plan`.

use super::Entry;

pub(super) const ENTRY: Entry = Entry {
    name: "execution-plan",
    title: "Failed to build the model execution plan",
    marks: &["failed to build the model execution plan", "error plan build", "error in declaring network"],
    aliases: &["Failed to build the model execution plan"],
    cause: "The step between loading a program and running it failed: shapes could not be worked out, an operation has no \
            implementation on the chosen units, or the Neural Engine's compiler gave up. The line before it in the log says \
            which; the code after it says how (-14 has an entry of its own).",
    evidence: &[
        "apple/coremltools#2325: fails with all units, runs on CPU and GPU",
        "pytorch/executorch#11691: a product of 32-bit integers",
        "huggingface/swift-transformers#136: shapes that do not fit are reported a line earlier",
    ],
    remedies: &[
        "Read the lines before it in the log: those with E5RT or ANECCompile name the cause.",
        "Load with cpu-only, then cpu-and-gpu, then cpu-and-neural-engine: the first that fails is the unit to look at.",
        "`anemone inspect PACKAGE` verifies every operation's shapes and lists what is wrong, without a Mac.",
    ],
    example: "[Core ML] Failed to load model from compiled asset. Failed to build the model execution plan using a model \
              architecture file 'model.mlmodelc/model.mil'",
};
