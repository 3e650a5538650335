//! Whatever becomes of the bytes of a log, the session opens with what is left, and no byte is thrown away.

use super::*;

const LOST: &str = "[lost: this message was in a damaged part of the log]";

/// Messages and tokens.
type All = (Vec<Message>, Vec<u32>);

/// A store with the session `a` of two turns under a system message, and the bytes of its log.
fn told() -> (TempDir, SessionStore, Vec<u8>, All) {
    let (folder, store) = folder();
    let (mut session, _) = store.open("a", model()).unwrap();
    session.set_system(Some("be kind"));
    say(&mut session, "hi");
    say(&mut session, "more");
    let all = all(&session);
    drop(session);
    let bytes = fs::read(log(&store)).unwrap();
    (folder, store, bytes, all)
}

fn log(store: &SessionStore) -> PathBuf {
    store.root().join("a").join(LOG)
}

/// Where records begin.
fn records(bytes: &[u8]) -> Vec<usize> {
    let length = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize + 13;
    std::iter::successors(Some(12), |at| Some(at + length(*at)).filter(|at| *at < bytes.len())).collect()
}

#[test]
fn a_log_damaged_anywhere_opens_with_what_is_left() {
    let (_folder, store, bytes, (messages, tokens)) = told();
    let starts = records(&bytes);
    let last = *starts.last().unwrap();
    let mut complete = 0;
    // Every byte up to the first prompt, and one of each record.
    let begin = (0..starts[2]).step_by(3);
    for at in begin.chain(starts.iter().map(|start| start + 9)).filter(|at| *at < last) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 4;
        fs::write(log(&store), &damaged).unwrap();
        let problem = store.look("a").unwrap().problem.unwrap();
        assert!(problem.contains("damaged") && problem.contains("log"), "{at}: {problem}");
        let (mut session, opened) = store.open("a", model()).unwrap();
        let Notice::Damaged { copy, lost } = &opened.notices[0] else { panic!("{at}: {:?}", opened.notices) };
        assert_eq!(fs::read(copy).unwrap(), damaged, "{at}");
        let found = super::messages(&session);
        // What is there is what was said, and what is lost is marked.
        let left: Vec<&Message> = found.iter().filter(|message| message.content != LOST).collect();
        assert_eq!(left.len() + lost, messages.len(), "{at}: {found:?}");
        assert!(left.iter().all(|message| messages.contains(message)), "{at}: {found:?}");
        assert!(*lost <= 1, "{at}: {found:?}");
        complete += usize::from(*lost == 0 && session.transcript() == tokens);
        // It goes on, and has a log again that is whole.
        say(&mut session, "and");
        let now = all(&session);
        drop(session);
        let (session, opened) = store.open("a", model()).unwrap();
        assert_eq!(all(&session), now, "{at}");
        assert!(!opened.notices.iter().any(|notice| matches!(notice, Notice::Damaged { .. })), "{at}: {opened:?}");
    }
    // A damaged header loses nothing, nor does a damaged first record if the tokens give the texts.
    assert!(complete > starts[1] / 3, "{complete}");
}

/// The log of another session, with more records than that of [`told`] or fewer.
fn another(turns: usize) -> Vec<u8> {
    let (_folder, store) = folder();
    let (mut session, _) = store.open("a", shared(chatml(&["one", "two", "three", "four"]))).unwrap();
    (0..turns).for_each(|turn| drop(say(&mut session, &format!("other {turn}"))));
    drop(session);
    fs::read(log(&store)).unwrap()
}

#[test]
fn two_logs_in_one_are_not_one_conversation() {
    let (_folder, store, bytes, whole) = told();
    for (turns, hurt) in [(4, None), (0, None), (1, None), (4, Some(3)), (4, Some(30)), (1, Some(3)), (1, Some(30))] {
        let mut other = another(turns);
        // The second header or its first record.
        if let Some(at) = hurt {
            other[at] ^= 1;
        }
        let both = [&bytes[..], &other].concat();
        fs::write(log(&store), &both).unwrap();
        assert!(store.look("a").unwrap().problem.unwrap().contains("another"), "{turns} {hurt:?}");
        assert!(matches!(store.copy("a", model()).unwrap().1.notices[0], Notice::Behind { another: true, .. }));
        let (mut session, opened) = store.open("a", model()).unwrap();
        assert_eq!(all(&session), whole, "{turns} {hurt:?}");
        let [Notice::Behind { copy, bytes, another: true }, Notice::Replay { .. }] = &opened.notices[..] else {
            panic!("{turns} {hurt:?}: {:?}", opened.notices)
        };
        assert_eq!((fs::read(copy).unwrap(), *bytes), (both, other.len()));
        say(&mut session, "and");
        let now = all(&session);
        drop(session);
        let (session, opened) = store.open("a", model()).unwrap();
        assert_eq!((all(&session), opened.notices.len()), (now, 1));
    }
    // Where the first one is damaged too, what is left of it alone is recovered.
    let mut both = [&bytes[..], &another(4)].concat();
    both[records(&bytes)[1] + 20] ^= 1;
    fs::write(log(&store), &both).unwrap();
    let (session, opened) = store.open("a", model()).unwrap();
    assert!(
        matches!(opened.notices[..2], [Notice::Damaged { .. }, Notice::Behind { another: true, .. }]),
        "{opened:?}"
    );
    assert!(messages(&session).iter().all(|message| message.content == LOST || whole.0.contains(message)));
    drop(session);
    // And where nothing is left of it, it is the second one that is.
    fs::write(log(&store), [&[7; 200], &another(1)[..]].concat()).unwrap();
    let (session, opened) = store.open("a", model()).unwrap();
    assert!(matches!(opened.notices[0], Notice::Damaged { lost: 0, .. }), "{opened:?}");
    assert_eq!(messages(&session)[0].content, "other 0");
}

#[test]
fn what_a_kill_does_not_explain_is_kept_before_it_is_cut() {
    let (_folder, store, bytes, _) = told();
    let last = *records(&bytes).last().unwrap();
    let mut cases: Vec<Vec<u8>> = (last..bytes.len())
        .map(|at| {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1;
            flipped
        })
        .collect();
    let mut zeroed = bytes.clone();
    zeroed[bytes.len() / 2..].fill(0);
    cases.extend([zeroed, [&bytes[..], &[0; 5]].concat(), [&bytes[..], b"and some text behind it"].concat()]);
    for damaged in cases {
        fs::write(log(&store), &damaged).unwrap();
        assert!(store.look("a").unwrap().problem.unwrap().contains("damaged"));
        let (session, opened) = store.open("a", model()).unwrap();
        let Notice::Behind { copy, another: false, .. } = &opened.notices[0] else { panic!("{:?}", opened.notices) };
        assert_eq!(fs::read(copy).unwrap(), damaged);
        drop(session);
        let (_session, opened) = store.open("a", model()).unwrap();
        assert!(!opened.notices.iter().any(|notice| matches!(notice, Notice::Behind { .. })), "{opened:?}");
    }
    // What it does explain is not.
    let before = fs::read_dir(store.root().join("a")).unwrap().count();
    for length in last + 1..bytes.len() {
        fs::write(log(&store), &bytes[..length]).unwrap();
        assert!(store.look("a").unwrap().problem.is_none());
        let (_session, opened) = store.open("a", model()).unwrap();
        assert_eq!(opened.notices[0], Notice::Cut { bytes: length - last });
    }
    assert_eq!(fs::read_dir(store.root().join("a")).unwrap().count(), before);
}

#[test]
fn whose_the_tokens_are_is_not_guessed() {
    let (_folder, store, mut bytes, (messages, _)) = told();
    bytes[30] ^= 1;
    fs::write(log(&store), &bytes).unwrap();
    let mut other = chatml(&[]);
    other.tokenizer = crate::testing::word_piece();
    let (session, opened) = store.open("a", shared(other)).unwrap();
    assert!(matches!(opened.notices[..], [Notice::Damaged { lost: 0, .. }]), "{opened:?}");
    assert_eq!((super::messages(&session), session.transcript()), (messages, &[][..]));
}

#[test]
fn an_answer_that_was_interrupted_is_recovered_from_a_damaged_log() {
    let (_folder, store, bytes, _) = told();
    // Without the record of its end; `more` was answered with `again`, a byte for each token.
    let starts = records(&bytes);
    for damaged_at in [2, starts[0] + 20, starts[1] + 20] {
        let mut cut = bytes[..*starts.last().unwrap()].to_vec();
        cut[damaged_at] ^= 1;
        fs::write(log(&store), &cut).unwrap();
        let (session, opened) = store.open("a", model()).unwrap();
        assert!(opened.notices.contains(&Notice::Interrupted { tokens: 5 }), "{opened:?}");
        assert_eq!(super::messages(&session).last().unwrap().content, "again");
        drop(session);
    }
}

#[test]
fn of_a_completion_the_tokens_before_the_damage_are_left() {
    let (_folder, store) = folder();
    let (mut session, _) = store.open("a", model()).unwrap();
    let request = Request::new(Generation { max_tokens: Some(4), ..Generation::default() });
    for prompt in [&[10, 11][..], &[10, 11, 12]] {
        session.complete(prompt, &request, &mut |_| {}).unwrap();
    }
    drop(session);
    let mut bytes = fs::read(log(&store)).unwrap();
    let starts = records(&bytes);
    bytes[starts[starts.len() - 3] + 9] ^= 1;
    fs::write(log(&store), bytes).unwrap();
    let (session, _) = store.open("a", model()).unwrap();
    assert!(session.transcript().starts_with(&[10, 11]) && session.messages().len() == 0);
}

#[test]
fn an_empty_log_is_a_fresh_session_and_what_is_left_of_none_is_kept() {
    let (_folder, store, bytes, _) = told();
    let begun = &bytes[..records(&bytes)[1] - 1];
    for left in [&[][..], &[0; 300], begun, b"ANEM"] {
        fs::write(log(&store), left).unwrap();
        let problem = store.look("a").unwrap().problem.unwrap();
        assert!(problem.contains("begins the conversation anew") && problem.contains("log"), "{problem}");
        assert!(store.copy("a", model()).is_err());
        let (mut session, opened) = store.open("a", model()).unwrap();
        assert!(opened.is_new && session.messages().len() == 0);
        match &opened.notices[..] {
            [Notice::Empty] => assert!(left.is_empty()),
            [Notice::NothingLeft { copy }] => assert_eq!(fs::read(copy).unwrap(), left),
            other => panic!("{other:?}"),
        }
        say(&mut session, "hi");
        drop(session);
        assert_eq!(store.look("a").unwrap().messages.len(), 2);
    }
    // What was never a log is refused, and stays.
    fs::write(log(&store), b"not a log, but longer than twelve bytes").unwrap();
    let error = kept(store.open("a", model()).unwrap_err());
    assert!(matches!(error, KeepError::NotALog) && error.to_string().contains("move that file away"), "{error}");
    assert_eq!(fs::read(log(&store)).unwrap(), b"not a log, but longer than twelve bytes");
}
