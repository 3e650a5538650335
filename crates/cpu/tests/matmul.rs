//! Products of two tensors that are known at run time only, against the interpreter, over odd sizes.

mod common;
#[path = "common/program.rs"]
mod program;

use anemone_mil::{DType, Tensor};
use program::{Both, Build, named, noise};

/// Shapes of both, as they lie in memory, and whether they are turned.
type Case = (&'static [usize], &'static [usize], bool, bool);

#[test]
fn matrices_give_what_the_interpreter_gives() {
    let cases: [Case; 9] = [
        (&[33, 65], &[65, 47], false, false),
        (&[33, 65], &[47, 65], false, true),
        (&[65, 33], &[65, 47], true, false),
        (&[65, 33], &[47, 65], true, true),
        (&[2, 3, 40, 31], &[2, 3, 31, 17], false, false),
        // Broadcast: one matrix for many, and many for one.
        (&[3, 1, 40, 31], &[2, 31, 17], false, false),
        (&[5, 40, 32], &[33, 32], false, true),
        // Too small, and too few rows: as before.
        (&[4, 5, 6], &[4, 6, 7], false, false),
        (&[3, 200], &[200, 100], false, false),
    ];
    for (x_shape, y_shape, turned_x, turned_y) in cases {
        let what = format!("{x_shape:?} {y_shape:?} {turned_x} {turned_y}");
        let mut b = Build::new();
        let (x, y) = (b.input("x", x_shape), b.input("y", y_shape));
        let turned = [("transpose_x", turned_x.into()), ("transpose_y", turned_y.into())];
        let [tx, ty] = turned;
        let z = b.op("matmul", "z", &[("x", x.into()), ("y", y.into()), tx, ty]);
        let f = b.finish(&[z]);
        let mut both = Both::new(&f).unwrap();
        let large = x_shape.iter().product::<usize>() > 1000 && x_shape[0] != 3 || x_shape.len() == 4;
        assert_eq!(both.plan().to_string().contains("Both"), large, "{what}: {}", both.plan());
        let tensor = |seed, shape: &[usize]| Tensor::floats(DType::F16, shape, &noise(seed, shape.iter().product()));
        for seed in [1, 3] {
            let inputs = named([("x", tensor(seed, x_shape)), ("y", tensor(seed + 1, y_shape))]);
            both.run(&inputs, 1e-4).unwrap_or_else(|e| panic!("{what}: {e}")).unwrap();
        }
    }
}

#[test]
fn nan_and_infinity_stay_where_they_belong() {
    let mut b = Build::new();
    let (x, y) = (b.input("x", &[40, 32]), b.input("y", &[32, 40]));
    let z = b.op("matmul", "z", &[("x", x.into()), ("y", y.into())]);
    let f = b.finish(&[z]);
    let mut both = Both::new(&f).unwrap();
    let (mut xs, mut ys) = (noise(5, 40 * 32), noise(6, 32 * 40));
    xs[3 * 32 + 7] = f32::NAN;
    ys[9 * 40 + 11] = f32::INFINITY;
    let inputs =
        named([("x", Tensor::floats(DType::F16, &[40, 32], &xs)), ("y", Tensor::floats(DType::F16, &[32, 40], &ys))]);
    let found = both.run(&inputs, 1e-4).unwrap().unwrap();
    for (i, z) in found["z"].as_f32().unwrap().iter().enumerate() {
        assert_eq!(z.is_finite(), i / 40 != 3 && i % 40 != 11, "z[{}, {}] = {z}", i / 40, i % 40);
    }
}
