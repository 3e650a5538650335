//! Sizes and counts for people.

/// Bytes with a decimal unit, as disks and downloads are measured: `98.4 MB`.
#[must_use]
pub fn bytes(n: u64) -> String {
    const UNITS: [&str; 5] = ["kB", "MB", "GB", "TB", "PB"];
    if n < 1000 {
        return format!("{n} B");
    }
    let (mut value, mut unit) = (n as f64 / 1e3, 0);
    while value >= 999.95 && unit + 1 < UNITS.len() {
        (value, unit) = (value / 1e3, unit + 1);
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// A count with its digits in groups of three: `1 234 567`.
#[must_use]
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// A count with its noun: `1 tensor`, `2 tensors`.
#[must_use]
pub fn counted(n: usize, noun: &str) -> String {
    format!("{} {noun}{}", count(n as u64), if n == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_a_unit_that_fits() {
        let sizes = [0, 999, 1000, 98_362_432, 999_949_999, 999_950_000, u64::MAX];
        assert_eq!(
            sizes.map(bytes),
            ["0 B", "999 B", "1.0 kB", "98.4 MB", "999.9 MB", "1.0 GB", "18446.7 PB"].map(str::to_owned)
        );
    }

    #[test]
    fn counts_are_grouped() {
        assert_eq!([1, 123, 1234, 1_234_567].map(count), ["1", "123", "1 234", "1 234 567"].map(str::to_owned));
        assert_eq!((counted(1, "tensor"), counted(2000, "tensor")), ("1 tensor".into(), "2 000 tensors".into()));
    }
}
