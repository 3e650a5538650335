//! The tree keeps its own rules.

#[test]
fn the_tree_is_tidy() {
    let report = xtask::tidy::check().unwrap();
    assert!(report.errors.is_empty(), "\n{}", report.errors.join("\n"));
}

#[test]
fn the_tree_is_seen() {
    let paths: Vec<String> = xtask::tidy::texts().unwrap().into_iter().map(|text| text.path).collect();
    for path in ["Cargo.toml", "crates/mil/src/lib.rs", "xtask/tests/tidy.rs", ".ci/run"] {
        assert!(paths.iter().any(|found| found == path), "{path} is not among {} files", paths.len());
    }
}

#[test]
fn tests_that_need_the_model_are_run_by_ci() {
    let ci = std::fs::read_to_string(xtask::root().join(".ci/run")).unwrap();
    let step = ci.split("step_model()").nth(1).and_then(|rest| rest.split("\n}").next()).expect("a step called model");
    assert!(step.contains("ANEMONE_SMOLLM2_GGUF=") && step.contains("-- --ignored"), "{step}");
}
