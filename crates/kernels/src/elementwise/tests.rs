use super::*;

/// Hostile values, small and large magnitudes, and a dense sweep over where the functions bend.
fn inputs() -> Vec<f32> {
    let mut x = vec![0.0, -0.0, f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, f32::MIN, 1e-42, -1e-42, 1e-20];
    x.extend((-12_000..12_000).map(|i| i as f32 * 0.0101));
    x.extend((0..4000).map(|i| 1e-6 * 1.004_f32.powi(i)));
    x.extend((0..4000).map(|i| -1e-6 * 1.004_f32.powi(i)));
    x
}

/// erf in f64: the Taylor series below 3, the continued fraction of erfc above.
fn erf(x: f64) -> f64 {
    let a = x.abs();
    let value = if a < 3.0 {
        let (mut term, mut sum, mut n) = (a, a, 0.0);
        while term.abs() > 1e-18 * sum.abs() {
            n += 1.0;
            term *= -a * a / n;
            sum += term / (2.0 * n + 1.0);
        }
        sum * 2.0 / std::f64::consts::PI.sqrt()
    } else {
        let mut tail = a;
        for i in (1..60).rev() {
            tail = a + f64::from(i) / 2.0 / tail;
        }
        1.0 - (-a * a).exp() / (tail * std::f64::consts::PI.sqrt())
    };
    value.copysign(x)
}

fn definition(op: Unary, x: f64) -> f64 {
    match op {
        Unary::Exp => x.exp(),
        Unary::Sigmoid => 1.0 / (1.0 + (-x).exp()),
        Unary::Silu => x / (1.0 + (-x).exp()),
        Unary::Tanh => x.tanh(),
        Unary::Erf => erf(x),
        Unary::Gelu => x / 2.0 * (1.0 + erf(x / 2_f64.sqrt())),
        Unary::GeluTanh => x / 2.0 * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x * x * x)).tanh()),
        Unary::GeluSigmoid => x / (1.0 + (-1.702 * x).exp()),
        Unary::Relu => {
            if x < 0.0 {
                0.0
            } else {
                x
            }
        }
        Unary::Sqrt => x.sqrt(),
        Unary::Square => x * x,
        Unary::Abs => x.abs(),
        Unary::Neg => -x,
        Unary::Reciprocal => 1.0 / x,
    }
}

/// The distance in units of the last place of the right answer.
fn ulps(got: f32, want: f64) -> f64 {
    let near = want as f32;
    if got == near || (got.is_nan() && want.is_nan()) {
        return 0.0;
    }
    let ulp = f64::from(near.abs().next_up()) - f64::from(near.abs());
    ((f64::from(got) - want) / ulp).abs()
}

#[test]
fn functions_are_as_exact_as_documented() {
    use Unary::*;
    let x = inputs();
    for (op, bound) in [
        (Exp, 1.0),
        (Sigmoid, 3.0),
        (Silu, 4.0),
        (Tanh, 3.0),
        (Erf, 2.0),
        (Relu, 0.5),
        (Sqrt, 0.5),
        (Square, 0.5),
        (Abs, 0.5),
        (Neg, 0.5),
        (Reciprocal, 0.5),
        (Gelu, f64::NAN),
        (GeluTanh, f64::NAN),
        (GeluSigmoid, f64::NAN),
    ] {
        for isa in Isa::available() {
            let mut out = vec![0.0; x.len()];
            unary(isa, op, &x, &mut out);
            for (&x, &got) in x.iter().zip(&out) {
                let want = definition(op, f64::from(x));
                if x.is_infinite() && want.is_nan() {
                    continue;
                }
                let close = match op {
                    Gelu => (f64::from(got) - want).abs() <= f64::from(x.abs()) * 2_f64.powi(-22),
                    GeluTanh => (f64::from(got) - want).abs() <= f64::from(x.abs()) * 2_f64.powi(-21),
                    // The rounding of 1.702 x alone shifts the exponential by its own ulps.
                    GeluSigmoid => (f64::from(got) - want).abs() <= f64::from(x.abs()) * 2_f64.powi(-21),
                    // sigmoid is rounded among the denormals before x multiplies it.
                    Silu => ulps(got, want) <= bound || want.abs() < 1e-35,
                    _ => ulps(got, want) <= bound,
                };
                assert!(
                    close || got.is_nan() && want.is_nan() || f64::from(got) == want,
                    "{op:?} {}: f({x:e}) = {got:e}, not {want:e}, {} ulp off",
                    isa.name(),
                    ulps(got, want)
                );
            }
        }
    }
}

#[test]
fn bits_are_the_same_everywhere_and_sentinels_stay() {
    use Binary::*;
    let all = inputs();
    for length in [0, 1, 15, 16, 17, 31, 33, 1000] {
        let (a, b) = (&all[..length], &all[500..500 + length]);
        for op in [Add, Sub, Mul, Div, Max, Min, SiluMul, GeluMul, GeluTanhMul] {
            let mut want = a.to_vec();
            binary_in_place(Isa::Scalar, op, &mut want, b);
            for isa in Isa::available() {
                let mut out = vec![123.0; length + 2];
                binary(isa, op, a, b, &mut out[1..=length]);
                assert_eq!((out[0], out[length + 1]), (123.0, 123.0));
                for (got, want) in out[1..=length].iter().zip(&want) {
                    let same = got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan();
                    assert!(same, "{op:?} {}: {got} {want}", isa.name());
                }
            }
        }
    }
    let mut want = all.clone();
    for op in [Unary::Exp, Unary::Tanh, Unary::Erf, Unary::Sigmoid, Unary::GeluTanh] {
        unary(Isa::Scalar, op, &all, &mut want);
        for isa in Isa::available() {
            let mut out = all.clone();
            unary_in_place(isa, op, &mut out);
            let same = |(a, b): (&f32, &f32)| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
            assert!(out.iter().zip(&want).all(same), "{op:?} {}", isa.name());
        }
    }
}

#[test]
fn affine_rounds_once() {
    for isa in Isa::available() {
        let mut x: Vec<f32> = (0..37).map(|i| i as f32 * 0.37).collect();
        let want: Vec<f32> = x.iter().map(|x| x.mul_add(1.7, -3.3)).collect();
        affine_in_place(isa, &mut x, 1.7, -3.3);
        assert_eq!(x, want);
    }
}
