mod laws;
mod overflow;
mod reuse;
mod stopping;
mod travel;
mod usage;

use super::*;
use crate::Generation;
use crate::testing::scripted::{Scripted, bytes, chatml, shared};

type Fake = Session<Scripted>;

fn session(answers: &[&str]) -> Fake {
    Session::new(shared(chatml(answers))).unwrap()
}

fn say(session: &mut Fake, text: &str) -> Turn {
    session.say(text, &Request::default(), &mut |_| {}).unwrap()
}

/// Tokens of a text as the tokenizer makes them.
fn encode(session: &Fake, text: &str) -> Vec<u32> {
    session.model().tokenizer.encode(text, false).unwrap()
}

fn messages(session: &Fake) -> Vec<(String, String)> {
    session.messages().map(|message| (message.role.clone(), message.content.clone())).collect()
}

/// The logits of what comes next are those that a fresh session gives after the same tokens.
fn assert_as_fresh(session: &mut Fake) {
    // One more token must have room.
    let length = session.transcript().len().min(session.context() - 1);
    let tokens = session.transcript()[..length].to_vec();
    let request = Request::new(Generation { max_tokens: Some(1), ..Generation::default() });
    let mut fresh = Session::new(Arc::clone(session.model())).unwrap();
    fresh.complete(&tokens, &request, &mut |_| {}).unwrap();
    let mut fork = session.fork().unwrap();
    fork.complete(&tokens, &request, &mut |_| {}).unwrap();
    assert_eq!(fork.transcript.logits(), fresh.transcript.logits());
    assert_eq!(fork.transcript(), fresh.transcript());
}

#[test]
fn a_session_can_be_sent() {
    fn send<T: Send>(_: &T) {}
    send(&session(&[]));
}
