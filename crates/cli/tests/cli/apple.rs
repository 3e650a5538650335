//! Placement, doctor, bench, explain, and where models run: on machines without Core ML, and with what is alike on all.

use std::path::PathBuf;

use serde_json::Value;

use super::support::{Folder, anemone, tiny_checkpoint};

fn tiny() -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../goldens/tiny/model");
    path.to_str().unwrap().to_owned()
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn errors_are_explained() {
    for (words, name) in [
        (&["-14"][..], "minus-14"),
        (&["ANECCompile", "FAILED", "11"], "aneccompile"),
        (&["0x1d"], "ane-request"),
        (&["Couldn't communicate with a helper application."], "helper-application"),
    ] {
        let text = anemone(["explain"].iter().chain(words)).ok();
        assert!(text.starts_with(&format!("{name}: ")), "{text}");
        assert!(text.contains("What to try:") && text.contains("Who saw it:"), "{text}");
    }
    let all = anemone(["explain"]).ok();
    assert!(all.lines().count() > 15 && all.contains("e5rt"), "{all}");
    let unknown = anemone(["explain", "a\x1b[2Jflux capacitor"]).ok();
    assert!(unknown.contains("Nothing is known here") && unknown.contains("cpu-only"), "{unknown}");
    for arguments in [&["explain", "--json", "-14"][..], &["explain", "-14", "--json"]] {
        assert_eq!(json(&anemone(arguments).ok())["entries"][0]["name"], "minus-14");
    }
}

#[test]
fn weights_in_blocks_are_not_placed_on_the_neural_engine() {
    let folder = tempfile::tempdir().unwrap();
    let source = tiny_checkpoint(folder.path());
    let placed = |weights: &str| {
        let out = folder.path().join(weights);
        let convert = ["convert", source.to_str().unwrap(), "-o", out.to_str().unwrap(), "--weights", weights];
        anemone(convert).ok();
        anemone(["placement", out.to_str().unwrap()]).ok()
    };
    assert!(placed("int4").contains("a scale for each block"), "int4");
    assert!(!placed("f16").contains("its weights"), "f16");
}

#[test]
#[cfg(not(target_vendor = "apple"))]
fn a_placement_is_a_prediction_here_and_says_so() {
    let text = anemone(["placement", &tiny()]).ok();
    assert!(text.contains("no hardware was asked") && text.contains("decode: "), "{text}");
    assert!(text.contains("on the Neural Engine") && text.contains("slice_update"), "{text}");
    let report = json(&anemone(["placement", &tiny(), "--json"]).ok());
    assert_eq!((&report["source"], &report["units"]), (&"prediction".into(), &"cpu-and-neural-engine".into()));
    assert!(report["functions"][0]["state_operations"].as_array().is_some_and(|all| !all.is_empty()));
    anemone(["placement", &tiny(), "--min-ane", "0"]).ok();
    anemone(["placement", &tiny(), "--min-ane", "0.01", "--compute-units", "cpu-only"])
        .fails(1, &["predicted", "--min-ane", "cpu-only leaves the Neural Engine out"]);
    anemone(["placement", &tiny(), "--min-ane", "1"])
        .fails(1, &["× concat", "`prefill`", "convert --profile ane", "--list"]);
    anemone(["placement", &tiny(), "--min-ane", "2"]).fails(2, &["0 to 1"]);
    anemone(["placement", &tiny(), "--compute-units", "ane"]).fails(2, &["cpu-and-neural-engine"]);
}

#[test]
#[cfg(not(target_vendor = "apple"))]
fn the_doctor_looks_at_the_machine_and_at_a_package() {
    let text = anemone(["doctor"]).ok();
    for word in ["system", "processor", "memory", "Neural Engine  not on this machine"] {
        assert!(text.contains(word), "{word}: {text}");
    }
    let text = anemone(["doctor", &tiny(), "--soak", "30"]).ok();
    for step in ["load", "state", "prefill", "decode", "compare", "interpreter", "again", "end of context", "soak"] {
        assert!(text.lines().any(|line| line.starts_with("  ok ") && line.contains(step)), "{step}: {text}");
    }
    let report = json(&anemone(["doctor", &tiny(), "--soak", "10", "--json"]).ok());
    assert_eq!(report["examinations"][0]["findings"].as_array().unwrap().len(), 9);
    assert_eq!(report["machine"]["devices"], serde_json::json!([]));
}

#[test]
#[cfg(not(target_vendor = "apple"))]
fn the_doctor_reports_what_goes_too_far_and_what_cannot_be_loaded() {
    let done = anemone(["doctor", &tiny(), "--soak", "10000000", "--time-limit", "2"]).run();
    assert_eq!(done.code, Some(1));
    assert!(done.out.contains("took longer than 2 s, and was ended during the step"), "{}", done.out);
    let done = anemone(["doctor", &tiny(), "--memory-limit", "1"]).run();
    assert_eq!(done.code, Some(1));
    assert!(done.out.contains("more than the 1.0 MB allowed"), "{}", done.out);
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().join("m.mlpackage");
    std::fs::create_dir(&empty).unwrap();
    let done = anemone(["doctor", empty.to_str().unwrap()]).run();
    assert_eq!(done.code, Some(1));
    assert!(done.out.contains("FAIL"), "{}", done.out);
}

#[test]
#[cfg(not(target_vendor = "apple"))]
fn the_bench_has_a_row_for_everything_and_is_honest() {
    let folder = tempfile::tempdir().unwrap();
    let svg = folder.path().join("bench.svg");
    let short = ["--prompt", "16", "--tokens", "20", "--turns", "3", "--turn-tokens", "8"];
    let text = anemone(["bench", &tiny(), "--svg", svg.to_str().unwrap()].iter().chain(&short)).ok();
    for units in ["all", "cpu-and-neural-engine", "cpu-and-gpu", "cpu-only"] {
        let row = text.lines().find(|line| line.starts_with(&format!("Core ML, {units} "))).unwrap();
        assert!(row.contains("not on this machine"), "{row}");
    }
    assert!(text.contains("Anemone's CPU runtime") && text.contains("cache kept"), "{text}");
    assert!(text.contains("  energy: "), "{text}");
    assert!(std::fs::read_to_string(svg).unwrap().contains("</svg>"));
    let report = json(&anemone(["bench", &tiny(), "--json", "--compute-units", "cpu-only"].iter().chain(&short)).ok());
    let columns = report["columns"].as_array().unwrap();
    assert_eq!(columns.len(), 2);
    assert!(columns[1]["measured"]["tokens_per_second"].as_f64() > Some(0.0), "{report}");
    let (energy, why) = (&columns[1]["measured"]["energy"], &columns[1]["measured"]["energy_missing"]);
    assert!(energy.is_number() != why.is_string(), "told, or said why not: {report}");
    assert_eq!(columns[1]["measured"]["turns"].as_array().unwrap().len(), 3);
}

#[test]
#[cfg(not(target_vendor = "apple"))]
fn asking_for_the_neural_engine_without_one_is_said_once_or_refused() {
    let folder = Folder::with_model();
    let ask = |flags: &[&str]| {
        let arguments = ["run", "-m", &folder.model(), "--max-tokens", "3", "Hi"];
        folder.anemone(arguments.iter().chain(flags)).run()
    };
    let quiet = ask(&[]);
    assert_eq!((quiet.code, quiet.err.contains("Core ML")), (Some(0), false), "{}", quiet.err);
    let told = ask(&["--compute-units", "cpu-and-neural-engine"]);
    assert_eq!((told.code, told.err.matches("there is no Core ML here").count()), (Some(0), 1), "{}", told.err);
    assert_eq!(told.out, quiet.out);
    assert!(!ask(&["--compute-units", "cpu-only"]).err.contains("Core ML"));
    let refused = ask(&["--require-placement"]);
    assert!(refused.code == Some(1) && refused.err.contains("cpu-and-neural-engine is required"), "{}", refused.err);
    let refused = ask(&["--backend", "coreml"]);
    assert!(refused.code == Some(1) && refused.err.contains("needs an Apple system"), "{}", refused.err);
    assert_eq!(ask(&["--backend", "cpu"]).code, Some(0));
}
