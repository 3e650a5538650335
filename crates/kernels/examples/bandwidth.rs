//! What each kernel reaches on this machine, on one thread, at the sizes of SmolLM2-135M.
//!
//! `cargo run --release -p anemone-kernels --example bandwidth [PART OF A NAME] [MB]`
//!
//! Decode (one token) is measured over copies of a matrix that fill 48 MB, to leave the inner caches; its figure is GB/s of packed
//! weights, beside that of a plain read of as many bytes. Prefill is measured on one matrix; its figure is GOP/s.

#![allow(clippy::print_stdout, reason = "a program that prints")]

use anemone_kernels::Isa;
use anemone_kernels::attention::{Group, Keys, Mask, Queries, Rows, attend, scratch_len, tiles};
use anemone_kernels::buffer::Buffer;
use anemone_kernels::columns::Columns;
use anemone_kernels::isa::Amx;
use anemone_kernels::linear::tiles::Then;
use anemone_kernels::linear::{
    Activations, BlockShape, Linear, LinearF16, LinearF32, LinearLut, LinearQ4, LinearQ8, LutShape, ScaleType, Tiles,
};
use std::hint::black_box;
use std::time::Instant;

fn main() {
    let only = std::env::args().nth(1).unwrap_or_default();
    let megabytes = std::env::args().nth(2).map_or(Ok(48), |n| n.parse::<usize>());
    let set = megabytes.expect("the second argument is a number of megabytes") << 20;
    let isa = Isa::detect();
    println!("instruction set: {}", isa.name());
    let mut bytes = Buffer::zeroed(set);
    bytes.fill(1);
    let seconds = best(|| {
        black_box(bytes.as_chunks::<64>().0.iter().fold([0_u64; 8], |mut sum, line| {
            for (sum, word) in sum.iter_mut().zip(line.as_chunks::<8>().0) {
                *sum ^= u64::from_le_bytes(*word);
            }
            sum
        }));
    });
    println!("{:<44} {:>7.1} GB/s", format!("plain read of {} MB", set >> 20), set as f64 / seconds / 1e9);
    for kind in [
        "f32",
        "f16",
        "q8 row",
        "q8 block 32",
        "q4 block 32",
        "q4 block 32 offsets",
        "lut4",
        "lut4 group 4",
        "lut6",
        "lut6 group 16",
        "lut8",
    ] {
        if kind.contains(&only) {
            for (rows, k) in [(3072, 576), (576, 1536)] {
                linear(isa, kind, rows, k, set);
            }
        }
    }
    if "attention".contains(&only) {
        for len in [256, 2048] {
            for width in [1, 16, 64] {
                attention(isa, width, len, set, Way::Rows);
                attention(isa, width, len, set, Way::Turned);
                if let Some(amx) = tiles::fit(isa, width) {
                    attention(isa, width, len, set, Way::Tiles(amx));
                }
            }
        }
    }
}

/// The seconds a run takes on the processor (other processes take turns on a shared machine): the best of three batches,
/// long enough for a clock that ticks every few milliseconds.
fn best(mut f: impl FnMut()) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..3 {
        let (start, mut runs) = (on_processor(), 0);
        while on_processor() - start < 0.1 {
            f();
            runs += 1;
        }
        best = best.min((on_processor() - start) / f64::from(runs));
    }
    best
}

/// What this thread has spent on the processor: the scheduler's figure where there is one, else the clock.
fn on_processor() -> f64 {
    let figures = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = figures.split(' ').next().and_then(|n| n.parse::<f64>().ok());
    nanoseconds.map_or_else(|| EPOCH.elapsed().as_secs_f64(), |n| n / 1e9)
}

static EPOCH: std::sync::LazyLock<Instant> = std::sync::LazyLock::new(Instant::now);

fn random(n: usize) -> Vec<u8> {
    let mut state = 88_172_645_463_325_252_u64;
    (0..n)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u8
        })
        .collect()
}

fn pack(kind: &str, rows: usize, k: usize) -> Buffer {
    let floats: Vec<f32> = random(rows * k).iter().map(|&v| f32::from(v) / 128.0 - 1.0).collect();
    match kind {
        "f32" => LinearF32::packed(rows, k, &floats),
        "f16" => LinearF16::packed(rows, k, &vec![0x2c11; rows * k]),
        _ if kind.starts_with('q') => {
            let (shape, count) = blocks(kind, rows, k);
            let scales = vec![0.0625; count];
            let offsets = shape.offsets.then(|| vec![1.0; count]);
            if kind.starts_with("q8") {
                LinearQ8::packed(shape, true, &random(rows * k), &scales, offsets.as_deref())
            } else {
                LinearQ4::packed(shape, true, &random(rows * k / 2), &scales, offsets.as_deref())
            }
        }
        _ => {
            let shape = palette(kind, rows, k);
            LinearLut::packed(shape, &random(rows * k * shape.bits / 8), &floats[..shape.row_groups << shape.bits])
        }
    }
}

fn blocks(kind: &str, rows: usize, k: usize) -> (BlockShape, usize) {
    let block = if kind.contains("row") { k } else { 32 };
    let shape = BlockShape { rows, k, block, scale: ScaleType::F16, offsets: kind.contains("offsets") };
    (shape, rows * shape.blocks())
}

fn palette(kind: &str, rows: usize, k: usize) -> LutShape {
    let group = kind.split("group ").nth(1).map_or(rows, |n| n.parse().expect("a number of rows"));
    let row_groups = rows / group;
    LutShape { rows, k, bits: usize::from(kind.as_bytes()[3] - b'0'), row_groups, col_groups: 1 }
}

fn view<'a>(kind: &str, rows: usize, k: usize, bytes: &'a [u8]) -> Linear<'a> {
    match kind {
        "f32" => Linear::F32(LinearF32::new(rows, k, bytes)),
        "f16" => Linear::F16(LinearF16::new(rows, k, bytes)),
        _ if kind.starts_with("q8") => Linear::Q8(LinearQ8::new(blocks(kind, rows, k).0, true, bytes)),
        _ if kind.starts_with("q4") => Linear::Q4(LinearQ4::new(blocks(kind, rows, k).0, true, bytes)),
        _ => Linear::Lut(LinearLut::new(palette(kind, rows, k), bytes)),
    }
}

fn linear(isa: Isa, kind: &str, rows: usize, k: usize, set: usize) {
    let one = pack(kind, rows, k);
    let length = one.len().next_multiple_of(64);
    let copies = (set / length).max(1);
    let mut all = Buffer::zeroed(copies * length);
    for copy in all.chunks_exact_mut(length) {
        copy[..one.len()].copy_from_slice(&one);
    }
    let x = vec![0.01; 128 * k];
    let mut out = vec![0.0; 128 * rows];
    let w = view(kind, rows, k, &one);
    let print = |what: &str, decode: f64, prefill: f64| {
        println!(
            "{:<44} {:>7.1} GB/s decode {:>7.1} GOP/s {:>7.1} GOP/s prefill of 128",
            format!("{kind} {rows} x {k}{what}"),
            (copies * one.len()) as f64 / decode / 1e9,
            (copies * 2 * rows * k) as f64 / decode / 1e9,
            (2 * 128 * rows * k) as f64 / prefill / 1e9,
        );
    };
    let decode = best(|| {
        for bytes in all.chunks_exact(length) {
            view(kind, rows, k, &bytes[..one.len()]).matmul(isa, 0..rows, &x[..k], 1, &mut out[..rows]);
        }
    });
    let prefill = best(|| w.matmul(isa, 0..rows, &x, 128, &mut out));
    print("", decode, prefill);
    if !w.has_int8() {
        return;
    }
    let mut buffer = Buffer::zeroed(Activations::bytes(128, k));
    let decode = best(|| {
        for bytes in all.chunks_exact(length) {
            let x = Activations::quantize(isa, &x[..k], 1, k, &mut buffer[..Activations::bytes(1, k)]);
            view(kind, rows, k, &bytes[..one.len()]).matmul_int8(isa, 0..rows, x, &mut out[..rows]);
        }
    });
    let prefill = best(|| {
        let x = Activations::quantize(isa, &x, 128, k, &mut buffer);
        w.matmul_int8(isa, 0..rows, x, &mut out);
    });
    print(", int8 activations", decode, prefill);
    let Some(amx) = Tiles::fit(isa, 128) else { return };
    for n in [32, 64, 128, 512] {
        let x: Vec<f32> = x.iter().cycle().take(n * k).copied().collect();
        let (mut buffer, mut out) = (Buffer::zeroed(Tiles::bytes(n, k)), vec![0.0; n * rows]);
        let seconds = best(|| {
            let x = Tiles::quantize(amx, &x, n, k, &mut buffer);
            for first in (0..rows).step_by(32) {
                w.matmul_tiles_columns(
                    first..first + 32,
                    x,
                    Then::default(),
                    Columns::new(&mut out, rows).part(first..first + 32),
                );
            }
        });
        println!(
            "{:<68} {:>7.1} GOP/s prefill of {n}",
            format!("{kind} {rows} x {k}, tiles"),
            (2 * n * rows * k) as f64 / seconds / 1e9
        );
    }
}

/// Ways to attend.
#[derive(Clone, Copy)]
enum Way {
    Rows,
    Turned,
    Tiles(Amx),
}

fn attention(isa: Isa, width: usize, len: usize, set: usize, way: Way) {
    let (heads, dim) = (3, 64);
    let kv: Vec<u16> = random(len * dim).iter().map(|&v| 0x2c00 + u16::from(v)).collect();
    let layers = (set / (len * dim * 4)).max(1);
    let all: Vec<Vec<u16>> = (0..2 * layers).map(|_| kv.clone()).collect();
    let q = vec![0.1; heads * width * dim];
    let rows = heads * width;
    let mut scratch = vec![0.0; scratch_len(rows, dim).max(tiles::scratch_len(rows, dim))];
    let mut out = vec![0.0; heads * width * dim];
    let mut run = |pair: &[Vec<u16>]| {
        let group = Group {
            heads,
            width,
            dim,
            scale: 0.125,
            queries: Queries { data: &q, head_stride: width * dim, token_stride: dim },
            keys: match way {
                Way::Turned => Keys::Turned(&pair[0][..]),
                _ => Keys::Rows(Rows { data: &pair[0][..], stride: dim }),
            },
            values: Rows { data: &pair[1][..], stride: dim },
            len,
            mask: Mask::Causal { first: len - width },
        };
        match way {
            Way::Tiles(amx) => tiles::attend(amx, &group, &mut scratch, &mut out),
            _ => attend(isa, &group, &mut scratch, &mut out),
        }
    };
    let seconds = best(|| all.chunks_exact(2).take(if width == 1 { layers } else { 8 }).for_each(&mut run));
    let layers = if width == 1 { layers } else { layers.min(8) };
    let how = match way {
        Way::Rows => "",
        Way::Turned => ", turned keys",
        Way::Tiles(_) => ", tiles",
    };
    println!(
        "{:<44} {:>7.1} GB/s        {:>7.1} GOP/s",
        format!("attention {heads} x {width} over {len}{how}"),
        (layers * len * dim * 4) as f64 / seconds / 1e9,
        (layers * heads * width * len * dim * 4) as f64 / seconds / 1e9,
    );
}
