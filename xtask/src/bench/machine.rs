//! What this machine gives at most: how fast memory is read, how many products of bytes it does.

use std::sync::Arc;
use std::time::Instant;

use anemone_kernels::buffer::{Arena, Buffer};
use anemone_kernels::{Isa, peak};
use anyhow::Result;
use serde_json::{Value, json};

/// Bytes that are read: about the weights of a decoded token.
const BYTES: usize = 96 << 20;
const TIMES: usize = 7;

/// The machine, by number of threads.
#[derive(Debug, Clone)]
pub(super) struct Machine {
    pub(super) isa: &'static str,
    pub(super) processor: String,
    pub(super) by_threads: Vec<Limits>,
}

/// What so many threads reach.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) threads: usize,
    /// Bytes a second of a plain read from huge pages.
    pub(super) read: f64,
    /// Operations a second on bytes, two for each multiplication.
    pub(super) bytes: f64,
}

pub(super) fn measure(threads: &[usize]) -> Result<Machine> {
    let isa = Isa::detect();
    let arena = Arc::new(Arena::default());
    let memory = arena.scope(None, || Buffer::filled(BYTES, |b| b.fill(1)));
    let by_threads = threads.iter().map(|&n| {
        let share = (memory.len() / n.max(1)).next_multiple_of(64);
        let read = best(n, |i| peak::read(isa, &memory[(i * share).min(BYTES)..((i + 1) * share).min(BYTES)]));
        let rounds = 400_000;
        let dots = best(n, |_| {
            peak::byte_products(isa, rounds);
        });
        let each = peak::byte_products(isa, 1) as f64 * rounds as f64;
        Limits { threads: n, read: BYTES as f64 / read, bytes: each * n as f64 / dots }
    });
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = info.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or("unknown");
    let processor = name.trim_start_matches([' ', '\t', ':']).to_owned();
    Ok(Machine { isa: isa.name(), processor, by_threads: by_threads.collect() })
}

/// The least seconds that `work` takes on `n` threads at once.
fn best(n: usize, work: impl Fn(usize) + Sync) -> f64 {
    let one = || {
        let begin = Instant::now();
        std::thread::scope(|scope| {
            let work = &work;
            let others: Vec<_> = (1..n).map(|i| scope.spawn(move || work(i))).collect();
            work(0);
            drop(others);
        });
        begin.elapsed().as_secs_f64()
    };
    (0..TIMES).map(|_| one()).fold(f64::INFINITY, f64::min)
}

impl Machine {
    pub(super) fn limits(&self, threads: usize) -> Option<Limits> {
        self.by_threads.iter().copied().find(|l| l.threads == threads)
    }

    pub(super) fn json(&self) -> Value {
        let limits =
            |l: &Limits| json!({"threads": l.threads, "read_gb_per_s": l.read / 1e9, "int8_gop_per_s": l.bytes / 1e9});
        json!({
            "processor": self.processor, "isa": self.isa,
            "limits": self.by_threads.iter().map(limits).collect::<Vec<_>>(),
        })
    }
}
