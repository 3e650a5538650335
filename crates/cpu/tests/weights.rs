//! Weights of every make, held packed by kernels: products and gathered rows are those of the interpreter, which unpacks
//! them first.

#[path = "common/program.rs"]
mod program;

use anemone_cpu::Note;
use anemone_mil::build::Arg;
use anemone_mil::{Const, DType, Function, Tensor, ValueId};
use program::{Both, Build, halves, named, noise};

/// Adds a weight of (rows, columns) to a function.
type Add = Box<dyn Fn(&mut Build, usize, usize) -> ValueId>;

/// A make of weights: its name, and the operation that gives it for (rows, columns).
struct Make {
    name: String,
    add: Add,
}

fn make(name: String, add: impl Fn(&mut Build, usize, usize) -> ValueId + 'static) -> Make {
    Make { name, add: Box::new(add) }
}

/// Integers of all values of a type, in an order that looks random.
fn integers(dtype: DType, shape: &[usize]) -> Const {
    let bits = dtype.bits() as u32;
    let signed = matches!(dtype, DType::I4 | DType::I8);
    let low = if signed { -(1i64 << (bits - 1)) } else { 0 };
    let spread = |(i, v): (usize, f32)| low + ((v.abs() * 4096.0) as i64 + i as i64) % (1 << bits);
    Const::ints(dtype, shape, &noise(9, shape.iter().product()).into_iter().enumerate().map(spread).collect::<Vec<_>>())
}

/// Positive half floats around 1/64.
fn scales(dtype: DType, shape: &[usize]) -> Const {
    let v: Vec<f32> = noise(4, shape.iter().product()).iter().map(|v| (v + 1.5) / 64.0).collect();
    Const::floats(dtype, shape, &v)
}

fn plain(dtype: DType) -> Make {
    make(format!("{dtype}"), move |b, n, k| b.0.constant("w", Const::floats(dtype, &[n, k], &noise(7, n * k))))
}

/// Blocks of `rows` × `columns` elements; 0 is the whole axis.
fn scaled(data: DType, scale: DType, offsets: Option<DType>, (rows, columns): (usize, usize)) -> Make {
    let name = format!("{data} by {scale}, offsets {offsets:?}, blocks of {rows} rows, {columns} columns");
    make(name, move |b, n, k| {
        let parts = |extent: usize, size: usize| if size == 0 { 1 } else { extent.div_ceil(size) };
        let blocks = [parts(n, rows), parts(k, columns)];
        let mut args: Vec<(&str, Arg)> =
            vec![("data", integers(data, &[n, k]).into()), ("scale", scales(scale, &blocks).into())];
        match offsets {
            Some(t) if t.is_float() => {
                args.push(("offset", Const::floats(t, &blocks, &noise(2, blocks[0] * blocks[1])).into()))
            }
            Some(t) => args.push(("offset", integers(t, &blocks).into())),
            None => {}
        }
        b.op("constexpr_blockwise_shift_scale", "w", &args)
    })
}

/// Palettes for `groups` along each axis.
fn palette(bits: usize, entries: DType, groups: [usize; 2]) -> Make {
    make(format!("palette of {bits} bits, {entries}, {groups:?} groups"), move |b, n, k| {
        let indices = DType::from_name(&format!("uint{bits}")).unwrap();
        let lut = [groups[0], groups[1], 1 << bits, 1];
        let table = noise(3, lut.iter().product());
        let args =
            [("indices", integers(indices, &[n, k]).into()), ("lut", Const::floats(entries, &lut, &table).into())];
        b.op("constexpr_lut_to_dense", "w", &args)
    })
}

/// The compressions of iOS 16.
fn affine(data: DType, axis: Option<i32>) -> Make {
    make(format!("iOS 16, {data} along {axis:?}"), move |b, n, k| {
        let shape = axis.map_or(vec![], |a| vec![[n, k][a as usize]]);
        let args = [
            ("quantized_data", integers(data, &[n, k]).into()),
            ("zero_point", integers(data, &shape).into()),
            ("scale", scales(DType::F16, &shape).into()),
            ("axis", axis.unwrap_or(0).into()),
        ];
        b.op("constexpr_affine_dequantize", "w", &args)
    })
}

fn palette16(bits: usize) -> Make {
    make(format!("iOS 16, palette of {bits} bits"), move |b, n, k| {
        let bytes = integers(DType::U8, &[(n * k * bits).div_ceil(8)]);
        let shape = Const::ints(DType::U32, &[2], &[n as i64, k as i64]);
        let args = [
            ("indices", bytes.into()),
            ("lut", Const::floats(DType::F16, &[1 << bits], &noise(3, 1 << bits)).into()),
            ("shape", shape.into()),
        ];
        b.op("constexpr_lut_to_dense", "w", &args)
    })
}

/// Makes for matrices of any size.
fn makes() -> Vec<Make> {
    let mut all = vec![plain(DType::F16), plain(DType::F32)];
    for data in [DType::I8, DType::U8, DType::I4, DType::U4] {
        for scale in [DType::F16, DType::F32] {
            for blocks in [(0, 0), (1, 0)] {
                all.push(scaled(data, scale, None, blocks));
                all.push(scaled(data, scale, Some(data), blocks));
            }
        }
        all.push(scaled(data, DType::F16, Some(DType::F16), (1, 0)));
        all.push(scaled(data, DType::F32, Some(DType::F32), (1, 0)));
    }
    for bits in [1, 2, 3, 4, 6, 8] {
        all.push(palette(bits, DType::F16, [1, 1]));
        all.push(palette(bits, DType::F32, [1, 1]));
    }
    for data in [DType::I8, DType::U8] {
        all.extend([None, Some(0), Some(1)].map(|axis| affine(data, axis)));
    }
    all.extend([1, 2, 4, 6, 8].map(palette16));
    all
}

/// Makes for 24 rows of 96 columns: blocks and groups of many sizes.
fn blocked() -> Vec<Make> {
    let mut all = Vec::new();
    for data in [DType::I8, DType::U8, DType::I4, DType::U4] {
        for blocks in [(1, 32), (1, 16), (1, 48), (1, 8), (4, 32), (24, 32), (3, 0), (1, 1)] {
            // Each scale with offsets once, and without.
            let scale =
                if matches!(data, DType::I8 | DType::U4) { [DType::F16, DType::F32] } else { [DType::F32, DType::F16] };
            all.push(scaled(data, scale[0], None, blocks));
            all.push(scaled(data, scale[1], Some(data), blocks));
        }
    }
    for bits in [1, 2, 3, 4, 6, 8] {
        for groups in [[4, 1], [24, 1], [1, 3], [2, 3], [1, 12]] {
            all.push(palette(bits, DType::F16, groups));
        }
    }
    all
}

/// `x` (tokens, k) by the weight (n, k), with a bias.
fn product(make: &Make, n: usize, k: usize, tokens: usize) -> Function {
    let mut b = Build::new();
    let x = b.input("x", &[1, tokens, k]);
    let w = (make.add)(&mut b, n, k);
    let bias = Const::floats(DType::F16, &[n], &noise(12, n));
    let dtype = b.0.ty(w).dtype;
    let bias = if dtype == DType::F16 { bias } else { Const::floats(dtype, &[n], &noise(12, n)) };
    let y = b.op("linear", "y", &[("x", x.into()), ("weight", w.into()), ("bias", bias.into())]);
    b.finish(&[y])
}

fn rows(make: &Make, n: usize, k: usize, tokens: usize) -> Function {
    let mut b = Build::new();
    let ids = b.ints("ids", &[1, tokens]);
    let w = (make.add)(&mut b, n, k);
    let y = b.op("gather", "y", &[("x", w.into()), ("indices", ids.into()), ("axis", 0.into())]);
    b.finish(&[y])
}

fn check(make: &Make, n: usize, k: usize) -> Result<(), String> {
    for tokens in [1, 3, 17] {
        let at = |what: &str, e: String| format!("{} ({n}, {k}), {what} of {tokens}: {e}", make.name);
        let f = product(make, n, k, tokens);
        let mut both = Both::new(&f).map_err(|e| at("product", e))?;
        let inputs = named([("x", halves(20 + tokens as u64, &[1, tokens, k]))]);
        both.run(&inputs, 2e-5 * (k as f32).sqrt()).and_then(|r| r).map_err(|e| at("product", e))?;

        let f = rows(make, n, k, tokens);
        let mut both = Both::new(&f).map_err(|e| at("rows", e))?;
        // The first, the last, and others, also from the end.
        let ids: Vec<i32> = (0..tokens).map(|i| [n as i32 - 1, 0, -(n as i32), (i * 7 % n) as i32][i % 4]).collect();
        let inputs = named([("ids", Tensor::ints(DType::I32, &[1, tokens], &ids))]);
        both.run(&inputs, 0.0).and_then(|r| r).map_err(|e| at("rows", e))?;
        if n * k > 4096 && both.plan().notes().iter().any(|n| matches!(n, Note::Expanded { .. })) {
            return Err(at("rows", "the weight is kept unpacked".to_owned()));
        }
    }
    Ok(())
}

fn report(results: impl IntoIterator<Item = Result<(), String>>) {
    let wrong: Vec<String> = results
        .into_iter()
        .filter_map(Result::err)
        .map(|e| e.lines().map(|l| l.chars().take(200).collect::<String>()).collect::<Vec<_>>().join("\n"))
        .collect();
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn products_and_rows_of_every_make_are_those_of_the_interpreter() {
    let makes = makes();
    report([(21, 45), (1, 7)].iter().flat_map(|&(n, k)| makes.iter().map(move |m| check(m, n, k))));
}

#[test]
fn blocks_and_groups_of_many_sizes() {
    report(blocked().iter().map(|m| check(m, 24, 96)));
}

#[test]
fn weights_too_large_to_be_known_at_planning() {
    let some = [
        plain(DType::F16),
        plain(DType::F32),
        scaled(DType::I8, DType::F16, None, (1, 0)),
        scaled(DType::U4, DType::F16, Some(DType::U4), (1, 32)),
        palette(4, DType::F16, [1, 1]),
        palette(6, DType::F16, [1, 1]),
    ];
    report(some.iter().map(|m| check(m, 130, 64)));
}

#[test]
fn one_array_of_integers_in_several_weights() {
    // Deduplicated packages store equal bytes once: what else belongs to a weight must not be shared with them.
    let data = integers(DType::I8, &[16, 32]);
    let mut b = Build::new();
    let x = b.input("x", &[1, 32]);
    let mut outputs = Vec::new();
    for (i, scale) in [0.5f32, 2.0].into_iter().enumerate() {
        let scale = Const::floats(DType::F16, &[1, 1], &[scale]);
        let w = b.op(
            "constexpr_blockwise_shift_scale",
            &format!("w{i}"),
            &[("data", data.clone().into()), ("scale", scale.into())],
        );
        outputs.push(b.op("linear", &format!("y{i}"), &[("x", x.into()), ("weight", w.into())]));
    }
    // And the same numbers in another shape.
    let halves_of = Const::floats(DType::F16, &[16, 32], &noise(5, 512));
    let turned = match &halves_of {
        Const::Tensor(t) => {
            let ty = anemone_mil::StaticType::new(DType::F16, &[32, 16]);
            Const::Tensor(anemone_mil::TensorConst::new(ty, t.bytes.clone()).unwrap())
        }
        _ => unreachable!("a tensor"),
    };
    let y = b.op("linear", "tall", &[("x", x.into()), ("weight", halves_of.into())]);
    outputs.push(y);
    outputs.push(b.op("linear", "wide", &[("x", y.into()), ("weight", turned.into())]));
    let f = b.finish(&outputs);
    let mut both = Both::new(&f).unwrap();
    both.run(&named([("x", halves(2, &[1, 32]))]), 1e-3).unwrap().unwrap();
}
