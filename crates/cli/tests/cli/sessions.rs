//! Conversations that are kept, as users keep them: ended, killed, opened twice.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use super::support::{Run, anemone};

fn model() -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../goldens/tiny/model");
    path.to_str().unwrap().to_owned()
}

/// The binary with a home that stays.
fn at(home: &TempDir, arguments: &[&str]) -> Run {
    anemone(arguments).env("ANEMONE_HOME", home.path())
}

fn chat(home: &TempDir, more: &[&str], stdin: &str) -> Run {
    let model = model();
    let base = ["chat", &model, "--temperature", "0", "--max-tokens", "8"];
    at(home, &[&base[..], more].concat()).stdin(stdin)
}

fn turns(out: &str) -> Vec<Value> {
    out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn exported(home: &TempDir, name: &str) -> Value {
    serde_json::from_str(&at(home, &["sessions", "export", name, "--to", "json"]).ok()).unwrap()
}

#[test]
fn a_conversation_goes_on_in_another_process() {
    let home = tempfile::tempdir().unwrap();
    let first = chat(&home, &["--session", "a", "--json", "--system", "Be kind."], "One\n").ok();
    let done = chat(&home, &["--session", "a", "--json"], "Two\n").run();
    assert_eq!(done.code, Some(0), "{}", done.err);
    // What was said before came from the snapshot, all of it.
    let (first, second) = (&turns(&first)[0], &turns(&done.out)[0]);
    assert_eq!(second["tokens_reused"], first["position"], "{}", done.err);
    assert!(done.err.contains("a: 3 messages") && !done.err.contains("computed anew"), "{}", done.err);
    // As in one process.
    let whole = chat(&home, &["--json", "--system", "Be kind."], "One\nTwo\n").ok();
    assert_eq!(turns(&whole)[1]["text"], second["text"]);

    let listed: Value = serde_json::from_str(&at(&home, &["sessions", "--json"]).ok()).unwrap();
    assert_eq!((&listed[0]["name"], &listed[0]["messages"]), (&"a".into(), &5.into()));
    assert!(at(&home, &["sessions"]).ok().starts_with("a "));
    let markdown = at(&home, &["sessions", "show", "a"]).ok();
    assert!(markdown.starts_with("# a\n\n## System\n\nBe kind.\n\n## User\n\nOne\n\n## Assistant\n\n"), "{markdown}");
    let file = home.path().join("a.md");
    at(&home, &["sessions", "export", "a", "-o", file.to_str().unwrap()]).ok();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), markdown);
    at(&home, &["sessions", "export", "a", "-o", file.to_str().unwrap()])
        .fails(1, &["cannot write", "a.md", "not replaced", "-o another name"]);
    assert_eq!(at(&home, &["sessions", "list"]).ok(), at(&home, &["sessions"]).ok());
    assert_eq!(at(&home, &["sessions", "list", "--json"]).ok(), at(&home, &["sessions", "--json"]).ok());
    at(&home, &["sessions", "export", "a", "--format", "json"]).ok();
    at(&home, &["sessions", "export", "a", "--format", "yaml"]).fails(2, &["markdown, json"]);
    at(&home, &["sessions", "delete", "a"]).ok();
    at(&home, &["sessions", "delete", "a"]).fails(1, &["no such session"]);
    assert_eq!(at(&home, &["sessions"]).ok(), "");
    let err = chat(&home, &["--session", "../a"], "").fails(1, &["cannot be the name of a session"]);
    assert!(!err.contains("session sessions"), "{err}");
}

#[test]
fn copies_are_saved_loaded_and_forked() {
    let home = tempfile::tempdir().unwrap();
    let script = "One\n/save kept\nTwo\n/fork other\nThree\n/load kept\nFour\n/undo\n/retry\nFive\n";
    let done = chat(&home, &["--session", "a", "--json"], script).run();
    assert_eq!(done.code, Some(0), "{}", done.err);
    let said = |name: &str| -> Vec<String> {
        let exported = exported(&home, name);
        let messages = exported["messages"].as_array().unwrap().iter().filter(|m| m["role"] == "user");
        messages.map(|m| m["content"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(said("a"), ["One", "Two"]);
    // What was loaded goes on in the session that is open, and is a save still; what was there before is not lost.
    assert_eq!(said("other"), ["One", "Five"]);
    assert_eq!(said("other-2"), ["One", "Two", "Three"]);
    assert_eq!(said("kept"), ["One"]);
    for told in ["The conversation goes on as other; kept stays as it is.", "What other was before is kept as other-2."]
    {
        assert!(done.err.contains(told), "{told} is not in {}", done.err);
    }
    // In a chat that is not kept, which is said.
    let done = chat(&home, &["--json"], "/load kept\n/retry\nSix\n").run();
    assert!(done.err.contains("is not kept; kept stays as it is"), "{}", done.err);
    assert_eq!((done.code, said("kept")), (Some(0), vec!["One".to_owned()]));
    // Opened by its name it is a session like any other.
    chat(&home, &["--session", "kept"], "Seven\n").ok();
    assert_eq!(said("kept"), ["One", "Seven"]);
    let done = chat(&home, &[], "/save\n/load nothing\n/save ../x\n/rewind 7\n/save a\n").run();
    assert_eq!(done.code, Some(1));
    for word in [
        "/save NAME keeps",
        "session nothing: there is no such session",
        "cannot be the name",
        "/rewind: message 7",
        "take another name, or remove it with `anemone sessions delete a`",
    ] {
        assert!(done.err.contains(word), "{word} is not in {}", done.err);
    }
}

#[test]
fn a_damaged_log_locks_nobody_out() {
    let home = tempfile::tempdir().unwrap();
    chat(&home, &["--session", "a"], "One\nTwo\n").ok();
    let log = home.path().join("sessions/a/log");
    let path = log.to_str().unwrap();
    let said = exported(&home, "a")["messages"].clone();
    let mut bytes = std::fs::read(&log).unwrap();
    bytes[3] = 0;
    std::fs::write(&log, &bytes).unwrap();
    let done = chat(&home, &["--session", "a"], "").run();
    assert_eq!(done.code, Some(0), "{}", done.err);
    assert!(done.err.contains("all messages were recovered; the damaged file is"), "{}", done.err);
    assert_eq!(
        (exported(&home, "a")["messages"].clone(), std::fs::read(log.with_extension("damaged-1")).unwrap()),
        (said, bytes)
    );

    std::fs::write(&log, "").unwrap();
    at(&home, &["sessions", "show", "a"]).fails(1, &[path, "empty", "begins the conversation anew"]);
    let done = chat(&home, &["--session", "a"], "One\n").run();
    assert_eq!(done.code, Some(0), "{}", done.err);
    assert!(done.err.contains("the log was empty: the conversation begins anew"), "{}", done.err);

    std::fs::write(&log, "what somebody else wrote here").unwrap();
    chat(&home, &["--session", "a"], "").fails(1, &["session a", path, "something else", "move that file away"]);
}

/// A chat whose output is read while it goes on.
fn begin(home: &Path, name: &str) -> Child {
    let model = model();
    let mut child = Command::new(env!("CARGO_BIN_EXE_anemone"))
        .args(["chat", &model, "--session", name, "--temperature", "0"])
        .env("ANEMONE_HOME", home)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.as_mut().unwrap().write_all(b"Why is the sky blue?\n").unwrap();
    child
}

#[test]
fn killed_in_the_midst_of_an_answer_nothing_shown_is_lost() {
    let home = tempfile::tempdir().unwrap();
    let mut interrupted = 0;
    for enough in [1, 5, 12, 30, 60, 90] {
        let name = format!("killed-{enough}");
        let mut child = begin(home.path(), &name);
        let mut out = child.stdout.take().unwrap();
        let mut shown = vec![0; enough];
        out.read_exact(&mut shown).unwrap();
        // SIGKILL on Unix.
        child.kill().unwrap();
        child.wait().unwrap();
        out.read_to_end(&mut shown).unwrap();
        // The output is cut at a byte, which need not be where a character ends.
        let shown = String::from_utf8_lossy(&shown).trim_end_matches('\u{fffd}').to_owned();

        // What the log holds can be read before anybody goes on with it.
        let before = exported(&home, &name);
        let answer = before["messages"][1]["content"].as_str().unwrap().to_owned();
        assert!(answer.starts_with(shown.trim_end_matches('\n')), "{shown:?} was shown, {before}");
        let markdown = at(&home, &["sessions", "show", &name]).ok();
        assert_eq!(markdown.contains("## Assistant (interrupted)\n"), before["interrupted"].is_number(), "{markdown}");

        let done = chat(&home, &["--session", &name, "--json"], "And now?\n").run();
        assert_eq!(done.code, Some(0), "{}", done.err);
        assert_eq!(
            before["interrupted"].is_number(),
            done.err.contains("the last answer was interrupted"),
            "{}",
            done.err
        );
        assert_eq!(exported(&home, &name)["messages"][1]["content"], answer);
        interrupted += usize::from(done.err.contains("the last answer was interrupted"));
        let messages = exported(&home, &name)["messages"].clone();
        assert_eq!((&messages[0]["content"], messages.as_array().unwrap().len()), (&"Why is the sky blue?".into(), 4));
        let kept = messages[1]["content"].as_str().unwrap();
        assert!(kept.starts_with(shown.trim_end_matches('\n')), "{shown:?} was shown, {kept:?} is kept");
    }
    assert!(interrupted > 0, "every answer had ended before it was killed");
}

#[test]
fn the_second_process_is_told_who_has_the_session() {
    let home = tempfile::tempdir().unwrap();
    let mut first = begin(home.path(), "a");
    // It has the session once it answers.
    let mut out = BufReader::new(first.stdout.take().unwrap());
    out.fill_buf().unwrap();
    let pid = first.id().to_string();
    chat(&home, &["--session", "a"], "hi\n").fails(1, &["session a: ", "another process", &pid]);
    at(&home, &["sessions", "delete", "a"]).fails(1, &["another process"]);
    // Reading is no harm.
    at(&home, &["sessions", "show", "a"]).ok();
    first.kill().unwrap();
    first.wait().unwrap();
    // Its lock died with it.
    std::thread::sleep(Duration::from_millis(50));
    chat(&home, &["--session", "a"], "/undo\nhi\n").ok();
}

#[test]
fn a_prefix_is_computed_once() {
    let home = tempfile::tempdir().unwrap();
    let rules = home.path().join("rules.txt");
    std::fs::write(&rules, "Be kind to everybody, brief, and never at a loss for words.").unwrap();
    let rules = rules.to_str().unwrap();
    let model = model();
    let done = at(&home, &["prefix", &model, "--system-file", rules]).run();
    assert_eq!(done.code, Some(0), "{}", done.err);
    assert!(done.err.contains("computed in"), "{}", done.err);
    let listed = at(&home, &["prefix", "--list"]).ok();
    let tokens: u64 = listed.split_whitespace().next().unwrap().parse().unwrap();
    let turn = &turns(&chat(&home, &["--json", "--system-file", rules], "One\n").ok())[0];
    assert_eq!(turn["tokens_reused"], tokens);
    // A conversation that is opened by another command, and whose snapshots are gone, finds it as well.
    chat(&home, &["--session", "a", "--system-file", rules], "One\n").ok();
    std::fs::remove_dir_all(home.path().join("sessions/a/snapshots")).unwrap();
    let loaded = &turns(&chat(&home, &["--json"], "/load a\nTwo\n").ok())[0];
    assert_eq!(loaded["tokens_reused"], tokens);
    let without = tempfile::tempdir().unwrap();
    let fresh = &turns(&chat(&without, &["--json", "--system-file", rules], "One\n").ok())[0];
    assert_eq!((&fresh["text"], &fresh["tokens_reused"]), (&turn["text"], &0.into()));
    at(&home, &["prefix", &model]).fails(2, &["--system-file"]);
}
