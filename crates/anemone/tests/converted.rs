//! A checkpoint converted, opened, run and chatted with.

mod common;

use std::path::Path;

use anemone::{Error, Event, Generation, Model, ModelOptions, PackageRunner, Request, Session, StopReason};
use anemone_convert::{Conversion, Options, Source, Watch};
use anemone_kernels::Isa;
use common::{Reference, feed, folder, options};

const CONTEXT: usize = 64;
const PREFILL: usize = 8;

/// Converts the tiny checkpoint of the fixtures, of which `tiny_article_fp16` has the same weights.
fn convert(source: &Path, dest: &Path) {
    convert_to("f16", PREFILL, source, dest);
}

fn convert_to(weights: &str, prefill: usize, source: &Path, dest: &Path) {
    let source = Source::open(source).unwrap();
    let weights = anemone_convert::quantize::find(weights).unwrap();
    let options = Options { context: Some(CONTEXT), prefill: Some(prefill), weights, ..Options::default() };
    Conversion::new(&source, &options).unwrap().run(dest, &Watch::default()).unwrap();
}

fn tiny(dest: &Path) {
    convert(&folder().join("tiny_article_hf"), dest);
}

/// The checkpoint with a tokenizer of its 256 bytes and a template.
fn speaking(dest: &Path) {
    let source = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(folder().join("tiny_article_hf")).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), source.path().join(entry.file_name())).unwrap();
    }
    tokenizer(source.path());
    convert(source.path(), dest);
}

/// Byte tokens 3 to 255 (a few bytes have none), `<s>` 1, `</s>` 2.
fn tokenizer(folder: &Path) {
    let special = |id, content| {
        serde_json::json!({
            "id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
            "special": true,
        })
    };
    let mut vocabulary = serde_json::Map::new();
    for (id, text) in ["<unk>", "<s>", "</s>"].into_iter().enumerate() {
        vocabulary.insert(text.to_owned(), id.into());
    }
    let letters = (0x21..=0x7e).chain(0xa1..=0xac).chain(0xae..=0xff).chain(0x100..=0x13f).filter_map(char::from_u32);
    for (id, letter) in (3..256).zip(letters) {
        vocabulary.insert(letter.to_string(), id.into());
    }
    let json = serde_json::json!({
        "version": "1.0", "truncation": null, "padding": null, "normalizer": null, "post_processor": null,
        "added_tokens": [special(0, "<unk>"), special(1, "<s>"), special(2, "</s>")],
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
        "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
        "model": {
            "type": "BPE", "dropout": null, "unk_token": "<unk>", "continuing_subword_prefix": null,
            "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "ignore_merges": false,
            "vocab": vocabulary, "merges": [],
        },
    });
    std::fs::write(folder.join("tokenizer.json"), json.to_string()).unwrap();
    let template = "{{ bos_token }}{% for m in messages %}{{ m.role[0] }}:{{ m.content }}{{ eos_token }}{% endfor %}\
                    {% if add_generation_prompt %}a:{% endif %}";
    let config = serde_json::json!({"bos_token": "<s>", "eos_token": "</s>", "chat_template": template});
    std::fs::write(folder.join("tokenizer_config.json"), config.to_string()).unwrap();
}

fn request(max_tokens: usize) -> Request {
    Request::new(Generation { max_tokens: Some(max_tokens), ..Generation::default() })
}

#[test]
fn our_package_of_the_checkpoint_gives_its_logits_in_any_split() {
    let dest = tempfile::tempdir().unwrap();
    tiny(dest.path());
    let runner = PackageRunner::open(dest.path(), &options()).unwrap();
    let info = runner.info();
    assert_eq!((info.signature, info.context, info.vocabulary), ("anemone", CONTEXT, 256));
    let calls: Vec<_> = info.calls.iter().map(|c| (c.function.as_str(), c.width)).collect();
    let wide = anemone_cpu::worthwhile_width().map_or(PREFILL, |most| most.min(CONTEXT));
    assert_eq!(calls, [("decode", 1), ("prefill", wide)]);
    assert_eq!(info.states[0].name, "kv_cache");
    assert_eq!(info.states[0].shape, [4, 2, CONTEXT, 16]);
    assert_eq!(info.state_bytes, 4 * 2 * 64 * 16 * 2);

    let reference = Reference::read("tiny_article_fp16");
    let n = reference.tokens.len();
    for pieces in [vec![1; n], vec![n], vec![3, n - 3], vec![PREFILL, n - PREFILL], vec![n - 1, 1]] {
        let (_, logits) = feed(&runner, &reference.tokens, &pieces);
        let mut position = 0;
        for (piece, logits) in pieces.iter().zip(&logits) {
            position += piece;
            reference.check(position, logits).unwrap_or_else(|e| panic!("in pieces of {pieces:?}: {e}"));
        }
    }
}

/// A call of more tokens computes products and attention in tiles, where the processor has them.
const NARROW: usize = 16;

#[test]
fn tokens_read_in_calls_of_any_width_give_the_same_bits() {
    let tokens: Vec<u32> = (0..CONTEXT as u32).map(|i| i * 7 % 256).collect();
    for weights in ["f16", "int8", "int4", "lut4"] {
        let dest = tempfile::tempdir().unwrap();
        convert_to(weights, 4 * PREFILL, &folder().join("tiny_article_hf"), dest.path());
        let runner = PackageRunner::open(dest.path(), &options()).unwrap();
        let tiles = matches!(Isa::detect(), Isa::Amx(_));
        let (_, single) = feed(&runner, &tokens, &[1; CONTEXT]);
        let (_, whole) = feed(&runner, &tokens, &[CONTEXT]);
        let check = |pieces: &[usize], single: &[Vec<f32>], whole: Option<&Vec<f32>>| {
            let (_, wide) = feed(&runner, &tokens, pieces);
            let mut position = 0;
            for (piece, logits) in pieces.iter().zip(&wide) {
                position += piece;
                let other = single.get(position - 1).or(whole.filter(|_| position == CONTEXT));
                let same = other.is_none_or(|o| logits.iter().zip(o).all(|(a, b)| a.to_bits() == b.to_bits()));
                assert!(same, "{weights} in pieces of {pieces:?}: other bits after {position} tokens");
            }
        };
        for pieces in [vec![5, 16, 16, 12, 15], vec![1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 9]] {
            assert!(pieces.iter().all(|&n| n <= NARROW));
            check(&pieces, &single, None);
        }
        for pieces in [vec![CONTEXT], vec![32, 32], vec![17, 18, 29], vec![20, 20, 24]] {
            check(&pieces, if tiles { &[] } else { &single }, Some(&whole[0]));
        }
        for pieces in [vec![CONTEXT - 5, 5], vec![17, 3, 44], vec![CONTEXT - 1, 1]] {
            if !tiles {
                check(&pieces, &single, None);
            }
        }
        // By tiles or by blocks: the same but for roundings.
        let largest = single[CONTEXT - 1].iter().fold(0.0_f32, |m, v| m.max(v.abs()));
        let apart = whole[0].iter().zip(&single[CONTEXT - 1]).fold(0.0_f32, |m, (a, b)| m.max((a - b).abs()));
        assert!(apart <= 2e-3 * largest, "{weights}: {apart} apart, of {largest}");
        assert!(tiles || apart == 0.0, "{weights}: {apart} apart");
    }
}

#[test]
fn a_folder_without_a_tokenizer_says_so() {
    let dest = tempfile::tempdir().unwrap();
    let source = Source::open(folder().join("tiny_article_hf")).unwrap();
    let options = Options { context: Some(CONTEXT), prefill: Some(PREFILL), ..Options::default() };
    let notes = Conversion::new(&source, &options).unwrap().notes();
    assert!(notes.len() == 1 && notes[0].contains("no tokenizer"), "{notes:?}");
    tiny(dest.path());
    assert!(!dest.path().join("tokenizer.json").exists());
    let error = Model::open(dest.path(), &ModelOptions::default()).unwrap_err();
    assert!(matches!(error, Error::NoTokenizer { .. }), "{error}");
    // Put there, it is used, and it is said that nothing is known of it.
    tokenizer(dest.path());
    let model = Model::open(dest.path(), &ModelOptions::default()).unwrap();
    assert!(
        model.info().notes.iter().any(|note| note.contains("`tokenizer.json` is not among")),
        "{:?}",
        model.info().notes
    );
}

#[test]
fn a_conversation_is_kept_in_the_state() {
    let dest = tempfile::tempdir().unwrap();
    speaking(dest.path());
    let model = Model::open(dest.path(), &options()).unwrap();
    assert_eq!(model.end_tokens, [2]);
    assert_eq!(model.info().notes.iter().filter(|n| n.contains("template")).count(), 0);
    let mut session = Session::new(model.into()).unwrap();
    let mut shown = String::new();
    let mut events = |event: Event<'_>| {
        if let Event::Text(text) = event {
            shown += text;
        }
    };
    let first = session.say("Hello", &request(5), &mut events).unwrap();
    assert_eq!((first.tokens_reused, first.tokens_computed), (0, "0u:Hello0a:".len()));
    assert_eq!(first.stop_reason, StopReason::MaxTokens);
    assert_eq!(shown, first.text);
    // The second turn computes the last token of the answer, which no call has read yet, and what is new.
    let second = session.say("Why?", &request(5), &mut |_| {}).unwrap();
    assert_eq!(second.tokens_reused, first.tokens_computed + first.tokens_generated - 1);
    assert_eq!(second.tokens_computed, 1 + "0u:Why?0a:".len());

    // As a model that reads the whole prompt at once.
    let again = Model::open(&dest.path().join("model.mlpackage"), &options()).unwrap();
    let mut fresh = Session::new(again.into()).unwrap();
    let prompt = &session.transcript()[..second.tokens_reused + second.tokens_computed];
    fresh.complete(prompt, &request(5), &mut |_| {}).unwrap();
    assert_eq!(fresh.transcript(), session.transcript());

    // A fork and a session that was reset go their own ways.
    let mut fork = session.fork().unwrap();
    let third = session.say("And now?", &request(3), &mut |_| {}).unwrap();
    assert_eq!(fork.say("And now?", &request(3), &mut |_| {}).unwrap().text, third.text);
    session.reset().unwrap();
    let begun = session.say("Hello", &request(5), &mut |_| {}).unwrap();
    assert_eq!((begun.text, begun.tokens_reused), (first.text, 0));
}

#[test]
fn a_bare_package_finds_its_tokenizer_beside_it() {
    let (converted, bare) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    tiny(converted.path());
    std::fs::rename(converted.path().join("model.mlpackage"), bare.path().join("tiny.mlpackage")).unwrap();
    tokenizer(bare.path());
    let settings = r#"{"eos_token_id": [2, 9, 999], "do_sample": true, "top_p": 0.9, "temperature": 0.7}"#;
    std::fs::write(bare.path().join("generation_config.json"), settings).unwrap();
    for path in [bare.path().to_owned(), bare.path().join("tiny.mlpackage")] {
        let model = Model::open(&path, &options()).unwrap();
        assert_eq!(model.info().name, "tiny");
        assert_eq!(model.end_tokens, [2, 9], "999 is not in the vocabulary");
        assert_eq!((model.generation.temperature, model.generation.top_p), (0.7, 0.9));
    }
}

#[test]
fn a_folder_that_was_changed_is_refused() {
    let dest = tempfile::tempdir().unwrap();
    speaking(dest.path());
    let weights = dest.path().join("model.mlpackage/Data/com.apple.CoreML/weights/weight.bin");
    let mut bytes = std::fs::read(&weights).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    std::fs::remove_file(&weights).unwrap();
    std::fs::write(&weights, &bytes).unwrap();
    let error = Model::open(dest.path(), &options()).unwrap_err();
    assert!(error.to_string().contains("was changed") && error.to_string().contains("model.mlpackage"), "{error}");
    let unchecked = ModelOptions { verify: false, ..options() };
    Model::open(dest.path(), &unchecked).unwrap();

    std::fs::write(dest.path().join("chat_template.jinja"), "other").unwrap();
    let error = Model::open(dest.path(), &unchecked).unwrap_err();
    assert!(error.to_string().contains("chat_template.jinja"), "{error}");
}

#[test]
fn packed_weights_are_kept_and_a_second_start_gives_the_same_bits() {
    let source = Source::open(folder().join("tiny_article_hf")).unwrap();
    for scheme in ["f16", "int8", "int4", "int4-asymmetric", "keep"] {
        let dest = tempfile::tempdir().unwrap();
        let weights = anemone_convert::quantize::find(scheme).unwrap();
        let conversion = Options { context: Some(CONTEXT), prefill: Some(PREFILL), weights, ..Options::default() };
        let fidelity = Conversion::new(&source, &conversion).unwrap().run(dest.path(), &Watch::default()).unwrap();
        let worst = fidelity.worst().first().map_or(0.0, |m| m.relative_error);
        let bound = if scheme.starts_with("int4") { 0.12 } else { 0.01 };
        assert!(worst < bound && fidelity.matrices.len() == 2 + 2 * 7, "{scheme}: {worst}");

        if scheme.starts_with("int4") {
            // So few bytes are not worth a file.
            continue;
        }
        let packed = dest.path().join("packed");
        let logits = || {
            let options = ModelOptions { packed: Some(packed.clone()), ..options() };
            let runner = PackageRunner::open(dest.path(), &options).unwrap();
            let mut state = anemone::Runner::new_state(&runner).unwrap();
            let mut logits = vec![0.0; 256];
            anemone::Runner::feed(&runner, &mut state, 0, &[1, 70, 71, 72, 73], &mut logits).unwrap();
            logits
        };
        let first = logits();
        let files = std::fs::read_dir(&packed).unwrap().map(|e| e.unwrap().path());
        let files: Vec<_> = files.filter(|path| !path.to_string_lossy().contains("-plans-")).collect();
        assert_eq!(files.len(), 1, "{scheme}");
        assert_eq!(first, logits(), "{scheme}, read");
        let whole = std::fs::read(&files[0]).unwrap();
        std::fs::write(&files[0], &whole[..whole.len() / 2]).unwrap();
        assert_eq!(first, logits(), "{scheme}, packed anew");
        assert_eq!(std::fs::read(&files[0]).unwrap().len(), whole.len(), "{scheme}: it was written again");
    }
}

/// A third start reads no program; whatever was written to since makes it read one again, or refuse.
#[test]
#[cfg(target_os = "linux")]
fn plans_are_kept_until_something_changes() {
    let dest = tempfile::tempdir().unwrap();
    convert_to("int8", PREFILL, &folder().join("tiny_article_hf"), dest.path());
    let packed = dest.path().join("packed");
    let kept = |kind: &str| {
        let files = std::fs::read_dir(&packed).into_iter().flatten().map(|e| e.unwrap().path());
        files.filter(|path| path.to_string_lossy().contains(kind)).collect::<Vec<_>>()
    };
    let open = |speculation| {
        let options = ModelOptions { packed: Some(packed.clone()), speculation, ..options() };
        let runner = PackageRunner::open(dest.path(), &options)?;
        let mut state = anemone::Runner::new_state(&runner).unwrap();
        let mut logits = vec![0.0; 256];
        anemone::Runner::feed(&runner, &mut state, 0, &[1, 70, 71, 72, 73], &mut logits).unwrap();
        anemone::Runner::feed(&runner, &mut state, 5, &[74], &mut logits).unwrap();
        Ok::<_, Error>((logits.iter().map(|v| v.to_bits()).collect::<Vec<_>>(), runner.info().clone()))
    };
    let auto = anemone::Speculation::Auto;
    let first = open(auto).unwrap();
    // Files that were written a moment ago are not known by their times.
    let end = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while kept("-seen-").is_empty() {
        assert!(std::time::Instant::now() < end, "they were left alone");
        std::thread::sleep(std::time::Duration::from_millis(300));
        assert!(open(auto).unwrap() == first);
    }
    let [plans] = &kept("-plans-")[..] else { panic!("one file of plans") };
    // Of a package whose program cannot be read the plans show that it was not.
    let whole = std::fs::read(plans).unwrap();
    assert!(open(auto).unwrap() == first, "from what is kept");
    for at in [0, 20, 60, 100, whole.len() / 2, whole.len() - 1] {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        std::fs::write(plans, &bytes).unwrap();
        assert!(open(auto).unwrap() == first, "flipped at {at}");
        assert_eq!(std::fs::read(plans).unwrap(), whole, "written again");
        std::fs::write(plans, &whole[..at]).unwrap();
        assert!(open(auto).unwrap() == first, "cut at {at}");
        assert_eq!(std::fs::read(plans).unwrap(), whole, "written again");
    }
    open(anemone::Speculation::Off).unwrap();
    assert_eq!(kept("-plans-").len(), 2, "those of another way to open it");
    for path in kept("-amx").into_iter().chain(kept("-avx")).chain(kept("-plain")) {
        std::fs::remove_file(path).unwrap();
    }
    assert!(open(auto).unwrap() == first, "packed anew");

    let model = dest.path().join("model.mlpackage/Data/com.apple.CoreML/model.mlmodel");
    let mut bytes = std::fs::read(&model).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&model, &bytes).unwrap();
    assert!(open(auto).is_err(), "the package was changed");
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&model, &bytes).unwrap();
    assert!(open(auto).unwrap() == first, "and changed back");
    std::fs::remove_file(&model).unwrap();
    assert!(open(auto).is_err(), "the package is gone");
}

/// What a manifest says is held against its package: the field, what it says, what is there, and what to do are told.
#[test]
fn a_manifest_that_contradicts_its_package_is_refused() {
    let dest = tempfile::tempdir().unwrap();
    speaking(dest.path());
    let path = dest.path().join("anemone.json");
    let whole: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let cases: [(&str, serde_json::Value, &str); 11] = [
        ("/context", 4096.into(), "`context` is 4096; expected 64"),
        ("/functions/prefill", 16.into(), "`functions.prefill` is 16; expected 8"),
        ("/functions", serde_json::json!({"decode": 1}), "`functions` is `decode`; expected `decode`, `prefill`"),
        ("/functions", serde_json::json!({}), "`functions` is none; expected `decode`, `prefill`"),
        (
            "/roles/tokens",
            "ids".into(),
            "`roles.tokens` is `ids`; expected one of the inputs, `cache_position`, `input_ids`",
        ),
        ("/roles/positions", "kv_cache".into(), "`roles.positions` is `kv_cache`; expected one of the inputs"),
        ("/roles/logits", "input_ids".into(), "`roles.logits` is `input_ids`; expected one of the outputs, `logits`"),
        ("/roles/cache", serde_json::json!(["kv"]), "`roles.cache` is `kv`; expected the states, `kv_cache`"),
        ("/roles/cache", serde_json::json!([]), "`roles.cache` is none; expected the states, `kv_cache`"),
        ("/files", serde_json::json!({}), "`files` does not tell of `generation_config.json`"),
        ("/package_sha256", "00".repeat(32).into(), "the file was changed"),
    ];
    for (field, value, expected) in cases {
        let mut manifest = whole.clone();
        *manifest.pointer_mut(field).unwrap() = value;
        std::fs::write(&path, manifest.to_string()).unwrap();
        let error = Model::open(dest.path(), &options()).unwrap_err().to_string();
        assert!(error.contains(expected) && error.contains("convert the model again"), "{field}: {error}");
    }
    let mut manifest = whole.clone();
    manifest["roles"]["columns"] = serde_json::json!(["kv_columns"]);
    std::fs::write(&path, manifest.to_string()).unwrap();
    let error = Model::open(dest.path(), &options()).unwrap_err().to_string();
    assert!(error.contains("`roles.columns` is `kv_columns`; expected one of the outputs"), "{error}");
    std::fs::write(&path, whole.to_string()).unwrap();
    Model::open(dest.path(), &options()).unwrap();
}
