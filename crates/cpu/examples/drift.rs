//! How far plans with integer products are from exact ones, on the prompts of a reference of PyTorch:
//! `cargo run --release -p anemone-cpu --example drift -- PACKAGE REFERENCE.safetensors [THREADS]`.
#![allow(clippy::print_stdout, reason = "an example prints")]

use std::path::Path;
use std::sync::Arc;

use anemone_cpu::{Instance, Plan, PlanOptions, Pool, State};
use anemone_mil::lower::PackCache;
use anemone_mil::{Data, DataMut};
use safetensors::SafeTensors;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().collect();
    let [_, package, reference, rest @ ..] = args.as_slice() else {
        return Err("usage: drift PACKAGE REFERENCE.safetensors [THREADS]".into());
    };
    let pool = Pool::new(rest.first().map_or(Ok(1), |t| t.parse())?);
    let model = anemone_mil::load::load(Path::new(package))?;
    let f = model.function(Some("decode")).ok_or("no function `decode`")?;
    let cache = PackCache::default();
    let mut plans = Vec::new();
    for exact in [true, false] {
        let options = PlanOptions { exact, ..PlanOptions::default() };
        plans.push(Instance::new(Arc::new(Plan::new(f, &options, &cache)?), pool.clone()));
    }
    let bytes = std::fs::read(reference)?;
    let tensors = SafeTensors::deserialize(&bytes)?;
    let (mut positions, mut same, mut sum, mut worst, mut prompt) = (0, 0, 0.0, 0.0_f64, 0);
    let mut surprise = [0.0; 2];
    while let Ok(first) = tensors.tensor(&format!("p{prompt}.prompt")) {
        let greedy = tensors.tensor(&format!("p{prompt}.greedy"))?;
        let tokens: Vec<i32> = [first.data(), greedy.data()]
            .iter()
            .flat_map(|data| data.chunks_exact(4).map(|b| i32::from_le_bytes([b[0], b[1], b[2], b[3]])))
            .collect();
        let mut states: Vec<State> = plans.iter().map(|i| State::new(i.plan().states().clone())).collect();
        for (position, &token) in (0..).zip(&tokens) {
            let mut logits = Vec::new();
            for (instance, state) in plans.iter_mut().zip(&mut states) {
                for (name, value) in [("input_ids", token), ("cache_position", position)] {
                    let index = instance.input_index(name).ok_or("an input is missing")?;
                    let DataMut::I32(v) = instance.input_mut(index) else {
                        return Err("an input is not of integers".into());
                    };
                    v.fill(value);
                }
                instance.run(state)?;
                let Data::F32(v) = instance.output(0) else { return Err("logits are no floats".into()) };
                logits.push(log_softmax(v));
            }
            let [exact, fast] = &logits[..] else { return Err("two plans".into()) };
            let top = |v: &[f64]| (0..v.len()).max_by(|&a, &b| v[a].total_cmp(&v[b]));
            same += usize::from(top(exact) == top(fast));
            let kl: f64 = exact.iter().zip(fast).map(|(p, q)| p.exp() * (p - q)).sum();
            (sum, worst, positions) = (sum + kl, worst.max(kl), positions + 1);
            if let Some(&next) = tokens.get(position as usize + 1) {
                surprise[0] -= exact[next as usize];
                surprise[1] -= fast[next as usize];
            }
        }
        prompt += 1;
    }
    let n = f64::from(positions.max(1));
    println!("{positions} positions: the same best token {:.4}", same as f64 / n);
    println!("divergence from exact: mean {:.2e}, worst {worst:.2e}", sum / n);
    println!("perplexity: exact {:.4}, in integers {:.4}", (surprise[0] / n).exp(), (surprise[1] / n).exp());
    Ok(())
}

fn log_softmax(v: &[f32]) -> Vec<f64> {
    let top = f64::from(v.iter().copied().fold(f32::NEG_INFINITY, f32::max));
    let sum = v.iter().map(|&x| (f64::from(x) - top).exp()).sum::<f64>().ln();
    v.iter().map(|&x| f64::from(x) - top - sum).collect()
}
