use serde_json::Value;

use super::support::{Done, Folder};

fn chat(folder: &Folder, stdin: impl Into<Vec<u8>>, more: &[&str]) -> Done {
    let model = folder.model();
    let base = ["chat", &model, "--temperature", "0", "--max-tokens", "6"];
    folder.anemone(base.iter().chain(more)).stdin(stdin).run()
}

fn turns(folder: &Folder, stdin: impl Into<Vec<u8>>) -> Vec<Value> {
    turns_with(folder, stdin, &[])
}

fn turns_with(folder: &Folder, stdin: impl Into<Vec<u8>>, more: &[&str]) -> Vec<Value> {
    let done = chat(folder, stdin, &[&["--json"], more].concat());
    assert_eq!(done.code, Some(0), "{}", done.err);
    done.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_turn_computes_only_its_own_tokens() {
    let folder = Folder::with_model();
    let all = turns(&folder, "Hello\nAnd now?\nBye\n");
    assert_eq!(all.len(), 3);
    let number = |turn: &Value, field: &str| turn[field].as_u64().unwrap();
    for pair in all.windows(2) {
        let (before, now) = (number(&pair[0], "position"), number(&pair[1], "tokens_reused"));
        // What the model said itself is in the cache, but perhaps its last token, which was never fed.
        assert_eq!(now, before, "{pair:?}");
    }
    // The last token said before, a new line, `u:`, the text, a new line, `a:`.
    assert_eq!(number(&all[1], "tokens_computed"), 1 + 1 + 2 + 8 + 1 + 2, "{all:?}");
    assert_eq!(number(&all[2], "tokens_computed"), 1 + 1 + 2 + 3 + 1 + 2, "{all:?}");
}

#[test]
fn after_a_reset_nothing_is_left() {
    let folder = Folder::with_model();
    let text = |turn: &Value| turn["text"].as_str().unwrap().to_owned();
    let fresh = turns(&folder, "Hello\n");
    let all = turns(&folder, "Something else\nAnd more\n/reset\nHello\n");
    assert_eq!(text(&all[2]), text(&fresh[0]));
    assert_eq!((&all[2]["tokens_reused"], &all[2]["position"]), (&0.into(), &fresh[0]["position"]));
}

#[test]
fn turns_can_be_taken_back_and_tried_again() {
    let folder = Folder::with_model();
    let all = turns(&folder, "One\nTwo\n/undo\nTwo\n/retry\n");
    assert_eq!(all.len(), 4);
    for other in &all[2..] {
        assert_eq!(other["text"], all[1]["text"], "{all:?}");
    }
    let nothing = chat(&folder, "/undo\n/retry\n", &[]);
    assert_eq!(nothing.code, Some(1));
    for problem in ["/undo: nothing was said yet", "/retry: there is no answer yet"] {
        assert!(nothing.err.contains(problem), "{}", nothing.err);
    }
    let again = chat(&folder, "One\n/retry\n", &[]);
    assert!(again.err.contains("the same as before") && again.err.contains("--temperature"), "{}", again.err);
}

#[test]
fn answers_go_to_standard_output_and_all_else_to_standard_error() {
    let folder = Folder::with_model();
    let done = chat(&folder, "Hello\n/stats\n/help\n\nHello again\n/quit\nnever said\n", &[]);
    assert_eq!(done.code, Some(0), "{}", done.err);
    let expected: String = turns(&folder, "Hello\nHello again\n")
        .iter()
        .map(|turn| turn["text"].as_str().unwrap())
        .map(|text| if text.ends_with('\n') { text.to_owned() } else { format!("{text}\n") })
        .collect();
    assert_eq!(done.out, expected);
    for word in ["tokens reused from the cache", "first token after", "of 256", "/reset", "--max-tokens"] {
        assert!(done.err.contains(word), "{word:?}: {}", done.err);
    }
}

#[test]
fn every_count_of_the_context_is_the_same() {
    let folder = Folder::with_model();
    let turn = &turns(&folder, "Hello\n")[0];
    let number = |field: &str| turn[field].as_u64().unwrap();
    let taken = number("tokens_reused") + number("tokens_computed") + number("tokens_generated");
    let said = format!("{taken} are taken, {} of them in the cache", number("position"));
    let done = chat(&folder, "Hello\n/context\n/stats\n", &[]);
    assert_eq!(done.err.matches(&said).count(), 2, "{said} is not in {}", done.err);
    // A context that is full is full, and no more.
    let model = folder.model();
    let full = format!("{}\n/context\n", "x".repeat(215));
    let done = folder.anemone(["chat", &model, "--temperature", "0", "--overflow", "stop"]).stdin(full).run();
    assert!(done.err.contains("256 tokens; 256 are taken, 255 of them"), "{}", done.err);
}

#[test]
fn programs_are_told_of_the_context_and_of_costs_in_json() {
    let folder = Folder::with_model();
    let all = turns(&folder, "/stats\nHello\n/context\n/stats\n");
    assert_eq!((all.len(), &all[0]["event"], &all[0]["last_turn"]), (4, &"stats".into(), &Value::Null));
    let (turn, context, stats) = (&all[1], &all[2], &all[3]);
    assert_eq!(
        (&context["event"], &context["context"], &context["read"]),
        (&"context".into(), &256.into(), &turn["position"])
    );
    assert_eq!(context["used"].as_u64().unwrap() + context["free"].as_u64().unwrap(), 256);
    assert_eq!((&stats["turns"], &stats["last_turn"]), (&1.into(), turn));
    assert_eq!(stats["tokens_computed"], turn["tokens_computed"]);
    let done = chat(&folder, "Hello\n/context\n/stats\n", &["--json"]);
    assert!(!done.err.contains("taken") && !done.err.contains("tokens"), "{}", done.err);
}

#[test]
fn what_looks_like_a_command_and_is_none_is_not_said_to_the_model() {
    let folder = Folder::with_model();
    let done = chat(&folder, "/rest\nHello\n//rest\n/usr/bin\n", &["--json"]);
    assert_eq!(done.code, Some(1), "{}", done.err);
    let all: Vec<Value> = done.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(all.len(), 4, "{all:?}");
    let error = all[0]["error"].as_str().unwrap();
    assert!(error.contains("no command /rest") && error.contains("/reset") && error.contains("//rest"), "{error}");
    // `u:`, the text, a new line, `a:`; before it the last token said before, and a new line.
    let computed = |i: usize| all[i]["tokens_computed"].as_u64().unwrap();
    assert_eq!((computed(1), computed(2), computed(3)), (10, 2 + 2 + 5 + 1 + 2, 2 + 2 + 8 + 1 + 2), "{all:?}");
    assert!(chat(&folder, "/rest\n", &[]).err.contains("error: there is no command /rest"));
}

#[test]
fn no_input_is_no_conversation() {
    let folder = Folder::with_model();
    for stdin in ["", "\n\n", "/quit\n"] {
        let done = chat(&folder, stdin, &[]);
        assert_eq!((done.code, done.out.as_str(), done.err.as_str()), (Some(0), "", ""));
    }
}

#[test]
fn lines_that_cannot_be_taken_cost_only_themselves() {
    let folder = Folder::with_model();
    let mut stdin = "x".repeat((4 << 20) + 5).into_bytes();
    stdin.extend(b"\n\xff\xfe\n");
    stdin.extend("y".repeat(5000).bytes());
    stdin.extend(b"\nHello\n");
    let done = chat(&folder, stdin.clone(), &["--json"]);
    assert_eq!(done.code, Some(1), "a turn failed: {}", done.err);
    let all: Vec<Value> = done.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let error = |i: usize| all[i]["error"].as_str().unwrap();
    assert!(error(0).contains("longer") && error(1).contains("UTF-8"), "{all:?}");
    assert!(error(2).contains("alone is 5005 tokens") && error(2).contains("holds 256"), "{all:?}");
    assert_eq!((&all[2]["position"], &all[2]["context"]), (&0.into(), &256.into()));
    assert_eq!(all[3]["text"], turns(&folder, "Hello\n")[0]["text"]);
    let text = chat(&folder, stdin, &[]);
    assert_eq!(text.code, Some(1));
    assert_eq!(text.err.matches("error:").count(), 3, "{}", text.err);
}

#[test]
fn a_full_context_says_how_to_go_on() {
    let folder = Folder::with_model();
    let model = folder.model();
    let long = format!("{}\nmore\n/reset\nHello\n", "x".repeat(215));
    let done = folder.anemone(["chat", &model, "--temperature", "0", "--json", "--overflow", "stop"]).stdin(long).run();
    let all: Vec<Value> = done.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((done.code, &all[0]["stop_reason"]), (Some(1), &"context_full".into()), "{all:?}");
    assert!(all[1]["error"].as_str().unwrap().contains("/reset begins anew"), "{all:?}");
    assert_eq!(all[2]["tokens_reused"], 0);
}

#[test]
fn a_conversation_that_outgrows_the_context_goes_on_and_says_what_went() {
    let folder = Folder::with_model();
    let lines: String = (0..12).map(|n| format!("message {n} of a long conversation\n")).collect();
    for policy in [&["--overflow", "drop-oldest", "--margin", "40"][..], &[]] {
        let all = turns_with(&folder, lines.as_str(), policy);
        assert_eq!(all.len(), 12);
        let overflows: Vec<&Value> = all.iter().map(|turn| &turn["overflow"]).filter(|o| !o.is_null()).collect();
        assert!(overflows.len() > 1, "{all:?}");
        for overflow in overflows {
            let number = |field: &str| overflow[field].as_u64().unwrap();
            let margin = if policy.is_empty() { 32 } else { 40 };
            assert!(number("tokens_before") > 256 - margin && number("tokens_after") <= 256 - margin, "{overflow}");
            assert_eq!((number("messages_dropped"), &overflow["summary"]), (2 * number("turns_dropped"), &Value::Null));
            // A model that has nothing to say can't sum up either, which is said.
            assert_eq!(
                (&overflow["policy"], overflow["fallback"].is_null()),
                (&"drop-oldest".into(), !policy.is_empty())
            );
        }
    }
    let told = chat(&folder, lines.clone(), &["--overflow", "drop-oldest"]);
    assert!(told.err.contains("which is too much") && told.err.contains("dropped; "), "{}", told.err);
    let refused = chat(&folder, lines, &["--overflow", "stop"]);
    assert_eq!(refused.code, Some(1));
    assert!(refused.err.contains("/reset begins anew"), "{}", refused.err);
}

#[test]
fn the_context_is_drawn() {
    let folder = Folder::with_model();
    let done = chat(&folder, "Hello\n/context\n", &["--system", "be kind", "--margin", "64"]);
    let bar = done.err.lines().find(|line| line.trim_start().starts_with('[')).unwrap();
    let cells = |part: char| bar.chars().filter(|&c| c == part).count();
    assert!(cells('S') == 3 && cells('Σ') == 0 && cells('▒') > 3 && cells('·') > 40, "{bar}");
    let mark = done.err.lines().find(|line| line.contains("free for the answer")).unwrap().find('^').unwrap();
    assert_eq!(mark, 3 + 45, "three quarters: {}", done.err);
    for row in ["S system          10 tokens", "^ margin          64 tokens", "context        256 tokens"] {
        assert!(done.err.contains(row), "{row:?}: {}", done.err);
    }
    let model = folder.model();
    folder.anemone(["chat", &model, "--margin", "256"]).fails(2, &["--margin 256 leaves nothing", "256 tokens"]);
}

#[cfg(unix)]
#[test]
fn interrupted_it_ends_with_130() {
    use std::io::{Read, Write};
    use std::process::{Command, Stdio};

    use super::support::ended;

    let folder = Folder::with_model();
    let model = folder.model();
    let mut child = Command::new(env!("CARGO_BIN_EXE_anemone"))
        .args(["chat", &model, "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It has begun once it has answered; then it waits for the next line.
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"Hello\n").unwrap();
    let mut first = [0];
    child.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
    let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(kill.success());
    assert_eq!(ended(&mut child), Some(130));
}
