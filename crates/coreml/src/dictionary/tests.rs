use super::*;

#[test]
fn every_example_is_explained_by_its_own_entry() {
    for entry in ENTRIES {
        let found = explain(entry.example);
        assert_eq!(found.first().map(|e| e.name), Some(entry.name), "{}", entry.example);
    }
}

#[test]
fn entries_are_complete() {
    let mut names: Vec<_> = ENTRIES.iter().map(|entry| entry.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), ENTRIES.len(), "two entries have one name");
    for entry in ENTRIES {
        assert!(!entry.title.is_empty() && entry.cause.ends_with('.'), "{}", entry.name);
        assert!(!entry.marks.is_empty() && !entry.evidence.is_empty() && !entry.remedies.is_empty(), "{}", entry.name);
        assert!(entry.remedies.iter().all(|remedy| remedy.ends_with(['.', ')'])), "{}", entry.name);
        assert!(entry.name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'), "{}", entry.name);
    }
}

/// Messages as people met them; the first entry is the one to read.
#[test]
fn messages_from_the_field() {
    let cases = [
        (
            "Error Domain=com.apple.CoreML Code=0 \"Failed to build the model execution plan using a model architecture file \
             '/Users/me/Library/Application Support/StatefulMistral7BInstructInt4.mlmodelc/model.mil' with error code: 14.\"",
            "minus-14",
        ),
        (
            "RuntimeError: Error compiling model: \"ANECCompile(/var/mobile/Library/Caches/x/) FAILED: err=(11)\"",
            "aneccompile",
        ),
        (
            "processRequest:model: ANEProgramProcessRequestDirect() Failed with status=0x1d : statusType=0x9",
            "ane-request",
        ),
        (".functionName property must be nil unless the model type is ML Program.", "function-name"),
        ("The input feature for __state_name__ must be an MLState, but it was not.", "mlstate"),
        ("Couldn\u{2019}t communicate with a helper application.", "helper-application"),
        ("couldn't   communicate with a helper\napplication", "helper-application"),
        ("E5RT: something that nobody has seen before (3)", "e5rt"),
        (
            "Failed to build the model execution plan using a model architecture file 'm.mil' with error code: -5.",
            "execution-plan",
        ),
        ("2/2 Tensor width goes beyond limit supported (16414/16390 > 16384)", "tensor-width"),
    ];
    for (message, expected) in cases {
        assert_eq!(explain(message).first().map(|e| e.name), Some(expected), "{message}");
    }
}

/// Further messages, one for each mark that no example has. Words and codes are as reported; names and paths are made up.
const MESSAGES: &[(&str, &str)] = &[
    ("data-type", "Error Domain=com.apple.CoreML Code=3 \"The data type mismatch for feature input_ids\""),
    ("data-type", "-[MLMultiArray initWithShape:dataType:error:]: Unsupported data type 65568"),
    ("execution-plan", "Error in declaring network or executing network: status=-5"),
    ("execution-plan", "MLE5ProgramLibrary: Error plan build: -1."),
    (
        "feature-shape",
        "Error Domain=com.apple.CoreML Code=0 \"The shape of the provided input causalMask is unexpected\"",
    ),
    ("feature-shape", "MultiArray Shape (1 x 128) was not in allowed set of shapes of feature inputIds"),
    ("function-name", "The property functionName must be nil for this model."),
    (
        "helper-application",
        "NSUnderlyingError=0x600 {Error Domain=NSCocoaErrorDomain Code=4099 \"connection invalidated\"}",
    ),
    ("killed", "/bin/sh: line 1: 4242 Killed: 9   ./predict model.mlmodelc"),
    ("killed", "Process finished with exit status 137 while predicting"),
    ("killed", "Program terminated due to signal 9"),
    ("killed", "JETSAM_REASON_MEMORY_PERPROCESSLIMIT: jetsam event for MyApp"),
    ("minus-14", "Error Domain=com.apple.CoreML Code=-14 \"(null)\""),
    (
        "minus-14",
        "Failed to build the model execution plan using a model architecture file 'm.mil' with error code: 14.",
    ),
    ("minus-14", "model load failed: code -14"),
    ("minus-14", "e5rt_program_library_create returned status=14"),
    ("minus-14", "espresso_plan_build: status=-14"),
    ("missing-feature", "The required input feature not passed to the neural network: position_ids"),
    ("missing-feature", "Error: feature is required but not specified: causalMask"),
    ("missing-feature", "RuntimeError: Provided feature is not specified in the model description: attention_mask"),
    ("ane-request", "ANE request failed, status=0x1d, statusType=0x9"),
    ("only-on-macos", "Exception: Loading this model requires Core ML framework, which is on macOS"),
    ("only-on-macos", "Exception: Model prediction is only supported on macOS version 10.13 or later."),
    ("weight-file", "RuntimeError: MIL storage reader expects file format version 2, got 0"),
    ("weight-file", "Error Domain=com.apple.CoreML Code=3 \"Unable to deserialize object\""),
];

#[test]
fn every_mark_is_met_in_a_message() {
    let of = |entry: &Entry| {
        let more = MESSAGES.iter().filter(|(name, _)| *name == entry.name).map(|(_, message)| *message);
        std::iter::once(entry.example).chain(more).map(str::to_owned).collect::<Vec<_>>()
    };
    for entry in ENTRIES {
        let messages = of(entry);
        for message in &messages {
            assert!(explain(message).iter().any(|found| found.name == entry.name), "{}: {message}", entry.name);
        }
        for mark in entry.marks {
            let met = messages.iter().any(|message| folded(message).contains(&folded(mark)));
            assert!(met, "{}: no message has the mark {mark:?}", entry.name);
        }
    }
    assert!(MESSAGES.iter().all(|(name, _)| ENTRIES.iter().any(|entry| entry.name == *name)));
}

#[test]
fn an_unknown_message_has_no_entry_and_general_advice() {
    assert_eq!(
        explain("The operation couldn\u{2019}t be completed. (com.apple.Nobody error 77.)"),
        Vec::<&Entry>::new()
    );
    assert_eq!(explain(""), Vec::<&Entry>::new());
    assert!(GENERAL.len() >= 3);
}

#[test]
fn codes_and_words_are_looked_up() {
    let first = |word: &str| search(word).first().map(|e| e.name);
    for (word, expected) in [
        ("-14", "minus-14"),
        ("minus-14", "minus-14"),
        ("0x1d", "ane-request"),
        ("ANECCompile FAILED 11", "aneccompile"),
        ("failed to build the model execution plan", "execution-plan"),
        ("functionName must be nil", "function-name"),
        ("must be an MLState", "mlstate"),
        ("Couldn't communicate with a helper application", "helper-application"),
        ("E5RT", "e5rt"),
        ("137", "killed"),
        ("bad_cast", "bad-cast"),
    ] {
        assert_eq!(first(word), Some(expected), "{word}");
    }
    assert_eq!((first("nothing of the kind"), first("  ")), (None, None));
}
