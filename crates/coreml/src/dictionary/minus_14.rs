//! The entry `minus-14`.

use super::Entry;

pub(super) const ENTRY: Entry = Entry {
    name: "minus-14",
    title: "the program cannot be prepared for the chosen compute units (error code -14)",
    marks: &["error code: -14", "error code: 14", "code=-14", "code -14", "status=14", "status=-14"],
    aliases: &["-14", "14", "error -14"],
    cause: "Core ML accepted the package and could not make a plan of its program for the compute units that were asked for. \
            With the Neural Engine among them it is mostly that engine's compiler which refuses: a state in an unfavourable \
            shape, shapes that vary together with states, int4 weights in blocks, more than about 3200 operations in one \
            program, or a fused attention operation.",
    evidence: &[
        "huggingface/swift-chat#31: a stateful Mistral with int4 blocks, refused with CPU and Neural Engine, runs on CPU and GPU",
        "apple/coremltools#2325: a stateful GPT-2, the same",
        "finnvoor/CoreMLPipelines#4: writes to a window of the cache",
        "mil_spec, crates/mil_convert/tests/sharded_e2e.rs: 3164 operations pass, 3284 fail",
        "FluidInference/mobius#77: stateful decoding refused on an M5 Pro with macOS 26",
    ],
    remedies: &[
        "Load with cpu-and-gpu or cpu-only: if that works, the Neural Engine is what refuses.",
        "Look at `anemone placement PACKAGE`: it lists shapes and operations that this engine is known to refuse.",
        "Convert with fixed shapes, one state of rank 4 whose last axis is a multiple of 32, and int8 or palettized weights.",
        "Divide a large model: fewer layers in one program compile faster and pass more often.",
    ],
    example: "Failed to build the model execution plan using a model architecture file \
              '/private/var/folders/_w/T/tmp0i2wrapi.mlmodelc/model.mil' with error code: -14.",
};
