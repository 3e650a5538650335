//! How short of memory the system is.

use std::ffi::c_int;

use crate::Pressure;

/// The kernel's level of memory pressure: what it would tell a `DISPATCH_SOURCE_TYPE_MEMORYPRESSURE`, without anybody being
/// registered. Where an app may not ask, as may be on iOS, it is unknown.
pub(super) fn pressure() -> Pressure {
    let mut level: c_int = 0;
    let mut size = size_of::<c_int>();
    let name = c"kern.memorystatus_vm_pressure_level";
    // SAFETY: the name is a C string, the room is as large as `size` says, and nothing is set.
    let result =
        unsafe { libc::sysctlbyname(name.as_ptr(), (&raw mut level).cast(), &raw mut size, std::ptr::null_mut(), 0) };
    if result == 0 && size == size_of::<c_int>() { Pressure::from_raw(level) } else { Pressure::Unknown }
}
