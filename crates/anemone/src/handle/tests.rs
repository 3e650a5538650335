use std::future::{Future, IntoFuture};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use super::*;
use crate::testing::scripted::{Scripted, bytes, chatml, shared};
use crate::{Generation, LanguageModel, StopReason, Turn};

fn handle(answers: &[&str], queue: usize) -> (SessionHandle<Scripted>, Arc<LanguageModel<Scripted>>) {
    let model = shared(chatml(answers));
    (SessionHandle::new(Session::new(Arc::clone(&model)).unwrap(), queue).unwrap(), model)
}

/// Holds each call of the model until it is let go; tells when one has come.
struct Gate {
    come: Receiver<usize>,
    go: Sender<()>,
}

impl Gate {
    fn before(model: &LanguageModel<Scripted>) -> Self {
        let ((tell, come), (go, wait)) = (channel(), channel::<()>());
        *model.runner.before_call.lock().unwrap() = Some(Box::new(move |position| {
            let _ = tell.send(position);
            // Once the other end is gone, calls run freely.
            let _ = wait.recv();
        }));
        Self { come, go }
    }

    fn wait(&self) {
        self.come.recv_timeout(Duration::from_secs(20)).unwrap();
    }

    fn pass(&self) {
        self.go.send(()).unwrap();
        self.wait();
    }
}

struct Unpark(std::thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// The smallest executor.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = std::pin::pin!(future);
    loop {
        if let Poll::Ready(result) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return result;
        }
        std::thread::park();
    }
}

#[test]
fn answers_are_those_of_the_session() {
    let (handle, model) = handle(&["hello", "again 🌊"], 4);
    let mut session = Session::new(model).unwrap();
    let mut answer = handle.say("hi", Request::default()).unwrap();
    let (mut text, mut counts) = (String::new(), Vec::new());
    while let Some(update) = answer.next_blocking() {
        if let Update::Text { text: piece, tokens } = update {
            text += &piece;
            counts.push(tokens);
        }
    }
    let turn = answer.wait().unwrap();
    let alone = session.say("hi", &Request::default(), &mut |_| {}).unwrap();
    assert_eq!((&turn.text, turn.tokens_computed), (&alone.text, alone.tokens_computed));
    assert_eq!((text, counts), (turn.text, vec![1, 2, 3, 4, 5]));

    // In async code the same.
    let (text, turn) = block_on(async {
        let mut answer = handle.say("more", Request::default()).unwrap();
        let mut text = String::new();
        while let Some(update) = answer.next().await {
            if let Update::Text { text: piece, .. } = update {
                text += &piece;
            }
        }
        (text, answer.await.unwrap())
    });
    let alone = session.say("more", &Request::default(), &mut |_| {}).unwrap();
    assert_eq!((&turn.text, turn.tokens_reused, text), (&alone.text, alone.tokens_reused, alone.text.clone()));
    let transcript = handle.with(|session| session.transcript().to_vec()).unwrap();
    assert_eq!(block_on(transcript.into_future()).unwrap(), session.transcript());
}

#[test]
fn a_full_queue_is_busy() {
    let (handle, model) = handle(&["a", "b", "c", "d"], 2);
    let gate = Gate::before(&model);
    let first = handle.say("1", Request::default()).unwrap();
    gate.wait();
    let waiting = [handle.say("2", Request::default()).unwrap(), handle.clone().say("3", Request::default()).unwrap()];
    assert_eq!(handle.waiting(), 2);
    let error = handle.say("4", Request::default()).unwrap_err();
    assert!(matches!(error, Error::Busy { waiting: 2 }), "{error}");
    assert!(matches!(handle.with(|_| ()), Err(Error::Busy { .. })));
    drop(gate);
    assert_eq!(first.wait().unwrap().text, "a");
    let texts = waiting.map(|answer| answer.wait().unwrap().text);
    assert_eq!(texts, ["b", "c"]);
    assert_eq!(handle.say("4", Request::default()).unwrap().wait().unwrap().text, "d");
}

#[test]
fn an_answer_is_called_off_within_one_token() {
    let (handle, model) = handle(&["hello there", "again"], 4);
    let gate = Gate::before(&model);
    let answer = handle.say("hi", Request::default()).unwrap();
    let prompt =
        model.tokenizer.encode("<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n", false).unwrap().len();
    gate.wait();
    // The prompt's chunks, then three tokens.
    (0..prompt.div_ceil(16) - 1 + 3).for_each(|_| gate.pass());
    answer.cancel();
    gate.go.send(()).unwrap();
    let turn = answer.wait().unwrap();
    assert_eq!((turn.text.as_str(), turn.stop_reason), ("hel", StopReason::Cancelled));
    assert!(gate.come.try_recv().is_err(), "not one call more");
    drop(gate);
    assert_eq!(handle.say("more", Request::default()).unwrap().wait().unwrap().text, "again");
}

#[test]
fn a_dropped_answer_is_called_off_and_no_other() {
    let (handle, model) = handle(&["hello there", "again"], 4);
    let gate = Gate::before(&model);
    let request = Request::default();
    let first = handle.say("hi", request.clone()).unwrap();
    gate.wait();
    let second = handle.say("more", request.clone()).unwrap();
    drop(first);
    drop(gate);
    // The first was withdrawn while its prompt was read.
    assert_eq!(second.wait().unwrap().text, "hello there");
    assert!(!request.cancel.is_cancelled());
    // The caller's own switch works on all that it was given to.
    let third = handle.say("third", request.clone()).unwrap();
    request.cancel.cancel();
    assert!(matches!(third.wait().unwrap().stop_reason, StopReason::Cancelled | StopReason::Eos));
    assert_eq!(handle.say("4", request).unwrap().wait().unwrap().stop_reason, StopReason::Cancelled);
}

#[test]
fn who_waits_in_vain_is_told_while_another_is_answered() {
    let (handle, model) = handle(&["hello there", "again"], 4);
    let gate = Gate::before(&model);
    let first = handle.say("hi", Request::default()).unwrap();
    gate.wait();
    let soon = Request { deadline: Some(Instant::now() + Duration::from_millis(5)), ..Request::default() };
    let late = handle.say("late", soon).unwrap();
    let unwanted = handle.say("unwanted", Request::default()).unwrap();
    unwanted.cancel();
    std::thread::sleep(Duration::from_millis(10));
    gate.pass();
    gate.pass();
    // The first is not done: its next call has just begun.
    let turn = late.wait().unwrap();
    assert_eq!((turn.stop_reason, turn.tokens_computed, turn.context), (StopReason::Deadline, 0, 4096));
    assert_eq!(unwanted.wait().unwrap().stop_reason, StopReason::Cancelled);
    assert_eq!(handle.waiting(), 0);
    drop(gate);
    assert_eq!(first.wait().unwrap().text, "hello there");
    assert_eq!(handle.with(|session| session.messages().len()).unwrap().wait().unwrap(), 2);
}

#[test]
fn a_panic_ends_its_session_alone() {
    let (handle, model) = handle(&["hello", "again", "third"], 4);
    let other = SessionHandle::new(Session::new(Arc::clone(&model)).unwrap(), 4).unwrap();
    assert_eq!(other.say("hi", Request::default()).unwrap().wait().unwrap().text, "hello");
    handle.say("hi", Request::default()).unwrap().wait().unwrap();
    let (begun, go) = (channel(), channel::<()>());
    let wait = Mutex::new(go.1);
    let task = handle.with(move |_| {
        begun.0.send(()).unwrap();
        let _ = wait.lock().unwrap().recv();
        panic!("the scripted panic");
    });
    let task: Pending<()> = task.unwrap();
    begun.1.recv().unwrap();
    let waiting = handle.say("more", Request::default()).unwrap();
    let also = handle.with(|session| session.position()).unwrap();
    drop(go.0);
    for error in [task.wait().unwrap_err(), waiting.wait().unwrap_err(), also.wait().unwrap_err()] {
        let Error::Poisoned { said } = &error else { panic!("{error}") };
        assert_eq!(said, "the scripted panic");
        assert!(error.to_string().contains("the scripted panic"), "{error}");
    }
    assert!(handle.is_poisoned());
    assert!(matches!(handle.say("later", Request::default()), Err(Error::Poisoned { .. })));
    assert!(matches!(handle.clone().close(), Err(Error::Poisoned { .. })));
    // A panic in the midst of a prediction is no other: the answer that it belongs to gets it.
    assert_eq!(other.say("more", Request::default()).unwrap().wait().unwrap().text, "again");
    assert!(!other.is_poisoned());
}

#[test]
fn a_panic_in_a_prediction_is_told_to_whom_it_belongs() {
    let (handle, model) = handle(&["hello there"], 4);
    let mut left = 4;
    *model.runner.before_call.lock().unwrap() = Some(Box::new(move |position| {
        left -= 1;
        assert!(left > 0, "broke at {position}");
    }));
    let mut answer = handle.say("hi", Request::default()).unwrap();
    let mut text = String::new();
    while let Some(update) = answer.next_blocking() {
        if let Update::Text { text: piece, .. } = update {
            text += &piece;
        }
    }
    assert!("hello there".starts_with(&text) && !text.is_empty(), "{text:?}");
    let error = answer.wait().unwrap_err();
    assert!(matches!(&error, Error::Poisoned { said } if said.starts_with("broke at ")), "{error}");
    assert!(handle.is_poisoned());
}

#[test]
fn closed_it_gives_the_session_back() {
    let (handle, model) = handle(&["hello there", "again"], 4);
    let gate = Gate::before(&model);
    let running = handle.say("hi", Request::default()).unwrap();
    gate.wait();
    let waiting = handle.say("more", Request::default()).unwrap();
    let closing = std::thread::spawn({
        let handle = handle.clone();
        move || handle.close()
    });
    while handle.shared.jobs.end().is_none() || !handle.shared.all.is_cancelled() {
        std::thread::yield_now();
    }
    assert!(matches!(handle.say("late", Request::default()), Err(Error::Closed)));
    drop(gate);
    let mut session = closing.join().unwrap().unwrap();
    for answer in [running, waiting] {
        assert_eq!(answer.wait().unwrap().stop_reason, StopReason::Cancelled);
    }
    *model.runner.before_call.lock().unwrap() = None;
    assert_eq!(session.say("hi", &Request::default(), &mut |_| {}).unwrap().text, "hello there");
    assert!(matches!(handle.close(), Err(Error::Closed)));
}

#[test]
fn without_handles_what_was_asked_is_still_answered_and_the_thread_ends() {
    let (handle, model) = handle(&["hello", "again"], 4);
    let gate = Gate::before(&model);
    let first = handle.say("hi", Request::default()).unwrap();
    gate.wait();
    let second = handle.say("more", Request::default()).unwrap();
    drop(handle);
    drop(gate);
    assert_eq!((first.wait().unwrap().text, second.wait().unwrap().text), ("hello".into(), "again".into()));
    // The thread held the session, and the session the model.
    let begun = Instant::now();
    while Arc::strong_count(&model) > 1 {
        assert!(begun.elapsed() < Duration::from_secs(20), "the thread does not end");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn the_last_handle_may_be_dropped_by_the_owner_itself() {
    let (handle, _) = handle(&["hello"], 4);
    let inner = handle.clone();
    let pending = handle.with(move |session| {
        drop(inner);
        session.position()
    });
    drop(handle);
    assert_eq!(pending.unwrap().wait().unwrap(), 0);
}

/// What a fresh session answers to one message.
fn serial(model: &Arc<LanguageModel<Scripted>>, text: &str, request: &Request) -> Turn {
    Session::new(Arc::clone(model)).unwrap().generate(&[Message::user(text)], request, &mut |_| {}).unwrap()
}

/// 64 callers, 1000 requests, some called off, some with deadlines, some dropped.
#[test]
fn many_callers_get_their_serial_answers() {
    // Each message is answered by itself, so that the order does not matter.
    let words = crate::testing::byte_level();
    let opening = words.encode("<|im_end|>\n<|im_start|>assistant\n", false).unwrap();
    let runner = Scripted::new(move |read| {
        let Some(at) = (0..read.len()).rev().find(|&at| read[at..].starts_with(&opening)) else { return 2 };
        let text = words.decode(&read[..at]).unwrap();
        let sum: u32 = text.bytes().map(u32::from).sum();
        let answer = bytes(&format!("{text} has {sum}"));
        answer.get(read.len() - at - opening.len()).copied().unwrap_or(2)
    });
    let model = shared(LanguageModel { runner, ..chatml(&[]) });
    let handle = SessionHandle::new(Session::new(Arc::clone(&model)).unwrap(), 8).unwrap();
    let counts = std::thread::scope(|scope| {
        let callers: Vec<_> = (0..64usize)
            .map(|caller| {
                let (handle, model) = (handle.clone(), Arc::clone(&model));
                scope.spawn(move || {
                    let mut counts = [0usize; 4];
                    for n in 0..1024 / 64 {
                        let text = format!("caller {caller} asks {n}");
                        let kind = (caller * 31 + n * 7) % 8;
                        let mut request =
                            Request::new(Generation { max_tokens: Some(12 + kind), ..Generation::default() });
                        if kind == 1 {
                            request.deadline = Some(Instant::now() + Duration::from_micros(800 * n as u64));
                        }
                        let mut answer = loop {
                            match handle.generate(vec![Message::user(text.as_str())], request.clone()) {
                                Ok(answer) => break answer,
                                Err(Error::Busy { waiting: 8 }) => {
                                    counts[3] += 1;
                                    std::thread::sleep(Duration::from_micros(100 + caller as u64));
                                }
                                Err(error) => panic!("{error}"),
                            }
                        };
                        if kind == 2 {
                            // Called off after some pieces.
                            for _ in 0..n % 5 {
                                answer.next_blocking();
                            }
                            answer.cancel();
                        }
                        if kind == 3 && n % 2 == 0 {
                            drop(answer);
                            counts[2] += 1;
                            continue;
                        }
                        let turn = if kind % 2 == 0 { block_on(answer.into_future()) } else { answer.wait() }.unwrap();
                        let alone = serial(&model, &text, &Request { deadline: None, ..request });
                        if matches!(turn.stop_reason, StopReason::Cancelled | StopReason::Deadline) {
                            assert!(alone.text.starts_with(&turn.text), "{:?} of {:?}", turn.text, alone.text);
                            assert!(kind == 1 || kind == 2);
                            counts[1] += 1;
                        } else {
                            assert_eq!((turn.text, turn.tokens_generated), (alone.text, alone.tokens_generated));
                            counts[0] += 1;
                        }
                    }
                    counts
                })
            })
            .collect();
        callers
            .into_iter()
            .map(|caller| caller.join().unwrap())
            .fold([0; 4], |sum, one| std::array::from_fn(|index| sum[index] + one[index]))
    });
    let [answered, called_off, dropped, _busy] = counts;
    assert_eq!(answered + called_off + dropped, 1024);
    assert!(answered >= 700 && called_off > 20 && dropped > 20, "{counts:?}");
    assert!(!handle.is_poisoned());
    let session = handle.close().unwrap();
    assert!(session.position() <= session.transcript().len());
}

/// Eight sessions with handles of their own, in memory for two.
#[test]
fn handles_of_pooled_sessions_share_a_budget() {
    let model = shared(chatml(&["hello", "again", "third"]));
    let pool = crate::SessionPool::new(Arc::clone(&model), 2 * model.runner.state_bytes(), None).unwrap();
    let handles: Vec<_> = (0..8).map(|_| SessionHandle::pooled(pool.open().unwrap(), 4).unwrap()).collect();
    for expected in ["hello", "again", "third"] {
        let answers: Vec<_> = handles.iter().map(|handle| handle.say("hi", Request::default()).unwrap()).collect();
        for answer in answers {
            assert_eq!(answer.wait().unwrap().text, expected);
        }
        assert!(pool.counts().resident <= 2, "{:?}", pool.counts());
    }
    assert!(pool.counts().evicted >= 3 * 6 && pool.counts().peak_bytes <= pool.budget(), "{:?}", pool.counts());
    let session = handles[0].clone().close().unwrap();
    assert_eq!(session.messages().len(), 6);
    assert_eq!(pool.counts().sessions, 7);
}

#[test]
fn who_waits_for_memory_can_be_called_off() {
    let model = shared(chatml(&["hello", "again"]));
    let pool = crate::SessionPool::new(Arc::clone(&model), model.runner.state_bytes(), None).unwrap();
    let [one, other] = [(); 2].map(|()| SessionHandle::pooled(pool.open().unwrap(), 4).unwrap());
    let gate = Gate::before(&model);
    let first = one.say("hi", Request::default()).unwrap();
    gate.wait();
    let soon = Request { deadline: Some(Instant::now() + Duration::from_millis(20)), ..Request::default() };
    assert_eq!(other.say("late", soon).unwrap().wait().unwrap().stop_reason, StopReason::Deadline);
    let second = other.say("more", Request::default()).unwrap();
    drop(gate);
    assert_eq!((first.wait().unwrap().text, second.wait().unwrap().text), ("hello".into(), "hello".into()));
}
