//! The entry `feature-shape`.

use super::Entry;

pub(super) const ENTRY: Entry = Entry {
    name: "feature-shape",
    title: "an input has a shape that the function does not take",
    marks: &[
        "multiarray shape",
        "shape of the provided input",
        "does not match the shape",
        "not in allowed set of shapes",
    ],
    aliases: &["MultiArray shape"],
    cause: "The array that was given has another shape than the function declares. Functions for one token and for several take \
            different shapes.",
    evidence: &["Core ML's own check before a prediction; the message names both shapes"],
    remedies: &[
        "`anemone inspect PACKAGE` lists the shapes that each function takes.",
        "Feed a prompt in pieces of the function's width; positions and masks have to have that width too.",
    ],
    example: "MultiArray shape (1 x 3) does not match the shape (1 x 1) specified in the model description",
};
