//! What the protocol waits with. The tests that try its interleavings put their own in this place.

pub(super) use std::sync::{Condvar, Mutex};
