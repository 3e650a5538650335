//! Whole-program work for this machine's processor: passes, plan, instance, in-place state.
