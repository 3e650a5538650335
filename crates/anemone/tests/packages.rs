//! Packages of coremltools as runners, against PyTorch.

mod common;

use anemone::{Error, Model, ModelOptions, PackageRunner, Runner};
use common::{Reference, argmax, feed, folder, options};

/// How far logits of the fixtures, which spread over some units, may be off where activations are rounded to 16 bits.
const ROUNDED: f32 = 0.0003;

fn open(name: &str) -> PackageRunner {
    open_with(name, &options())
}

fn open_with(name: &str, options: &ModelOptions) -> PackageRunner {
    let path = folder().join(name).join("model.mlpackage");
    PackageRunner::open(&path, options).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// Every fixture that is a package with states.
fn stateful() -> Vec<String> {
    let mut all: Vec<String> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().join("model.mlpackage").is_dir())
        .map(|entry| entry.file_name().into_string().unwrap())
        .filter(|name| !name.starts_with("ios16_"))
        .collect();
    all.sort();
    assert!(all.len() >= 22, "the fixtures are incomplete: {all:?}");
    all
}

#[test]
fn every_stateful_package_gives_the_reference_in_any_split() {
    let mut wrong = Vec::new();
    for name in stateful() {
        let exact = ModelOptions { exact: true, ..options() };
        let (runner, reference) = (open_with(&name, &exact), Reference::read(&name));
        let tokens = &reference.tokens;
        let n = tokens.len();
        let mut splits = vec![vec![2, n - 5, 3]];
        if ["tiny_article_fp16", "tiny_article_fp32", "multifunction", "tiny_guide_kv1_fp16"].contains(&&*name) {
            splits.extend([vec![1; n], vec![n], vec![n - 1, 1]]);
        }
        for pieces in splits {
            let (_, logits) = feed(&runner, tokens, &pieces);
            let mut position = 0;
            for (piece, logits) in pieces.iter().zip(&logits) {
                position += piece;
                let problem = reference.check(position, logits).err();
                wrong.extend(problem.map(|p| format!("{name} in pieces of {pieces:?}: {p}")));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What `docs/numerics.md` says of products with weights of integers: near, and the same best token.
#[test]
fn rounded_activations_stay_near_the_reference() {
    let mut wrong = Vec::new();
    for name in stateful() {
        let (runner, mut reference) = (open(&name), Reference::read(&name));
        reference.tolerance = reference.tolerance.max(ROUNDED);
        let n = reference.tokens.len();
        for pieces in [vec![1; n], vec![2, n - 5, 3]] {
            let (_, logits) = feed(&runner, &reference.tokens, &pieces);
            let mut position = 0;
            for (piece, logits) in pieces.iter().zip(&logits) {
                position += piece;
                let problem = reference.check(position, logits).err();
                wrong.extend(problem.map(|p| format!("{name} in pieces of {pieces:?}: {p}")));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn signature_context_and_widths_are_told() {
    for (name, signature, widths) in [
        ("tiny_article_fp16", "causal-mask", &[1, 32][..]),
        ("multifunction", "causal-mask", &[1, 8]),
        ("tiny_guide_kv1_fp16", "token-position", &[1]),
        ("tiny_guide_kv2_fp32", "token-position", &[1]),
    ] {
        let runner = open(name);
        let info = runner.info();
        assert_eq!((info.signature, info.context, info.vocabulary), (signature, 64, 256), "{name}");
        assert_eq!(info.calls.iter().map(|c| c.width).collect::<Vec<_>>(), widths, "{name}");
        let bytes = if signature == "causal-mask" { 2 * 2 * 2 * 64 * 16 * 2 } else { 2 * 2 * 4 * 64 * 16 * 2 };
        assert_eq!(info.state_bytes, bytes, "{name}");
        assert!(info.weight_bytes > 100_000, "{name}");
        let json = serde_json::to_value(info).unwrap();
        assert_eq!((json["name"].as_str(), json["threads"].as_u64()), (Some("model"), Some(2)));
    }
}

/// Functions of any number of tokens, with a mask that grows besides: a call costs its own tokens, and guesses are checked in one.
#[test]
fn flexible_functions_compute_no_more_tokens_than_there_are() {
    for name in ["tiny_article_fp16", "tiny_article_decomposed_fp16", "tiny_article_fp32"] {
        let (runner, mut reference) = (open(name), Reference::read(name));
        reference.tolerance = reference.tolerance.max(ROUNDED);
        let info = runner.info();
        assert_eq!((info.calls[1].narrowest, runner.each()), (2, 8), "{name}: {:?}", info.calls);
        let n = reference.tokens.len();
        for first in 2..=8 {
            let rest = n.saturating_sub(2 * first + 1);
            let second = first.min(n - first - 1);
            let pieces: Vec<usize> = [first, 1, second, rest].into_iter().filter(|&n| n > 0).collect();
            let (mut state, logits) = feed(&runner, &reference.tokens, &pieces);
            let mut position = 0;
            for (piece, logits) in pieces.iter().zip(&logits) {
                position += piece;
                reference.check(position, logits).unwrap_or_else(|e| panic!("{name}, {pieces:?}: {e}"));
            }
            // The same tokens once more, with the logits of each.
            let mut each = vec![0.0; first * runner.vocabulary()];
            let at = n - first;
            runner.feed_each(&mut state, at, &reference.tokens[at..], &mut each).unwrap();
            for (i, logits) in each.chunks_exact(runner.vocabulary()).enumerate() {
                reference.check(at + i + 1, logits).unwrap_or_else(|e| panic!("{name}, each of {first}: {e}"));
            }
        }
        // To the very end of the context.
        let (mut state, mut logits) = (runner.new_state().unwrap(), vec![0.0; runner.vocabulary()]);
        for position in (0..64).step_by(4) {
            runner.feed(&mut state, position, &[7, 8, 9, 10], &mut logits).unwrap();
        }
        assert!(runner.feed(&mut state, 62, &[7, 8, 9], &mut logits).is_err());
    }
}

#[test]
fn going_back_is_as_if_nothing_had_followed() {
    for name in ["tiny_article_fp16", "multifunction", "tiny_guide_kv2_fp16"] {
        let (runner, reference) = (open(name), Reference::read(name));
        let (n, mut logits) = (reference.tokens.len(), vec![0.0; runner.vocabulary()]);
        let (mut state, once) = feed(&runner, &reference.tokens, &[n]);
        // Something else from the middle on, then the right tokens again.
        runner.feed(&mut state, 5, &[7; 12], &mut logits).unwrap();
        runner.feed(&mut state, 5, &reference.tokens[5..], &mut logits).unwrap();
        reference.check(n, &logits).unwrap();
        assert_eq!(argmax(&logits), argmax(&once[0]), "{name}");
    }
}

#[test]
fn a_fresh_state_has_no_trace_of_another() {
    let (runner, reference) = (open("tiny_article_fp16"), Reference::read("tiny_article_fp16"));
    let n = reference.tokens.len();
    let (_, first) = feed(&runner, &reference.tokens, &[4, n - 4]);
    feed(&runner, &[9; 40], &[40]);
    let (_, again) = feed(&runner, &reference.tokens, &[4, n - 4]);
    let (_, elsewhere) = feed(&open("tiny_article_fp16"), &reference.tokens, &[4, n - 4]);
    assert_eq!(first, again);
    assert_eq!(first, elsewhere);
}

#[test]
fn a_copied_state_goes_its_own_way() {
    for name in ["tiny_article_fp16", "tiny_guide_kv1_fp16"] {
        let (runner, reference) = (open(name), Reference::read(name));
        let n = reference.tokens.len();
        let mut logits = vec![0.0; runner.vocabulary()];
        let (mut state, _) = feed(&runner, &reference.tokens[..n - 2], &[n - 2]);
        let mut copy = runner.copy_state(&state, n - 4).unwrap().unwrap();
        runner.feed(&mut state, n - 2, &[3, 3], &mut logits).unwrap();
        runner.feed(&mut copy, n - 4, &reference.tokens[n - 4..], &mut logits).unwrap();
        reference.check(n, &logits).unwrap();
        // Columns behind the position were not copied.
        let copy = runner.copy_state(&state, 1).unwrap().unwrap();
        let spec = &runner.info().states[0];
        let dim = *spec.shape.last().unwrap();
        let (from, to) = (state.get(&spec.name).unwrap(), copy.get(&spec.name).unwrap());
        assert_eq!(from[..dim], to[..dim]);
        assert!(to[dim..64 * dim].iter().all(|v| v.to_f32() == 0.0), "{name}");
        assert!(from[dim..2 * dim].iter().any(|v| v.to_f32() != 0.0), "{name}");
    }
}

#[test]
fn the_state_of_another_package_is_refused_and_stays_as_it_is() {
    let (fp16, fp32) = (open("tiny_article_fp16"), open("tiny_article_fp32"));
    let (mut state, _) = feed(&fp16, &[1, 2, 3], &[3]);
    let before = state.get("keyCache").unwrap().to_vec();
    let mut logits = vec![0.0; 256];
    let refused = fp32.feed(&mut state, 3, &[4], &mut logits).unwrap_err().to_string();
    assert!(refused.contains("belongs to another package"), "{refused}");
    assert_eq!(state.get("keyCache").unwrap(), before);
    // The same package opened twice is the same package.
    open("tiny_article_fp16").feed(&mut state, 3, &[4], &mut logits).unwrap();
}

#[test]
fn the_context_can_be_filled_and_not_exceeded() {
    for name in ["tiny_article_fp16", "multifunction", "tiny_guide_kv1_fp16"] {
        let runner = open(name);
        let mut logits = vec![0.0; runner.vocabulary()];
        let (mut state, _) = feed(&runner, &[5; 64], &[61, 3]);
        let refused = |state: &mut _, position, tokens: &[u32], logits: &mut [f32]| {
            runner.feed(state, position, tokens, logits).unwrap_err().to_string()
        };
        assert!(refused(&mut state, 64, &[5], &mut logits).contains("beyond the context of 64"), "{name}");
        assert!(refused(&mut state, 60, &[5; 5], &mut logits).contains("beyond the context of 64"), "{name}");
        assert!(refused(&mut state, usize::MAX, &[5], &mut logits).contains("beyond the context"), "{name}");
        assert!(refused(&mut state, 3, &[256], &mut logits).contains("token 256 is not in the vocabulary"), "{name}");
        assert!(refused(&mut state, 3, &[], &mut logits).contains("no tokens"), "{name}");
        assert!(refused(&mut state, 3, &[5], &mut logits[1..]).contains("255"), "{name}");
    }
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    let path = folder().join("tiny_article_fp16/model.mlpackage");
    let reference = Reference::read("tiny_article_fp16");
    let run = |threads| {
        let options = anemone::ModelOptions { threads: Some(threads), ..options() };
        feed(&PackageRunner::open(&path, &options).unwrap(), &reference.tokens, &[reference.tokens.len()]).1
    };
    assert_eq!(run(1), run(3));
}

#[test]
fn conversations_at_the_same_time_do_not_mix() {
    let (runner, reference) = (open("tiny_article_fp16"), Reference::read("tiny_article_fp16"));
    std::thread::scope(|scope| {
        for pieces in [vec![4; 3], vec![12], vec![1; 12], vec![7, 5]] {
            let (runner, reference) = (&runner, &reference);
            scope.spawn(move || {
                let (_, logits) = feed(runner, &reference.tokens[..12], &pieces);
                reference.check(12, logits.last().unwrap()).unwrap();
            });
        }
    });
}

#[test]
fn a_package_without_states_is_refused_with_the_reason() {
    let path = folder().join("ios16_plain/model.mlpackage");
    let error = PackageRunner::open(&path, &options()).unwrap_err();
    assert!(matches!(error, Error::Stateless { .. }));
    let text = error.to_string();
    assert!(text.contains("no states") && text.contains("list of `StateType`s"), "{text}");
}

#[test]
fn a_package_without_a_tokenizer_computes_and_does_not_chat() {
    let path = folder().join("tiny_article_fp16/model.mlpackage");
    let error = Model::open(&path, &options()).unwrap_err();
    assert!(matches!(error, Error::NoTokenizer { .. }));
    let text = error.to_string();
    assert!(text.contains("tiny_article_fp16") && text.contains("`predict`"), "{text}");
}

#[test]
fn other_paths_are_told_apart() {
    let folder = folder();
    let open = |path: &std::path::Path| PackageRunner::open(path, &options()).unwrap_err().to_string();
    assert!(open(&folder.join("tiny_article_hf")).contains("a Hugging Face folder; convert it first"));
    assert!(open(&folder.join("README.md")).contains("a file; give a converted folder"));
    assert!(open(&folder.join("nowhere")).contains("nowhere: cannot be read"));
    assert!(open(&folder).contains("a folder with no package"));
    // A folder with one package is that package.
    PackageRunner::open(&folder.join("tiny_guide_kv1_fp16"), &options()).unwrap();
}

#[test]
fn a_package_that_ignores_its_state_is_refused() {
    let mut model = anemone_mil::load(&folder().join("tiny_guide_kv2_fp16/model.mlpackage")).unwrap();
    let writes_v = |op: &anemone_mil::Operation, f: &anemone_mil::Function| {
        let value = |arg: &anemone_mil::Argument| matches!(arg, anemone_mil::Argument::Value(id) if f.value(*id).name == "v_cache");
        op.name_of_kind == "write_state" && op.args("input").iter().any(value)
    };
    let main = model.program.functions.get_mut("main").unwrap();
    let whole = main.clone();
    main.body.ops.retain(|op| !writes_v(op, &whole));
    assert!(main.body.ops.len() < whole.body.ops.len());
    let dest = tempfile::tempdir().unwrap();
    let path = dest.path().join("forgetful.mlpackage");
    anemone_mil::encode::write(&model, &path).unwrap();
    let error = PackageRunner::open(&path, &options()).unwrap_err();
    assert!(matches!(error, Error::StateIgnored { .. }), "{error}");
    assert!(error.to_string().contains("function `main` declares the state `v_cache` and never writes it"), "{error}");
}
