//! The entry `bad-cast`.

use super::Entry;

pub(super) const ENTRY: Entry = Entry {
    name: "bad-cast",
    title: "std::bad_cast while a stateful program is translated",
    marks: &["std::bad_cast"],
    aliases: &["std::bad_cast"],
    cause: "A program with states has an integer input of varying shape, or compressed weights in a form that the translation \
            does not expect.",
    evidence: &[
        "apple/coremltools#2500: a dynamic int32 input together with states; fixed shapes work",
        "huggingface/swift-transformers#136: a stateful Mistral with int4 blocks",
    ],
    remedies: &[
        "Give every input a fixed shape, and make a function for each width; `anemone convert` does.",
        "Update the system: the second report came from macOS 15.1.",
    ],
    example: "[Espresso::handle_ex_plan] exception=Espresso exception: \"Network translation error\": Unknown MIL->EIR network \
              translation error: std::bad_cast status=14",
};
