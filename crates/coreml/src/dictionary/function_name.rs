//! The entry `function-name`.

use super::Entry;

pub(super) const ENTRY: Entry = Entry {
    name: "function-name",
    title: "functionName must be nil unless the model type is ML Program",
    marks: &["functionname property must be nil", "functionname must be nil"],
    aliases: &["functionName must be nil", "functionName"],
    cause: "A function was named, and the model at that path is not read as an ML Program. Mostly the compiled model is \
            incomplete: the disk was full while it was compiled or unpacked. It can also be an old kind of model, which has no \
            functions.",
    evidence: &["Anemll/Anemll#5: less than 16 GB free on an M2 Ultra; freeing room and a restart helped"],
    remedies: &[
        "Check the free disk space; a compile needs several times the package's size for a while.",
        "Remove the compiled model and compile it again: Anemone's are below the folder `compiled` of its cache.",
        "`anemone inspect PACKAGE` says whether it is an ML Program, and which functions it has.",
    ],
    example: "MLModelConfiguration's .functionName property must be nil unless the model type is ML Program.",
};
