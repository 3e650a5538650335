//! Ways an answer ends, and what of it stays.

use std::time::{Duration, Instant};

use super::*;

fn request(change: impl FnOnce(&mut Generation)) -> Request {
    let mut generation = Generation::default();
    change(&mut generation);
    Request::new(generation)
}

fn stop(texts: &[&str]) -> Request {
    request(|generation| generation.stop = texts.iter().map(|&text| text.to_owned()).collect())
}

#[test]
fn stop_strings_end_an_answer_and_are_not_part_of_the_conversation() {
    let mut session = session(&["hello\nUser: x", "on"]);
    let mut shown = String::new();
    let turn = session
        .say("hi", &stop(&["\nUser:"]), &mut |event| {
            if let Event::Text(text) = event {
                shown.push_str(text);
            }
        })
        .unwrap();
    assert_eq!((turn.text.as_str(), turn.stop_reason), ("hello", StopReason::StopString));
    assert_eq!(shown, "hello");
    assert_eq!(turn.tokens_generated, "hello\nUser:".len());
    assert!(session.transcript().ends_with(&bytes("hello")));
    let held = session.transcript().len();
    assert_eq!(turn.position, held);
    assert_eq!(say(&mut session, "go").tokens_reused, held);
    assert_as_fresh(&mut session);
}

#[test]
fn a_token_that_holds_text_and_stop_string_is_cut() {
    let model = chatml(&[]);
    let opening = model.tokenizer.encode("<|im_start|>assistant\n", false).unwrap();
    let user = model.tokenizer.id("user").unwrap();
    let runner = Scripted::answering(opening, vec![[bytes("a "), vec![user]].concat(), bytes("b")], 2);
    let mut session = Session::new(shared(LanguageModel { runner, ..model })).unwrap();
    let turn = session.say("hi", &stop(&["er"]), &mut |_| {}).unwrap();
    assert_eq!(turn.text, "a us");
    let us = session.model().tokenizer.id("us").unwrap();
    assert!(session.transcript().ends_with(&[bytes("a "), vec![us]].concat()));
    // The cache holds all but the token that replaces the cut one.
    let held = session.transcript().len();
    assert_eq!(turn.position, held - 1);
    assert_eq!(say(&mut session, "go").tokens_reused, held - 1);
    assert_as_fresh(&mut session);
}

#[test]
fn max_tokens_and_what_is_unfinished() {
    let mut session = session(&["é🌊", "x"]);
    let turn = session.say("hi", &request(|generation| generation.max_tokens = Some(4)), &mut |_| {}).unwrap();
    assert_eq!((turn.text.as_str(), turn.stop_reason), ("é\u{fffd}", StopReason::MaxTokens));
    assert_eq!(turn.tokens_generated, 4);
    let held = session.transcript().len();
    assert_eq!(turn.position, held - 1);
    // The half character's own tokens stay in the transcript.
    let next = say(&mut session, "more");
    assert_eq!(next.tokens_reused, held - 1);
    assert_eq!(session.transcript()[held - 4..held], bytes("é🌊")[..4]);
}

#[test]
fn text_streams_in_whole_characters_and_adds_up() {
    let mut session = session(&["naïve 🌊 日本"]);
    let mut pieces = Vec::new();
    let turn = session
        .say("hi", &Request::default(), &mut |event| {
            if let Event::Text(text) = event {
                pieces.push(text.to_owned());
            }
        })
        .unwrap();
    assert_eq!(pieces.concat(), turn.text);
    assert!(pieces.contains(&"🌊".to_owned()) && !turn.text.contains('\u{fffd}'));
}

#[test]
fn a_cancelled_answer_keeps_what_was_said() {
    let mut session = session(&["hello there", "more"]);
    let request = Request::default();
    let cancel = request.cancel.clone();
    let mut said = 0;
    let turn = session
        .say("hi", &request, &mut |event| {
            if let Event::Text(_) = event {
                said += 1;
                if said == 5 {
                    cancel.cancel();
                }
            }
        })
        .unwrap();
    assert_eq!((turn.text.as_str(), turn.stop_reason), ("hello", StopReason::Cancelled));
    assert_eq!(said, 5, "not one token later");
    assert_eq!(messages(&session)[1], ("assistant".into(), "hello".into()));
    let held = session.transcript().len();
    assert_eq!(say(&mut session, "go on").tokens_reused, held);
    assert_eq!(session.transcript()[held], 2, "the template closes the answer");
    assert_as_fresh(&mut session);
}

#[test]
fn a_prompt_cancelled_while_it_is_read_is_withdrawn() {
    let mut session = session(&["hello", "again"]);
    say(&mut session, "hi");
    let (before, transcript) = (messages(&session), session.transcript().to_vec());
    let request = Request::default();
    let cancel = request.cancel.clone();
    let calls = session.model().runner.calls.lock().unwrap().len();
    *session.model().runner.before_call.lock().unwrap() = Some(Box::new(move |_| cancel.cancel()));
    let turn = session.say(&"long ".repeat(50), &request, &mut |_| {}).unwrap();
    assert_eq!((turn.stop_reason, turn.text.as_str(), turn.tokens_computed), (StopReason::Cancelled, "", 16));
    assert_eq!(session.model().runner.calls.lock().unwrap().len(), calls + 1, "only the call that was under way");
    assert_eq!((messages(&session), session.transcript()), (before, &transcript[..]));
    *session.model().runner.before_call.lock().unwrap() = None;
    assert_eq!(say(&mut session, "short").tokens_reused, transcript.len());
    assert_as_fresh(&mut session);
}

#[test]
fn a_deadline_ends_an_answer() {
    let mut session = session(&["hello"]);
    let passed = Request { deadline: Some(Instant::now()), ..Request::default() };
    let turn = session.say("hi", &passed, &mut |_| {}).unwrap();
    assert_eq!(turn.stop_reason, StopReason::Deadline);
    assert!(messages(&session).is_empty() && session.transcript().is_empty());
    let far = Request { deadline: Some(Instant::now() + Duration::from_secs(600)), ..Request::default() };
    assert_eq!(session.say("hi", &far, &mut |_| {}).unwrap().stop_reason, StopReason::Eos);
}

#[test]
fn a_full_context_ends_an_answer_and_refuses_the_next_message() {
    let mut model = chatml(&[&"x".repeat(100)]);
    model.runner.context = 40;
    let mut session = Session::new(shared(model)).unwrap();
    session.set_overflow(Overflow::Stop, None);
    let turn = say(&mut session, "hi");
    assert_eq!(turn.stop_reason, StopReason::ContextFull);
    assert_eq!(session.transcript().len(), 40);
    assert_eq!(messages(&session)[1].1, "x".repeat(turn.tokens_generated));

    let (before, transcript, position) = (messages(&session), session.transcript().to_vec(), session.position());
    let error = session.say("more", &Request::default(), &mut |_| {}).unwrap_err();
    let Error::ContextFull { needed, context: 40, .. } = error else { panic!("{error}") };
    assert!(error.to_string().contains(&needed.to_string()) && error.to_string().contains("40"));
    assert_eq!((messages(&session), session.transcript(), session.position()), (before, &transcript[..], position));

    session.undo().unwrap();
    assert_eq!(say(&mut session, "hi").stop_reason, StopReason::ContextFull);
}

#[test]
fn a_margin_stays_free() {
    let mut model = chatml(&["ok"]);
    model.runner.context = 60;
    let mut session = Session::new(shared(model)).unwrap();
    let length = encode(&session, "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n").len();
    session.set_overflow(Overflow::Stop, Some(60 - length + 1));
    assert!(matches!(session.say("hi", &Request::default(), &mut |_| {}), Err(Error::ContextFull { .. })));
    session.set_overflow(Overflow::Stop, Some(60 - length));
    assert_eq!(say(&mut session, "hi").text, "ok");
}

#[test]
fn a_failing_model_leaves_the_conversation_as_it_was() {
    let mut session = session(&["hello", "again"]);
    say(&mut session, "hi");
    let (before, transcript) = (messages(&session), session.transcript().to_vec());
    for failing in [1, 2, 4] {
        session.model().runner.fail_in.store(failing, std::sync::atomic::Ordering::Relaxed);
        let error = session.say("a longer message", &Request::default(), &mut |_| {}).unwrap_err();
        assert!(matches!(error, Error::Model { .. }), "{error}");
        assert!(error.to_string().contains("scripted failure"), "{error}");
        assert_eq!((messages(&session), session.transcript()), (before.clone(), &transcript[..]));
    }
    session.model().runner.fail_in.store(0, std::sync::atomic::Ordering::Relaxed);
    let turn = say(&mut session, "more");
    assert_eq!((turn.text.as_str(), turn.tokens_reused), ("again", transcript.len()));
    assert_as_fresh(&mut session);
}

#[test]
fn bad_requests_change_nothing() {
    let mut session = session(&["hello"]);
    let error = session.say("hi", &request(|generation| generation.top_p = 2.0), &mut |_| {}).unwrap_err();
    assert!(matches!(error, Error::Setting { name: "top_p", .. }));
    assert!(session.say("hi", &stop(&[""]), &mut |_| {}).is_err());
    assert!(session.complete(&[], &Request::default(), &mut |_| {}).is_err());
    assert!(session.complete(&[1, 300], &Request::default(), &mut |_| {}).is_err());
    assert!(session.regenerate(&Request::default(), &mut |_| {}).is_err());
    assert!(messages(&session).is_empty() && session.transcript().is_empty());
}

#[test]
fn a_failure_after_an_edit_does_not_trust_what_was_overwritten() {
    let mut session = session(&["hello", "again"]);
    session.set_system(Some("be kind"));
    say(&mut session, "hi");
    let transcript = session.transcript().to_vec();
    for failing in [1, 2] {
        session.set_system(Some("be very brief"));
        session.model().runner.fail_in.store(failing, std::sync::atomic::Ordering::Relaxed);
        session.say("a longer message", &Request::default(), &mut |_| {}).unwrap_err();
        assert_eq!(session.transcript(), transcript);
        session.set_system(Some("be kind"));
        session.model().runner.fail_in.store(0, std::sync::atomic::Ordering::Relaxed);
        let common = encode(&session, "<|im_start|>system\nbe ").len();
        assert_eq!(session.position(), common);
        assert_as_fresh(&mut session);
        session.regenerate(&Request::default(), &mut |_| {}).unwrap();
        assert_eq!(session.transcript(), transcript);
    }
}
