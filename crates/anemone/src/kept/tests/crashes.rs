//! Whatever fails, and wherever a process is killed, every token that was shown is there again.

use super::*;
use crate::testing::faulty::Faulty;

/// What a user does, as far as it goes well; gives what was shown and said of each message.
fn talk(session: &mut Fake) -> Vec<(String, String, bool)> {
    let mut shown = Vec::new();
    for text in ["hi", "more"] {
        let mut seen = String::new();
        let said = session.say(text, &Request::default(), &mut |event| {
            if let Event::Text(piece) = event {
                seen.push_str(piece);
            }
        });
        shown.push((text.to_owned(), seen, said.is_ok()));
    }
    shown
}

#[test]
fn killed_at_any_operation_nothing_shown_is_lost() {
    let run = |disk: &Faulty| {
        let folder = tempfile::tempdir().unwrap();
        let limits = KeepLimits { every: 12, ..LIMITS };
        let store = SessionStore::on(Arc::new(disk.clone()), folder.path(), limits);
        let shown = match store.open("a", model()) {
            Ok((mut session, _)) => talk(&mut session),
            Err(_) => Vec::new(),
        };
        (folder, limits, shown)
    };
    let count = Faulty::never();
    let (_, _, whole) = run(&count);
    assert_eq!(whole.iter().map(|(_, seen, _)| seen.as_str()).collect::<Vec<_>>(), ["hello", "again"]);
    let operations = count.operations();
    assert!(operations > 25, "{operations}");
    for at in 0..operations {
        // From there on nothing reaches the disk any more.
        let (folder, limits, shown) = run(&Faulty::at(at, true));
        let store = SessionStore::new(folder.path(), limits);
        let (mut session, opened) = store.open("a", model()).unwrap();
        let found = messages(&session);
        for (index, (text, seen, ok)) in shown.iter().enumerate() {
            let Some(pair) = found.get(2 * index..2 * index + 2) else {
                assert!(seen.is_empty() && !ok, "operation {at}: {text} is lost, {seen:?} was shown");
                continue;
            };
            assert_eq!(&pair[0].content, text, "operation {at}");
            assert!(
                pair[1].content.starts_with(seen.as_str()),
                "operation {at}: {seen:?} became {:?}",
                pair[1].content
            );
        }
        // And it goes on as a fresh session would after the same tokens.
        assert!(opened.position <= session.transcript().len());
        let tokens = session.transcript().to_vec();
        let turn = say(&mut session, "go on");
        assert!(session.transcript().starts_with(&tokens), "operation {at}");
        let mut fresh = Session::new(model()).unwrap();
        let prompt = session.transcript()[..turn.tokens_reused + turn.tokens_computed].to_vec();
        let expected = fresh.complete(&prompt, &Request::default(), &mut |_| {}).unwrap();
        assert_eq!(turn.text, expected.text, "operation {at}");
    }
}

#[test]
fn after_any_one_failure_the_session_goes_on_and_the_log_catches_up() {
    let count = Faulty::never();
    let run = |disk: &Faulty| {
        let folder = tempfile::tempdir().unwrap();
        let store = SessionStore::on(Arc::new(disk.clone()), folder.path(), KeepLimits { every: 12, ..LIMITS });
        let opened = store.open("a", model());
        (folder, opened)
    };
    let (_folder, opened) = run(&count);
    talk(&mut opened.unwrap().0);
    for at in 0..count.operations() {
        let disk = Faulty::at(at, false);
        let (folder, opened) = run(&disk);
        // A disk that is full when the session begins refuses it, and has room the next time.
        let mut session = match opened {
            Ok((session, _)) => session,
            Err(error) => {
                assert!(matches!(kept(error), KeepError::Io { what: "written", .. }));
                assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "operation {at}");
                SessionStore::new(folder.path(), LIMITS).open("a", model()).unwrap().0
            }
        };
        for (text, seen, ok) in talk(&mut session) {
            // What failed is taken back, as every error says; what went well is there.
            assert_eq!(messages(&session).iter().any(|m| m.content == text), ok, "operation {at}: {seen:?}");
        }
        // What the log lacks, if it was the last change that failed, goes with the next.
        session.set_system(None);
        let before = all(&session);
        assert_eq!(session.trouble(), None, "operation {at}");
        drop(session);
        let (session, _) = SessionStore::new(folder.path(), LIMITS).open("a", model()).unwrap();
        assert_eq!(all(&session), before, "operation {at}");
    }
}

#[test]
fn of_a_session_that_could_not_begin_nothing_is_there() {
    for at in 0.. {
        let folder = tempfile::tempdir().unwrap();
        let mut session = Session::new(model()).unwrap();
        say(&mut session, "hi");
        let store = SessionStore::on(Arc::new(Faulty::at(at, false)), folder.path(), LIMITS);
        if store.keep("a", &mut session).is_ok() {
            assert!(at > 5, "{at}");
            break;
        }
        assert_eq!((fs::read_dir(folder.path()).unwrap().count(), session.folder()), (0, None), "operation {at}");
        // A folder that was there stays, without a log.
        fs::create_dir(folder.path().join("b")).unwrap();
        let store = SessionStore::on(Arc::new(Faulty::at(at, false)), folder.path(), LIMITS);
        store.keep("b", &mut session).unwrap_err();
        assert!(folder.path().join("b").is_dir() && !folder.path().join("b").join(LOG).exists(), "operation {at}");
        store.keep("b", &mut session).unwrap();
    }
}

#[test]
fn a_log_cut_at_any_byte_opens_with_what_it_says() {
    let (_folder, store) = folder();
    let (mut session, _) = store.open("a", model()).unwrap();
    talk(&mut session);
    let whole_tokens = session.transcript().to_vec();
    drop(session);
    let path = store.root().join("a").join(LOG);
    let whole = fs::read(&path).unwrap();
    let mut longest = 0;
    for length in (whole.len() / 3)..=whole.len() {
        fs::write(&path, &whole[..length]).unwrap();
        let (session, opened) = store.open("a", model()).unwrap();
        let tokens = session.transcript();
        assert!(whole_tokens.starts_with(tokens), "{length}");
        assert!(tokens.len() >= longest || opened.notices.iter().any(|n| matches!(n, Notice::Unanswered { .. })));
        longest = longest.max(tokens.len());
        assert!(messages(&session).len().is_multiple_of(2), "{length}");
    }
    assert_eq!(longest, whole_tokens.len());
}
