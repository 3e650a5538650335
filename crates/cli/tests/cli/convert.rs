use serde_json::Value;

use super::support::{anemone, tiny_checkpoint};

#[test]
fn costs_are_told_before_and_the_folder_is_complete_after() {
    for weights in ["f16", "int8", "int4", "int4-asymmetric", "keep"] {
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
    for (option, value, expected) in [
        ("--prefill", "1", "2 to 4096"),
        ("--prefill", "1000000", "2 to 4096"),
        ("--context", "9000", "2 to 8192"),
        ("--context", "-1", "such as 4096, or 4k"),
        ("--context", "4x", "such as 4096, or 4k"),
        ("--weights", "f13", "f16 or int8"),
    ] {
        let err = anemone(["convert", source, "-o", out, option, value]).fails(2, &[option, value, expected]);
        let other = if option == "--context" { "--prefill" } else { "--context" };
        assert!(!err.contains(other), "{err}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left behind");
}

#[test]
fn a_short_context_narrows_prefill_and_names_of_schemes_may_be_capitals() {
    let folder = tempfile::tempdir().unwrap();
    let source = tiny_checkpoint(folder.path());
    let out = folder.path().join("tiny");
    let (source, out) = (source.to_str().unwrap(), out.to_str().unwrap());
    let err = anemone(["convert", source, "-o", out, "--context", "1k", "--weights", "INT8"]).run().err;
    assert!(err.contains("context  1024 of") && err.contains("int8 weights"), "{err}");
    anemone(["convert", source, "-o", out, "--context", "63"]).ok();
    let json: Value = serde_json::from_slice(&std::fs::read(format!("{out}/anemone.json")).unwrap()).unwrap();
    assert_eq!(json["functions"]["prefill"], 63);
}

#[test]
fn a_model_without_a_tokenizer_is_not_said_to_chat() {
    let folder = tempfile::tempdir().unwrap();
    let source = tiny_checkpoint(folder.path());
    std::fs::remove_file(source.join("tokenizer.json")).unwrap();
    std::fs::remove_file(source.join("tokenizer_config.json")).unwrap();
    let (home, out) = (folder.path().join("home"), folder.path().join("tiny"));
    let (source, out) = (source.to_str().unwrap(), out.to_str().unwrap());
    let done = anemone(["convert", source, "-o", out]).run();
    assert_eq!(done.code, Some(0), "{}", done.err);
    assert!(done.err.contains("has no tokenizer") && !done.err.contains("anemone chat"), "{}", done.err);
    let run = anemone(["run", "-m", source, "Hello"]).env("ANEMONE_HOME", &home);
    run.fails(1, &["no tokenizer", "tokenizer.json"]);
    assert!(!home.join("models").exists(), "nothing is left that could not be used");
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

#[test]
fn several_at_once_into_one_folder_all_go_well() {
    let folder = tempfile::tempdir().unwrap();
    let source = tiny_checkpoint(folder.path());
    let out = folder.path().join("tiny");
    for _ in 0..2 {
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| anemone(["convert".as_ref(), source.as_os_str(), "-o".as_ref(), out.as_os_str()]).ok());
            }
        });
    }
    anemone(["run".as_ref(), "-m".as_ref(), out.as_os_str(), "--max-tokens".as_ref(), "1".as_ref(), "Hi".as_ref()])
        .ok();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "nothing is left behind");
}

#[test]
fn what_a_killed_one_left_does_not_stand_in_the_way() {
    let folder = tempfile::tempdir().unwrap();
    let source = tiny_checkpoint(folder.path());
    let out = folder.path().join("tiny");
    let convert = || anemone(["convert".as_ref(), source.as_os_str(), "-o".as_ref(), out.as_os_str()]).ok();
    convert();
    // Killed while the model that was there was moved aside, and while one was written.
    std::fs::rename(&out, folder.path().join(".tiny.anemone-1-2.old")).unwrap();
    let partial = folder.path().join(".tiny.anemone-1-3.partial");
    std::fs::create_dir(&partial).unwrap();
    std::fs::write(partial.join("anemone.json"), "").unwrap();
    for _ in 0..2 {
        convert();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "nothing is left behind");
    }
}

#[cfg(unix)]
#[test]
fn a_link_at_the_destination_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let source = tiny_checkpoint(folder.path());
    let out = folder.path().join("link");
    std::os::unix::fs::symlink(folder.path().join("nowhere"), &out).unwrap();
    let done = anemone(["convert", source.to_str().unwrap(), "-o", out.to_str().unwrap()]);
    done.fails(1, &["link", "give the path that it leads to"]);
    assert!(out.is_symlink());
}
