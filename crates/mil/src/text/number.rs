//! Floating numbers in text: exact hexadecimal on the way out, hexadecimal or decimal on the way in.

use std::fmt;

/// A finite number as C's `%a` writes it, always with a leading 1 (or 0 for zero): `-0x1.8p-1`.
pub(super) struct Hex(pub(super) f64);

impl fmt::Display for Hex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = self.0.to_bits();
        let (negative, exponent, fraction) = (bits >> 63 == 1, (bits >> 52 & 0x7ff) as i32, bits & ((1 << 52) - 1));
        if negative {
            f.write_str("-")?;
        }
        let (exponent, fraction) = match (exponent, fraction) {
            (0, 0) => return f.write_str("0x0p+0"),
            // Subnormal: bring the highest bit to the front.
            (0, _) => {
                let shift = fraction.leading_zeros() - 11;
                (-1022 - shift as i32, fraction << shift & ((1 << 52) - 1))
            }
            _ => (exponent - 1023, fraction),
        };
        f.write_str("0x1")?;
        if fraction != 0 {
            let digits = format!("{fraction:013x}");
            write!(f, ".{}", digits.trim_end_matches('0'))?;
        }
        write!(f, "p{exponent:+}")
    }
}

/// The number that `text` spells: `0x1.8p-1`, `1.5`, `-1e-5`, `inf`, `-inf`, `nan`.
pub(super) fn parse(text: &str) -> Option<f64> {
    let (negative, magnitude) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let value = match magnitude {
        "inf" | "infinity" => f64::INFINITY,
        "nan" => f64::NAN,
        _ => match magnitude.strip_prefix("0x").or(magnitude.strip_prefix("0X")) {
            Some(hex) => parse_hex(hex)?,
            None if magnitude.starts_with(|c: char| c.is_ascii_digit() || c == '.') => magnitude.parse().ok()?,
            None => return None,
        },
    };
    Some(if negative { -value } else { value })
}

fn parse_hex(text: &str) -> Option<f64> {
    let (digits, exponent) = match text.find(['p', 'P']) {
        Some(at) => (&text[..at], text[at + 1..].parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (mut mantissa, mut scale, mut point, mut any) = (0u64, i64::from(exponent), false, false);
    for c in digits.chars() {
        if c == '.' {
            if std::mem::replace(&mut point, true) {
                return None;
            }
            continue;
        }
        let digit = u64::from(c.to_digit(16)?);
        any = true;
        if mantissa >> 60 == 0 {
            mantissa = mantissa << 4 | digit;
            scale -= if point { 4 } else { 0 };
        } else {
            // Beyond what can matter for rounding, except whether anything is there.
            mantissa |= u64::from(digit != 0);
            scale += if point { 0 } else { 4 };
        }
    }
    any.then(|| scaled(mantissa as f64, scale))
}

/// `value` · 2^`exponent`, in steps that neither overflow nor vanish early.
fn scaled(mut value: f64, exponent: i64) -> f64 {
    let mut left = exponent.clamp(-5000, 5000) as i32;
    while left != 0 && value != 0.0 && value.is_finite() {
        let step = left.clamp(-900, 900);
        value *= 2f64.powi(step);
        left -= step;
    }
    value
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn spellings() {
        for (value, text) in [
            (1.0, "0x1p+0"),
            (-0.75, "-0x1.8p-1"),
            (0.0, "0x0p+0"),
            (-0.0, "-0x0p+0"),
            (2f64.powi(-24), "0x1p-24"),
            (0.1f32 as f64, "0x1.99999ap-4"),
            (5e-324, "0x1p-1074"),
        ] {
            assert_eq!(Hex(value).to_string(), text);
        }
        for (text, value) in [("1.5", 1.5), ("-1e-2", -0.01), ("0x10", 16.0), ("0x.8p0", 0.5), ("inf", f64::INFINITY)] {
            assert_eq!(parse(text), Some(value));
        }
        for text in ["", "-", "0x", "0x1p", "1e", "--1", "0x1.2.3p0", "infinit", "e5", "0x1p99999999999"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_number_round_trips(bits: u64) {
            let value = f64::from_bits(bits);
            prop_assume!(value.is_finite());
            prop_assert_eq!(parse(&Hex(value).to_string()).map(f64::to_bits), Some(bits));
        }
    }
}
