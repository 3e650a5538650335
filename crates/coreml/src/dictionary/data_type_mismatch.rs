//! The entry `data-type`.

use super::Entry;

pub(super) const ENTRY: Entry = Entry {
    name: "data-type",
    title: "an array has another element type than the function declares",
    marks: &["multiarray data type", "data type mismatch", "unsupported data type"],
    aliases: &["data type"],
    cause: "The array that was given, or the room for an output, has another element type than the description says. Output \
            rooms must have exactly the declared type.",
    evidence: &["Apple's documentation of MLPredictionOptions: output backings must fit the description"],
    remedies: &["`anemone inspect PACKAGE` lists element types; Anemone makes its arrays from the description."],
    example: "MultiArray data type Float32 does not match the data type Int32 specified in the model description",
};
