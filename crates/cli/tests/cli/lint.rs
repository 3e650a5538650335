use anemone_mil::Const;
use half::f16;
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

/// A package whose numbers do not fit into half floats: the embedding of another tool's package, whose norms square what
/// they are given, multiplied by so much that single floats do not mind.
fn too_large(folder: &std::path::Path) -> std::path::PathBuf {
    let mut model = anemone_mil::load::load(&package("tiny_article_fp16")).unwrap();
    let mut changed = 0;
    for function in model.program.functions.values_mut() {
        for op in &mut function.body.ops {
            let label = op.label().unwrap_or_default().to_owned();
            if let Some(Const::Tensor(tensor)) = op.attributes.get_mut("val")
                && label.contains("embed")
                && tensor.ty.shape.len() == 2
            {
                let values: Vec<f32> =
                    tensor.bytes.as_chunks().0.iter().map(|b| f16::from_le_bytes(*b).to_f32()).collect();
                let most = values.iter().fold(0f32, |m, v| m.max(v.abs()));
                let larger = values.iter().flat_map(|v| f16::from_f32(v / most * 20_000.0).to_le_bytes());
                tensor.bytes = larger.collect::<Vec<u8>>().into();
                changed += 1;
            }
        }
    }
    assert_eq!(changed, 1, "the package has one embedding");
    let path = folder.join("large.mlpackage");
    anemone_mil::encode::write(&model, &path).unwrap();
    path
}

#[test]
fn with_a_text_what_breaks_in_half_floats_is_named() {
    let folder = super::support::Folder::with_model();
    let place = tempfile::tempdir().unwrap();
    let text = place.path().join("text.txt");
    std::fs::write(&text, "The lighthouse stood at the end of a long spit of sand.").unwrap();
    let text = text.to_str().unwrap();
    let ours = folder.anemone(["lint", &folder.model(), "--with", text, "--tokens", "12"]).run();
    assert_eq!(ours.code, Some(0), "{}{}", ours.out, ours.err);
    assert!(ours.out.contains("In half floats, 12 tokens: well"), "{}", ours.out);

    let large = too_large(place.path());
    let large = large.to_str().unwrap();
    assert_eq!(anemone(["lint", large]).run().code, Some(0), "the rules alone see no error");
    let theirs = anemone(["lint", large, "--with", text, "--tokens", "6"]).run();
    assert_eq!(theirs.code, Some(1), "{}{}", theirs.out, theirs.err);
    for word in ["In half floats, 6 tokens: error", "was not finite in", "→ "] {
        assert!(theirs.out.contains(word), "{word}: {}", theirs.out);
    }
    let done = anemone(["lint", large, "--with", text, "--tokens", "6", "--json"]).run();
    let json: Value = serde_json::from_str(&done.out).unwrap();
    assert!(!json["half_floats"]["overflows"].as_array().unwrap().is_empty(), "{json}");
    assert!(lint("tiny_article_fp16", &["--json"]).out.contains("\"half_floats\": null"));
    assert_eq!(anemone(["lint", large, "--tokens", "6"]).run().code, Some(2), "--tokens is of --with");
}
