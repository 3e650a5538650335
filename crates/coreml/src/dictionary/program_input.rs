//! The entry `program-input`.

use super::Entry;

pub(super) const ENTRY: Entry = Entry {
    name: "program-input",
    title: "MIL program input not found: a buffer lost its state",
    marks: &["mil program input"],
    aliases: &["MIL program input not found"],
    cause: "The model was traced from PyTorch, and the buffer that was to become a state was viewed, transposed or copied before \
            it was written, so the conversion no longer recognized it.",
    evidence: &[
        "apple/coremltools#2275: a transposed buffer",
        "apple/coremltools#2278: a viewed buffer",
        "apple/coremltools#2272: `buffer.copy_` does not convert",
    ],
    remedies: &[
        "Write to the buffer itself by a slice (`self.k_cache[:, :, begin:end] = k`), and give `states` as a list.",
        "Or convert the checkpoint with `anemone convert`, which builds the program itself and traces nothing.",
    ],
    example: "ValueError: MIL program input 'k_cache' not found in the model description",
};
