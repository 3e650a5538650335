//! Going back, branching off, beginning anew.

use super::*;

#[test]
fn after_a_reset_nothing_is_left() {
    let mut session = session(&["hello", "again"]);
    session.set_system(Some("be kind"));
    say(&mut session, "secret");
    say(&mut session, "more");
    session.reset().unwrap();
    assert_eq!((session.position(), session.transcript().len()), (0, 0));
    assert_eq!(messages(&session), [("system".to_owned(), "be kind".to_owned())]);
    let after = say(&mut session, "hi");

    let mut fresh = Session::new(Arc::clone(session.model())).unwrap();
    fresh.set_system(Some("be kind"));
    let expected = say(&mut fresh, "hi");
    assert_eq!((after.text, after.tokens_reused, after.tokens_computed), (expected.text, 0, expected.tokens_computed));
    assert_eq!(session.transcript(), fresh.transcript());
    assert_eq!(session.transcript.logits(), fresh.transcript.logits());
}

#[test]
fn undo_takes_back_one_exchange_and_keeps_the_cache_before_it() {
    let mut session = session(&["hello", "again", "third"]);
    say(&mut session, "hi");
    let held = session.transcript().to_vec();
    say(&mut session, "more");
    assert_eq!(session.undo().unwrap(), "more");
    assert_eq!(messages(&session).len(), 2);
    // The end of the answer is the template's and stays as well.
    assert_eq!(session.transcript()[..held.len()], held);
    assert_eq!(session.transcript()[held.len()..], encode(&session, "<|im_end|>\n"));
    let turn = say(&mut session, "other");
    assert_eq!(turn.tokens_reused, held.len() + 2);
    assert_eq!(turn.text, "again");
    assert_as_fresh(&mut session);
    session.undo().unwrap();
    assert_eq!(session.undo().unwrap(), "hi");
    assert!(messages(&session).is_empty() && session.transcript().is_empty());
    assert!(matches!(session.undo(), Err(Error::Conversation { operation: "undo", .. })));
}

#[test]
fn rewinding_to_a_message_and_saying_the_same_gives_the_same() {
    let mut session = session(&["one", "two", "three"]);
    for text in ["a", "b", "c"] {
        say(&mut session, text);
    }
    let all = session.transcript().to_vec();
    session.rewind_to_message(2).unwrap();
    assert_eq!(messages(&session).len(), 2);
    assert!(all.starts_with(session.transcript()));
    say(&mut session, "b");
    say(&mut session, "c");
    assert_eq!(session.transcript(), all);
    assert_as_fresh(&mut session);
    assert!(session.rewind_to_message(7).is_err());
    session.rewind_to_message(6).unwrap();
    assert_eq!(messages(&session).len(), 6);
}

#[test]
fn rewinding_to_a_position_drops_what_ends_behind_it() {
    let mut session = session(&["one", "two"]);
    session.set_system(Some("s"));
    say(&mut session, "a");
    let first = session.transcript().len();
    say(&mut session, "b");
    let all = session.transcript().to_vec();
    session.rewind(all.len() - 1).unwrap();
    assert_eq!(messages(&session).len(), 3);
    assert_eq!(session.transcript(), &all[..all.len() - 1]);
    session.rewind(first).unwrap();
    assert_eq!(messages(&session).len(), 3);
    session.rewind(first - 1).unwrap();
    assert_eq!(messages(&session), [("system".to_owned(), "s".to_owned())]);
    assert!(session.rewind(first).is_err());
    let turn = say(&mut session, "a");
    assert_eq!((turn.text.as_str(), turn.tokens_computed), ("one", 1));
    assert_as_fresh(&mut session);
}

#[test]
fn forks_go_on_by_themselves() {
    for copies in [true, false] {
        let mut model = chatml(&["one", "two"]);
        model.runner.copies = copies;
        let mut session = Session::new(shared(model)).unwrap();
        say(&mut session, "a");
        let shared = session.transcript().to_vec();
        let mut fork = session.fork().unwrap();
        assert_eq!(fork.position(), if copies { shared.len() } else { 0 });
        let left = say(&mut session, "left");
        let right = say(&mut fork, "right");
        assert_eq!(left.tokens_reused, shared.len());
        assert_eq!(right.tokens_reused, fork_reuse(copies, &shared));
        assert!(session.transcript().starts_with(&shared) && fork.transcript().starts_with(&shared));
        assert_ne!(session.transcript(), fork.transcript());
        assert_as_fresh(&mut session);
        assert_as_fresh(&mut fork);
    }
}

fn fork_reuse(copies: bool, shared: &[u32]) -> usize {
    if copies { shared.len() } else { 0 }
}

#[test]
fn completing_goes_on_from_tokens() {
    let mut session = Session::new(shared(crate::testing::scripted::with(
        Scripted::new(|read| read.last().map_or(0, |&last| (last + 1) % 259)),
        crate::testing::byte_level(),
        "",
    )))
    .unwrap();
    let request = Request::new(Generation { max_tokens: Some(3), ..Generation::default() });
    let turn = session.complete(&bytes("a"), &request, &mut |_| {}).unwrap();
    assert_eq!((turn.text.as_str(), turn.stop_reason), ("bcd", StopReason::MaxTokens));
    let turn = session.complete(&bytes("abcd"), &request, &mut |_| {}).unwrap();
    assert_eq!((turn.text.as_str(), turn.tokens_reused, turn.tokens_computed), ("efg", 3, 1));
    assert_eq!(messages(&session).len(), 0);
}

/// Any sequence of operations gives the logits of a fresh session that was fed the same tokens.
#[test]
fn random_scripts_end_as_fresh_sessions() {
    for seed in 1..60u64 {
        let mut session = session(&["hello", "two\n", "", "four 🌊", "x", "six"]);
        let mut state = seed;
        for _ in 0..12 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let choice = (state >> 33) as usize;
            let limit = Some(1 + choice / 16 % 7);
            let request = Request::new(Generation { max_tokens: limit, ..Generation::default() });
            match choice % 9 {
                0..=3 => drop(session.say(["a", "bb", "hello", ""][choice / 16 % 4], &request, &mut |_| {}).unwrap()),
                4 => drop(session.regenerate(&request, &mut |_| {})),
                5 => drop(session.undo()),
                6 => session.rewind(choice / 16 % (session.transcript().len() + 1)).unwrap(),
                7 => session.set_system(["be kind", "be brief"].get(choice / 16 % 3).copied()),
                _ => session = session.fork().unwrap(),
            }
            assert!(session.position() <= session.transcript().len());
        }
        if !session.transcript().is_empty() {
            assert_as_fresh(&mut session);
        }
    }
}
