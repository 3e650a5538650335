//! What a caller asks of one answer, and how it is called off.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use super::StopReason;
use crate::Generation;

/// Calls an answer off, from any thread. Clones share one switch; it takes effect within one token.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<Switch>);

#[derive(Debug, Default)]
struct Switch {
    off: AtomicBool,
    /// Switches that work on this one as well.
    above: Vec<Cancel>,
}

impl Cancel {
    /// A switch that is off.
    pub fn new() -> Self {
        Self::default()
    }

    /// Calls off the answer that is being generated, and every later one that is asked for with this switch.
    pub fn cancel(&self) {
        self.0.off.store(true, Ordering::Release);
    }

    /// Whether it was called off.
    pub fn is_cancelled(&self) -> bool {
        self.0.off.load(Ordering::Acquire) || self.0.above.iter().any(Self::is_cancelled)
    }

    /// A switch that these switches work on as well; it has no effect on them.
    pub(crate) fn below<'c>(above: impl IntoIterator<Item = &'c Self>) -> Self {
        Self(Arc::new(Switch { off: AtomicBool::new(false), above: above.into_iter().cloned().collect() }))
    }
}

/// What is asked of one answer. [`Request::default`] is greedy and unlimited.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// How tokens are drawn and when to stop.
    pub generation: Generation,
    /// Calls the answer off.
    pub cancel: Cancel,
    /// When the answer is called off by itself.
    pub deadline: Option<Instant>,
    /// Tools that the template may tell the model of.
    pub tools: Option<serde_json::Value>,
    /// Further variables for the template, such as `enable_thinking`.
    pub variables: Option<serde_json::Map<String, serde_json::Value>>,
}

impl Request {
    /// A request with these settings.
    pub fn new(generation: Generation) -> Self {
        Self { generation, ..Self::default() }
    }

    /// Why to stop now, if there is a reason.
    pub(crate) fn interrupted(&self) -> Option<StopReason> {
        if self.cancel.is_cancelled() {
            return Some(StopReason::Cancelled);
        }
        self.deadline.filter(|deadline| Instant::now() >= *deadline).map(|_| StopReason::Deadline)
    }
}
