use serde_json::Value;

use super::support::{anemone, package};

/// A package of the fixtures, linted.
fn lint(name: &str, flags: &[&str]) -> super::support::Done {
    let path = package(name);
    anemone(["lint", path.to_str().unwrap()].iter().chain(flags)).run()
}

#[test]
fn what_a_package_of_another_tool_does_wrong_on_the_neural_engine() {
    let done = lint("tiny_article_fp16", &["--profile", "ane"]);
    assert_eq!(done.code, Some(1), "{}", done.err);
    for rule in ["fused-attention", "dynamic-shape", "state-rank", "angle-half", "norm-overflow", "pow"] {
        assert!(done.out.contains(&format!(" {rule}")), "{rule}: {}", done.out);
    }
    assert!(done.out.contains("op ") && done.out.contains("→ "), "{}", done.out);
}

#[test]
fn json_has_every_finding_with_its_place() {
    let done = lint("tiny_article_fp16", &["--profile", "ane", "--os", "macos15", "--json"]);
    let json: Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!((json["profile"].as_str(), json["os"].as_str()), (Some("ane"), Some("ios18")));
    let findings = json["findings"].as_array().unwrap();
    let fused: Vec<&Value> = findings.iter().filter(|f| f["rule"] == "fused-attention").collect();
    assert_eq!(fused.len(), 2);
    assert_eq!((&fused[0]["severity"], &fused[0]["function"]), (&"error".into(), &"main".into()));
    assert!(fused[0]["op"].as_u64() > Some(0) && fused[0]["kind"] == "scaled_dot_product_attention");
    let errors = findings.iter().filter(|f| f["severity"] == "error").count();
    assert_eq!(json["counts"]["error"].as_u64(), Some(errors as u64));
}

#[test]
fn errors_alone_fail_unless_strictness_is_asked_for() {
    // Angles in half floats are no error on other hardware.
    let mild = lint("tiny_article_fp16", &["--profile", "portable"]);
    assert_eq!(mild.code, Some(0), "{}{}", mild.out, mild.err);
    assert!(mild.out.contains("warning angle-half"), "{}", mild.out);
    assert_eq!(lint("tiny_article_fp16", &["--strict"]).code, Some(1));
    let allowed = ["--strict", "--allow", "angle-half", "--allow", "position-range", "--allow", "producer"];
    let left = lint("tiny_article_fp16", &allowed);
    assert_eq!(left.code, Some(0), "{}", left.out);
}

#[test]
fn rules_are_explained() {
    let one = anemone(["lint", "--explain", "state-alignment"]).ok();
    for word in ["coremltools#2631", "Remedy", "ane error"] {
        assert!(one.contains(word), "{word}: {one}");
    }
    assert!(anemone(["lint", "--explain", "all"]).ok().lines().count() > 30);
    let unknown = anemone(["lint", "--explain", "nonsense"]).run();
    assert_eq!(unknown.code, Some(2), "{}", unknown.err);
    assert_eq!(anemone(["lint"]).run().code, Some(2));
    assert_eq!(lint("tiny_article_fp16", &["--profile", "tpu"]).code, Some(2));
}
