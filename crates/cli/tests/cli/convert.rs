use std::path::Path;

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
fn a_cache_of_the_host_and_parts_are_chosen_told_and_verified() {
    let folder = tempfile::tempdir().unwrap();
    let source = tiny_checkpoint(folder.path());
    let source = source.to_str().unwrap();
    let made = |name: &str, options: &[&str]| {
        let out = folder.path().join(name).to_str().unwrap().to_owned();
        let done = anemone(["convert", source, "-o", &out, "--context", "32"].iter().chain(options)).run();
        assert_eq!(done.code, Some(0), "{}", done.err);
        let json: Value = serde_json::from_slice(&std::fs::read(format!("{out}/anemone.json")).unwrap()).unwrap();
        (out, done.err, json)
    };
    let (io, _, manifest) = made("io", &["--kv", "io"]);
    assert_eq!(manifest["roles"]["columns"][0], "kv_columns");
    anemone(["verify", &io, "--against", source, "--tokens", "8"]).ok();
    let (parts, told, manifest) = made("parts", &["--profile", "ane", "--parts", "3"]);
    assert!(told.contains("in 3 parts"), "{told}");
    assert_eq!(manifest["parts"][1]["package"], "layers-1.mlpackage");
    anemone(["verify", &parts, "--against", source, "--tokens", "8"]).ok();
    anemone(["lint", &format!("{parts}/head.mlpackage"), "--profile", "ane"]).ok();
    anemone(["run", "-m", &parts, "--kv", "io", "Hi"]).fails(2, &["--kv io", "here as state"]);
    let out = folder.path().join("none");
    let out = out.to_str().unwrap();
    anemone(["convert", source, "-o", out, "--kv", "disk"]).fails(2, &["state or io"]);
    anemone(["convert", source, "-o", out, "--parts", "99"]).fails(2, &["parts 99", "expected 1 to"]);
    anemone(["convert", source, "-o", out, "--profile", "gpu", "--parts", "2"])
        .fails(2, &["--parts 2; expected 1: the apps"]);
    anemone(["convert", source, "-o", out, "--profile", "gpu", "--kv", "io"]).fails(2, &["kv io", "as state alone"]);
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
fn the_narrowest_prefill_answers() {
    let folder = tempfile::tempdir().unwrap();
    let source = tiny_checkpoint(folder.path());
    let (narrow, usual) = (folder.path().join("narrow"), folder.path().join("usual"));
    let answers = [(&narrow, "2"), (&usual, "16")].map(|(out, prefill)| {
        let out = out.to_str().unwrap();
        anemone(["convert", source.to_str().unwrap(), "-o", out, "--context", "64", "--prefill", prefill]).ok();
        anemone(["run", "-m", out, "--temperature", "0", "--max-tokens", "8", "hi"]).ok()
    });
    assert_eq!(answers[0], answers[1]);
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

#[test]
fn a_plan_says_everything_and_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let source = tiny_checkpoint(folder.path());
    let source = source.to_str().unwrap();
    let plan = |more: &[&str]| anemone(["convert", source, "--plan"].iter().chain(more)).ok();
    let text = plan(&["--context", "32", "--weights", "int8"]);
    for word in [
        "context  32 of the 8192",
        "cache  ",
        "package  about",
        "parts    1",
        "lint  ",
        "quality  next to",
        "Nothing was written",
    ] {
        assert!(text.contains(word), "{word:?}: {text}");
    }
    assert!(plan(&[]).contains("quality  the source's own answers"));
    let json: Value = serde_json::from_str(&plan(&["--json", "--weights", "int4"])).unwrap();
    assert_eq!((&json["profile"], &json["weights"]), (&"portable".into(), &"int4".into()));
    assert!(json["cache_bytes"].as_u64() > Some(0) && json["package_bytes"].as_u64() > Some(0), "{json}");
    assert!(json["quality"]["relative_error"].as_f64() > Some(0.01), "{json}");
    assert!(json["lint"].is_array(), "{json}");
    let ane = ["convert", source, "--plan", "--weights", "int4", "--profile", "ane"];
    anemone(ane).fails(2, &["--weights int4", "Neural Engine", "lut4"]);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is written");
    anemone(["convert", source]).fails(2, &["--output"]);
    anemone(["convert", source, "-o", "x", "--plan"]).fails(2, &["--plan"]);
    anemone(["convert", source, "-o", "x", "--json"]).fails(2, &["--plan"]);
}

#[test]
fn an_adapter_is_merged_and_told_of() {
    let folder = tempfile::tempdir().unwrap();
    let source = tiny_checkpoint(folder.path());
    let (adapter, out) = (folder.path().join("adapter"), folder.path().join("out"));
    std::fs::create_dir(&adapter).unwrap();
    let weights = std::fs::read(source.join("model.safetensors")).unwrap();
    let weights = safetensors::SafeTensors::deserialize(&weights).unwrap();
    let shape = weights.tensor("model.layers.0.self_attn.q_proj.weight").unwrap().shape().to_vec();
    let zeros = vec![0; 4 * 2 * shape[0].max(shape[1])];
    let view = |shape: [usize; 2]| {
        let bytes = &zeros[..4 * shape[0] * shape[1]];
        safetensors::tensor::TensorView::new(safetensors::Dtype::F32, shape.to_vec(), bytes).unwrap()
    };
    let module = "base_model.model.model.layers.0.self_attn.q_proj";
    let (a, b) = (format!("{module}.lora_A.weight"), format!("{module}.lora_B.weight"));
    let tensors = [(a, view([2, shape[1]])), (b, view([shape[0], 2]))];
    safetensors::serialize_to_file(tensors, None, &adapter.join("adapter_model.safetensors")).unwrap();
    std::fs::write(adapter.join("adapter_config.json"), r#"{"peft_type": "LORA", "r": 2, "lora_alpha": 4}"#).unwrap();
    let (source, adapter, out) = (source.to_str().unwrap(), adapter.to_str().unwrap(), out.to_str().unwrap());
    let done = anemone(["convert", source, "-o", out, "--context", "32", "--lora", adapter]).run();
    assert_eq!(done.code, Some(0), "{}", done.err);
    assert!(done.err.contains("the adapter adapter is merged into 1 matrix: rank 2, scale 4 / 2 = 2"), "{}", done.err);
    let plan = anemone(["convert", source, "--plan", "--lora", adapter]).ok();
    assert!(plan.contains("the adapter adapter is merged"), "{plan}");
    anemone(["convert", source, "--plan", "--lora", source]).fails(1, &["adapter_config.json"]);
}

#[test]
fn int4_is_nearer_to_its_source_on_the_text_that_it_was_calibrated_with() {
    let folder = tempfile::tempdir().unwrap();
    let source = tiny_checkpoint(folder.path());
    let texts = ["Lighthouses stand at the end of long spits of sand. ", "{\"id\": 17, \"size\": [640, 480]}\n"];
    let texts: Vec<_> = texts
        .iter()
        .enumerate()
        .map(|(i, line)| {
            let path = folder.path().join(format!("text{i}"));
            std::fs::write(&path, line.repeat(20)).unwrap();
            path
        })
        .collect();
    let convert = |name: &str, text: Option<&Path>| {
        let out = folder.path().join(name);
        let (source, out_text) = (source.to_str().unwrap(), out.to_str().unwrap());
        let mut arguments = vec!["convert", source, "-o", out_text, "--weights", "int4", "--context", "512"];
        arguments.extend(text.iter().flat_map(|text| ["--calibrate", text.to_str().unwrap()]));
        anemone(arguments).ok();
        let blob = std::fs::read(out.join("model.mlpackage/Data/com.apple.CoreML/weights/weight.bin")).unwrap();
        // How far its logits are from the source's on the first text.
        let verify = ["verify", out_text, "--against", source, "--tokens", "400", "--json", "--text"];
        let told = anemone(verify.into_iter().chain([texts[0].to_str().unwrap()])).run().out;
        let report: Value = serde_json::from_str(&told).unwrap();
        (blob, report["logits"]["mean_divergence"].as_f64().unwrap())
    };
    let (plain, off) = convert("plain", None);
    let (own, own_off) = convert("own", Some(&texts[0]));
    let (other, other_off) = convert("other", Some(&texts[1]));
    assert!(plain != own && own != other && plain != other, "each text gives weights of its own");
    assert!(own == convert("again", Some(&texts[0])).0, "the same text gives the same bytes");
    assert!(own_off < off, "calibrated {own_off:.2e}, plain {off:.2e}");
    assert!(own_off < other_off, "calibrated {own_off:.2e}, with another text {other_off:.2e}");
}

#[cfg(unix)]
#[test]
fn a_text_that_is_no_regular_file_is_refused_before_it_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let source = tiny_checkpoint(folder.path());
    let (source, out) = (source.to_str().unwrap(), folder.path().join("out"));
    for text in ["/dev/zero", folder.path().to_str().unwrap()] {
        let convert = ["convert", source, "-o", out.to_str().unwrap(), "--weights", "int4", "--calibrate", text];
        anemone(convert).fails(1, &["--calibrate", text, "not a regular file"]);
    }
    assert!(!out.exists());
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_with_130_while_a_text_is_read() {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    let folder = tempfile::tempdir().unwrap();
    let source = tiny_checkpoint(folder.path());
    let text = folder.path().join("text");
    std::fs::write(&text, "Lighthouses stand at the end of long spits of sand. ".repeat(200)).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_anemone"))
        .arg("convert")
        .arg(&source)
        .args(["--weights", "lut4", "--calibrate"])
        .arg(&text)
        .arg("-o")
        .arg(folder.path().join("out"))
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.by_ref().any(|line| line.contains("reading a text")));
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    assert_eq!(super::support::ended(&mut child), Some(130));
    assert_eq!(lines.last().as_deref(), Some("interrupted"));
    assert!(!folder.path().join("out").exists());
}

/// The system would end the program without a word.
#[cfg(unix)]
#[test]
fn a_limit_on_the_size_of_files_is_an_error_that_names_the_file() {
    use std::process::Command;

    let folder = tempfile::tempdir().unwrap();
    let source = tiny_checkpoint(folder.path());
    let done = Command::new("sh")
        .args(["-c", "ulimit -f 20; exec \"$0\" convert \"$1\" -o \"$2\"", env!("CARGO_BIN_EXE_anemone")])
        .args([&source, &folder.path().join("out")])
        .output()
        .unwrap();
    let told = String::from_utf8(done.stderr).unwrap();
    assert_eq!(done.status.code(), Some(1), "{told}");
    let last = told.lines().last().unwrap();
    assert!(last.starts_with("error: ") && last.contains("weight") && last.contains("too large"), "{told}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left behind");
}
