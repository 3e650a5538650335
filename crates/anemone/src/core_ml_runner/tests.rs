use std::path::Path;

use anemone_coreml::fake::{Fake, Step};
use anemone_coreml::{ComputeUnits, Failure, Progress, Specialization};

use super::*;
use crate::{CoreMlOptions, Error, ModelOptions, PackageRunner, ReferenceRunner, Runner};

fn tiny() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../goldens/tiny/model")
}

struct Opened {
    runner: CoreMlRunner<Fake>,
    fake: Arc<Fake>,
    told: Vec<Progress>,
    _folder: tempfile::TempDir,
}

fn open(path: &Path) -> Opened {
    let (fake, folder, mut told) = (Arc::new(Fake::new()), tempfile::tempdir().unwrap(), Vec::new());
    let mut tell = |progress| told.push(progress);
    let mut options = CoreMlOptions {
        units: ComputeUnits::default(),
        specialization: Specialization::default(),
        compiled: folder.path().join("compiled"),
        tell: &mut tell,
    };
    let runner = CoreMlRunner::open(&fake, path, &mut options).unwrap();
    Opened { runner, fake, told, _folder: folder }
}

fn fixture(name: &str) -> PathBuf {
    let folder = std::env::var_os("ANEMONE_FIXTURES")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures"), PathBuf::from);
    let path = folder.join(name).join("model.mlpackage");
    assert!(path.is_dir(), "{}: no fixture; set ANEMONE_FIXTURES to their folder", path.display());
    path
}

/// Logits after each of several feeds.
fn logits<R: Runner>(runner: &R, feeds: &[&[u32]]) -> Vec<Vec<f32>> {
    let mut state = runner.new_state().unwrap();
    let mut position = 0;
    let mut all = Vec::new();
    for tokens in feeds {
        let mut logits = vec![0.0; runner.vocabulary()];
        runner.feed(&mut state, position, tokens, &mut logits).unwrap();
        position += tokens.len();
        all.push(logits);
    }
    all
}

fn farthest(a: &[Vec<f32>], b: &[Vec<f32>]) -> f32 {
    a.iter().flatten().zip(b.iter().flatten()).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

/// The three runners over one package: the plan, Core ML (the fake), the interpreter.
#[test]
fn three_runners_agree() {
    let first: Vec<u32> = (0..21).map(|i| 3 + i * 7 % 50).collect();
    for path in [tiny().join("model.mlpackage"), fixture("tiny_article_fp16"), fixture("tiny_guide_kv2_fp16")] {
        let core_ml = open(&path);
        let planned = PackageRunner::open(&path, &ModelOptions::default()).unwrap();
        let model = anemone_mil::load(&path).unwrap();
        let reference = ReferenceRunner::new(std::slice::from_ref(&model), &path).unwrap();
        let feeds: &[&[u32]] = &[&first, &[5], &[6, 7]];
        let (a, b, c) = (logits(&core_ml.runner, feeds), logits(&planned, feeds), logits(&reference, feeds));
        let scale = c.iter().flatten().fold(0f32, |most, v| most.max(v.abs()));
        assert!(farthest(&a, &b) < 0.02 * scale, "{}: {}", path.display(), farthest(&a, &b));
        assert!(farthest(&a, &c) < 0.02 * scale, "{}: {}", path.display(), farthest(&a, &c));
        let (info, own) = (core_ml.runner.info(), planned.info());
        assert_eq!((info.context, info.vocabulary, info.signature), (own.context, own.vocabulary, own.signature));
        assert_eq!((&info.states, info.weight_bytes), (&own.states, own.weight_bytes));
    }
}

#[test]
fn the_first_run_says_that_it_compiles() {
    let Opened { told, fake, runner, .. } = open(&tiny());
    assert!(matches!(told[..], [Progress::FirstRun, Progress::Done(_)]));
    assert_eq!((fake.counts().compiles, fake.counts().loads), (1, runner.parts[0].model.functions().len()));
}

#[test]
fn the_plan_tells_the_share_of_the_neural_engine() {
    let Opened { runner, fake, _folder, .. } = open(&tiny());
    assert_eq!(runner.neural_engine_share().unwrap(), 1.0);
    fake.set_devices(&[anemone_coreml::DeviceKind::Cpu]);
    assert_eq!(runner.neural_engine_share().unwrap(), 0.0);
}

#[test]
fn no_array_is_made_for_a_token() {
    let Opened { runner, fake, .. } = open(&tiny());
    let mut state = runner.new_state().unwrap();
    let mut logits = vec![0.0; runner.vocabulary()];
    let before = fake.counts();
    for position in 0..5 {
        runner.feed(&mut state, position, &[7], &mut logits).unwrap();
    }
    let after = fake.counts();
    assert_eq!((after.arrays, after.predictions), (before.arrays, before.predictions + 5));
}

#[test]
fn states_are_copied_and_snapshots_put_back() {
    let Opened { runner, .. } = open(&tiny());
    let mut logits = vec![0.0; runner.vocabulary()];
    let mut one = runner.new_state().unwrap();
    runner.feed(&mut one, 0, &[4, 8, 15, 16], &mut logits).unwrap();
    let mut copy = runner.copy_state(&one, 3).unwrap().unwrap();
    let mut again = logits.clone();
    runner.feed(&mut copy, 3, &[16], &mut again).unwrap();
    runner.feed(&mut one, 3, &[16], &mut logits).unwrap();
    assert_eq!(again, logits);
    // By the bytes of columns, as snapshots do it.
    let mut other = runner.new_state().unwrap();
    let layout = runner.cache_layout().unwrap();
    for (index, tensor) in layout.tensors.iter().enumerate() {
        for row in 0..tensor.rows() {
            let mut bytes = vec![0; 3 * tensor.column_bytes()];
            runner.read_columns(&one, index, row..row + 1, 3, &mut bytes).unwrap();
            runner.write_columns(&mut other, index, row..row + 1, 3, &bytes).unwrap();
        }
    }
    runner.feed(&mut other, 3, &[16], &mut again).unwrap();
    assert_eq!(again, logits);
    let planned = PackageRunner::open(&tiny(), &ModelOptions::default()).unwrap();
    assert_eq!(planned.cache_layout(), Some(layout));
}

#[test]
fn what_no_runner_takes_is_refused_before_core_ml_is_asked() {
    let Opened { runner, fake, .. } = open(&tiny());
    let mut state = runner.new_state().unwrap();
    let mut logits = vec![0.0; runner.vocabulary()];
    let context = runner.context();
    assert!(runner.feed(&mut state, context, &[1], &mut logits).is_err());
    assert!(runner.feed(&mut state, 0, &[], &mut logits).is_err());
    assert!(runner.feed(&mut state, 0, &[u32::MAX], &mut logits).is_err());
    assert_eq!(fake.counts().predictions, 0);
}

#[test]
fn a_failure_is_explained() {
    let Opened { runner, fake, .. } = open(&tiny());
    let mut state = runner.new_state().unwrap();
    fake.fail(Step::Predict, Failure::new("com.apple.appleneuralengine", 8, "ANEProgramProcessRequestDirect() Failed"));
    let error = runner.feed(&mut state, 0, &[1], &mut vec![0.0; runner.vocabulary()]).unwrap_err().to_string();
    assert!(
        error.contains("predicting with function `decode`") && error.contains("anemone explain ane-request"),
        "{error}"
    );
}

#[test]
fn packages_without_states_are_refused_as_everywhere() {
    let mut tell = |_| {};
    let folder = tempfile::tempdir().unwrap();
    let mut options = CoreMlOptions {
        units: ComputeUnits::default(),
        specialization: Specialization::default(),
        compiled: folder.path().to_owned(),
        tell: &mut tell,
    };
    let error = CoreMlRunner::open(&Arc::new(Fake::new()), &fixture("ios16_plain"), &mut options).unwrap_err();
    assert!(matches!(error, Error::Stateless { .. }), "{error}");
    let old = Fake::new();
    old.set_supported(false);
    let error = CoreMlRunner::open(&Arc::new(old), &tiny(), &mut options).unwrap_err();
    assert!(matches!(error, Error::CoreMl { .. }) && error.to_string().contains("macOS 15"), "{error}");
}
