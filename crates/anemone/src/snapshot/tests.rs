mod faults;

use std::path::PathBuf;
use std::sync::Arc;

use tempfile::TempDir;

use super::*;
use crate::testing::scripted::{Scripted, chatml, layout, shared};
use crate::{LanguageModel, Request, Session, Turn};

type Fake = Session<Scripted>;

fn say(session: &mut Fake, text: &str) -> Turn {
    session.say(text, &Request::default(), &mut |_| {}).unwrap()
}

/// A session that has talked, and its model again.
fn talk() -> (Fake, Arc<LanguageModel<Scripted>>) {
    let model = shared(chatml(&["hello", "again", "third"]));
    let mut session = Session::new(Arc::clone(&model)).unwrap();
    say(&mut session, "hi");
    (session, model)
}

fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("talk.snapshot");
    (folder, path)
}

fn reason(error: Error) -> SnapshotError {
    match error {
        Error::Snapshot { source, .. } => *source,
        other => panic!("{other}"),
    }
}

#[test]
fn what_was_read_need_not_be_read_again() {
    let (mut session, model) = talk();
    let (_folder, path) = folder();
    let written = session.snapshot(&path).unwrap();
    assert_eq!(written.position, session.position());
    assert_eq!(written.bytes, fs::metadata(&path).unwrap().len());
    let said = say(&mut session, "more");
    model.runner.fed();

    let mut later = Session::new(Arc::clone(&model)).unwrap();
    assert_eq!(later.restore(&path).unwrap(), written);
    assert_eq!(later.transcript(), &session.transcript()[..written.position]);
    // The next call's count proves it.
    let prompt = session.transcript()[..said.tokens_reused + said.tokens_computed].to_vec();
    let turn = later.complete(&prompt, &Request::default(), &mut |_| {}).unwrap();
    assert_eq!((turn.tokens_reused, turn.text), (written.position, said.text));
    assert_eq!(later.transcript(), session.transcript());
}

#[test]
fn a_restored_cache_is_of_the_conversation_or_refused() {
    let (mut session, _) = talk();
    let (_folder, path) = folder();
    let written = session.snapshot(&path).unwrap();
    say(&mut session, "more");
    let (tokens, position) = (session.transcript().to_vec(), session.position());
    // Back to the snapshot's position; the transcript stays.
    session.restore(&path).unwrap();
    assert_eq!((session.transcript(), session.position()), (&tokens[..], written.position));
    let again = say(&mut session, "third");
    assert_eq!((again.text.as_str(), again.tokens_reused), ("third", written.position));

    session.reset().unwrap();
    say(&mut session, "other");
    let before = (session.transcript().to_vec(), session.position());
    let error = reason(session.restore(&path).unwrap_err());
    assert!(matches!(error, SnapshotError::Tokens { common: 3, position } if position == written.position), "{error}");
    assert_eq!((session.transcript().to_vec(), session.position()), before);
    assert!(position > written.position);
}

#[test]
fn other_packages_contexts_layouts_and_builds_are_told_apart() {
    let (session, _) = talk();
    let (_folder, path) = folder();
    session.snapshot(&path).unwrap();
    let refused = |layout| {
        let mut model = chatml(&[]);
        model.runner.layout = layout;
        let mut other = Session::new(shared(model)).unwrap();
        let error = reason(other.restore(&path).unwrap_err());
        assert_eq!((other.position(), other.transcript().len()), (0, 0));
        error
    };
    let of = |change: &dyn Fn(&mut CacheLayout)| {
        let mut layout = layout(4096);
        change(&mut layout);
        refused(Some(layout))
    };
    assert!(matches!(of(&|l| l.package = [8; 32]), SnapshotError::Package { .. }));
    assert!(matches!(of(&|l| *l = layout(8192)), SnapshotError::Context { expected: 8192, found: 4096 }));
    assert!(matches!(of(&|l| l.tensors[0].name = "k".into()), SnapshotError::Layout { .. }));
    assert!(matches!(of(&|l| l.tensors[0].shape[0] = 3), SnapshotError::Layout { .. }));
    assert!(matches!(refused(None), SnapshotError::Unsupported));

    // What only another version of this program writes.
    let written = fs::read(&path).unwrap();
    let build = header::build();
    let with = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = written.clone();
        change(&mut bytes);
        let length = u32::from_le_bytes(bytes[12..16].try_into().unwrap()) as usize;
        let sum = crc32fast::hash(&bytes[..16 + length]);
        bytes[16 + length..20 + length].copy_from_slice(&sum.to_le_bytes());
        fs::write(&path, &bytes).unwrap();
        refused(Some(layout(4096)))
    };
    let at = written.windows(build.len()).position(|w| w == build.as_bytes()).unwrap();
    assert!(matches!(with(&|b| b[at] = b'7'), SnapshotError::Build { .. }));
    assert!(matches!(with(&|b| b[8] = 2), SnapshotError::Version { found: 2, known: 1 }));
    assert!(matches!(with(&|b| b[16] = b'['), SnapshotError::Malformed { .. }));
    let name = written.windows(6).position(|w| w == b"tokens").unwrap();
    assert!(matches!(with(&|b| b[name] = b'!'), SnapshotError::Layout { .. }));
}

#[test]
fn nothing_read_is_a_snapshot_too() {
    let model = shared(chatml(&["hello"]));
    let mut session = Session::new(Arc::clone(&model)).unwrap();
    let (_folder, path) = folder();
    assert_eq!(session.snapshot(&path).unwrap().position, 0);
    assert_eq!(session.restore(&path).unwrap().position, 0);
    assert_eq!(say(&mut session, "hi").text, "hello");
}

#[test]
fn a_missing_file_wipes_nothing() {
    let (mut session, _) = talk();
    let (folder, path) = folder();
    let before = (session.transcript().to_vec(), session.position());
    assert!(matches!(reason(session.restore(&path).unwrap_err()), SnapshotError::Io { what: "read", .. }));
    assert!(matches!(reason(session.restore(folder.path()).unwrap_err()), SnapshotError::Io { .. }));
    assert_eq!((session.transcript().to_vec(), session.position()), before);
}

/// A model whose prompts all begin with a long system message.
fn with_system(model: &Arc<LanguageModel<Scripted>>, text: &str) -> Fake {
    let mut session = Session::new(Arc::clone(model)).unwrap();
    session.set_system(Some(text));
    session
}

#[test]
fn a_kept_prefix_serves_every_session_that_begins_with_it() {
    let (folder, _) = folder();
    let limits = SnapshotLimits { count: 2, bytes: 1 << 20 };
    let store = PrefixStore::new(folder.path().join("prefixes"), limits);
    let model = shared(chatml(&["hello", "again"]));
    let rules = "Be kind to everybody, and brief.";
    let kept = with_system(&model, rules).keep_prefix(&store, &mut |_, _| {}).unwrap();
    let tokens = model.tokenizer.encode(&format!("<|im_start|>system\n{rules}<|im_end|>\n<|im_start|>user\n"), false);
    assert_eq!(kept.position, tokens.unwrap().len());

    // As another process opens it.
    let store = Arc::new(PrefixStore::new(folder.path().join("prefixes"), limits));
    let mut session = with_system(&model, rules);
    session.set_prefixes(Some(Arc::clone(&store)));
    let turn = say(&mut session, "hi");
    assert_eq!((turn.tokens_reused, turn.text.as_str()), (kept.position, "hello"));
    // A part of it serves too, if it is long enough to be worth it.
    let mut session = with_system(&model, "Be kind to everybody, and long.");
    session.set_prefixes(Some(Arc::clone(&store)));
    let turn = say(&mut session, "hi");
    assert!((30..kept.position).contains(&turn.tokens_reused), "{}", turn.tokens_reused);
    assert_eq!(turn.text, "hello");
    let mut fresh = with_system(&model, "Be kind to everybody, and long.");
    say(&mut fresh, "hi");
    assert_eq!(session.transcript(), fresh.transcript());
    // What is short is computed.
    let mut session = with_system(&model, "Be rude");
    session.set_prefixes(Some(Arc::clone(&store)));
    assert_eq!(say(&mut session, "hi").tokens_reused, 0);
    // After a reset as well.
    session.set_system(Some(rules));
    session.reset().unwrap();
    assert_eq!(say(&mut session, "hi").tokens_reused, kept.position);
}

#[test]
fn a_damaged_prefix_costs_time_and_nothing_else() {
    let (folder, _) = folder();
    let store = PrefixStore::new(folder.path(), SnapshotLimits { count: 2, bytes: 1 << 20 });
    let model = shared(chatml(&["hello"]));
    let rules = "Be kind to everybody, and brief.";
    let kept = with_system(&model, rules).keep_prefix(&store, &mut |_, _| {}).unwrap();
    let mut bytes = fs::read(&kept.path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&kept.path, bytes).unwrap();
    let mut session = with_system(&model, rules);
    session.set_prefixes(Some(Arc::new(store)));
    let turn = say(&mut session, "hi");
    assert_eq!((turn.tokens_reused, turn.text.as_str()), (0, "hello"));
}

#[test]
fn what_was_used_longest_ago_goes_first() {
    let (folder, _) = folder();
    let model = shared(chatml(&[]));
    let keep = |limits, text: &str| {
        let store = PrefixStore::new(folder.path(), limits);
        let kept = with_system(&model, text).keep_prefix(&store, &mut |_, _| {});
        // File systems count time in coarse steps.
        std::thread::sleep(std::time::Duration::from_millis(15));
        kept.map(|kept| kept.path)
    };
    let list = || {
        let store = PrefixStore::new(folder.path(), SnapshotLimits { count: 9, bytes: 1 << 20 });
        store.list().into_iter().map(|info| info.path).collect::<Vec<_>>()
    };
    let two = SnapshotLimits { count: 2, bytes: 1 << 20 };
    let (first, second) = (keep(two, "the first one").unwrap(), keep(two, "the second").unwrap());
    store::touch(&first);
    std::thread::sleep(std::time::Duration::from_millis(15));
    let third = keep(two, "the third one").unwrap();
    assert_eq!(list(), [third.clone(), first], "not {second:?}");
    // By bytes.
    let small = SnapshotLimits { count: 9, bytes: fs::metadata(&third).unwrap().len() + 40 };
    let fourth = keep(small, "the fourth").unwrap();
    assert_eq!(list(), [fourth]);
    let error = reason(keep(SnapshotLimits { count: 9, bytes: 100 }, "the fifth one is too long").unwrap_err());
    assert!(matches!(error, SnapshotError::TooLarge { limit: 100, .. }), "{error}");
}
