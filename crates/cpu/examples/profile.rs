//! Prints the plan of a function of fixed shapes, and where the time of a run goes:
//! `cargo run --release -p anemone-cpu --example profile -- PACKAGE FUNCTION [THREADS]`.
#![allow(clippy::print_stdout, reason = "an example prints")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anemone_cpu::{Instance, Plan, PlanOptions, Pool, State};
use anemone_mil::lower::PackCache;

const RUNS: u32 = 20;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().collect();
    let [_, package, function, rest @ ..] = args.as_slice() else {
        return Err("usage: profile PACKAGE FUNCTION [THREADS]".into());
    };
    let threads = rest.first().map_or(Ok(1), |t| t.parse())?;
    let model = anemone_mil::load::load(Path::new(package))?;
    let f = model.function(Some(function)).ok_or("no such function")?;
    let start = Instant::now();
    let plan = Arc::new(Plan::new(f, &PlanOptions::default(), &PackCache::default())?);
    println!("{plan}\nplanned in {:?}; notes: {:#?}", start.elapsed(), plan.notes());
    let mut instance = Instance::new(plan.clone(), Pool::new(threads));
    let mut state = State::new(plan.states().clone());
    let mut total = BTreeMap::<String, (u32, Duration)>::new();
    instance.run(&mut state)?;
    let start = Instant::now();
    for _ in 0..RUNS {
        instance.run(&mut state)?;
    }
    let whole = start.elapsed() / RUNS;
    for _ in 0..RUNS {
        instance.run_timed(&mut state, &mut |kind, time| {
            let entry = total.entry(kind.to_owned()).or_default();
            *entry = (entry.0 + 1, entry.1 + time);
        })?;
    }
    let mut all: Vec<_> = total.into_iter().collect();
    all.sort_by_key(|(_, (_, time))| std::cmp::Reverse(*time));
    for (kind, (n, time)) in all {
        println!("{:>10.1} µs {:>5} × {kind}", time.as_secs_f64() * 1e6 / f64::from(RUNS), n / RUNS);
    }
    println!("{:>10.1} µs a run", whole.as_secs_f64() * 1e6);
    Ok(())
}
