//! Calls that answer later, made to wait.

use std::sync::mpsc;

use block2::{DynBlock, RcBlock};
use objc2::Message;
use objc2::rc::Retained;
use objc2_foundation::NSError;

use super::failure;
use crate::Failure;

/// The handler of a call that gives an object or an error.
type Handler<T> = DynBlock<dyn Fn(*mut T, *mut NSError)>;

/// An object on its way from the thread that Core ML answers on.
struct Answer<T: Message>(Result<Retained<T>, Failure>);

// SAFETY: the object moves to the waiting thread with the only reference that we hold; the kinds that are waited for here
// (URLs, compute plans) have no tie to the thread that made them.
unsafe impl<T: Message> Send for Answer<T> {}

/// Makes a call with a handler, and waits for what it is given.
pub(super) fn for_object<T: Message + 'static>(call: impl FnOnce(&Handler<T>)) -> Result<Retained<T>, Failure> {
    let (sender, receiver) = mpsc::channel();
    let handler = RcBlock::new(move |object: *mut T, error: *mut NSError| {
        // SAFETY: each pointer is nil or a valid object for the length of this call; `retain` makes it ours.
        let (object, error) = unsafe { (Retained::retain(object), error.as_ref()) };
        let nothing = || Failure::new("anemone", 0, "Core ML answered with neither a result nor an error");
        let answer = object.ok_or_else(|| error.map_or_else(nothing, failure::of));
        // Nobody waits any more if the receiver is gone.
        drop(sender.send(Answer(answer)));
    });
    call(&handler);
    drop(handler);
    match receiver.recv() {
        Ok(Answer(answer)) => answer,
        Err(_) => Err(Failure::new("anemone", 0, "Core ML dropped the handler without calling it")),
    }
}
