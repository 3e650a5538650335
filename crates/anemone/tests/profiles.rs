//! The tiny chat model of `goldens/tiny`, converted for each profile, says the tokens that are pinned; architectures for the
//! GPU give PyTorch's logits.

use std::path::{Path, PathBuf};

use anemone::{Generation, Model, ModelOptions, PackageRunner, Request, Runner, Session};
use anemone_convert::lint::{Os, Profile, Severity, lint};
use anemone_convert::{Conversion, Options, Source, Watch};
use safetensors::SafeTensors;

fn goldens(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../goldens").join(name)
}

fn convert(source: &Path, profile: Profile, context: usize, dest: &Path) {
    let source = Source::open(source).unwrap();
    let options = Options { context: Some(context), prefill: Some(16), profile, ..Options::default() };
    Conversion::new(&source, &options).unwrap().run(dest, &Watch::default()).unwrap();
}

#[test]
fn every_profile_says_the_same() {
    let json: serde_json::Value = serde_json::from_slice(&std::fs::read(goldens("tiny/greedy.json")).unwrap()).unwrap();
    let ids = |key: &str| -> Vec<u32> {
        json[key].as_array().unwrap().iter().map(|id| id.as_u64().unwrap() as u32).collect()
    };
    let (prompt, tokens) = (ids("prompt"), ids("tokens"));
    for profile in Profile::ALL {
        let dest = tempfile::tempdir().unwrap();
        convert(&goldens("tiny/tiny-llama"), profile, 256, dest.path());
        let options = ModelOptions { threads: Some(1), ..ModelOptions::default() };
        let model = Model::open(dest.path(), &options).unwrap();
        let mut session = Session::new(model.into()).unwrap();
        let request = Request::new(Generation { max_tokens: Some(tokens.len()), ..Generation::default() });
        session.say(json["message"].as_str().unwrap(), &request, &mut |_| {}).unwrap();
        assert_eq!(session.transcript(), [&prompt[..], &tokens].concat(), "profile {profile}");

        let package = anemone_mil::load::load(&dest.path().join("model.mlpackage")).unwrap();
        let findings = lint(&package, profile, Os::Ios18);
        let found: Vec<String> = findings.iter().map(|f| format!("{} {}: {}", f.rule.id, f.place, f.message)).collect();
        match profile {
            Profile::Ane => assert!(found.is_empty(), "{found:#?}"),
            _ => assert!(findings.iter().all(|f| f.severity < Severity::Warning), "{profile}: {found:#?}"),
        }
    }
}

#[test]
fn what_is_made_for_the_gpu_computes_as_pytorch_does() {
    for entry in std::fs::read_dir(goldens("archs")).unwrap() {
        let folder = entry.unwrap().path();
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        let bytes = std::fs::read(folder.join("golden.safetensors")).unwrap();
        let file = SafeTensors::deserialize(&bytes).unwrap();
        let tokens: Vec<u32> =
            file.tensor("tokens").unwrap().data().as_chunks().0.iter().map(|b| u32::from_le_bytes(*b)).collect();
        let expected = file.tensor("logits").unwrap();
        let vocabulary = expected.shape()[1];
        let expected: Vec<f32> = expected.data().as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
        let mean = expected.iter().sum::<f32>() / expected.len() as f32;
        let unit = (expected.iter().map(|l| (l - mean).powi(2)).sum::<f32>() / expected.len() as f32).sqrt();

        let dest = tempfile::tempdir().unwrap();
        convert(&folder, Profile::Gpu, 64, dest.path());
        let options = ModelOptions { threads: Some(1), ..ModelOptions::default() };
        let runner = PackageRunner::open(dest.path(), &options).unwrap();
        assert_eq!(runner.info().signature, "causal-mask", "{name}");
        let mut logits = vec![0.0; vocabulary];
        let wide = tokens.len().min(32);
        for pieces in [vec![1; tokens.len()], [vec![wide], vec![1; tokens.len() - wide]].concat()] {
            let (mut state, mut position) = (runner.new_state().unwrap(), 0);
            for piece in pieces {
                runner.feed(&mut state, position, &tokens[position..position + piece], &mut logits).unwrap();
                position += piece;
                let row = &expected[(position - 1) * vocabulary..position * vocabulary];
                let off = logits.iter().zip(row).map(|(a, b)| (a - b).abs() / unit).fold(0.0, f32::max);
                assert!(off <= 0.015, "{name}: off by {off} deviations at position {}", position - 1);
            }
        }
    }
}
