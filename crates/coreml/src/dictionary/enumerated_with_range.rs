//! The entry `enumerated-with-range`.

use super::Entry;

pub(super) const ENTRY: Entry = Entry {
    name: "enumerated-with-range",
    title: "a stateful model mixes fixed or enumerated shapes with ranges",
    marks: &["enumeratedwithrangeinputsexception", "mixture of enumerated and range shape flexibility"],
    aliases: &["EnumeratedWithRangeInputsException"],
    cause: "With states in the program, one input has a fixed or an enumerated shape and another has a range. Core ML throws an \
            exception that ends the process.",
    evidence: &["apple/coremltools#2548: reported with a small model, marked as a bug"],
    remedies: &[
        "Give all inputs fixed shapes, and a function for each width: `anemone convert` makes `decode` and `prefill`.",
        "If shapes must vary, let all of them be ranges, and leave the Neural Engine out.",
    ],
    example: "libc++abi: terminating due to uncaught exception of type \
              CoreML::MLNeuralNetworkUtilities::EnumeratedWithRangeInputsException: A model doesn't allow a mixture of \
              enumerated and range shape flexibility, but feature (fixed_tensor) uses the enumerated shape and feature \
              (flex_tensor) uses the range shape.",
};
