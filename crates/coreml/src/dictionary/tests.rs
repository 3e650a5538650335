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
