//! The tiny chat model of `goldens/tiny`, with its cache as an input instead of a state, and in several packages instead of
//! one: the tokens are those that are pinned, in our own runtime and in the fake of Core ML's, and sessions are what they were.

mod anemll;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anemone::{
    CoreMlOptions, CoreMlRunner, Generation, LanguageModel, Model, ModelOptions, PackageRunner, ReferenceRunner,
    Request, Runner, Session,
};
use anemone_convert::lint::{Os, Profile, Severity, lint};
use anemone_convert::{Conversion, Kv, Options, Source, Split, Watch};
use anemone_coreml::{ComputeUnits, Specialization, fake::Fake};
use anemone_package::bundle::{self, BundleManifest};

fn tiny() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../goldens/tiny")
}

struct Pins {
    message: String,
    prompt: Vec<u32>,
    tokens: Vec<u32>,
}

fn pins() -> Pins {
    let json: serde_json::Value = serde_json::from_slice(&fs::read(tiny().join("greedy.json")).unwrap()).unwrap();
    let ids = |key: &str| json[key].as_array().unwrap().iter().map(|id| id.as_u64().unwrap() as u32).collect();
    Pins { message: json["message"].as_str().unwrap().to_owned(), prompt: ids("prompt"), tokens: ids("tokens") }
}

fn convert(profile: Profile, kv: Kv, split: Split, dest: &Path) {
    let source = Source::open(tiny().join("tiny-llama")).unwrap();
    let options = Options { context: Some(256), prefill: Some(16), profile, kv, split, ..Options::default() };
    Conversion::new(&source, &options).unwrap().run(dest, &Watch::default()).unwrap();
}

fn options() -> ModelOptions {
    ModelOptions { threads: Some(1), ..ModelOptions::default() }
}

fn request(max_tokens: usize) -> Request {
    Request::new(Generation { max_tokens: Some(max_tokens), ..Generation::default() })
}

/// All that a session does gives what is pinned: an answer, a second turn, rewinding, a fork, a reset, a snapshot.
fn holds<R: Runner>(model: LanguageModel<R>, what: &str) {
    let (pins, model) = (pins(), Arc::new(model));
    let folder = tempfile::tempdir().unwrap();
    let snapshot = folder.path().join("snapshot");
    let mut session = Session::new(Arc::clone(&model)).unwrap();
    session.say(&pins.message, &request(60), &mut |_| {}).unwrap();
    session.snapshot(&snapshot).unwrap();
    let mut fork = session.fork().unwrap();
    let all = |session: &Session<R>| session.transcript()[pins.prompt.len()..].to_vec();
    let go_on = |session: &mut Session<R>, to: usize| {
        let (prompt, have) = (session.transcript().to_vec(), session.transcript().len() - pins.prompt.len());
        let turn = session.complete(&prompt, &request(to - have), &mut |_| {}).unwrap();
        turn.tokens_computed
    };
    assert_eq!(go_on(&mut session, pins.tokens.len()), 1, "{what}: the rest is in the cache");
    assert_eq!(all(&session), pins.tokens, "{what}");
    assert_eq!(go_on(&mut fork, 90), 1);
    assert_eq!(all(&fork), pins.tokens[..90], "{what}: a fork");
    session.rewind(pins.prompt.len() + 33).unwrap();
    assert!(go_on(&mut session, 80) <= 1);
    assert_eq!(all(&session), pins.tokens[..80], "{what}: rewound");
    session.rewind(pins.prompt.len() + 60).unwrap();
    session.restore(&snapshot).unwrap();
    go_on(&mut session, 100);
    assert_eq!(all(&session), pins.tokens[..100], "{what}: restored");
    session.reset().unwrap();
    let again = session.say(&pins.message, &request(20), &mut |_| {}).unwrap();
    assert_eq!((again.tokens_reused, all(&session)), (0, pins.tokens[..20].to_vec()), "{what}: reset");
}

fn in_core_ml(folder: &Path) -> LanguageModel<CoreMlRunner<Fake>> {
    let (mut tell, compiled) = (|_| {}, tempfile::tempdir().unwrap());
    let mut wanted = CoreMlOptions {
        units: ComputeUnits::default(),
        specialization: Specialization::default(),
        compiled: compiled.path().to_owned(),
        tell: &mut tell,
    };
    let runner = CoreMlRunner::open(&Arc::new(Fake::new()), folder, &mut wanted).unwrap();
    let own = Model::open(folder, &options()).unwrap();
    assert_eq!(own.runner.cache_layout(), runner.cache_layout());
    let LanguageModel { tokenizer, template, end_tokens, generation, .. } = own;
    LanguageModel { runner, tokenizer, template, end_tokens, generation }
}

/// The packages of a converted folder, with what the linter finds in them for a profile.
fn clean(folder: &Path, profile: Profile) -> Vec<PathBuf> {
    let packages = BundleManifest::read(folder).unwrap().packages(folder).unwrap();
    for path in &packages {
        let findings = lint(&anemone_mil::load(path).unwrap(), profile, Os::Ios18);
        let told = || findings.iter().map(|f| format!("{} {}: {}", f.rule.id, f.place, f.message)).collect::<Vec<_>>();
        let least = if profile == Profile::Ane { Severity::Note } else { Severity::Warning };
        assert!(findings.iter().all(|f| f.severity < least), "{}: {:#?}", path.display(), told());
    }
    packages
}

#[test]
fn a_cache_that_the_host_keeps_says_the_same() {
    for profile in [Profile::Portable, Profile::Ane] {
        let folder = tempfile::tempdir().unwrap();
        convert(profile, Kv::Io, Split::Auto, folder.path());
        let packages = clean(folder.path(), profile);
        let model = anemone_mil::load(&packages[0]).unwrap();
        assert!(model.program.functions.values().all(|f| f.states().next().is_none()));
        let manifest = BundleManifest::read(folder.path()).unwrap();
        assert_eq!(manifest.roles.columns, ["kv_columns"]);
        let own = Model::open(folder.path(), &options()).unwrap();
        assert_eq!((own.info().signature, own.info().states.len()), ("anemone-io", 1));
        holds(own, &format!("{profile}, io"));
        holds(in_core_ml(folder.path()), &format!("{profile}, io, Core ML"));

        // The interpreter, and the runtime fed with one token and with several at once.
        let reference = ReferenceRunner::new(std::slice::from_ref(&model), &packages[0]).unwrap();
        let runner = PackageRunner::open(folder.path(), &options()).unwrap();
        let tokens: Vec<u32> = (0..21).map(|i| 3 + i * 7 % 50).collect();
        let (mut a, mut b) = (vec![0.0; runner.vocabulary()], vec![0.0; runner.vocabulary()]);
        reference.feed(&mut reference.new_state().unwrap(), 0, &tokens, &mut a).unwrap();
        runner.feed(&mut runner.new_state().unwrap(), 0, &tokens, &mut b).unwrap();
        let worst = a.iter().zip(&b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(worst < 0.05, "{profile}: off by {worst}");
    }
}

#[test]
fn the_gpu_takes_neither() {
    let source = Source::open(tiny().join("tiny-llama")).unwrap();
    let refused = |kv, split| {
        let options = Options { context: Some(256), profile: Profile::Gpu, kv, split, ..Options::default() };
        Conversion::new(&source, &options).unwrap_err().to_string()
    };
    assert!(refused(Kv::Io, Split::Auto).contains("as state alone"));
    assert!(refused(Kv::State, Split::Count(2)).contains("take one package"));
}

#[test]
fn parts_say_the_same_as_one() {
    for (profile, kv, count) in [
        (Profile::Ane, Kv::State, 2),
        (Profile::Ane, Kv::State, 3),
        (Profile::Ane, Kv::Io, 4),
        (Profile::Portable, Kv::State, 2),
        (Profile::Portable, Kv::Io, 3),
    ] {
        let what = format!("{profile}, {kv}, {count} parts");
        let folder = tempfile::tempdir().unwrap();
        convert(profile, kv, Split::Count(count), folder.path());
        assert_eq!(clean(folder.path(), profile).len(), count, "{what}");
        let own = Model::open(folder.path(), &options()).unwrap();
        assert_eq!((own.info().signature, own.info().parts), ("parts", count), "{what}");
        assert_eq!(own.info().states.len(), if count == 3 { 1 } else { 2 }, "{what}");
        holds(own, &what);
        holds(in_core_ml(folder.path()), &format!("{what}, Core ML"));
    }
}

#[test]
fn a_size_cuts_into_parts_that_are_no_larger() {
    let folder = tempfile::tempdir().unwrap();
    convert(Profile::Ane, Kv::State, Split::Bytes(80_000), folder.path());
    let manifest = BundleManifest::read(folder.path()).unwrap();
    let names: Vec<&str> = manifest.parts.iter().map(|part| part.package.as_str()).collect();
    assert_eq!(names, ["embeddings.mlpackage", "layers-1.mlpackage", "layers-2.mlpackage", "head.mlpackage"]);
    let ports: Vec<_> = manifest.parts.iter().map(|part| (part.takes.as_str(), part.gives.as_str())).collect();
    let hidden = ("hidden_states", "output_hidden_states");
    assert_eq!(ports, [("input_ids", "output_hidden_states"), hidden, hidden, ("hidden_states", "logits")]);
    let source = Source::open(tiny().join("tiny-llama")).unwrap();
    let refused = |split| {
        let options = Options { context: Some(256), split, ..Options::default() };
        Conversion::new(&source, &options).unwrap_err().to_string()
    };
    assert!(refused(Split::Bytes(100)).contains("one layer alone has"), "{}", refused(Split::Bytes(100)));
    assert!(refused(Split::Count(9)).contains("expected 1 to 4"), "{}", refused(Split::Count(9)));
    assert!(refused(Split::Count(0)).contains("expected 1 to 4"));
    // What was there is replaced, whatever it was cut into.
    convert(Profile::Ane, Kv::State, Split::Auto, folder.path());
    assert!(!folder.path().join("layers-1.mlpackage").exists() && folder.path().join(bundle::PACKAGE).is_dir());
}

#[test]
fn a_missing_or_foreign_part_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (one, other) = (folder.path().join("one"), folder.path().join("other"));
    convert(Profile::Ane, Kv::State, Split::Count(2), &one);
    convert(Profile::Ane, Kv::State, Split::Count(3), &other);
    let error = |options: &ModelOptions| PackageRunner::open(&one, options).unwrap_err().to_string();
    let first = one.join("layers-1.mlpackage");
    // Named by one of its parts, it is the same model.
    assert_eq!(PackageRunner::open(&first, &options()).unwrap().info().parts, 2);

    fs::rename(&first, one.join("away")).unwrap();
    let missing = error(&options());
    assert!(missing.contains("layers-1.mlpackage: this package is missing: it is part 1 of the 2"), "{missing}");
    fs::rename(other.join("layers-1.mlpackage"), &first).unwrap();
    let foreign = error(&options());
    assert!(foreign.contains("layers-1.mlpackage") && foreign.contains("expected"), "{foreign}");
    let unverified = error(&ModelOptions { verify: false, ..options() });
    assert!(unverified.contains("layers-1.mlpackage"), "{unverified}");
    fs::remove_dir_all(&first).unwrap();
    fs::rename(one.join("away"), &first).unwrap();
    PackageRunner::open(&one, &options()).unwrap();

    // A digest in the manifest that is not of this model.
    let mut manifest = BundleManifest::read(&one).unwrap();
    manifest.parts[0].sha256 = manifest.parts[1].sha256.clone();
    fs::write(one.join(bundle::MANIFEST), manifest.to_json()).unwrap();
    let strange = error(&options());
    assert!(strange.contains("not that of the parts"), "{strange}");
}

/// A snapshot and a state of a model in parts belong to it alone.
#[test]
fn what_belongs_to_other_parts_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (one, other) = (folder.path().join("one"), folder.path().join("other"));
    convert(Profile::Ane, Kv::State, Split::Count(2), &one);
    convert(Profile::Ane, Kv::State, Split::Auto, &other);
    let open = |path: &Path| Session::new(Model::open(path, &options()).unwrap().into()).unwrap();
    let (mut a, mut b) = (open(&one), open(&other));
    let pins = pins();
    for session in [&mut a, &mut b] {
        session.say(&pins.message, &request(10), &mut |_| {}).unwrap();
    }
    let snapshot = folder.path().join("snapshot");
    a.snapshot(&snapshot).unwrap();
    assert!(b.restore(&snapshot).is_err());
    let (a, b) = (PackageRunner::open(&one, &options()).unwrap(), PackageRunner::open(&other, &options()).unwrap());
    let mut logits = vec![0.0; a.vocabulary()];
    assert!(a.feed(&mut b.new_state().unwrap(), 0, &[1], &mut logits).unwrap_err().to_string().contains("other parts"));
}
