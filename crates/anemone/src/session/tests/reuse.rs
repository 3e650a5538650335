//! What is computed and what is not.

use super::*;
use crate::testing::scripted::{CHATML, with};
use crate::testing::{byte_level, sentence_piece};

const OPENING: &str = "<|im_start|>assistant\n";

#[test]
fn the_second_turn_computes_only_its_own_tokens() {
    let mut session = session(&["hello there", "again"]);
    let first = say(&mut session, "hi");
    assert_eq!(first.text, "hello there");
    assert_eq!((first.tokens_reused, first.tokens_generated), (0, 11));
    assert_eq!(first.tokens_computed, encode(&session, &format!("<|im_start|>user\nhi<|im_end|>\n{OPENING}")).len());
    assert_eq!(first.stop_reason, StopReason::Eos);
    let held = session.transcript().len();
    assert_eq!(first.position, held);
    session.model().runner.fed();

    let second = say(&mut session, "more");
    let suffix = encode(&session, &format!("<|im_end|>\n<|im_start|>user\nmore<|im_end|>\n{OPENING}"));
    assert_eq!(second.text, "again");
    assert_eq!(second.tokens_reused, held);
    assert_eq!(second.tokens_computed, suffix.len());
    assert_eq!(session.model().runner.fed(), [suffix, bytes("again")].concat());
    assert_as_fresh(&mut session);
}

#[test]
fn generated_tokens_are_never_encoded_again() {
    // The tokenizer would make one token of "hello"; the model wrote five.
    let mut session = session(&["hello", "hello"]);
    assert_eq!(encode(&session, "hello").len(), 1);
    say(&mut session, "hello");
    say(&mut session, "hello");
    let mut expected = encode(&session, &format!("<|im_start|>user\nhello<|im_end|>\n{OPENING}"));
    expected.extend(bytes("hello"));
    expected.extend(encode(&session, &format!("<|im_end|>\n<|im_start|>user\nhello<|im_end|>\n{OPENING}")));
    expected.extend(bytes("hello"));
    assert_eq!(session.transcript(), expected);
}

#[test]
fn the_end_of_an_answer_is_there_once_whether_or_not_the_model_said_it() {
    let closed = |limit| {
        let mut session = session(&["hello", "x"]);
        let request = Request::new(Generation { max_tokens: limit, ..Generation::default() });
        session.say("hi", &request, &mut |_| {}).unwrap();
        say(&mut session, "y");
        session.transcript().to_vec()
    };
    let by_model = closed(None);
    assert_eq!(by_model, closed(Some(5)));
    assert_eq!(by_model.iter().filter(|&&token| token == 2).count(), 3);
}

#[test]
fn an_edited_system_message_reuses_what_comes_before_the_edit() {
    let mut session = session(&["hello", "one", "two"]);
    session.set_system(Some("be kind"));
    say(&mut session, "hi");
    session.set_system(Some("be brief"));
    let turn = say(&mut session, "more");
    let common = encode(&session, "<|im_start|>system\nbe b").len() - 1;
    assert_eq!(turn.tokens_reused, common);
    // The answer of the first turn went in as it was generated, not as it would be encoded.
    let head =
        encode(&session, &format!("<|im_start|>system\nbe brief<|im_end|>\n<|im_start|>user\nhi<|im_end|>\n{OPENING}"));
    assert_eq!(session.transcript()[..head.len()], head);
    assert_eq!(session.transcript()[head.len()..][..5], bytes("hello"));
    assert_as_fresh(&mut session);
}

#[test]
fn a_whole_conversation_from_outside_is_recognized() {
    let mut session = session(&["hello", "again", "third"]);
    say(&mut session, "hi");
    let held = session.transcript().len();
    let mut outside = vec![Message::user("hi"), Message::assistant("hello"), Message::user("more")];
    let turn = session.generate(&outside, &Request::default(), &mut |_| {}).unwrap();
    assert_eq!((turn.tokens_reused, turn.text.as_str()), (held, "again"));

    // An answer that this session did not generate is text like any other.
    outside[1] = Message::assistant("other");
    outside.extend([Message::assistant("again"), Message::user("and")]);
    let turn = session.generate(&outside, &Request::default(), &mut |_| {}).unwrap();
    assert_eq!(turn.tokens_reused, encode(&session, &format!("<|im_start|>user\nhi<|im_end|>\n{OPENING}")).len());
    assert_eq!(messages(&session).len(), 6);
    let again = bytes("again");
    assert!(session.transcript().windows(again.len()).any(|window| window == again));
    assert_as_fresh(&mut session);
}

#[test]
fn whatever_is_edited_all_before_it_is_reused() {
    let said = ["hi", "more", "and"];
    let talk = || {
        let mut session = session(&["hello", "again", "third", "fourth"]);
        session.set_system(Some("be kind"));
        for text in said {
            say(&mut session, text);
        }
        session
    };
    let conversation: Vec<Message> = talk().messages().cloned().collect();
    for edited in 0..conversation.len() {
        let mut session = talk();
        let before = session.transcript().to_vec();
        let mut messages = conversation.clone();
        messages[edited].content = "something else".into();
        messages.push(Message::user("end"));
        let turn = session.generate(&messages, &Request::default(), &mut |_| {}).unwrap();
        let common = before.iter().zip(session.transcript()).take_while(|(a, b)| a == b).count();
        assert_eq!(turn.tokens_reused, common, "message {edited}");
        let prompt = session.transcript().len() - turn.tokens_generated;
        assert_eq!(turn.tokens_reused + turn.tokens_computed, prompt, "message {edited}");
        // All messages before the edited one, and the words that begin it.
        let least = encode(&session, &format!("<|im_start|>{}\n", conversation[edited].role)).len();
        assert!(common >= least && (edited == 0 || common > 10 * edited), "message {edited}: {common}");
        assert_as_fresh(&mut session);
    }
}

#[test]
fn an_answer_that_looks_like_the_template_is_not_mistaken() {
    let mut session = session(&["user", "assistant\n", "<|im_start|>", "u", "\n"]);
    for text in ["user", "assistant", "u", "<|im_end|>\n", "end"] {
        let held = session.transcript().len();
        let turn = say(&mut session, text);
        assert_eq!(turn.tokens_reused, held, "{text:?}");
        assert_as_fresh(&mut session);
    }
}

#[test]
fn the_same_prompt_again_computes_one_token() {
    let mut session = session(&["hello"]);
    let first = say(&mut session, "hi");
    let again = session.regenerate(&Request::default(), &mut |_| {}).unwrap();
    assert_eq!(again.text, "hello");
    assert_eq!((again.tokens_reused, again.tokens_computed), (first.tokens_computed - 1, 1));
    assert_eq!(messages(&session).len(), 2);
}

#[test]
fn empty_answers_and_messages_are_fine() {
    let mut session = session(&["", "x"]);
    let turn = say(&mut session, "");
    assert_eq!((turn.text.as_str(), turn.tokens_generated, turn.stop_reason), ("", 0, StopReason::Eos));
    let held = session.transcript().len();
    assert_eq!(say(&mut session, "").tokens_reused, held);
    assert_eq!(messages(&session).len(), 4);
}

#[test]
fn prompts_are_fed_in_chunks() {
    let mut session = session(&["ok"]);
    let mut progress = Vec::new();
    let request = Request::default();
    let text = "x".repeat(40);
    session
        .say(&text, &request, &mut |event| {
            if let Event::Prompt { done, total } = event {
                progress.push((done, total));
            }
        })
        .unwrap();
    let total = progress[0].1;
    assert_eq!(progress.iter().map(|&(done, _)| done).collect::<Vec<_>>(), [0, 16, 32, 48, total]);
    let calls = session.model().runner.calls.lock().unwrap();
    assert!(calls[..4].iter().map(|(position, _)| *position).eq([0, 16, 32, 48]));
}

/// Llama 2's way: a space before each answer and each message, an end token after.
const LLAMA: &str = "{% for m in messages %}{% if m.role == 'user' %}{{ '<s> q ' + m.content + ' a' }}\
    {% else %}{{ ' ' + m.content + ' </s>' }}{% endif %}{% endfor %}";

#[test]
fn sentence_piece_answers_keep_their_space_and_their_cache() {
    for old_style in [true, false] {
        let tokenizer = sentence_piece(old_style);
        let id = |token: &str| tokenizer.id(token).unwrap();
        // The answer's first token carries the space that the template writes before answers.
        let answer = vec![id("▁hi"), id("▁h"), id("o")];
        let opening = vec![id("▁"), id("a")];
        let runner = Scripted::answering(opening, vec![answer.clone(), answer.clone()], 2);
        let mut session = Session::new(shared(with(runner, tokenizer, LLAMA))).unwrap();
        assert_eq!(say(&mut session, "hi").text, "hi ho");
        let held = session.transcript().len();
        assert_eq!(session.transcript()[held - 3..], answer);
        let turn = say(&mut session, "ho");
        assert_eq!(turn.tokens_reused, held, "{old_style}");
        assert_eq!(turn.text, "hi ho");
        let tokens: Vec<String> =
            session.transcript().iter().map(|&id| session.model().tokenizer.token(id).unwrap()).collect();
        assert_eq!(tokens[held..held + 3], ["▁", "</s>", "<s>"]);
    }
}

/// Leaves out of earlier answers what the model thought.
const THINKING: &str = "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + \
    (m.content if loop.last else m.content.split('</think>')[-1].lstrip('\n')) + '<|im_end|>\n' }}{% endfor %}\
    {% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

#[test]
fn a_template_that_drops_thoughts_is_followed_with_the_tokens_of_the_rest() {
    let tokenizer = byte_level();
    let opening = tokenizer.encode(OPENING, false).unwrap();
    let answers = vec![bytes("<think>hm</think>\n\nhello"), bytes("two")];
    let runner = Scripted::answering(opening, answers, 2);
    let mut session = Session::new(shared(with(runner, tokenizer, THINKING))).unwrap();
    let first = say(&mut session, "hi");
    assert_eq!(first.text, "<think>hm</think>\n\nhello");
    let turn = say(&mut session, "more");
    // All before the thought is reused; the rest of the answer keeps its own tokens.
    assert_eq!(turn.tokens_reused, first.tokens_computed);
    assert_eq!(session.transcript()[first.tokens_computed..][..5], bytes("hello"));
    assert_eq!(session.transcript()[first.tokens_computed + 5], 2);
    assert_eq!(messages(&session)[1].1, "<think>hm</think>\n\nhello");
}

#[test]
fn a_template_that_rewrites_answers_is_followed() {
    let shouting = CHATML.replace("message['content']", "message['content'] | upper");
    let tokenizer = byte_level();
    let opening = tokenizer.encode(OPENING, false).unwrap();
    let runner = Scripted::answering(opening, vec![bytes("hello"), bytes("two")], 2);
    let mut session = Session::new(shared(with(runner, tokenizer, &shouting))).unwrap();
    let first = say(&mut session, "hi");
    let turn = say(&mut session, "more");
    assert_eq!(turn.tokens_reused, first.tokens_computed);
    let expected =
        "<|im_start|>user\nHI<|im_end|>\n<|im_start|>assistant\nHELLO<|im_end|>\n<|im_start|>user\nMORE<|im_end|>\n";
    let expected = [encode(&session, &format!("{expected}{OPENING}")), bytes("two")].concat();
    assert_eq!(session.transcript(), expected);
}

#[test]
fn a_template_that_leaves_out_or_repeats_messages_is_followed() {
    let answers = || vec![bytes("hello"), bytes("two"), bytes("three")];
    let rendered = |messages: &str, turns: &[&str]| {
        let template = CHATML.replace("in messages", messages);
        let tokenizer = byte_level();
        let opening = tokenizer.encode(OPENING, false).unwrap();
        let mut session =
            Session::new(shared(with(Scripted::answering(opening, answers(), 2), tokenizer, &template))).unwrap();
        turns.iter().for_each(|text| drop(say(&mut session, text)));
        assert_as_fresh(&mut session);
        session
    };
    // Only the last three messages: the first answer is gone, the second is there with its own tokens.
    let session = rendered("in messages[-3:]", &["a", "hello", "c"]);
    let head = encode(&session, &format!("<|im_start|>user\nhello<|im_end|>\n{OPENING}"));
    assert_eq!(session.transcript()[..head.len()], head);
    assert_eq!(session.transcript()[head.len()..][..3], bytes("two")[..]);
    // Each message twice: no telling which copy is the answer, so all is text.
    let session = rendered("in messages + messages", &["a", "b"]);
    let hello = session.model().tokenizer.id("hello").unwrap();
    assert_eq!(session.transcript().iter().filter(|&&token| token == hello).count(), 2);
}
