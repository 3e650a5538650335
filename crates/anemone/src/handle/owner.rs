//! The owner's end of a mailbox: one job after the other, until the mailbox is closed or a job panics.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::mailbox::Mailbox;

/// Something to be done with what the owner owns. Whatever happens to it, whoever asked is told.
pub(crate) trait Job<S>: Send {
    /// Does it, and tells the result. `between` is called now and then.
    fn run(&mut self, subject: &mut S, between: &mut dyn FnMut());

    /// Whether nobody wants it any more.
    fn is_over(&self) -> bool;

    /// Tells that it was called off before its turn came.
    fn call_off(&mut self);

    /// Tells that the owner panicked, in this job or in one before it.
    fn fail(&mut self, said: &Arc<str>);
}

/// What an owner has, and lends to one job after the other.
pub(crate) trait Lend<S> {
    /// Lends it, if that is possible now; after a moment it may be.
    fn lend(&mut self, work: &mut dyn FnMut(&mut S)) -> Lent;

    /// Takes it out at the end.
    fn back(self) -> Option<S>;
}

/// Whether something was lent.
pub(crate) enum Lent {
    Done,
    NotNow,
    /// Never again: somebody else panicked with it.
    Broken(Arc<str>),
}

/// Something that is the owner's alone.
pub(crate) struct Own<S>(pub(crate) S);

impl<S> Lend<S> for Own<S> {
    fn lend(&mut self, work: &mut dyn FnMut(&mut S)) -> Lent {
        work(&mut self.0);
        Lent::Done
    }

    fn back(self) -> Option<S> {
        Some(self.0)
    }
}

/// A mailbox of such jobs.
pub(crate) type Jobs<S> = Mailbox<Box<dyn Job<S>>>;

/// Does the jobs of `mailbox`. Gives back what they were done with, unless one of them panicked: then nobody can tell what
/// it is in the middle of.
pub(crate) fn serve<S>(mailbox: &Jobs<S>, mut subject: impl Lend<S>) -> Option<S> {
    while let Some(mut job) = mailbox.take() {
        // Those who wait in vain are told as soon as that is known, not when their turn comes.
        let mut between = || {
            for mut over in mailbox.sweep(|waiting| waiting.is_over()) {
                over.call_off();
            }
        };
        let lent = loop {
            let lent = catch_unwind(AssertUnwindSafe(|| subject.lend(&mut |subject| job.run(subject, &mut between))));
            match lent {
                Ok(Lent::NotNow) if job.is_over() => {
                    job.call_off();
                    break Lent::Done;
                }
                Ok(Lent::NotNow) => between(),
                Ok(lent) => break lent,
                Err(panic) => break Lent::Broken(said(panic.as_ref())),
            }
        };
        if let Lent::Broken(said) = lent {
            // First the mailbox: who is told of the panic must find it closed.
            let waiting = mailbox.poison(Arc::clone(&said));
            for mut job in std::iter::once(job).chain(waiting) {
                job.fail(&said);
            }
            // What panicked once may panic again when it is dropped.
            drop(catch_unwind(AssertUnwindSafe(|| drop(subject))));
            return None;
        }
    }
    subject.back()
}

/// What a panic says.
fn said(panic: &(dyn Any + Send)) -> Arc<str> {
    let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
    text.unwrap_or("no reason given").into()
}
