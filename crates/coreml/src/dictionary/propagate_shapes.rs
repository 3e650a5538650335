//! The entry `propagate-shapes`.

use super::Entry;

pub(super) const ENTRY: Entry = Entry {
    name: "propagate-shapes",
    title: "shapes of the inputs do not fit the program (PropagateInputTensorShapes)",
    marks: &["propagateinputtensorshapes", "shapes are not compatible for broadcasting"],
    aliases: &["PropagateInputTensorShapes"],
    cause: "With the default shapes of its inputs, an operation of the program gets operands that do not fit together. Core ML \
            checks that while loading, with the shapes that the package calls its defaults.",
    evidence: &["huggingface/swift-transformers#136: a stateful Mistral with a mask of variable width, on macOS 15.1"],
    remedies: &[
        "`anemone inspect PACKAGE` names the operation whose shapes do not fit.",
        "Convert with fixed shapes, or with default shapes that fit each other.",
    ],
    example: "E5RT: Failed to PropagateInputTensorShapes: std::invalid_argument during type inference for ios18.mul: Shapes are \
              not compatible for broadcasting.. (11)",
};
