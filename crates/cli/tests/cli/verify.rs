use std::path::PathBuf;

use serde_json::Value;

use super::support::anemone;

fn golden(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../goldens").join(name);
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_package_computes_what_its_source_does_in_half_floats_too() {
    let (model, source) = (golden("tiny/model"), golden("tiny/tiny-llama"));
    let arguments = ["verify", &model, "--against", &source, "--tokens", "40", "--strict-fp16", "--at", "10", "--json"];
    let json: Value = serde_json::from_str(&anemone(arguments).ok()).unwrap();
    assert_eq!(json["weights"]["missing"], serde_json::json!([]));
    let errors = json["weights"]["errors"].as_array().unwrap();
    assert!(errors.len() > 10 && errors.iter().all(|e| e["relative"].as_f64() < Some(1e-3)), "{errors:?}");
    let logits = &json["logits"];
    assert_eq!((logits["positions"].as_u64(), &logits["same"]), (Some(40), &logits["positions"]));
    assert!(logits["mean_divergence"].as_f64() < Some(1e-3), "{logits}");
    let strict = &json["strict"][0];
    assert_eq!(strict["position"].as_u64(), Some(10));
    assert!(strict["agreement"]["mean_divergence"].as_f64() < Some(5e-3), "{strict}");
    assert_eq!(strict["overflows"], serde_json::json!([]));
}

#[test]
fn another_models_package_is_told_from_its_own() {
    let (model, source) = (golden("tiny/model"), golden("archs/llama"));
    let other = anemone(["verify", &model, "--against", &source]).run();
    assert_eq!(other.code, Some(1), "{}", other.out);
    assert!(other.err.contains("another model's package"), "{}", other.err);
    let strict =
        anemone(["verify", &model, "--against", &golden("tiny/tiny-llama"), "--max-divergence", "1e-12"]).run();
    assert_eq!(strict.code, Some(1), "{}", strict.out);
    assert!(strict.out.contains("error: logits: the mean divergence"), "{}", strict.out);
}
