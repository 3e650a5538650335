//! Memory that nobody needs any longer, given back to the system.
//!
//! Opening a model takes far more memory than the open model: the program with a name for each value, what the
//! tokenizer's file says. The C library of most Linux systems keeps what was freed for later, where little of it will
//! ever be used again. The same goes for the code that opening runs through: most of the program, and never needed again.

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

/// Gives back the pages of this program's own file (or library's) that hold what the file holds. What runs is there again at
/// once, from the system's copy of the file; what only opening needed is not.
pub(crate) fn give_back_code() {
    #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
    give_back_maps(CODE.get_or_init(|| {
        let maps = std::fs::read_to_string("/proc/self/smaps");
        maps.map(|maps| unchanged(&maps, here())).unwrap_or_default()
    }));
}

/// The same, where it was done before; allocates nothing.
pub(crate) fn give_back_code_again() {
    #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
    give_back_maps(CODE.get().map_or(&[], |maps| maps));
}

/// The maps of this program's file that nothing had changed when they were looked for.
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
static CODE: std::sync::OnceLock<Vec<std::ops::Range<usize>>> = std::sync::OnceLock::new();

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
fn give_back_maps(maps: &[std::ops::Range<usize>]) {
    for range in maps {
        // SAFETY: the declaration is that of the C library's manual.
        unsafe extern "C" {
            fn madvise(start: *mut std::ffi::c_void, len: usize, advice: std::ffi::c_int) -> std::ffi::c_int;
        }
        const DONT_NEED: std::ffi::c_int = 4;
        let start = std::ptr::with_exposed_provenance_mut(range.start);
        // SAFETY: the range is a private map of a file that is not written through it, and the program changes none of its
        // pages, so that each comes back as it was. A refusal changes nothing.
        let _refused = unsafe { madvise(start, range.len(), DONT_NEED) };
    }
}

/// An address in this program's code.
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
fn here() -> usize {
    (give_back_code as fn()) as usize
}

/// Of maps as the system tells them, those of the file that has `address`, if they cannot be written to and no page of theirs
/// is another one than the file's (as it is where a debugger put something, or addresses were filled in).
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
fn unchanged(maps: &str, address: usize) -> Vec<std::ops::Range<usize>> {
    struct Map<'a> {
        range: std::ops::Range<usize>,
        file: &'a str,
        shut: bool,
        own: Option<bool>,
    }
    let mut all: Vec<Map<'_>> = Vec::new();
    for line in maps.lines() {
        let mut words = line.split_ascii_whitespace();
        let first = words.next().unwrap_or_default();
        if let Some(key) = first.strip_suffix(':') {
            if key == "Anonymous"
                && let Some(map) = all.last_mut()
            {
                map.own = words.next().map(|kilobytes| kilobytes != "0");
            }
            continue;
        }
        let hexadecimal = |text: &str| usize::from_str_radix(text, 16).ok();
        let ends = first.split_once('-').and_then(|(a, b)| Some(hexadecimal(a)?..hexadecimal(b)?));
        let (Some(range), Some(access)) = (ends, words.next()) else { return Vec::new() };
        let shut = access.starts_with('r') && access.ends_with('p') && !access.contains('w');
        // After the offset, the device and the number of the file.
        all.push(Map { range, shut, file: words.nth(3).unwrap_or_default(), own: None });
    }
    let Some(file) = all.iter().find(|map| map.range.contains(&address)).map(|map| map.file) else { return Vec::new() };
    let wanted = |map: &Map<'_>| map.file == file && file.starts_with('/') && map.shut && map.own == Some(false);
    all.into_iter().filter(wanted).map(|map| map.range).collect()
}

#[cfg(all(test, target_os = "linux", target_pointer_width = "64"))]
mod tests {
    use super::*;

    const MAPS: &str = "\
55d3f7e38000-55d3f82e8000 r--p 00000000 fe:00 3258 /usr/bin/anemone
Rss:                 100 kB
Anonymous:             0 kB
VmFlags: rd mr mw me sd
55d3f82e8000-55d3f8300000 r-xp 004af000 fe:00 3258 /usr/bin/anemone
Anonymous:             0 kB
55d3f8300000-55d3f8301000 r-xp 004c7000 fe:00 3258 /usr/bin/anemone
Anonymous:             4 kB
55d3f8301000-55d3f8302000 rw-p 004c8000 fe:00 3258 /usr/bin/anemone
Anonymous:             0 kB
55d3f8302000-55d3f8303000 r--s 004c8000 fe:00 3258 /usr/bin/anemone
Anonymous:             0 kB
7f1bbe6e2000-7f1bbe6f2000 r-xp 00000000 fe:00 3259 /usr/lib/libm.so.6
Anonymous:             0 kB
7f1bbe7eb000-7f1bbe7ec000 r-xp 00000000 00:00 0
Anonymous:             0 kB
";

    #[test]
    fn only_unchanged_maps_of_the_own_file_are_given_back() {
        let own = [0x55d3_f7e3_8000..0x55d3_f82e_8000, 0x55d3_f82e_8000..0x55d3_f830_0000];
        assert_eq!(unchanged(MAPS, 0x55d3_f82e_8010), own);
        assert!(unchanged(MAPS, 0x7f1b_be7e_b001).is_empty(), "code that no file has");
        assert!(unchanged(MAPS, 0x10).is_empty(), "nowhere");
        assert!(unchanged("what is this\n", 0x10).is_empty());
    }

    #[test]
    fn the_program_goes_on() {
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        assert!(!unchanged(&maps, here()).is_empty(), "{maps}");
        for _ in 0..3 {
            give_back_code();
            give_back_code_again();
            give_back();
        }
        assert!(format!("{:?}", unchanged(&maps, here())).starts_with('['));
    }
}
