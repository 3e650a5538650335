//! Inputs given on the command line: `--input NAME=VALUE`, `--shape NAME=1,3`.

use std::path::PathBuf;
use std::str::FromStr;

use anemone_mil::Tensor;
use anemone_mil::types::{Class, StaticType};
use anyhow::Result;

use crate::values::{Number, tensor};

/// `NAME=VALUE` of `--input`.
#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    /// The input's name.
    pub name: String,
    /// What to give it.
    pub value: Value,
}

/// What an input is given.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// The content of a NumPy file.
    File(PathBuf),
    /// Numbers written out, row-major; one alone fills the whole tensor.
    Numbers(Vec<Number>),
    /// 0, 1, 2, …, row-major.
    Range,
    /// Numbers that a seed gives, from `low` up to, and of floating numbers without, `high`.
    Random {
        /// The seed.
        seed: u64,
        /// The lowest.
        low: f64,
        /// The highest.
        high: f64,
    },
}

/// `NAME=1,3` of `--shape`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShapeOf {
    /// The input's name.
    pub name: String,
    /// Its extents.
    pub shape: Vec<usize>,
}

fn named(text: &str) -> Result<(String, &str), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value)),
        _ => Err(format!("expected NAME=…, found {text:?}")),
    }
}

impl FromStr for ShapeOf {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, extents) = named(text)?;
        let extents = extents.split(',').map(str::trim).filter(|n| !n.is_empty());
        let shape = extents.map(|n| n.parse().map_err(|_| format!("expected extents such as 1,3, found {n:?}")));
        Ok(Self { name, shape: shape.collect::<Result<_, _>>()? })
    }
}

impl FromStr for Input {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = named(text)?;
        Ok(Self { name, value: value.parse()? })
    }
}

impl FromStr for Value {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.to_ascii_lowercase().ends_with(".npy") {
            return Ok(Value::File(text.into()));
        }
        match text {
            "zeros" => return Ok(Value::Numbers(vec![Number::Int(0)])),
            "ones" => return Ok(Value::Numbers(vec![Number::Int(1)])),
            "range" => return Ok(Value::Range),
            _ => {}
        }
        let expected = || {
            format!(
                "expected FILE.npy, numbers such as 3 or 0.5,1, zeros, ones, range, random:SEED or random:SEED:LOW:HIGH, found {text:?}"
            )
        };
        if let Some(random) = text.strip_prefix("random:") {
            let parts: Vec<&str> = random.split(':').collect();
            let (seed, low, high) = match parts[..] {
                [seed] => (seed, None, None),
                [seed, low, high] => (seed, low.parse().ok(), high.parse().ok()),
                _ => return Err(expected()),
            };
            let seed = seed.parse().map_err(|_| expected())?;
            return match (parts.len(), low, high) {
                (1, ..) => Ok(Value::Random { seed, low: -1.0, high: 1.0 }),
                (_, Some(low), Some(high)) if f64::is_finite(low) && f64::is_finite(high) && low < high => {
                    Ok(Value::Random { seed, low, high })
                }
                _ => Err(expected()),
            };
        }
        let number = |n: &str| {
            let n = n.trim();
            n.parse().map(Number::Int).or_else(|_| n.parse().map(Number::Float)).map_err(|_| expected())
        };
        text.split(',').map(number).collect::<Result<_, _>>().map(Value::Numbers)
    }
}

impl Value {
    /// The shape that the value itself has, if it has more than one element.
    #[must_use]
    pub fn own_shape(&self) -> Option<Vec<usize>> {
        match self {
            Value::Numbers(all) if all.len() > 1 => Some(vec![all.len()]),
            _ => None,
        }
    }

    /// The tensor of type `ty` with this value. Files are read elsewhere.
    ///
    /// # Errors
    /// If the type cannot hold it.
    pub fn to_tensor(&self, ty: &StaticType) -> Result<Tensor> {
        match self {
            Value::File(path) => anyhow::bail!("{} is to be read as a file", path.display()),
            Value::Numbers(all) if all.len() == 1 => tensor(ty, |_| all[0]),
            Value::Numbers(all) if all.len() == ty.elements() => tensor(ty, |i| all[i]),
            Value::Numbers(all) => anyhow::bail!("{} numbers where {ty} has {} elements", all.len(), ty.elements()),
            Value::Range => tensor(ty, |i| Number::Int(i as i128)),
            Value::Random { seed, low, high } => tensor(ty, |i| {
                let unit = (mix(*seed, i as u64) >> 11) as f64 / (1u64 << 53) as f64;
                if ty.dtype.class() == Class::Float {
                    return Number::Float(low + unit * (high - low));
                }
                let (low, high) = (low.ceil() as i128, high.floor() as i128);
                Number::Int(low + ((high - low + 1) as f64 * unit) as i128)
            }),
        }
    }
}

/// The `i`th output of SplitMix64 (Steele, Lea, Flood 2014) from `seed`.
fn mix(seed: u64, i: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15u64.wrapping_mul(i.wrapping_add(1)));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use anemone_mil::types::DType;

    use super::*;

    #[test]
    fn values_are_read() {
        let input = |text: &str| text.parse::<Input>().map(|i| i.value);
        assert_eq!(input("x=a/b.npy").unwrap(), Value::File("a/b.npy".into()));
        assert_eq!(input("x=zeros").unwrap(), input("x=0").unwrap());
        assert_eq!(input("x=1, -0.5").unwrap(), Value::Numbers(vec![Number::Int(1), Number::Float(-0.5)]));
        assert_eq!(input("x=random:7:0:255").unwrap(), Value::Random { seed: 7, low: 0.0, high: 255.0 });
        for bad in ["x", "=1", "x=", "x=one", "x=1,", "x=random:", "x=random:-1", "x=random:1:2", "x=random:1:2:2"] {
            assert!(input(bad).is_err(), "{bad}");
        }
        assert_eq!("x=1,3".parse(), Ok(ShapeOf { name: "x".into(), shape: vec![1, 3] }));
        assert_eq!("x=".parse(), Ok(ShapeOf { name: "x".into(), shape: vec![] }));
        assert!("x=1,-3".parse::<ShapeOf>().is_err());
    }

    #[test]
    fn tensors_are_made() {
        let make = |text: &str, dtype, shape: &[usize]| {
            text.parse::<Value>().unwrap().to_tensor(&StaticType::new(dtype, shape)).map(|t| t.data)
        };
        use anemone_mil::Buffer;
        assert_eq!(make("range", DType::I32, &[2, 2]).unwrap(), Buffer::I32(vec![0, 1, 2, 3]));
        assert_eq!(make("ones", DType::F16, &[2]).unwrap(), Buffer::F32(vec![1.0, 1.0]));
        assert_eq!(make("5,6", DType::I32, &[1, 2]).unwrap(), Buffer::I32(vec![5, 6]));
        assert!(make("5,6", DType::I32, &[3]).is_err());
        assert_eq!(make("random:1", DType::F32, &[9]).unwrap(), make("random:1", DType::F32, &[9]).unwrap());
        assert_ne!(make("random:1", DType::F32, &[9]).unwrap(), make("random:2", DType::F32, &[9]).unwrap());
        let Buffer::I32(dice) = make("random:3:1:6", DType::I32, &[600]).unwrap() else { panic!("integers") };
        assert!((1..=6).all(|n| dice.contains(&n)) && dice.iter().all(|n| (1..=6).contains(n)));
    }
}
