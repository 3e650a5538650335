use serde_json::Value;

use super::support::{anemone, tiny_checkpoint};

#[test]
fn costs_are_told_before_and_the_folder_is_complete_after() {
    for weights in ["f16", "int8"] {
        let folder = tempfile::tempdir().unwrap();
        let source = tiny_checkpoint(folder.path());
        let source = source.to_str().unwrap();
        let out = folder.path().join("tiny");
        let out = out.to_str().unwrap();
        let done =
            anemone(["convert", source, "-o", out, "--context", "32", "--weights", weights, "--prefill", "4"]).run();
        assert_eq!((done.code, done.out.as_str()), (Some(0), ""), "{}", done.err);
        for word in ["context  32 of", "cache ", "package ", weights, "of disk are free", "done in"] {
            assert!(done.err.contains(word), "{word:?}: {}", done.err);
        }
        let json: Value = serde_json::from_str(&anemone(["inspect", out, "--json"]).ok()).unwrap();
        assert_eq!(json["context"], 32);
        assert_eq!(json["functions"][0]["states"][0]["shape"][2], 32);
        let text = anemone(["inspect", out]).ok();
        assert!(text.contains("context 32") && text.contains("function decode, the default"), "{text}");
    }
}

#[test]
fn options_that_do_not_fit_the_model_are_wrong_arguments() {
    let folder = tempfile::tempdir().unwrap();
    let source = tiny_checkpoint(folder.path());
    let source = source.to_str().unwrap();
    let out = folder.path().join("tiny");
    let out = out.to_str().unwrap();
    anemone(["convert", source, "-o", out, "--context", "1000000"]).fails(2, &["context", "1000000"]);
    anemone(["convert", source, "-o", out, "--prefill", "1"]).fails(2, &["prefill"]);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left behind");
}

#[test]
fn what_stands_in_the_way_is_not_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let source = tiny_checkpoint(folder.path());
    let source = source.to_str().unwrap();
    std::fs::write(folder.path().join("precious"), "data").unwrap();
    let out = folder.path().to_str().unwrap();
    anemone(["convert", source, "-o", out]).fails(1, &["choose another folder"]);
    assert_eq!(std::fs::read_to_string(folder.path().join("precious")).unwrap(), "data");
}

#[test]
fn an_id_of_hugging_face_that_cannot_be_reached() {
    anemone(["convert", "hf:nobody/nothing", "-o", "out"]).fails(1, &["hf:nobody/nothing"]);
    anemone(["convert", "hf:nobody", "-o", "out"]).fails(1, &["hf:OWNER/NAME"]);
}
