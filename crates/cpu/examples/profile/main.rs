//! Prints the plan of a function of fixed shapes, and where the time of a run goes:
//! `cargo run --release -p anemone-cpu --example profile -- PACKAGE FUNCTION [THREADS [POSITION [exact]]]`.
//!
//! Integer inputs but `cache_position` are zero; that one counts from POSITION. Beside the clock's time stands what the
//! caller's thread spent on the processor, which a busy machine does not spoil. `PLAN=1` prints the plan.
//!
//! FUNCTION `NARROW..WIDE@TOKENS`, such as `decode..prefill@256`, is a call of any number of tokens that two functions show,
//! the first of a single token and the second of 64.
//!
//! PACKAGE `vision`, `residual` or `embedding` is a model that is made here; its FUNCTION is then its size, 224 or 128.
#![allow(clippy::print_stdout, reason = "an example prints")]

mod models;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anemone_cpu::{Instance, Plan, PlanOptions, Pool, State, Widths};
use anemone_mil::DataMut;
use anemone_mil::lower::PackCache;

const RUNS: u32 = 30;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().collect();
    let [_, package, function, rest @ ..] = args.as_slice() else {
        return Err("usage: profile PACKAGE FUNCTION [THREADS]".into());
    };
    let threads = rest.first().map_or(Ok(1), |t| t.parse())?;
    let position: i32 = rest.get(1).map_or(Ok(0), |t| t.parse())?;
    let exact = rest.get(2).is_some_and(|e| e == "exact");
    let options = PlanOptions { exact, ..PlanOptions::default() };
    let start = Instant::now();
    let (plan, tokens) = plan(package, function, &options)?;
    let plan = Arc::new(plan);
    if std::env::var_os("PLAN").is_some() {
        println!("{plan}");
    }
    println!("loaded and planned in {:?}; notes: {:#?}", start.elapsed(), plan.notes());
    let mut instance = Instance::new(plan.clone(), Pool::new(threads));
    if let Some(tokens) = tokens {
        instance.set_extent(tokens)?;
    }
    let mut state = State::new(plan.states().clone());
    // A cache that is all zeros would be one page, and in the processor's cache.
    for spec in &plan.states().states {
        let halves = state.get_mut(&spec.name).ok_or("a state that the plan has")?;
        halves.iter_mut().enumerate().for_each(|(i, h)| *h = half::f16::from_f32((i * 31 % 64) as f32 / 64.0 - 0.5));
    }
    let mut total = BTreeMap::<String, (u32, Duration)>::new();
    if let Some(index) = instance.input_index("cache_position")
        && let DataMut::I32(positions) = instance.input_mut(index)
    {
        positions.iter_mut().zip(position..).for_each(|(p, i)| *p = i);
    }
    instance.run(&mut state)?;
    let (mut whole, mut least) = (Vec::new(), f64::INFINITY);
    for _ in 0..RUNS {
        let (start, spent) = (Instant::now(), on_processor());
        instance.run(&mut state)?;
        whole.push(start.elapsed());
        least = least.min(on_processor() - spent);
    }
    whole.sort();
    for _ in 0..RUNS {
        instance.run_timed(&mut state, &mut |kind, time| {
            let entry = total.entry(kind.to_owned()).or_default();
            entry.0 += 1;
            entry.1 += time;
        })?;
    }
    let micros = |d: Duration| d.as_secs_f64() * 1e6;
    let mut all: Vec<_> = total.into_iter().collect();
    all.sort_by_key(|(_, (_, time))| std::cmp::Reverse(*time));
    for (kind, (n, time)) in all {
        println!("{:>10.1} µs {:>5} × {kind}", micros(time) / f64::from(RUNS), n / RUNS);
    }
    let (best, median) = (micros(whole[0]), micros(whole[whole.len() / 2]));
    println!("{best:>10.1} µs the fastest run, {median:.1} the median, {:.1} on the processor", least * 1e6);
    Ok(())
}

/// The plan, and the number of tokens if it takes any.
fn plan(
    package: &str,
    function: &str,
    options: &PlanOptions,
) -> Result<(Plan, Option<usize>), Box<dyn std::error::Error>> {
    let cache = PackCache::default();
    let made = match package {
        "vision" => models::vision(function.parse()?)?,
        "residual" => models::residual(function.parse()?)?,
        "embedding" => models::embedding(function.parse()?)?,
        _ => {
            let model = anemone_mil::load::load(Path::new(package))?;
            let named = |name: &str| model.function(Some(name)).ok_or("no such function");
            let Some((names, tokens)) = function.split_once('@') else {
                return Ok((Plan::new(named(function)?, options, &cache)?, None));
            };
            let (narrow, wide) = names.split_once("..").ok_or("NARROW..WIDE@TOKENS is wanted")?;
            let tokens = tokens.parse()?;
            let widths = Widths::of_wide((named(narrow)?, 1), (named(wide)?, 64), tokens);
            return Ok((Plan::of_widths(&widths.ok_or("no calls of any number")?, options, &cache)?, Some(tokens)));
        }
    };
    Ok((Plan::new(&made, options, &cache)?, None))
}

/// Seconds that this thread has spent on the processor, where the system tells.
fn on_processor() -> f64 {
    let figures = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    figures.split(' ').next().and_then(|n| n.parse::<f64>().ok()).unwrap_or(f64::NAN) / 1e9
}
