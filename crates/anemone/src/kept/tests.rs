mod crashes;
mod damage;

use std::sync::Arc;

use tempfile::TempDir;

use super::*;
use crate::testing::scripted::{Scripted, chatml, shared};
use crate::{Event, Generation, Message, Request, SnapshotError, Turn};

type Fake = Session<Scripted>;
type Model = Arc<LanguageModel<Scripted>>;

const LIMITS: KeepLimits = KeepLimits { snapshots: 2, bytes: 1 << 20, every: 1 << 20 };

fn folder() -> (TempDir, SessionStore) {
    let folder = tempfile::tempdir().unwrap();
    let store = SessionStore::new(folder.path().join("sessions"), LIMITS);
    (folder, store)
}

fn model() -> Model {
    shared(chatml(&["hello", "again", "third 🌊"]))
}

fn say(session: &mut Fake, text: &str) -> Turn {
    session.say(text, &Request::default(), &mut |_| {}).unwrap()
}

fn messages(session: &Fake) -> Vec<Message> {
    session.messages().cloned().collect()
}

fn kept(error: Error) -> KeepError {
    match error {
        Error::Kept { source, .. } => *source,
        other => panic!("{other}"),
    }
}

/// What a session is, for comparisons.
fn all(session: &Fake) -> (Vec<Message>, Vec<u32>) {
    (messages(session), session.transcript().to_vec())
}

#[test]
fn a_session_that_is_opened_again_goes_on() {
    let (_folder, store) = folder();
    let (mut session, opened) = store.open("a", model()).unwrap();
    assert!(opened.is_new && opened.notices.is_empty());
    session.set_system(Some("be kind"));
    say(&mut session, "hi");
    say(&mut session, "more");
    assert_eq!(session.trouble(), None);
    let before = all(&session);
    let position = session.position();
    session.checkpoint().unwrap().unwrap();
    assert_eq!(session.checkpoint().unwrap(), None);
    drop(session);

    let model = model();
    let (mut session, opened) = store.open("a", Arc::clone(&model)).unwrap();
    assert_eq!(all(&session), before);
    assert_eq!((opened.is_new, opened.position, opened.notices), (false, position, vec![]));
    let turn = say(&mut session, "and");
    assert_eq!((turn.tokens_reused, turn.text.as_str()), (position, "third 🌊"));
    // As one that was never interrupted.
    let mut fresh = Session::new(model).unwrap();
    fresh.set_system(Some("be kind"));
    for text in ["hi", "more", "and"] {
        say(&mut fresh, text);
    }
    assert_eq!(all(&session), all(&fresh));
}

#[test]
fn without_a_snapshot_the_tokens_are_replayed_and_it_is_said() {
    let (_folder, store) = folder();
    let (mut session, _) = store.open("a", model()).unwrap();
    say(&mut session, "hi");
    let (before, length) = (all(&session), session.transcript().len());
    drop(session);
    let (mut session, opened) = store.open("a", model()).unwrap();
    assert_eq!((all(&session), opened.position), (before, 0));
    assert_eq!(opened.notices, [Notice::Replay { tokens: length }]);
    let turn = say(&mut session, "more");
    assert_eq!((turn.tokens_reused, turn.text.as_str()), (0, "again"));
}

#[test]
fn every_change_comes_back() {
    type Step = fn(&mut Fake);
    let steps: [Step; 9] = [
        |session| session.set_system(Some("be kind")),
        |session| drop(say(session, "hi")),
        |session| drop(say(session, "more")),
        |session| drop(session.undo().unwrap()),
        |session| drop(session.regenerate(&Request::default(), &mut |_| {}).unwrap()),
        |session| {
            let outside = [Message::user("hi"), Message::assistant("hello"), Message::user("else")];
            session.generate(&outside, &Request::default(), &mut |_| {}).unwrap();
        },
        |session| session.rewind(20).unwrap(),
        |session| session.reset().unwrap(),
        |session| {
            let request = Request::new(Generation { max_tokens: Some(3), ..Generation::default() });
            session.complete(&[10, 11, 12], &request, &mut |_| {}).unwrap();
        },
    ];
    let (_folder, store) = folder();
    let mut expected = Session::new(model()).unwrap();
    for (index, step) in steps.iter().enumerate() {
        let (mut session, _) = store.open("a", model()).unwrap();
        assert_eq!(all(&session), all(&expected), "before step {index}");
        step(&mut session);
        step(&mut expected);
        assert_eq!(all(&session), all(&expected), "after step {index}");
    }
    let (session, opened) = store.open("a", model()).unwrap();
    assert_eq!(all(&session), all(&expected));
    assert!(opened.notices.iter().all(|notice| matches!(notice, Notice::Replay { .. })), "{:?}", opened.notices);
}

#[test]
fn a_stopped_answer_comes_back_as_it_was_and_a_withdrawn_one_not_at_all() {
    let (_folder, store) = folder();
    let (mut session, _) = store.open("a", model()).unwrap();
    let request = Request::default();
    let cancel = request.cancel.clone();
    let mut count = 0;
    session
        .say("hi", &request, &mut |event| {
            count += usize::from(matches!(event, Event::Text(_)));
            if count == 2 {
                cancel.cancel();
            }
        })
        .unwrap();
    let before = all(&session);
    assert_eq!(before.0[1].content, "he");
    session.say("nothing comes", &request, &mut |_| {}).unwrap();
    session.model().runner.fail_in.store(3, std::sync::atomic::Ordering::SeqCst);
    session.say("nothing either", &Request::default(), &mut |_| {}).unwrap_err();
    assert_eq!(all(&session), before);
    drop(session);
    let (session, opened) = store.open("a", model()).unwrap();
    assert_eq!(all(&session), before);
    assert!(matches!(opened.notices[..], [Notice::Replay { .. }]), "{:?}", opened.notices);
}

#[test]
fn one_process_at_a_time() {
    let (_folder, store) = folder();
    let (session, _) = store.open("a", model()).unwrap();
    let error = kept(store.open("a", model()).unwrap_err());
    assert!(matches!(error, KeepError::Locked { owner: Some(pid) } if pid == std::process::id()), "{error}");
    assert!(matches!(kept(store.delete("a").unwrap_err()), KeepError::Locked { .. }));
    drop(session);
    store.open("a", model()).unwrap();
    // What a process left that was killed while it removed another one goes too.
    fs::create_dir_all(store.root().join(".removed-b-1").join("snapshots")).unwrap();
    store.delete("a").unwrap();
    assert!(store.list().unwrap().is_empty());
    assert_eq!(fs::read_dir(store.root()).unwrap().count(), 0);
    assert!(matches!(kept(store.delete("a").unwrap_err()), KeepError::Missing));
}

#[test]
fn another_tokenizer_is_refused_and_another_package_costs_time() {
    let (_folder, store) = folder();
    let (mut session, _) = store.open("a", model()).unwrap();
    say(&mut session, "hi");
    session.checkpoint().unwrap();
    let before = all(&session);
    drop(session);
    let mut other = chatml(&[]);
    other.tokenizer = crate::testing::sentence_piece(false);
    assert!(matches!(kept(store.open("a", shared(other)).unwrap_err()), KeepError::Tokenizer { .. }));
    let mut other = chatml(&["hello", "again"]);
    other.runner.layout.as_mut().unwrap().package = [9; 32];
    let (mut session, opened) = store.open("a", shared(other)).unwrap();
    assert_eq!(all(&session), before);
    let [Notice::Unusable { problem }, Notice::Replay { .. }] = &opened.notices[..] else {
        panic!("{:?}", opened.notices)
    };
    assert!(problem.contains("another package"), "{problem}");
    assert_eq!(say(&mut session, "more").text, "again");
}

#[test]
fn a_copy_goes_on_by_itself() {
    let (_folder, store) = folder();
    let (mut session, _) = store.open("a", model()).unwrap();
    say(&mut session, "hi");
    let mut copy = session.fork().unwrap();
    assert_eq!(copy.folder(), None);
    store.keep("b", &mut copy).unwrap();
    assert!(matches!(kept(store.keep("b", &mut session.fork().unwrap()).unwrap_err()), KeepError::Exists));
    assert!(copy.checkpoint().unwrap().is_some());
    say(&mut copy, "in the copy");
    say(&mut session, "in the first");
    let expected = [all(&session), all(&copy)];
    drop((session, copy));
    let found = ["a", "b"].map(|name| all(&store.open(name, model()).unwrap().0));
    assert_eq!(found, expected);
    let listed = store.list().unwrap();
    assert_eq!(listed.iter().map(|s| (s.name.as_str(), s.messages.len())).collect::<Vec<_>>(), [("a", 4), ("b", 4)]);
    assert_eq!(store.look("b").unwrap().messages, expected[1].0);
    assert_eq!((listed[0].snapshots, listed[1].snapshots), (0, 1));
}

#[test]
fn what_is_loaded_goes_on_elsewhere_and_stays_as_it_was() {
    let (_folder, store) = folder();
    let (mut session, _) = store.open("a", model()).unwrap();
    say(&mut session, "hi");
    let mut save = session.fork().unwrap();
    store.keep("save", &mut save).unwrap();
    save.checkpoint().unwrap().unwrap();
    let saved = all(&save);
    drop(save);
    let log = fs::read(store.root().join("save").join(LOG)).unwrap();
    say(&mut session, "more");

    // Also while somebody has it open.
    let held = store.hold("save").unwrap();
    let (copy, opened) = store.copy("save", Arc::clone(session.model())).unwrap();
    assert!(copy.folder().is_none() && opened.position > 0 && opened.notices.is_empty(), "{opened:?}");
    drop(held);
    let folder = session.folder().map(Path::to_owned);
    session.replace_with(copy).unwrap();
    assert_eq!(
        (all(&session), session.position(), session.folder()),
        (saved.clone(), opened.position, folder.as_deref())
    );
    let turn = say(&mut session, "otherwise");
    assert_eq!((turn.tokens_reused, turn.text.as_str()), (opened.position, "again"));
    session.regenerate(&Request::default(), &mut |_| {}).unwrap();
    let gone_on = all(&session);
    drop(session);
    assert_eq!(fs::read(store.root().join("save").join(LOG)).unwrap(), log);
    assert_eq!(all(&store.open("a", model()).unwrap().0), gone_on);
    assert_eq!(all(&store.open("save", model()).unwrap().0), saved);

    let mut other = Session::new(model()).unwrap();
    let (copy, _) = store.copy("save", model()).unwrap();
    assert!(matches!(other.replace_with(copy).unwrap_err(), Error::Conversation { operation: "load", .. }));
    assert!(matches!(kept(store.copy("none", model()).unwrap_err()), KeepError::Missing));
}

#[test]
fn snapshots_come_by_themselves_and_stay_within_bounds() {
    let folder = tempfile::tempdir().unwrap();
    let limits = KeepLimits { snapshots: 2, bytes: 1 << 20, every: 10 };
    let store = SessionStore::new(folder.path(), limits);
    let wait = || std::thread::sleep(std::time::Duration::from_millis(15));
    for name in ["a", "b"] {
        let (mut session, _) = store.open(name, model()).unwrap();
        for text in ["one", "two", "three", "four"] {
            say(&mut session, text);
            wait();
        }
    }
    let listed = store.list().unwrap();
    assert_eq!(listed.iter().map(|s| s.snapshots).collect::<Vec<_>>(), [2, 2]);
    // Of all sessions together, those used longest ago go first; the newest stays in any case.
    let most = listed[1].snapshot_bytes;
    let store = SessionStore::new(folder.path(), KeepLimits { bytes: most, ..limits });
    let (mut session, opened) = store.open("a", model()).unwrap();
    assert!(opened.position > 0);
    wait();
    say(&mut session, "five");
    let listed = store.list().unwrap();
    assert!(listed.iter().map(|s| s.snapshot_bytes).sum::<u64>() <= most, "{listed:?}");
    assert!(listed[0].snapshots >= 1, "{listed:?}");
}

#[test]
fn names_cannot_lead_elsewhere() {
    let (_folder, store) = folder();
    for name in ["", ".", "..", ".a", "a/b", "a\\b", "C:x", "-a", "a\n", "a ", &"x".repeat(101)] {
        assert!(matches!(kept(store.open(name, model()).unwrap_err()), KeepError::Name { .. }), "{name:?}");
    }
    store.open("Ünicode 1.2", model()).unwrap();
}

#[test]
fn a_copy_beside_has_a_name_that_fits() {
    let (_folder, store) = folder();
    let long = "n".repeat(99);
    for (name, expected) in [("a".into(), "a-2".into()), (long.clone(), format!("{}-2", &long[1..]))] {
        let mut session = Session::new(model()).unwrap();
        assert_eq!(store.keep_beside(&name, &mut session).unwrap(), expected);
    }
    let third = store.keep_beside(&long, &mut Session::new(model()).unwrap()).unwrap();
    assert_eq!(third, format!("{}-3", &long[1..]));
    let wide = store.keep_beside(&"ü".repeat(50), &mut Session::new(model()).unwrap()).unwrap();
    assert_eq!(wide, format!("{}-2", "ü".repeat(49)));
}

#[test]
fn a_damaged_snapshot_is_passed_over_for_an_older_one() {
    let (_folder, store) = folder();
    let (mut session, _) = store.open("a", model()).unwrap();
    say(&mut session, "hi");
    let older = session.checkpoint().unwrap().unwrap();
    say(&mut session, "more");
    let newer = session.checkpoint().unwrap().unwrap();
    let before = all(&session);
    drop(session);
    let mut bytes = fs::read(&newer.path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&newer.path, bytes).unwrap();
    let (mut session, opened) = store.open("a", model()).unwrap();
    assert_eq!((all(&session), opened.position), (before, older.position));
    assert_eq!(opened.snapshot, Some(older.path));
    assert!(matches!(opened.notices[..], [Notice::Unusable { .. }, Notice::Replay { .. }]), "{:?}", opened.notices);
    assert_eq!(say(&mut session, "and").tokens_reused, older.position);
}

#[test]
fn what_is_too_large_to_keep_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let store = SessionStore::new(folder.path(), KeepLimits { bytes: 10, ..LIMITS });
    let (mut session, _) = store.open("a", model()).unwrap();
    say(&mut session, "hi");
    match session.checkpoint().unwrap_err() {
        Error::Snapshot { source, .. } => assert!(matches!(*source, SnapshotError::TooLarge { limit: 10, .. })),
        other => panic!("{other}"),
    }
}
