//! What takes up the context is what was accepted, and never more than there is.

use super::*;

/// Used and read.
fn counts(session: &Fake) -> (usize, usize) {
    let usage = session.usage().unwrap();
    assert!(usage.used() <= usage.context && usage.read <= usage.used(), "{usage:?}");
    assert_eq!(usage.free(), usage.context - usage.used());
    (usage.used(), usage.read)
}

fn held(session: &Fake) -> (usize, usize) {
    (session.transcript().len(), session.position())
}

#[test]
fn every_count_is_that_of_the_transcript() {
    let mut session = Session::new(shared(chatml(&["hello", "again", ""]))).unwrap();
    assert_eq!(counts(&session), (0, 0));
    session.set_system(Some("be kind"));
    // What will be read with the first message.
    let system = counts(&session);
    assert!(system.0 > 0 && system.1 == 0);
    for text in ["hi", "more", "nothing"] {
        let turn = say(&mut session, text);
        assert_eq!(counts(&session), held(&session), "{text}");
        assert_eq!(turn.tokens_reused + turn.tokens_computed + turn.tokens_generated, counts(&session).0);
        assert_eq!((turn.position, session.usage().unwrap().system), (counts(&session).1, system.0));
    }
    session.undo().unwrap();
    assert_eq!(counts(&session), held(&session));
    session.regenerate(&Request::default(), &mut |_| {}).unwrap();
    assert_eq!(counts(&session), held(&session));
    // What was edited is read anew.
    let before = counts(&session).0;
    session.set_system(Some("be kind, please"));
    let (used, read) = counts(&session);
    assert!(used > before && read < system.0, "{used} {read}");
    session.undo().unwrap();
    session.undo().unwrap();
    assert_eq!(session.messages().len(), 1);
    session.rewind(session.transcript().len().min(3)).unwrap();
    counts(&session);
    session.reset().unwrap();
    assert!(counts(&session).1 == 0);
    session.complete(&[10, 11, 12], &Request::default(), &mut |_| {}).unwrap();
    assert_eq!(counts(&session), held(&session));
}

#[test]
fn a_full_context_is_full_and_no_more() {
    for context in 40..60 {
        let mut model = chatml(&["an answer that goes on beyond any context that is tried here, as it never ends"]);
        model.runner.context = context;
        let mut session = Session::new(shared(model)).unwrap();
        session.set_overflow(Overflow::Stop, Some(1));
        let turn = say(&mut session, "hi");
        assert_eq!(turn.stop_reason, StopReason::ContextFull);
        assert_eq!(counts(&session), (context, context - 1));
        // Even a conversation that no longer fits takes up no more than there is.
        session.set_system(Some("a system message that was not there before"));
        assert_eq!(counts(&session).0, context);
    }
}
