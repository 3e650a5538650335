use super::support::anemone;

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
