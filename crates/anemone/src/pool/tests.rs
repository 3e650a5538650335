use std::path::Path;

use super::*;
use crate::testing::scripted::{Scripted, chatml, shared};
use crate::{Message, Request, SnapshotLimits, Turn};

type Model = Arc<LanguageModel<Scripted>>;

const LIMITS: SnapshotLimits = SnapshotLimits { count: 50, bytes: 1 << 24 };

fn model() -> Model {
    shared(chatml(&["hello", "again", "third", "fourth"]))
}

/// A pool for so many states.
fn pool(model: &Model, states: u64, folder: Option<&Path>) -> SessionPool<Scripted> {
    let store = folder.map(|folder| PrefixStore::new(folder, LIMITS));
    SessionPool::new(Arc::clone(model), states * model.runner.state_bytes(), store).unwrap()
}

fn say(pooled: &Pooled<Scripted>, text: &str) -> Turn {
    pooled.with(|session| session.say(text, &Request::default(), &mut |_| {})).unwrap().unwrap()
}

#[test]
fn sessions_in_little_memory_answer_as_in_plenty() {
    for kept in [true, false] {
        let (model, folder) = (model(), tempfile::tempdir().unwrap());
        let pool = pool(&model, 2, kept.then(|| folder.path()));
        let sessions: Vec<_> = (0..5).map(|_| pool.open().unwrap()).collect();
        assert_eq!((pool.counts().sessions, pool.counts().resident), (5, 0));
        let mut alone: Vec<_> = (0..5).map(|_| Session::new(Arc::clone(&model)).unwrap()).collect();
        for (round, text) in ["hi", "more", "and"].into_iter().enumerate() {
            for (n, pooled) in sessions.iter().enumerate() {
                let text = format!("{text} from {n}");
                let expected = alone[n].say(&text, &Request::default(), &mut |_| {}).unwrap();
                let turn = say(pooled, &text);
                assert_eq!((&turn.text, turn.position), (&expected.text, expected.position));
                // From a snapshot all is reused, without one nothing.
                let reused = if kept { expected.tokens_reused } else { 0 };
                assert_eq!(turn.tokens_reused, reused, "round {round}, session {n}");
                let counts = pool.counts();
                assert!(counts.resident <= 2 && counts.resident_bytes <= pool.budget(), "{counts:?}");
            }
        }
        for (pooled, alone) in sessions.iter().zip(&alone) {
            assert_eq!(pooled.with(|session| session.transcript().to_vec()).unwrap(), alone.transcript());
        }
        let counts = pool.counts();
        // Every use but the first two of all evicted another.
        assert_eq!((counts.evicted, counts.peak_bytes), (18, pool.budget()));
        let back = 15;
        let expected = if kept { (18, back, 0) } else { (0, 0, back) };
        assert_eq!((counts.kept, counts.restored, counts.replayed), expected, "{counts:?}");
    }
}

#[test]
fn the_one_used_longest_ago_goes() {
    let model = model();
    let pool = pool(&model, 2, None);
    let sessions: Vec<_> = (0..3).map(|_| pool.open().unwrap()).collect();
    let resident = || sessions.iter().map(Pooled::is_resident).collect::<Vec<_>>();
    say(&sessions[0], "a");
    say(&sessions[1], "b");
    say(&sessions[0], "c");
    say(&sessions[2], "d");
    assert_eq!(resident(), [true, false, true]);
    // What is still there is used.
    assert!(say(&sessions[0], "e").tokens_reused > 0);
    assert_eq!(say(&sessions[1], "f").tokens_reused, 0);
    assert_eq!(resident(), [true, true, false]);
}

#[test]
fn a_session_in_use_is_not_touched() {
    let model = model();
    let pool = pool(&model, 1, None);
    let (one, other) = (pool.open().unwrap(), pool.open().unwrap());
    say(&one, "hi");
    one.with(|session| {
        let position = session.position();
        let refused = other.with(|_| unreachable!()).unwrap_err();
        assert!(matches!(refused, Error::PoolFull { states: 1, .. }), "{refused}");
        assert_eq!(session.position(), position);
    })
    .unwrap();
    say(&other, "now");
    assert_eq!((one.is_resident(), other.is_resident()), (false, true));
}

#[test]
fn dropped_sessions_and_broken_ones_make_room() {
    let model = model();
    let pool = pool(&model, 1, None);
    let one = pool.open().unwrap();
    say(&one, "hi");
    drop(one);
    let other = pool.open().unwrap();
    say(&other, "hi");
    assert_eq!((pool.counts().sessions, pool.counts().evicted), (1, 0));
    let broken = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| other.with(|_| panic!("broke"))));
    assert!(broken.is_err());
    assert!(matches!(other.with(|_| ()), Err(Error::Poisoned { .. })));
    let third = pool.open().unwrap();
    say(&third, "hi");
    assert_eq!(pool.counts().evicted, 1);
}

#[test]
fn a_snapshot_that_is_gone_or_damaged_costs_time_only() {
    let (model, folder) = (model(), tempfile::tempdir().unwrap());
    let pool = pool(&model, 1, Some(folder.path()));
    let (one, other) = (pool.open().unwrap(), pool.open().unwrap());
    say(&one, "hi");
    say(&other, "hi there");
    for entry in std::fs::read_dir(folder.path()).unwrap().flatten() {
        if entry.file_name().to_string_lossy().ends_with(".snapshot") {
            let mut bytes = std::fs::read(entry.path()).unwrap();
            let last = bytes.len() - 1;
            bytes[last] ^= 1;
            std::fs::write(entry.path(), bytes).unwrap();
        }
    }
    let turn = say(&one, "more");
    assert_eq!((turn.text.as_str(), turn.tokens_reused, pool.counts().replayed), ("again", 0, 1));
}

#[test]
fn a_budget_below_one_state_and_another_model_are_refused() {
    let model = model();
    let error = SessionPool::new(Arc::clone(&model), model.runner.state_bytes() - 1, None).unwrap_err();
    assert!(matches!(error, Error::Setting { name: "budget", .. }), "{error}");
    let pool = pool(&model, 1, None);
    let mut session = Session::new(Arc::clone(&model)).unwrap();
    session.say("hi", &Request::default(), &mut |_| {}).unwrap();
    let pooled = pool.adopt(session).unwrap();
    assert_eq!(say(&pooled, "more").text, "again");
    assert!(pool.adopt(Session::new(self::model()).unwrap()).is_err());
}

#[test]
fn threads_share_a_pool() {
    let (model, folder) = (shared(chatml(&["hello"])), tempfile::tempdir().unwrap());
    let pool = pool(&model, 2, Some(folder.path()));
    let sessions: Vec<_> = (0..6).map(|_| pool.open().unwrap()).collect();
    std::thread::scope(|scope| {
        for (n, pooled) in sessions.iter().enumerate() {
            let pool = pool.clone();
            scope.spawn(move || {
                for round in 0..20 {
                    let ask = |session: &mut Session<Scripted>| {
                        let messages = [Message::user(format!("{n} asks {round}"))];
                        session.generate(&messages, &Request::default(), &mut |_| {}).unwrap().text
                    };
                    loop {
                        match pooled.with(ask) {
                            Ok(text) => break assert_eq!(text, "hello"),
                            Err(Error::PoolFull { .. }) => std::thread::yield_now(),
                            Err(error) => panic!("{error}"),
                        }
                    }
                    assert!(pool.counts().resident <= 2);
                }
            });
        }
    });
    let counts = pool.counts();
    assert!(counts.peak_bytes <= pool.budget() && counts.evicted >= 4, "{counts:?}");
}
