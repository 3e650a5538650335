//! The entry `flexible-state`.

use super::Entry;

pub(super) const ENTRY: Entry = Entry {
    name: "flexible-state",
    title: "states have a fixed shape",
    marks: &["flexible shape model states are not supported"],
    aliases: &["flexible state"],
    cause: "A state was declared with a shape that varies. States are fixed: the length of the context is chosen at \
            conversion.",
    evidence: &["apple/coremltools#2537: a maintainer confirms that states with flexible shapes are not supported"],
    remedies: &[
        "Choose the context at conversion: `anemone convert SOURCE -o DIR --context N`.",
        "For several lengths, make several packages, and move the conversation by its transcript.",
    ],
    example: "ValueError: Flexible shape model states are not supported!",
};
