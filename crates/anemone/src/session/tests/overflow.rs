//! Conversations that outgrow the context, under each policy.

use super::*;
use crate::Overflowed;
use crate::overflow::summarize;
use crate::testing::scripted::{CHATML, with};

const ASKED: &str = "Summarize our conversation";

/// A model that echoes the last message, and says `summary` when it is asked for one.
fn echo(context: usize, summary: &str) -> LanguageModel<Scripted> {
    let tokenizer = crate::testing::byte_level();
    let words = crate::testing::byte_level();
    let opening = words.encode("<|im_end|>\n<|im_start|>assistant\n", false).unwrap();
    let summary = bytes(summary);
    let mut runner = Scripted::new(move |read| {
        // While a prompt is being read there is nothing to answer yet.
        let Some(at) = (0..read.len()).rev().find(|&at| read[at..].starts_with(&opening)) else { return 2 };
        let said = read.len() - at - opening.len();
        let begin = read[..at].iter().rposition(|&token| token == 1).map_or(0, |start| start + 1);
        let text = words.decode(&read[begin..at]).unwrap();
        let message = text.trim_start_matches("user\n");
        let answer = match message.rsplit("]\n\n").next().unwrap_or(message) {
            asked if asked.starts_with(ASKED) => summary.clone(),
            message => bytes(message),
        };
        answer.get(said).copied().unwrap_or(2)
    });
    runner.context = context;
    with(runner, tokenizer, CHATML)
}

/// A session, told to be kind, that has said "message 0", "message 1", … as long as they fit; and the next of them.
fn filled(context: usize, summary: &str, policy: Overflow) -> (Fake, String) {
    let mut session = Session::new(shared(echo(context, summary))).unwrap();
    session.set_system(Some("be kind"));
    session.set_overflow(policy, None);
    for n in 0.. {
        let text = format!("message {n}");
        let before = session.transcript().len();
        let overhead =
            encode(&session, &format!("<|im_end|>\n<|im_start|>user\n{text}<|im_end|>\n<|im_start|>assistant\n"));
        if before + overhead.len() + session.margin() > context {
            return (session, text);
        }
        assert_eq!(say(&mut session, &text).text, text);
    }
    unreachable!()
}

/// What happened to a message that does not fit.
fn overflow(session: &mut Fake, text: &str) -> (Turn, Overflowed) {
    let (mut begun, mut told) = (0, Vec::new());
    let turn = session
        .say(text, &Request::default(), &mut |event| match event {
            Event::Overflowing { .. } => begun += 1,
            Event::Overflow(overflowed) => told.push(overflowed.clone()),
            Event::Text(_) => assert_eq!(told.len(), 1, "text before it was told"),
            _ => {}
        })
        .unwrap();
    assert_eq!((begun, told.len()), (1, 1));
    assert_eq!(turn.overflow.as_ref(), Some(&told[0]));
    assert!(told[0].tokens_before > session.context() - session.margin());
    assert!(told[0].tokens_after <= session.context() - session.margin());
    (turn, told.remove(0))
}

fn contents(session: &Fake) -> Vec<String> {
    session.messages().map(|message| message.content.clone()).collect()
}

#[test]
fn the_model_sums_up_the_older_turns() {
    let (mut session, next) = filled(1600, "They counted.", Overflow::Summarize);
    let said = contents(&session);
    session.model().runner.fed();
    let (turn, overflowed) = overflow(&mut session, &next);
    assert_eq!(turn.text, next);
    assert_eq!((overflowed.policy, overflowed.fallback.as_deref()), (Overflow::Summarize, None));
    assert_eq!(overflowed.summary.as_deref(), Some("They counted."));
    assert_eq!(session.summary(), Some("They counted."));
    assert_eq!(overflowed.dropped.len(), 2 * overflowed.turns_dropped);
    assert_eq!(session.dropped(), overflowed.dropped);
    // Nothing is lost, and the last turns are there word for word.
    let dropped: Vec<_> = session.dropped().iter().map(|message| message.content.clone()).collect();
    let kept = contents(&session);
    assert!(kept.len() > 3, "{kept:?}");
    assert_eq!([&said[1..], &[next.clone(), next.clone()]].concat(), [&dropped[..], &kept[1..]].concat());
    // The prompt: system message, marked summary, turns.
    let text = session.model().tokenizer.decode(session.transcript()).unwrap();
    let marked = format!("be kind\nuser\n{}\nassistant\n", summarize::mark("They counted.", &kept[1]));
    assert!(text.replace("<|im_start|>", "").replace("<|im_end|>", "").contains(&marked), "{text}");
    assert!(!text.contains(ASKED) && !text.contains("message 0"), "{text}");
    // To sum up cost the request and the summary, since the older turns were in the cache.
    let fed = session.model().runner.fed().len();
    let request =
        encode(&session, &format!("<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n", summarize::request(200)));
    assert!(fed < request.len() + 20 + overflowed.tokens_after + next.len(), "{fed}");
    assert_as_fresh(&mut session);
    // The next turns need no other.
    let turn = say(&mut session, "on");
    assert_eq!((turn.overflow, turn.tokens_reused > 100), (None, true));
    assert_as_fresh(&mut session);
}

#[test]
fn a_summary_of_a_summary_holds_both() {
    let (mut session, next) = filled(1600, "They counted.", Overflow::Summarize);
    overflow(&mut session, &next);
    let mut dropped = session.dropped().len();
    for n in 0..100 {
        let turn = say(&mut session, &format!("more {n}"));
        if let Some(overflowed) = turn.overflow {
            assert_eq!(overflowed.policy, Overflow::Summarize);
            dropped += overflowed.dropped.len();
            assert_eq!(session.dropped().len(), dropped);
            assert_as_fresh(&mut session);
        }
    }
    assert_eq!(dropped + contents(&session).len() - 1, session.dropped().len() + contents(&session).len() - 1);
    let all: Vec<_> =
        session.dropped().iter().map(|m| m.content.clone()).chain(contents(&session).into_iter().skip(1)).collect();
    assert!(all.windows(2).step_by(2).all(|pair| pair[0] == pair[1]), "every message is followed by its echo: {all:?}");
    assert_eq!(all[0], "message 0");
    assert_eq!(all.last().unwrap(), "more 99");
}

#[test]
fn a_summary_of_no_use_is_told_and_turns_are_dropped() {
    let long = "word ".repeat(50);
    for (summary, why) in
        [("", "empty"), ("  ", "empty"), (&long[..], "longer than the 200"), ("I'm sorry, no.", "refused")]
    {
        let (mut session, next) = filled(1600, summary, Overflow::Summarize);
        let (turn, overflowed) = overflow(&mut session, &next);
        assert_eq!((turn.text.as_str(), overflowed.policy), (next.as_str(), Overflow::DropOldest), "{summary:?}");
        assert!(overflowed.fallback.as_deref().unwrap().contains(why), "{overflowed:?}");
        assert_eq!((overflowed.summary, session.summary()), (None, None));
        assert_as_fresh(&mut session);
    }
}

#[test]
fn the_oldest_turns_are_dropped_whole() {
    let (mut session, next) = filled(400, "unused", Overflow::DropOldest);
    let said = contents(&session);
    session.model().runner.fed();
    let (_, overflowed) = overflow(&mut session, &next);
    assert_eq!((overflowed.policy, overflowed.fallback, overflowed.summary), (Overflow::DropOldest, None, None));
    assert!(
        overflowed.tokens_after <= 175 && overflowed.tokens_after > 100,
        "half of the room: {}",
        overflowed.tokens_after
    );
    let kept = contents(&session);
    assert_eq!(kept[0], "be kind");
    assert_eq!(kept[1..kept.len() - 2], said[1 + overflowed.dropped.len()..]);
    // The system message's tokens were not read again.
    let system = encode(&session, "<|im_start|>system\nbe kind<|im_end|>\n<|im_start|>user\nmessage ").len();
    assert_eq!(session.model().runner.fed().len(), overflowed.tokens_after - system + next.len());
    assert_as_fresh(&mut session);
}

#[test]
fn stop_changes_nothing() {
    let (mut session, next) = filled(400, "unused", Overflow::Stop);
    let (before, transcript, position) = (contents(&session), session.transcript().to_vec(), session.position());
    let mut events = 0;
    let error = session.say(&next, &Request::default(), &mut |_| events += 1).unwrap_err();
    let Error::ContextFull { needed, context: 400, reserved: 50 } = error else { panic!("{error}") };
    assert!(needed > 350 && error.to_string().contains(&needed.to_string()), "{error}");
    assert_eq!(
        (contents(&session), session.transcript(), session.position(), events),
        (before, &transcript[..], position, 0)
    );
    session.set_overflow(Overflow::DropOldest, None);
    overflow(&mut session, &next);
}

#[test]
fn a_message_that_fits_nowhere_is_refused_before_anything_changes() {
    for policy in [Overflow::Summarize, Overflow::DropOldest, Overflow::Stop] {
        let (mut session, _) = filled(400, "They counted.", policy);
        let (before, transcript, position) = (contents(&session), session.transcript().to_vec(), session.position());
        session.model().runner.fed();
        let error = session.say(&"x".repeat(360), &Request::default(), &mut |_| panic!("an event")).unwrap_err();
        let text = error.to_string();
        match (policy, error) {
            (Overflow::Stop, Error::ContextFull { .. }) => {}
            (_, Error::MessageTooLong { needed, context: 400, reserved: 50 }) => {
                assert!(needed > 360 && text.contains(&needed.to_string()) && text.contains("400"), "{text}");
            }
            (_, error) => panic!("{error}"),
        }
        assert_eq!((contents(&session), session.transcript(), session.position()), (before, &transcript[..], position));
        assert!(session.model().runner.fed().is_empty());
    }
}

#[test]
fn an_answer_that_fills_the_context_is_kept_and_makes_room_before_the_next_turn() {
    for policy in [Overflow::Summarize, Overflow::DropOldest] {
        let mut session = Session::new(shared(echo(800, "Much was said."))).unwrap();
        session.set_overflow(policy, None);
        say(&mut session, "hi");
        let long = "so long ".repeat(56);
        let turn = say(&mut session, &long);
        assert_eq!((turn.stop_reason, session.transcript().len()), (StopReason::ContextFull, 800), "{policy:?}");
        assert!(long.starts_with(&turn.text) && turn.text.len() > 50);
        assert_eq!(contents(&session)[3], turn.text);
        let (turn, overflowed) = overflow(&mut session, "and now?");
        assert_eq!((turn.text.as_str(), overflowed.policy), ("and now?", policy), "{overflowed:?}");
        assert_eq!(overflowed.turns_dropped, 2);
        assert_as_fresh(&mut session);
    }
}

#[test]
fn a_single_turn_that_fills_the_context_is_summed_up_from_its_beginning() {
    let mut session = Session::new(shared(echo(800, "Much was said."))).unwrap();
    say(&mut session, &"so long ".repeat(56));
    assert_eq!(session.transcript().len(), 800);
    let (_, overflowed) = overflow(&mut session, "and now?");
    assert_eq!((overflowed.policy, overflowed.fallback), (Overflow::Summarize, None));
    assert_eq!(contents(&session), ["and now?", "and now?"]);
    assert_as_fresh(&mut session);
}

#[test]
fn an_old_summary_goes_when_it_leaves_no_room_for_the_message() {
    let (mut session, next) = filled(1600, &"They counted far. ".repeat(4), Overflow::Summarize);
    overflow(&mut session, &next);
    assert!(session.summary().is_some());
    let alone = encode(
        &session,
        "<|im_start|>system\nbe kind<|im_end|>\n<|im_start|>user\n<|im_end|>\n<|im_start|>assistant\n",
    )
    .len();
    let (turn, overflowed) = overflow(&mut session, &"y".repeat(1400 - alone));
    assert_eq!((overflowed.policy, overflowed.tokens_after), (Overflow::DropOldest, 1400));
    assert!(overflowed.fallback.unwrap().contains("no room for a summary"));
    assert_eq!((session.summary(), turn.stop_reason), (None, StopReason::ContextFull));
    assert_eq!(contents(&session).len(), 3);
    assert_as_fresh(&mut session);
}

#[test]
fn called_off_while_it_sums_up_nothing_has_changed() {
    let (mut session, next) = filled(1600, "They counted.", Overflow::Summarize);
    let (before, transcript) = (contents(&session), session.transcript().to_vec());
    for at in 0..6 {
        let request = Request::default();
        let (cancel, mut calls) = (request.cancel.clone(), 0);
        *session.model().runner.before_call.lock().unwrap() = Some(Box::new(move |_| {
            if calls == at {
                cancel.cancel();
            }
            calls += 1;
        }));
        let turn = session.say(&next, &request, &mut |event| assert!(!matches!(event, Event::Text(_)))).unwrap();
        assert_eq!((turn.stop_reason, turn.overflow), (StopReason::Cancelled, None));
        assert_eq!(
            (contents(&session), session.transcript(), session.summary()),
            (before.clone(), &transcript[..], None)
        );
        assert_as_fresh(&mut session);
    }
    *session.model().runner.before_call.lock().unwrap() = None;
    let passed = Request { deadline: Some(std::time::Instant::now()), ..Request::default() };
    assert_eq!(session.say(&next, &passed, &mut |_| {}).unwrap().stop_reason, StopReason::Deadline);
    overflow(&mut session, &next);
}

#[test]
fn a_model_that_fails_while_it_sums_up_leaves_the_conversation_as_it_was() {
    let (mut session, next) = filled(1600, "They counted.", Overflow::Summarize);
    let (before, transcript) = (contents(&session), session.transcript().to_vec());
    for failing in [1, 3, 8, 14, 20] {
        session.model().runner.fail_in.store(failing, std::sync::atomic::Ordering::Relaxed);
        let error = session.say(&next, &Request::default(), &mut |_| {}).unwrap_err();
        assert!(matches!(error, Error::Model { .. }), "{error}");
        assert_eq!(
            (contents(&session), session.transcript(), session.summary()),
            (before.clone(), &transcript[..], None)
        );
        session.model().runner.fail_in.store(0, std::sync::atomic::Ordering::Relaxed);
        assert_as_fresh(&mut session);
    }
    overflow(&mut session, &next);
}

#[test]
fn a_caller_that_sends_everything_each_time_has_it_summed_up_once() {
    let mut session = Session::new(shared(echo(1600, "They counted."))).unwrap();
    let mut outside = vec![Message::system("be kind")];
    let mut overflows = 0;
    for n in 0..150 {
        outside.push(Message::user(format!("message {n}")));
        let turn = session.generate(&outside, &Request::default(), &mut |_| {}).unwrap();
        assert_eq!(turn.text, format!("message {n}"));
        if turn.overflow.is_some() {
            overflows += 1;
            assert_eq!(session.summary(), Some("They counted."));
        } else if n > 0 {
            assert!(turn.tokens_computed < 60, "{turn:?}");
        }
        outside.push(Message::assistant(turn.text));
        assert_eq!(session.dropped().len() + session.messages().len(), outside.len());
    }
    assert!((2..20).contains(&overflows), "{overflows}");
    assert_as_fresh(&mut session);
    // Another conversation is not taken for a continuation.
    session.generate(&[Message::user("who?")], &Request::default(), &mut |_| {}).unwrap();
    assert_eq!((session.dropped().len(), session.summary()), (0, None));
}

#[test]
fn going_back_after_an_overflow_keeps_the_summary() {
    let (mut session, next) = filled(1600, "They counted.", Overflow::Summarize);
    overflow(&mut session, &next);
    let turn = session.regenerate(&Request::default(), &mut |_| {}).unwrap();
    assert_eq!((turn.text.as_str(), turn.tokens_computed), (next.as_str(), 1));
    while session.undo().is_ok() {
        assert_as_fresh_if_any(&mut session);
    }
    assert_eq!(session.summary(), Some("They counted."));
    say(&mut session, "so?");
    let text = session.model().tokenizer.decode(session.transcript()).unwrap();
    assert!(text.contains("[Summary of the earlier conversation: They counted.]\n\nso?"), "{text}");
    assert_as_fresh(&mut session);
    let mut fork = session.fork().unwrap();
    assert_eq!(fork.summary(), session.summary());
    fork.reset().unwrap();
    assert_eq!((fork.summary(), fork.dropped().len()), (None, 0));
}

fn assert_as_fresh_if_any(session: &mut Fake) {
    if !session.transcript().is_empty() {
        assert_as_fresh(session);
    }
}

/// Any sequence of operations, overflows of every kind among them, gives the logits of a fresh session.
#[test]
fn random_scripts_with_overflows_end_as_fresh_sessions() {
    let long = "word ".repeat(50);
    let mut seen = [0; 3];
    for seed in 1..80u64 {
        let summary = ["They talked.", "", &long, "I cannot.", "One, two."][seed as usize % 5];
        let mut session = Session::new(shared(echo(700, summary))).unwrap();
        let mut state = seed;
        for _ in 0..30 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let choice = (state >> 33) as usize;
            let limit = Some(1 + choice / 16 % 60);
            let request = Request::new(Generation { max_tokens: limit, ..Generation::default() });
            match choice % 12 {
                0..=6 => {
                    let text = "hello you ".repeat(1 + choice / 16 % 20);
                    let before = (contents(&session), session.transcript().to_vec());
                    match session.say(&text, &request, &mut |_| {}) {
                        Ok(turn) => {
                            assert_eq!(contents(&session).last(), Some(&turn.text));
                            let counted = turn.overflow.map_or(0, |overflow| match overflow.policy {
                                Overflow::Summarize => 1,
                                _ => 2,
                            });
                            seen[counted] += 1;
                        }
                        Err(Error::ContextFull { .. } | Error::MessageTooLong { .. }) => {
                            assert_eq!(before, (contents(&session), session.transcript().to_vec()));
                        }
                        Err(error) => panic!("{error}"),
                    }
                }
                7 => drop(session.regenerate(&request, &mut |_| {})),
                8 => drop(session.undo()),
                9 => session.rewind(choice / 16 % (session.transcript().len() + 1)).unwrap(),
                10 => {
                    let policy = [Overflow::Summarize, Overflow::Summarize, Overflow::DropOldest, Overflow::Stop];
                    session.set_overflow(policy[choice / 16 % 4], [None, Some(0), Some(200)][choice / 64 % 3]);
                }
                _ => session = session.fork().unwrap(),
            }
            assert!(session.position() <= session.transcript().len() && session.transcript().len() <= 700);
        }
        assert_as_fresh_if_any(&mut session);
    }
    assert!(seen.iter().all(|&count| count > 20), "turns, summaries, drops: {seen:?}");
}

#[test]
fn a_kept_session_opens_again_with_its_summary_and_all_its_messages() {
    let folder = tempfile::tempdir().unwrap();
    let store = crate::SessionStore::new(folder.path(), crate::KeepLimits::default());
    let open = || store.open("long", shared(echo(1600, "They counted."))).unwrap();
    let (mut session, _) = open();
    session.set_system(Some("be kind"));
    for n in 0..120 {
        say(&mut session, &format!("message {n}"));
    }
    assert_eq!((session.summary(), session.trouble()), (Some("They counted."), None));
    let before = (contents(&session), session.transcript().to_vec(), session.dropped().to_vec());
    drop(session);
    // Nothing that was said is missing from what lies on disk.
    let saved = store.look("long").unwrap();
    let said: Vec<_> = saved.messages.iter().map(|message| message.content.as_str()).collect();
    assert_eq!((said.len(), said[0], said[1], said[240]), (241, "be kind", "message 0", "message 119"));

    let (mut session, _) = open();
    assert_eq!(before, (contents(&session), session.transcript().to_vec(), session.dropped().to_vec()));
    assert_eq!(session.summary(), Some("They counted."));
    assert_as_fresh(&mut session);
    let turn = say(&mut session, "on");
    assert_eq!((turn.text.as_str(), turn.overflow), ("on", None));
    // After a reset there is nothing left of it, on disk neither.
    session.reset().unwrap();
    drop(session);
    let (session, _) = open();
    assert_eq!((session.summary(), session.dropped().len()), (None, 0));
}
