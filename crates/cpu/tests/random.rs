//! Random small programs: element by element, changes of shape, parts, joins, products and states, by both executors.

#[path = "common/program.rs"]
mod program;

use anemone_mil::{Const, DType, Function, Tensor, ValueId};
use program::{Both, Build, halves, named, noise};
use proptest::prelude::*;

/// A step of a program: what to do, and numbers to choose operands and sizes with.
type Step = (u8, u8, u8, u8);

const ROWS: usize = 4;
const COLUMNS: usize = 6;

/// A program of these steps over values of shape (4, 6) and what comes of them.
struct Maker {
    b: Build,
    values: Vec<ValueId>,
    states: [ValueId; 2],
    at: [ValueId; 2],
}

impl Maker {
    fn shape(&self, v: ValueId) -> Vec<usize> {
        self.b.0.ty(v).shape.to_vec()
    }

    fn pick(&self, n: u8) -> ValueId {
        // Rather one of the last.
        let back = (n as usize % 5).min(self.values.len() - 1);
        self.values[self.values.len() - 1 - back]
    }

    /// A value of shape (4, 6), the last one that there is before `n`.
    fn whole(&self, n: u8) -> ValueId {
        let all: Vec<ValueId> = self.values.iter().copied().filter(|&v| self.shape(v) == [ROWS, COLUMNS]).collect();
        all[all.len() - 1 - (n as usize % 3).min(all.len() - 1)]
    }

    fn step(&mut self, i: usize, (what, p, q, r): Step) {
        let name = format!("v{i}");
        let x = self.pick(p);
        let shape = self.shape(x);
        let state = self.states[usize::from(r) % 2];
        let new = match what % 14 {
            0 => self.b.add(&name, self.whole(p), self.whole(q)),
            1 => self.b.op("mul", &name, &[("x", self.whole(p).into()), ("y", self.whole(q).into())]),
            2 => self.b.op("tanh", &name, &[("x", x.into())]),
            3 => {
                let n = i32::try_from(shape.iter().product::<usize>()).unwrap();
                let to = [vec![n], vec![1, n], vec![2, n / 2], vec![-1, 2, 1]];
                self.b.reshape(&name, x, &to[usize::from(q) % if n % 2 == 0 { 4 } else { 2 }])
            }
            4 => {
                let mut perm: Vec<i32> = (0..i32::try_from(shape.len()).unwrap()).collect();
                perm.rotate_left(usize::from(q) % shape.len());
                self.b.transpose(&name, x, &perm)
            }
            5 => {
                let mut end: Vec<i32> = shape.iter().map(|&n| i32::try_from(n).unwrap()).collect();
                let mut begin = vec![0; end.len()];
                let axis = usize::from(q) % end.len();
                begin[axis] = i32::from(r) % end[axis];
                end[axis] = begin[axis] + 1 + i32::from(p) % (end[axis] - begin[axis]);
                self.b.slice(&name, x, &begin, &end)
            }
            6 => {
                let axis = (usize::from(q) % shape.len()) as i32;
                if shape.iter().product::<usize>() > 200 {
                    return;
                }
                let args = [("values", [x, x].into()), ("axis", axis.into()), ("interleave", false.into())];
                self.b.op("concat", &name, &args)
            }
            7 => {
                let k = *shape.last().unwrap();
                let w = Const::floats(DType::F16, &[COLUMNS, k], &noise(u64::from(q), COLUMNS * k));
                let w = self.b.0.constant("w", w);
                self.b.op("linear", &name, &[("x", x.into()), ("weight", w.into())])
            }
            8 => {
                let n = shape.iter().product::<usize>();
                if n != ROWS * COLUMNS {
                    return;
                }
                self.b.reshape(&name, x, &[4, 6])
            }
            9 => self.b.op("softmax", &name, &[("x", x.into()), ("axis", (-1).into())]),
            10 => self.b.read(&name, state),
            11 | 12 => {
                // One row of it goes where the input says.
                let target = if what % 14 == 11 { self.b.read(&format!("r{i}"), state) } else { self.whole(q) };
                let source = self.whole(p);
                let row = self.b.slice(&format!("row{i}"), source, &[1, 0], &[2, 6]);
                let [begin, end] = self.at;
                let args = [("x", target.into()), ("update", row.into()), ("begin", begin.into()), ("end", end.into())];
                let u = self.b.op("slice_update", &name, &args);
                if what % 14 == 11 {
                    self.b.write(state, u);
                    if q % 2 == 0 {
                        return;
                    }
                }
                u
            }
            _ => {
                let data = self.whole(p);
                self.b.write(state, data);
                return;
            }
        };
        self.values.push(new);
    }
}

fn program(steps: &[Step], outputs: &[u8]) -> Function {
    let mut b = Build::new();
    let (x, y) = (b.input("x", &[ROWS, COLUMNS]), b.input("y", &[ROWS, COLUMNS]));
    let at = [b.ints("begin", &[2]), b.ints("end", &[2])];
    let states = [b.state("s", &[ROWS, COLUMNS]), b.state("t", &[ROWS, COLUMNS])];
    let mut m = Maker { b, values: vec![x, y], states, at };
    steps.iter().enumerate().for_each(|(i, &step)| m.step(i, step));
    let mut results: Vec<ValueId> = outputs.iter().map(|&n| m.pick(n)).filter(|&v| v != x && v != y).collect();
    results.sort();
    results.dedup();
    m.b.finish(&results)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn plans_do_what_the_interpreter_does(
        steps in prop::collection::vec(any::<Step>(), 1..16),
        outputs in prop::collection::vec(any::<u8>(), 0..4),
    ) {
        let f = program(&steps, &outputs);
        let mut both = Both::new(&f).map_err(TestCaseError::fail)?;
        both.set_state("s", &halves(31, &[ROWS, COLUMNS]));
        for run in 0..3 {
            let row = [2, 0, 3][run];
            let inputs = named([
                ("x", halves(run as u64 + 1, &[ROWS, COLUMNS])),
                ("y", halves(run as u64 + 9, &[ROWS, COLUMNS])),
                ("begin", Tensor::ints(DType::I32, &[2], &[row, 0])),
                ("end", Tensor::ints(DType::I32, &[2], &[row + 1, 6])),
            ]);
            both.run(&inputs, 2e-4)
                .and_then(|r| r)
                .map_err(|e| TestCaseError::fail(format!("run {run}: {e}\n{}", both.plan())))?;
        }
    }
}
