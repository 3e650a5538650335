//! `NSError` as a [`Failure`].

use objc2_foundation::{NSError, NSUnderlyingErrorKey};

use crate::Failure;
use crate::failure::MAX_DEPTH;

pub(super) fn of(error: &NSError) -> Failure {
    nested(error, MAX_DEPTH)
}

fn nested(error: &NSError, depth: usize) -> Failure {
    // SAFETY: a constant of Foundation that exists on every system.
    let key = unsafe { NSUnderlyingErrorKey };
    let below = error.userInfo().objectForKey(key).and_then(|below| below.downcast::<NSError>().ok());
    let cause = below.filter(|_| depth > 0).map(|below| Box::new(nested(&below, depth - 1)));
    Failure {
        domain: error.domain().to_string(),
        code: error.code() as i64,
        message: error.localizedDescription().to_string(),
        cause,
    }
}
