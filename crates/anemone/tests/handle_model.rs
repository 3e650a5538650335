//! Every interleaving of callers and owner, at the level of the queue that a `SessionHandle` is made of.
//!
//! The files are those of the library; only what they wait with is loom's, which runs a small scenario again and again
//! until no order of events is left that it has not tried (with at most three preemptions).

#[path = "../src/handle/mailbox.rs"]
#[allow(dead_code, reason = "the scenarios need not use all of it")]
mod mailbox;
#[path = "../src/handle/owner.rs"]
#[allow(dead_code, reason = "nothing here is shared with others")]
mod owner;

mod sync {
    pub(crate) use loom::sync::{Condvar, Mutex};
}

use std::sync::Arc as StdArc;

use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use loom::thread;

use mailbox::{End, Mailbox, Refused};
use owner::{Job, Jobs, Own, serve};

/// What became of a job: told exactly once.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Told {
    Done(usize),
    CalledOff,
    Failed,
}

struct Probe {
    /// What is added to the subject; nothing for a job that panics.
    add: Option<usize>,
    over: Arc<AtomicBool>,
    told: Arc<loom::sync::Mutex<Option<Told>>>,
    /// Looked at when it fails: the mailbox must be closed by then.
    mailbox: Option<Arc<Jobs<usize>>>,
}

impl Probe {
    fn tell(&self, told: Told) {
        let before = self.told.lock().unwrap().replace(told);
        assert_eq!(before, None, "told twice");
    }
}

impl Job<usize> for Probe {
    fn run(&mut self, subject: &mut usize, between: &mut dyn FnMut()) {
        between();
        let Some(add) = self.add else { std::panic::resume_unwind(Box::new("broke")) };
        *subject += add;
        self.tell(Told::Done(*subject));
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    fn call_off(&mut self) {
        self.tell(Told::CalledOff);
    }

    fn fail(&mut self, said: &StdArc<str>) {
        assert_eq!(&**said, "broke");
        if let Some(mailbox) = &self.mailbox {
            assert_eq!(mailbox.end(), Some(End::Poisoned(StdArc::clone(said))));
        }
        self.tell(Told::Failed);
    }
}

/// A job, and where it is told what became of it.
fn job(add: Option<usize>) -> (Box<Probe>, Arc<loom::sync::Mutex<Option<Told>>>, Arc<AtomicBool>) {
    let (over, told) = (Arc::new(AtomicBool::new(false)), Arc::default());
    (Box::new(Probe { add, over: Arc::clone(&over), told: Arc::clone(&told), mailbox: None }), told, over)
}

fn explore(scenario: impl Fn() + Send + Sync + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(scenario);
}

fn owner(mailbox: &Arc<Jobs<usize>>) -> thread::JoinHandle<Option<usize>> {
    let mailbox = Arc::clone(mailbox);
    thread::spawn(move || serve(&mailbox, Own(0)))
}

/// Two callers and a close: what was taken is done, once, in some order; what came too late is told so.
#[test]
fn what_is_taken_is_done_and_a_close_ends_the_owner() {
    explore(|| {
        let mailbox: Arc<Jobs<usize>> = Arc::new(Mailbox::new(2));
        let owner = owner(&mailbox);
        let other = thread::spawn({
            let mailbox = Arc::clone(&mailbox);
            move || {
                let (probe, told, _) = job(Some(10));
                (mailbox.put(probe), told)
            }
        });
        let (probe, told, _) = job(Some(1));
        assert_eq!(mailbox.put(probe), Ok(()));
        mailbox.close();
        let (taken, other_told) = other.join().unwrap();
        let sum = owner.join().unwrap().expect("nothing panicked");
        let mine = told.lock().unwrap().unwrap();
        match taken {
            Ok(()) => {
                assert_eq!(sum, 11);
                let both = [mine, other_told.lock().unwrap().unwrap()];
                assert!(
                    both == [Told::Done(1), Told::Done(11)] || both == [Told::Done(11), Told::Done(10)],
                    "{both:?}"
                );
            }
            Err(refused) => {
                assert_eq!((refused, sum, mine), (Refused::Ended(End::Closed), 1, Told::Done(1)));
                assert_eq!(*other_told.lock().unwrap(), None);
            }
        }
        assert_eq!(mailbox.put(job(Some(1)).0), Err(Refused::Ended(End::Closed)));
    });
}

/// A queue of one and three jobs: who is refused was refused because the queue was full, and nothing else is lost.
#[test]
fn a_full_queue_refuses_and_loses_nothing() {
    explore(|| {
        let mailbox: Arc<Jobs<usize>> = Arc::new(Mailbox::new(1));
        let taken = Arc::new(AtomicUsize::new(0));
        let put = |add| {
            let (mailbox, taken) = (Arc::clone(&mailbox), Arc::clone(&taken));
            move || match mailbox.put(job(Some(add)).0) {
                Ok(()) => drop(taken.fetch_add(add, Ordering::AcqRel)),
                Err(refused) => assert_eq!(refused, Refused::Full(1)),
            }
        };
        let owner = owner(&mailbox);
        let other = thread::spawn(put(10));
        put(1)();
        put(100)();
        other.join().unwrap();
        mailbox.close();
        let sum = owner.join().unwrap().unwrap();
        assert_eq!(sum, taken.load(Ordering::Acquire));
        assert!(sum > 0);
    });
}

/// A panic: whoever was waiting, and whoever comes later, is told; nobody waits forever, nobody is told twice.
#[test]
fn a_panic_is_told_to_all_and_only_once() {
    explore(|| {
        let mailbox: Arc<Jobs<usize>> = Arc::new(Mailbox::new(2));
        let owner = owner(&mailbox);
        let other = thread::spawn({
            let mailbox = Arc::clone(&mailbox);
            move || {
                let (probe, told, _) = job(Some(10));
                (mailbox.put(probe), told)
            }
        });
        let (mut probe, told, _) = job(None);
        probe.mailbox = Some(Arc::clone(&mailbox));
        assert_eq!(mailbox.put(probe), Ok(()));
        let (taken, other_told) = other.join().unwrap();
        assert_eq!(owner.join().unwrap(), None);
        assert_eq!(*told.lock().unwrap(), Some(Told::Failed));
        let poisoned = End::Poisoned("broke".into());
        match (taken, *other_told.lock().unwrap()) {
            (Ok(()), Some(Told::Done(10) | Told::Failed)) | (Err(Refused::Ended(_)), None) => {}
            other => panic!("{other:?}"),
        }
        assert_eq!(mailbox.put(job(Some(1)).0), Err(Refused::Ended(poisoned.clone())));
        // A close afterwards does not hide it.
        mailbox.close();
        assert_eq!(mailbox.end(), Some(poisoned));
    });
}

/// A job that is called off while it waits is told so, or was done before: never both, never neither.
#[test]
fn called_off_while_waiting_is_told_once() {
    explore(|| {
        let mailbox: Arc<Jobs<usize>> = Arc::new(Mailbox::new(2));
        let (first, first_told, _) = job(Some(1));
        let (second, second_told, over) = job(Some(10));
        assert_eq!(mailbox.put(first), Ok(()));
        assert_eq!(mailbox.put(second), Ok(()));
        let owner = owner(&mailbox);
        over.store(true, Ordering::Release);
        mailbox.close();
        let sum = owner.join().unwrap().unwrap();
        assert_eq!(*first_told.lock().unwrap(), Some(Told::Done(1)));
        match second_told.lock().unwrap().unwrap() {
            Told::Done(11) => assert_eq!(sum, 11),
            Told::CalledOff => assert_eq!(sum, 1),
            other => panic!("{other:?}"),
        };
    });
}
