//! Unsafe code stays in the rooms that were built for it.

use super::Text;

/// Folders (ending in a slash) and files that may hold unsafe code, each with the reason.
const ALLOWED: [(&str, &str); 10] = [
    ("crates/kernels/src/", "instructions of one ISA, behind a token that proves it is there"),
    ("crates/package/src/map.rs", "the one memory map"),
    ("crates/cpu/src/pool.rs", "a job borrows from its caller's stack, which outlives it by construction"),
    ("crates/cpu/src/pool/", "memory that threads take turns at, as its model checks"),
    ("crates/cpu/tests/pool_model.rs", "the model of the pool, which includes its files"),
    ("crates/anemone/src/heap.rs", "the C library gives memory back to the system"),
    ("crates/cli/src/file_limit.rs", "the C library is told which signal to ignore"),
    ("crates/coreml/src/", "Apple's runtime, behind a safe API"),
    ("xtask/src/fuzz/memory.rs", "an allocator that counts"),
    ("bindings/", "other languages' calling conventions"),
];

/// Tests count allocations, and an allocator is unsafe: such files implement nothing else.
const COUNTING: &str = "unsafe impl GlobalAlloc";

pub(super) fn check(text: &Text) -> Vec<String> {
    let allowed = ALLOWED
        .iter()
        .any(|(place, _)| if place.ends_with('/') { text.path.starts_with(place) } else { text.path == *place });
    let counts = text.path.contains("/tests/") && text.text.contains(COUNTING);
    if allowed || counts {
        return Vec::new();
    }
    let lines = text.lines().filter(|(_, line)| is_unsafe(line));
    lines.map(|(number, line)| format!("{}:{number}: unsafe code here: {}", text.path, line.trim())).collect()
}

/// Whether a line of code opens something unsafe, or allows it.
fn is_unsafe(line: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    let opens = ["{", "fn ", "impl ", "extern ", "trait "];
    let keyword = concat!("un", "safe ");
    let allows = concat!("allow(un", "safe_code");
    code.contains(allows)
        || code.match_indices(keyword).any(|(at, _)| {
            opens.iter().any(|what| code[at + keyword.len()..].starts_with(what)) && !code[..at].ends_with(['"', '`'])
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_unsafe_code_and_not_talk_of_it() {
        let keyword = concat!("un", "safe");
        for line in [
            format!("let x = {keyword} {{ f() }};"),
            format!("pub {keyword} fn f()"),
            format!("#![allow({keyword}_code)]"),
        ] {
            assert!(is_unsafe(&line), "{line}");
        }
        for line in [format!("// {keyword} {{"), format!("/// says `{keyword} fn`"), "let safe = 1;".to_owned()] {
            assert!(!is_unsafe(&line), "{line}");
        }
        let text = |path: &str| Text { path: path.into(), text: format!("{keyword} {{ f() }}\n") };
        assert_eq!(check(&text("crates/mil/src/op.rs")).len(), 1);
        assert_eq!(check(&text("crates/package/src/mapper.rs")).len(), 1);
        assert_eq!(check(&text("crates/package/src/map.rs")).len(), 0);
        assert_eq!(check(&text("crates/kernels/src/gemv/avx2.rs")).len(), 0);
    }
}
