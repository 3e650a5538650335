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
        let first: Vec<String> = elements(tensor).take(SHOWN).map(|x| x.to_string()).collect();
        let dots = if n > SHOWN { ", …" } else { "" };
        writeln!(out, "  {}{dots}", first.join(", "))?;
        if n > 1 {
            writeln!(out, "  lowest {lowest}, highest {highest}, mean {mean}")?;
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
