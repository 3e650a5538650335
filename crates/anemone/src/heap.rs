//! Memory that was freed, given back to the system.
//!
//! Opening a model takes far more memory than the open model: the program with a name for each value, what the
//! tokenizer's file says. The C library of most Linux systems keeps what was freed for later, where little of it will
//! ever be used again.

#![allow(unsafe_code, reason = "it asks the C library")]

/// Gives back what is free, where there is a way to.
pub(crate) fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // SAFETY: the declaration is that of the C library's manual; it may be called at any time from any thread.
        unsafe extern "C" {
            safe fn malloc_trim(pad: usize) -> std::ffi::c_int;
        }
        let _whether_any = malloc_trim(0);
    }
}
