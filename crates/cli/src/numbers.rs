//! Numbers as people type them, and what is said of those that are none.

use std::str::FromStr;

use anemone::Speculation;

/// A number of tokens: `4096`, or `4k` for the same.
///
/// # Errors
/// What was expected.
pub fn tokens(text: &str) -> Result<usize, String> {
    let (digits, unit) = match text.strip_suffix(['k', 'K']) {
        Some(digits) => (digits, 1024),
        None => (text, 1),
    };
    let number = plain(digits).and_then(|n: usize| n.checked_mul(unit));
    number.ok_or_else(|| "expected a number of tokens, such as 4096, or 4k for the same".to_owned())
}

/// A whole number.
///
/// # Errors
/// What was expected.
pub fn whole<T: FromStr>(text: &str) -> Result<T, String> {
    plain(text).ok_or_else(|| "expected a whole number from 0 on, such as 40".to_owned())
}

/// A number with or without a fraction. Whether it is in its range is not asked here.
///
/// # Errors
/// What was expected.
pub fn number(text: &str) -> Result<f32, String> {
    text.parse().map_err(|_| "expected a number, such as 0.7".to_owned())
}

/// A share of a whole.
///
/// # Errors
/// What was expected.
pub fn share(text: &str) -> Result<f64, String> {
    let share = text.parse::<f64>().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "expected a share from 0 to 1, such as 0.95".to_owned())
}

/// A bound on what is never negative.
///
/// # Errors
/// What was expected.
pub fn bound(text: &str) -> Result<f64, String> {
    let bound = text.parse::<f64>().ok().filter(|bound| *bound >= 0.0);
    bound.ok_or_else(|| "expected a number from 0 on, such as 0.01".to_owned())
}

/// A number of threads.
///
/// # Errors
/// What was expected.
pub fn threads(text: &str) -> Result<u16, String> {
    plain(text).filter(|n| (1..=1024).contains(n)).ok_or_else(|| "expected a number from 1 to 1024".to_owned())
}

/// Whether tokens are guessed: `auto`, `off`, or how many.
///
/// # Errors
/// What was expected.
pub fn speculation(text: &str) -> Result<Speculation, String> {
    let most = Speculation::MOST;
    match text {
        "auto" => Ok(Speculation::Auto),
        "off" => Ok(Speculation::Off),
        _ => plain(text)
            .filter(|n| (1..=most).contains(n))
            .map(Speculation::Always)
            .ok_or_else(|| format!("expected `auto`, `off`, or a number of guesses from 1 to {most}")),
    }
}

/// Digits alone: no sign.
fn plain<T: FromStr>(text: &str) -> Option<T> {
    text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_is_understood_or_explained() {
        assert_eq!((tokens("4k"), tokens("8K"), tokens("100")), (Ok(4096), Ok(8192), Ok(100)));
        for wrong in ["", "k", "4kk", "-1", "+4", "4.5k", "99999999999999999999", "18446744073709551615k", "four"] {
            assert!(tokens(wrong).unwrap_err().contains("4k"), "{wrong}");
        }
        assert_eq!(whole::<u64>("7"), Ok(7));
        assert!(whole::<usize>("-1").unwrap_err().contains("from 0 on"));
        assert_eq!(number("-0.5"), Ok(-0.5));
        assert!(number("warm").unwrap_err().contains("0.7"));
        assert_eq!((speculation("off"), speculation("15")), (Ok(Speculation::Off), Ok(Speculation::Always(15))));
        assert!(speculation("16").is_err() && speculation("0").is_err() && speculation("on").is_err());
        assert_eq!((share("0.9"), share("1")), (Ok(0.9), Ok(1.0)));
        assert!(["NaN", "1e300", "-0.1", "inf"].iter().all(|text| share(text).is_err()));
        assert_eq!((bound("0"), bound("1e-3")), (Ok(0.0), Ok(1e-3)));
        assert!(["NaN", "-1", "x"].iter().all(|text| bound(text).is_err()));
        assert_eq!((threads("1"), threads("1024")), (Ok(1), Ok(1024)));
        assert!(threads("0").is_err() && threads("1025").is_err() && threads("x").is_err());
    }
}
