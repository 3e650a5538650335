//! Outputs described instead of written.

use std::io::{Write, stdout};

use anemone_mil::interpret::Tensors;
use anemone_mil::{Buffer, Tensor};
use anyhow::Result;
use serde_json::{Value, json};

/// As many elements of each output are shown.
const SHOWN: usize = 8;

/// The outputs, in text: type, range, first elements.
pub(super) fn as_text(outputs: &Tensors) -> Result<()> {
    let mut out = stdout().lock();
    for (name, tensor) in outputs {
        writeln!(out, "{name}: {}", tensor.ty)?;
        let (lowest, highest, mean) = range(tensor);
        let n = tensor.data.len();
        let first: Vec<String> = elements(tensor).take(SHOWN).map(number).collect();
        let dots = if n > SHOWN { ", …" } else { "" };
        writeln!(out, "  {}{dots}", first.join(", "))?;
        if n > 1 {
            writeln!(out, "  lowest {}, highest {}, mean {}", number(lowest), number(highest), number(mean))?;
        }
    }
    Ok(())
}

/// The outputs as one JSON object.
pub(super) fn as_json(function: &str, outputs: &Tensors) -> Result<()> {
    let describe = |tensor: &Tensor| {
        let (lowest, highest, mean) = range(tensor);
        json!({
            "dtype": tensor.ty.dtype.name(),
            "shape": tensor.ty.shape.as_slice(),
            "first": elements(tensor).take(SHOWN).collect::<Vec<f64>>(),
            "lowest": lowest,
            "highest": highest,
            "mean": mean,
        })
    };
    let outputs: serde_json::Map<String, Value> = outputs.iter().map(|(n, t)| (n.clone(), describe(t))).collect();
    writeln!(stdout(), "{}", json!({ "function": function, "outputs": outputs }))?;
    Ok(())
}

/// A number for people: whole ones as they are, others to six digits.
fn number(x: f64) -> String {
    if x.fract() == 0.0 && x.abs() < 1e15 || !x.is_finite() {
        return x.to_string();
    }
    let rounded = format!("{x:.5e}").parse().unwrap_or(x);
    if (1e-4..1e15).contains(&x.abs()) { format!("{rounded}") } else { format!("{rounded:e}") }
}

fn elements(tensor: &Tensor) -> Box<dyn Iterator<Item = f64> + '_> {
    match &tensor.data {
        Buffer::F32(v) => Box::new(v.iter().map(|&x| x.into())),
        Buffer::I32(v) => Box::new(v.iter().map(|&x| x.into())),
        Buffer::Bool(v) => Box::new(v.iter().map(|&x| f64::from(u8::from(x)))),
    }
}

fn range(tensor: &Tensor) -> (f64, f64, f64) {
    let start = (f64::INFINITY, f64::NEG_INFINITY, 0.0);
    let (lowest, highest, sum) = elements(tensor).fold(start, |(low, high, sum), x| (low.min(x), high.max(x), sum + x));
    (lowest, highest, sum / tensor.data.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_six_digits() {
        for (x, text) in [
            (11.798_659_317_040_196, "11.7987"),
            (-0.204_345_703_125, "-0.204346"),
            (0.5, "0.5"),
            (123_456.789, "123457"),
            (16_777_217.0, "16777217"),
            (1.234_567_89e-7, "1.23457e-7"),
            (0.0, "0"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            assert_eq!(number(x), text);
        }
    }
}
