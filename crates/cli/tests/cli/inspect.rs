use serde_json::Value;

use super::support::{anemone, names, package};

fn inspect(name: &str, flags: &[&str]) -> String {
    let path = package(name);
    anemone(["inspect", path.to_str().unwrap()].iter().chain(flags)).ok()
}

#[test]
fn every_fixture_in_text() {
    for name in names() {
        let text = inspect(&name, &[]);
        for word in ["function ", "inputs", "outputs", "states", "operations", "weights"] {
            assert!(text.contains(word), "{name}: no {word:?} in {text}");
        }
        assert!(!text.contains("cannot run here"), "{name}: {text}");
    }
}

#[test]
fn every_fixture_in_json() {
    for name in names() {
        let json: Value = serde_json::from_str(&inspect(&name, &["--json"])).unwrap();
        let stateless = name.starts_with("ios16");
        for f in json["functions"].as_array().unwrap() {
            assert_eq!(f["states"].as_array().unwrap().is_empty(), stateless, "{name}");
            assert!(!f["inputs"].as_array().unwrap().is_empty(), "{name}");
            assert!(f["operations"].as_object().unwrap().values().all(|n| n.as_u64() > Some(0)), "{name}");
        }
        assert_eq!(json["problems"], serde_json::json!([]), "{name}");
        let stored: u64 =
            json["weights"]["stored"].as_object().unwrap().values().map(|s| s["bytes"].as_u64().unwrap()).sum();
        assert!(stored > 1000 && json["weights"]["bytes"].as_u64() >= Some(stored), "{name}");
    }
}

#[test]
fn what_json_says_of_a_cache() {
    let json: Value = serde_json::from_str(&inspect("tiny_guide_kv1_fp16", &["--json"])).unwrap();
    let f = &json["functions"][0];
    assert_eq!(
        (f["name"].as_str(), f["opset"].as_str(), f["os"].as_str()),
        (Some("main"), Some("CoreML8"), Some("iOS 18"))
    );
    let state = &f["states"][0];
    assert_eq!(state["name"], "kv_cache");
    assert_eq!(state["shape"], serde_json::json!([4, 4, 64, 16]));
    assert_eq!((state["bytes"].as_u64(), f["state_bytes"].as_u64()), (Some(32768), Some(32768)));
    assert_eq!(f["inputs"][0]["name"], "token");
    assert_eq!(f["inputs"][0]["fixed_shape"], serde_json::json!([1, 1]));
    assert_eq!(f["outputs"][0]["name"], "logits");
    assert!(f["operations"]["slice_update"].as_u64() > Some(0));
}

#[test]
fn flexible_shapes_are_told_and_shared_weights_counted_once() {
    let json: Value = serde_json::from_str(&inspect("tiny_article_fp16", &["--json"])).unwrap();
    let inputs = json["functions"][0]["inputs"].as_array().unwrap();
    assert!(
        inputs.iter().any(|i| i["fixed_shape"].is_null() && i["shape"].as_str().unwrap().contains("..")),
        "{inputs:?}"
    );
    let bytes = |name: &str| {
        let json: Value = serde_json::from_str(&inspect(name, &["--json"])).unwrap();
        json["weights"]["stored"]["fp16"]["bytes"].as_u64().unwrap()
    };
    let (one, two) = (bytes("tiny_article_fp16"), bytes("multifunction"));
    assert!(two < one + one / 2, "two functions share weights: {two} bytes, {one} for one function");
}

#[test]
fn the_text_of_programs_is_read_back() {
    for name in names() {
        let text = inspect(&name, &["--mil"]);
        let package = anemone_package::Package::open(&package(&name)).unwrap();
        let program = anemone_mil::text::parse(&text, &package).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(program.to_string(), text, "{name}");
    }
}
