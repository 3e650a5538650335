//! Core ML itself, beside our own runtime, on the tiny chat model. Exists on Apple systems only; see `docs/apple.md`.
#![cfg(target_vendor = "apple")]

use std::path::PathBuf;
use std::sync::Arc;

use anemone::{
    Backend, BackendOptions, ComputeUnits, CoreMlOptions, CoreMlRunner, Generation, Model, ModelOptions, PackageRunner,
    Request, Runner, Session,
};
use anemone_coreml::{Apple, DeviceKind, Framework, Specialization};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../goldens/tiny")
}

fn pinned(key: &str) -> Vec<u32> {
    let json: serde_json::Value =
        serde_json::from_slice(&std::fs::read(folder().join("greedy.json")).unwrap()).unwrap();
    json[key].as_array().unwrap().iter().map(|id| id.as_u64().unwrap() as u32).collect()
}

/// The units that this machine has.
fn units() -> Vec<ComputeUnits> {
    let devices = Apple.devices();
    let has = |kind| devices.iter().any(|device| device.kind == kind);
    let there = |units: &ComputeUnits| match units {
        ComputeUnits::CpuAndNeuralEngine => has(DeviceKind::NeuralEngine),
        ComputeUnits::CpuAndGpu => has(DeviceKind::Gpu),
        ComputeUnits::CpuOnly | ComputeUnits::All => true,
    };
    ComputeUnits::ALL.into_iter().filter(there).collect()
}

fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

#[test]
fn logits_are_those_of_our_runtime() {
    let compiled = tempfile::tempdir().unwrap();
    let ours = PackageRunner::open(&folder().join("model"), &ModelOptions::default()).unwrap();
    let (prompt, answer) = (pinned("prompt"), pinned("tokens"));
    for units in units() {
        let mut tell = |progress| println!("{units}: {progress:?}");
        let mut options = CoreMlOptions {
            units,
            specialization: Specialization::default(),
            compiled: compiled.path().to_owned(),
            tell: &mut tell,
        };
        let theirs = CoreMlRunner::open(&Arc::new(Apple), &folder().join("model"), &mut options).unwrap();
        let (mut a, mut b) = (theirs.new_state().unwrap(), ours.new_state().unwrap());
        let mut rows = (vec![0.0; theirs.vocabulary()], vec![0.0; ours.vocabulary()]);
        let (mut position, mut worst) = (0, 1f64);
        for tokens in std::iter::once(&prompt[..]).chain(answer.chunks(1).take(32)) {
            theirs.feed(&mut a, position, tokens, &mut rows.0).unwrap();
            ours.feed(&mut b, position, tokens, &mut rows.1).unwrap();
            position += tokens.len();
            worst = worst.min(cosine(&rows.0, &rows.1));
        }
        let share = theirs.neural_engine_share().unwrap();
        println!("{units}: cosine at least {worst:.6}, {:.1} % planned on the Neural Engine", share * 100.0);
        assert!(worst > 0.99, "{units}: {worst}");
    }
}

#[test]
fn a_conversation_keeps_its_cache() {
    let compiled = tempfile::tempdir().unwrap();
    for units in units() {
        let backend = BackendOptions {
            backend: Backend::CoreMl,
            units: Some(units),
            compiled: Some(compiled.path().to_owned()),
            ..BackendOptions::default()
        };
        let model = Model::open(&folder().join("model"), &ModelOptions { backend, ..ModelOptions::default() }).unwrap();
        let mut session = Session::new(model.into()).unwrap();
        let request = Request::new(Generation { max_tokens: Some(40), ..Generation::default() });
        session.complete(&pinned("prompt"), &request, &mut |_| {}).unwrap();
        let said = session.transcript()[pinned("prompt").len()..].to_vec();
        let agreed = said.iter().zip(pinned("tokens")).take_while(|(a, b)| **a == *b).count();
        println!("{units}: {agreed} of 40 pinned tokens before the first other one");
        let longer = session.transcript().to_vec();
        let turn = session.complete(&longer, &request, &mut |_| {}).unwrap();
        assert_eq!(turn.tokens_computed, 1, "{units}");
        assert!(units != ComputeUnits::CpuOnly || agreed >= 8, "{agreed}");
    }
}
