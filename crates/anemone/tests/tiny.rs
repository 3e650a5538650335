//! The 200 tokens of `goldens/tiny`, pinned by the interpreter, through a session.

use std::path::PathBuf;

use anemone::{Generation, Model, ModelOptions, Request, Session, StopReason};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../goldens/tiny")
}

struct Pins {
    message: String,
    prompt: Vec<u32>,
    tokens: Vec<u32>,
    text: String,
}

fn pins() -> Pins {
    let json: serde_json::Value =
        serde_json::from_slice(&std::fs::read(folder().join("greedy.json")).unwrap()).unwrap();
    let ids = |key: &str| json[key].as_array().unwrap().iter().map(|id| id.as_u64().unwrap() as u32).collect();
    let text = |key: &str| json[key].as_str().unwrap().to_owned();
    Pins { message: text("message"), prompt: ids("prompt"), tokens: ids("tokens"), text: text("text") }
}

fn session(threads: usize) -> Session {
    let options = ModelOptions { threads: Some(threads), ..ModelOptions::default() };
    let model = Model::open(&folder().join("model"), &options).unwrap();
    Session::new(model.into()).unwrap()
}

fn request(max_tokens: usize) -> Request {
    Request::new(Generation { max_tokens: Some(max_tokens), ..Generation::default() })
}

#[test]
fn what_the_user_says_is_answered_with_them() {
    let pins = pins();
    for threads in [1, 2] {
        let mut session = session(threads);
        let turn = session.say(&pins.message, &request(pins.tokens.len()), &mut |_| {}).unwrap();
        let (prompt, answer) = session.transcript().split_at(pins.prompt.len());
        assert_eq!((prompt, answer), (&pins.prompt[..], &pins.tokens[..]), "{threads} threads");
        assert_eq!((turn.text, turn.stop_reason), (pins.text.clone(), StopReason::MaxTokens));
        assert_eq!((turn.tokens_reused, turn.tokens_computed), (0, pins.prompt.len()));
        assert_eq!(turn.position, pins.prompt.len() + pins.tokens.len() - 1);
        // After a reset, as in the beginning.
        session.reset().unwrap();
        let again = session.say(&pins.message, &request(20), &mut |_| {}).unwrap();
        assert_eq!((again.tokens_reused, &session.transcript()[pins.prompt.len()..]), (0, &pins.tokens[..20]));
    }
}

#[test]
fn an_answer_in_many_short_pieces_is_the_same() {
    let pins = pins();
    let mut session = session(2);
    let mut prompt = pins.prompt.clone();
    let mut first = true;
    for piece in [1, 7, 30, 62, 100] {
        let turn = session.complete(&prompt, &request(piece), &mut |_| {}).unwrap();
        assert_eq!(turn.tokens_generated, piece);
        // All but the token that no call has read yet is reused.
        assert_eq!(turn.tokens_computed, if first { pins.prompt.len() } else { 1 });
        prompt = session.transcript().to_vec();
        first = false;
    }
    assert_eq!(session.transcript()[pins.prompt.len()..], pins.tokens);
}

#[test]
fn a_rewound_session_goes_on_as_before() {
    let pins = pins();
    let mut session = session(2);
    session.complete(&pins.prompt, &request(150), &mut |_| {}).unwrap();
    for kept in [100, 1, 60] {
        session.rewind(pins.prompt.len() + kept).unwrap();
        let prompt = session.transcript().to_vec();
        let left = 150 - kept;
        session.complete(&prompt, &request(left), &mut |_| {}).unwrap();
        assert_eq!(session.transcript()[pins.prompt.len()..], pins.tokens[..150], "from token {kept}");
    }
}

/// The same through the runner for Core ML, over the fake of it: padded arrays, states born full of rubbish.
#[test]
fn a_session_in_core_ml_gives_the_same_tokens() {
    use anemone_coreml::{ComputeUnits, Specialization, fake::Fake};

    let (pins, compiled) = (pins(), tempfile::tempdir().unwrap());
    let mut tell = |_| {};
    let mut options = anemone::CoreMlOptions {
        units: ComputeUnits::default(),
        specialization: Specialization::default(),
        compiled: compiled.path().to_owned(),
        tell: &mut tell,
    };
    let own = Model::open(&folder().join("model"), &ModelOptions::default()).unwrap();
    let runner = anemone::CoreMlRunner::open(&Fake::new().into(), &folder().join("model"), &mut options).unwrap();
    let model = anemone::LanguageModel {
        runner,
        tokenizer: own.tokenizer,
        template: own.template,
        end_tokens: own.end_tokens,
        generation: own.generation,
    };
    let mut session = Session::new(model.into()).unwrap();
    let turn = session.say(&pins.message, &request(pins.tokens.len()), &mut |_| {}).unwrap();
    assert_eq!(session.transcript()[pins.prompt.len()..], pins.tokens);
    assert_eq!(turn.text, pins.text);
    session.reset().unwrap();
    let again = session.say(&pins.message, &request(20), &mut |_| {}).unwrap();
    assert_eq!((again.tokens_reused, &session.transcript()[pins.prompt.len()..]), (0, &pins.tokens[..20]));
}
