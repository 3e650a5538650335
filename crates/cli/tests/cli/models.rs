use std::path::Path;

use super::support::{Folder, anemone};

#[test]
fn an_empty_cache_says_so_and_how_to_begin() {
    let done = anemone(["models"]).run();
    assert_eq!((done.code, done.out.as_str()), (Some(0), ""));
    assert!(done.err.contains("anemone run"), "{}", done.err);
}

#[test]
fn what_is_cached_is_listed_and_removed() {
    let home = tempfile::tempdir().unwrap();
    let model = home.path().join("models/tiny");
    std::fs::create_dir_all(&model).unwrap();
    std::fs::write(model.join("weights"), [0; 2500]).unwrap();
    let run = |arguments: &[&str]| anemone(arguments).env("ANEMONE_HOME", home.path());
    let out = run(&["models"]).ok();
    assert!(out.contains("tiny") && out.contains("2.5 kB") && out.contains("not usable"), "{out}");
    let json: serde_json::Value = serde_json::from_str(&run(&["models", "--json"]).ok()).unwrap();
    assert_eq!((&json["cached"][0]["name"], &json["cached"][0]["bytes"]), (&"tiny".into(), &2500.into()));
    run(&["models", "remove", "huge"]).fails(1, &["huge", "tiny"]);
    run(&["models", "remove", "../models"]).fails(1, &["not the name"]);
    run(&["models", "remove", "tiny"]).ok();
    assert!(!model.exists());
}

/// The files under a folder.
fn files(folder: &Path) -> Vec<String> {
    let all = std::fs::read_dir(folder).into_iter().flatten().flatten();
    all.map(|entry| entry.file_name().into_string().unwrap()).collect()
}

#[test]
fn packed_weights_are_counted_and_go_with_their_model() {
    let folder = Folder::with_checkpoint();
    let packed = Path::new(&folder.home()).join("packed");
    std::fs::create_dir_all(&packed).unwrap();
    std::fs::write(packed.join(".packing-killed"), [0; 9]).unwrap();
    let run = |context: &str| {
        let source = folder.checkpoint();
        folder.anemone(["run", "-m", &source, "--context", context, "--max-tokens", "1", "Hi"]).ok();
    };
    run("64");
    assert_eq!(
        files(&packed).len(),
        1,
        "one for the model, and the half of a killed one is gone: {:?}",
        files(&packed)
    );
    run("128");
    let json: serde_json::Value = serde_json::from_str(&folder.anemone(["models", "--json"]).ok()).unwrap();
    let bytes: u64 = files(&packed).iter().map(|f| std::fs::metadata(packed.join(f)).unwrap().len()).sum();
    assert_eq!((files(&packed).len(), &json["packed"]["bytes"]), (2, &bytes.into()), "{json}");
    let text = folder.anemone(["models"]).ok();
    assert!(text.contains("\npacked ") && text.contains("as this processor takes them"), "{text}");

    let name = json["cached"][0]["name"].as_str().unwrap();
    let done = folder.anemone(["models", "remove", name]).run();
    assert!(done.code == Some(0) && done.err.contains("that its weights were packed to"), "{}", done.err);
    assert_eq!(files(&packed).len(), 1, "the other one's stay");
    folder.anemone(["models", "remove", "packed"]).ok();
    assert_eq!(files(&packed).len(), 0);
    // The name means no model.
    folder.anemone(["run", "-m", "packed", "Hi"]).fails(1, &["packed"]);
}

#[test]
fn what_is_replaced_is_no_longer_packed() {
    let folder = Folder::with_model();
    let packed = Path::new(&folder.home()).join("packed");
    let run = || folder.anemone(["run", "-m", &folder.model(), "--max-tokens", "1", "Hi"]).ok();
    run();
    let first = files(&packed);
    folder.anemone(["convert", &folder.checkpoint(), "-o", &folder.model(), "--weights", "int8"]).ok();
    assert_eq!((first.len(), files(&packed).len()), (1, 0));
    run();
    assert_ne!(first, files(&packed));
}
