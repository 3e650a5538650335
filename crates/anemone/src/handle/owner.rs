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

/// A mailbox of such jobs.
pub(crate) type Jobs<S> = Mailbox<Box<dyn Job<S>>>;

/// Does the jobs of `mailbox`. Gives back what they were done with, unless one of them panicked: then nobody can tell what
/// it is in the middle of.
pub(crate) fn serve<S>(mailbox: &Jobs<S>, mut subject: S) -> Option<S> {
    while let Some(mut job) = mailbox.take() {
        // Those who wait in vain are told as soon as that is known, not when their turn comes.
        let mut between = || {
            for mut over in mailbox.sweep(|waiting| waiting.is_over()) {
                over.call_off();
            }
        };
        let done = catch_unwind(AssertUnwindSafe(|| job.run(&mut subject, &mut between)));
        if let Err(panic) = done {
            let said = said(panic.as_ref());
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
    Some(subject)
}

/// What a panic says.
fn said(panic: &(dyn Any + Send)) -> Arc<str> {
    let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
    text.unwrap_or("no reason given").into()
}
