//! One idea a file: files that grow too long want to be two.

use super::{Report, Text};

/// Beyond this many lines a file is worth a look.
const LONG: usize = 300;
/// Beyond this many it has to be divided.
const TOO_LONG: usize = 500;

pub(super) fn check(text: &Text, report: &mut Report) {
    let count = text.text.lines().count();
    let complaint = format!("{}: {count} lines; would two files be clearer?", text.path);
    match count {
        0..=LONG => {}
        count if count <= TOO_LONG => report.warnings.push(complaint),
        _ => report.errors.push(format!("{complaint} (more than {TOO_LONG} do not land)")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds() {
        let mut report = Report::default();
        for lines in [300, 301, 500, 501] {
            check(&Text { path: "a.rs".into(), text: "x\n".repeat(lines) }, &mut report);
        }
        assert_eq!((report.warnings.len(), report.errors.len()), (2, 1));
    }
}
