//! The entry `missing-feature`.

use super::Entry;

pub(super) const ENTRY: Entry = Entry {
    name: "missing-feature",
    title: "an input was not given, or has another name",
    marks: &[
        "required input feature not passed",
        "feature is required but not specified",
        "is required but not specified",
        "provided feature is not specified in the model",
    ],
    aliases: &["required input"],
    cause: "The call does not give an input that the function declares, mostly because names differ between functions or were \
            changed by the conversion.",
    evidence: &["apple/coremltools#339: a mismatch of names"],
    remedies: &["`anemone inspect PACKAGE` lists each function's inputs, outputs and states with their shapes."],
    example: "Feature input_ids is required but not specified.",
};
