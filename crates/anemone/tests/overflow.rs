//! Overflow with real packages: whatever went, the logits are those of a fresh session with the same tokens.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anemone::{
    Error, Event, Generation, Model, ModelOptions, ModelRunner, Overflow, Overflowed, Request, Runner, Session,
};

fn options() -> ModelOptions {
    ModelOptions { threads: Some(2), ..ModelOptions::default() }
}

/// The tiny chat model, which has nothing to say but ends its answers: with every token of a fifth of its vocabulary.
fn tiny() -> Arc<Model> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../goldens/tiny/model");
    let mut model = Model::open(&folder, &options()).unwrap();
    model.end_tokens.extend((0..model.info().vocabulary as u32).filter(|id| id % 5 == 3));
    Arc::new(model)
}

fn logits(runner: &ModelRunner, state: &mut <ModelRunner as Runner>::State, from: usize, tokens: &[u32]) -> Vec<f32> {
    let mut logits = vec![f32::NAN; runner.vocabulary()];
    runner.feed(state, from, tokens, &mut logits).unwrap();
    logits
}

fn argmax(row: &[f32]) -> usize {
    (0..row.len()).max_by(|&a, &b| row[a].total_cmp(&row[b])).unwrap()
}

/// What a session says next is what a fresh one says after the same tokens: greedy tokens of both, and, where they part,
/// how close the two candidates were.
fn assert_as_fresh(session: &Session, count: usize) {
    let model = session.model();
    let length = session.transcript().len().min(session.context() - count - 1);
    let tokens = &session.transcript()[..length];
    let request = Request::new(Generation { max_tokens: Some(count), ..Generation::default() });
    let mut here = session.fork().unwrap();
    here.complete(tokens, &request, &mut |_| {}).unwrap();
    let mut fresh = Session::new(Arc::clone(model)).unwrap();
    fresh.complete(tokens, &request, &mut |_| {}).unwrap();
    let (here, fresh) = (here.transcript(), fresh.transcript());
    if here == fresh {
        return;
    }
    // The same tokens in other calls may differ in the last bits.
    let same = here.iter().zip(fresh).take_while(|(a, b)| a == b).count();
    let mut state = model.runner.new_state().unwrap();
    let row = logits(&model.runner, &mut state, 0, &fresh[..same]);
    let best = row[argmax(&row)];
    for tokens in [here, fresh] {
        let said = tokens.get(same).copied();
        let close = match said {
            Some(token) => best - row[token as usize] < 0.02,
            None => model.end_tokens.iter().any(|&token| best - row[token as usize] < 0.02),
        };
        assert!(close, "after {same} tokens {said:?} is not the likeliest");
    }
}

/// Says things until `overflows` overflows have happened; gives them.
fn talk(session: &mut Session, overflows: usize, seed: u64, limit: usize) -> Vec<Overflowed> {
    let mut seen = Vec::new();
    let mut random = seed;
    while seen.len() < overflows {
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let words = ["sky", "red", "why is it so", "the sun", "and now?"];
        let count = 1 + (random >> 40) as usize % 6;
        let text: Vec<_> = (0..count).map(|n| words[((random >> (8 * n)) % 5) as usize]).collect();
        let most = 1 + (random >> 33) as usize % limit;
        let request = Request::new(Generation { max_tokens: Some(most), ..Generation::default() });
        let turn = session.say(&text.join(" "), &request, &mut |_| {}).unwrap();
        assert!(session.position() <= session.transcript().len());
        if let Some(overflow) = turn.overflow {
            assert!(overflow.tokens_after <= session.context() - session.margin());
            assert!(overflow.tokens_before > session.context() - session.margin());
            assert_as_fresh(session, 8);
            seen.push(overflow);
        }
    }
    seen
}

#[test]
fn after_any_overflow_the_session_goes_on_as_a_fresh_one() {
    let model = tiny();
    let mut summaries = 0;
    for (seed, policy) in
        (0..8).map(|seed| (seed, if seed % 2 == 0 { Overflow::Summarize } else { Overflow::DropOldest }))
    {
        let mut session = Session::new(Arc::clone(&model)).unwrap();
        session.set_system(Some("be kind"));
        session.set_overflow(policy, Some([20, 32, 64][seed as usize % 3]));
        let before = session.messages().len();
        let all = talk(&mut session, 4, seed, 30);
        summaries += all.iter().filter(|overflow| overflow.summary.is_some()).count();
        let dropped: usize = all.iter().map(|overflow| overflow.dropped.len()).sum();
        assert_eq!(session.dropped().len(), dropped);
        assert!(session.messages().len() > before);
        for overflow in &all {
            assert_eq!(
                overflow.policy == Overflow::Summarize,
                overflow.fallback.is_none() && policy == Overflow::Summarize
            );
        }
        // Nothing of it is left after a reset.
        session.reset().unwrap();
        assert_eq!((session.position(), session.dropped().len(), session.summary()), (0, 0, None));
    }
    assert!(summaries > 0, "no summary was ever accepted");
}

#[test]
fn a_message_that_fits_nowhere_changes_nothing() {
    let mut session = Session::new(tiny()).unwrap();
    let request = Request::new(Generation { max_tokens: Some(5), ..Generation::default() });
    session.say("why", &request, &mut |_| {}).unwrap();
    let (transcript, position) = (session.transcript().to_vec(), session.position());
    let error = session.say(&"the sun is low ".repeat(60), &request, &mut |_| {}).unwrap_err();
    assert!(matches!(error, Error::MessageTooLong { context: 256, reserved: 32, .. }), "{error}");
    assert_eq!((session.transcript(), session.position()), (&transcript[..], position));
    assert_as_fresh(&session, 8);
}

/// SmolLM2 with a context of 512 tokens.
fn smollm2(dest: &Path) -> Arc<Model> {
    use anemone_convert::{Conversion, Options, Source, Watch, quantize};
    let path = std::env::var_os("ANEMONE_SMOLLM2_GGUF")
        .expect("ANEMONE_SMOLLM2_GGUF must hold the path of SmolLM2-135M-Instruct.Q4_1.gguf");
    let source = Source::open(PathBuf::from(path)).unwrap();
    let options = Options { context: Some(512), weights: quantize::find("keep").unwrap(), ..Options::default() };
    Conversion::new(&source, &options).unwrap().run(dest, &Watch::default()).unwrap();
    Arc::new(Model::open(dest, &self::options()).unwrap())
}

#[test]
#[ignore = "needs the GGUF file: set ANEMONE_SMOLLM2_GGUF"]
fn smollm2_goes_on_beyond_its_context() {
    let folder = tempfile::tempdir().unwrap();
    let mut session = Session::new(smollm2(folder.path())).unwrap();
    session.set_overflow(Overflow::Stop, None);
    let request = Request::new(Generation { max_tokens: Some(70), ..Generation::default() });
    let questions = [
        "My name is Ada and I live in Lisbon. Recommend a book about the sea.",
        "Who wrote it, and when?",
        "And what should I cook tonight? I have rice, eggs and tomatoes.",
        "How long does it take?",
        "What goes well with it?",
        "Tell me one fact about tomatoes.",
        "What was the book about?",
        "Thank you. Which of my questions was the best?",
    ];
    // Until it is refused, which changes nothing; then each policy goes on from there.
    let full = questions.iter().position(|question| {
        let (messages, transcript) = (session.messages().len(), session.transcript().to_vec());
        match session.say(question, &request, &mut |_| {}) {
            Ok(turn) => assert!(!turn.text.is_empty() && session.position() <= 512),
            Err(Error::ContextFull { context: 512, reserved: 64, .. }) => {
                assert_eq!((messages, &transcript[..]), (session.messages().len(), session.transcript()));
                return true;
            }
            Err(error) => panic!("{error}"),
        }
        false
    });
    let full = full.expect("the context is full before the questions are over");
    for policy in [Overflow::Summarize, Overflow::DropOldest] {
        let mut session = session.fork().unwrap();
        session.set_overflow(policy, None);
        let mut told = 0;
        let count = &mut |event: Event<'_>| told += usize::from(matches!(event, Event::Overflow(_)));
        let turn = session.say(questions[full], &request, count).unwrap();
        let overflow = turn.overflow.unwrap();
        println!("{policy:?}: {overflow:#?}\n{}", turn.text);
        assert_eq!((told, overflow.policy, overflow.fallback.as_deref()), (1, policy, None));
        assert_eq!(overflow.summary.is_some(), policy == Overflow::Summarize);
        assert_eq!(session.dropped().len() + session.messages().len(), 2 * (full + 1));
        assert_as_fresh(&session, 4);
    }
}
