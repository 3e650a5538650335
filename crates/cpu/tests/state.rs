//! States in place: whatever the order of reads, updates and writes, a plan does what the interpreter does, and says where
//! it had to copy.

#[path = "common/program.rs"]
mod program;

use anemone_cpu::{Note, Plan, PlanOptions};
use anemone_mil::interpret::Tensors;
use anemone_mil::lower::PackCache;
use anemone_mil::{DType, Function, Tensor, ValueId};
use program::{Both, Build, halves, named};

const ROWS: usize = 4;
const SHAPE: [usize; 2] = [ROWS, 3];

/// A program over states `s` and `t` of [`SHAPE`], a row `x` and the position `at` where updates put it.
struct Hazard {
    b: Build,
    s: ValueId,
    t: ValueId,
    x: ValueId,
    at: ValueId,
    end: ValueId,
}

impl Hazard {
    fn new() -> Self {
        let mut b = Build::new();
        let x = b.input("x", &[1, 3]);
        let at = b.ints("at", &[2]);
        let end = b.ints("end", &[2]);
        let (s, t) = (b.state("s", &SHAPE), b.state("t", &SHAPE));
        Self { b, s, t, x, at, end }
    }

    /// `x` put into a copy of `target` at the position.
    fn update(&mut self, name: &str, target: ValueId, x: ValueId) -> ValueId {
        let args = [("x", target.into()), ("update", x.into()), ("begin", self.at.into()), ("end", self.end.into())];
        self.b.op("slice_update", name, &args)
    }

    /// Another row.
    fn double(&mut self) -> ValueId {
        self.b.add("double", self.x, self.x)
    }
}

/// Each hazard: its name, what the plan has to copy (the results or labels of the operations that force it), the program.
type Case = (&'static str, &'static [&'static str], fn(&mut Hazard) -> Vec<ValueId>);

const HAZARDS: &[Case] = &[
    ("in place", &[], |h| {
        let a = h.b.read("a", h.s);
        let u = h.update("u", a, h.x);
        h.b.write(h.s, u);
        vec![h.b.read("after", h.s)]
    }),
    ("in place, one row after another of one state", &[], |h| {
        let a = h.b.read("a", h.s);
        let u = h.update("u", a, h.x);
        h.b.write(h.s, u);
        let b = h.b.read("b", h.s);
        let args = [("x", b.into()), ("update", h.x.into()), ("begin", [0, 0].into()), ("end", [1, 3].into())];
        let v = h.b.op("slice_update", "v", &args);
        h.b.write(h.s, v);
        vec![h.b.read("after", h.s)]
    }),
    ("two updates, chained", &[], |h| {
        let a = h.b.read("a", h.s);
        let u = h.update("u", a, h.x);
        let args = [("x", u.into()), ("update", h.x.into()), ("begin", [2, 0].into()), ("end", [3, 3].into())];
        let v = h.b.op("slice_update", "v", &args);
        h.b.write(h.s, v);
        vec![h.b.read("after", h.s)]
    }),
    ("the content written back", &[], |h| {
        let a = h.b.read("a", h.s);
        h.b.write(h.s, a);
        vec![h.b.read("after", h.s)]
    }),
    ("what was read before a write is wanted after it", &["u"], |h| {
        let a = h.b.read("a", h.s);
        let u = h.update("u", a, h.x);
        h.b.write(h.s, u);
        let after = h.b.read("after", h.s);
        vec![a, after]
    }),
    ("what was read before a write is computed with after it", &["u"], |h| {
        let a = h.b.read("a", h.s);
        let u = h.update("u", a, h.x);
        h.b.write(h.s, u);
        let sum = h.b.add("sum", a, h.x);
        let after = h.b.read("after", h.s);
        vec![sum, after]
    }),
    ("an update that is also an output", &["u", "write"], |h| {
        let a = h.b.read("a", h.s);
        let u = h.update("u", a, h.x);
        h.b.write(h.s, u);
        vec![u]
    }),
    ("an update of which a part is wanted", &["u", "write"], |h| {
        let a = h.b.read("a", h.s);
        let u = h.update("u", a, h.x);
        let part = h.b.slice("part", u, &[1, 0], &[3, 2]);
        h.b.write(h.s, u);
        vec![part]
    }),
    ("a chain whose middle is wanted", &["u", "write"], |h| {
        let a = h.b.read("a", h.s);
        let u = h.update("u", a, h.x);
        let d = h.double();
        let v = h.update("v", u, d);
        h.b.write(h.s, v);
        let part = h.b.slice("part", u, &[0, 0], &[4, 1]);
        vec![part]
    }),
    ("a read between update and write sees the old content", &["u", "write", "write"], |h| {
        let a = h.b.read("a", h.s);
        let u = h.update("u", a, h.x);
        let between = h.b.read("between", h.s);
        h.b.write(h.s, u);
        let after = h.b.read("after", h.s);
        vec![between, after]
    }),
    ("an unrelated value is written", &["write"], |h| {
        let y = h.b.op(
            "concat",
            "y",
            &[("values", [h.x, h.x, h.x, h.x].into()), ("axis", 0.into()), ("interleave", false.into())],
        );
        h.b.write(h.s, y);
        vec![h.b.read("after", h.s)]
    }),
    ("an update of what is no longer there", &["u", "write"], |h| {
        let a = h.b.read("a", h.s);
        let u = h.update("u", a, h.x);
        h.b.write(h.s, u);
        let d = h.double();
        let v = h.update("v", a, d);
        h.b.write(h.s, v);
        vec![h.b.read("after", h.s)]
    }),
    ("an update written twice", &["u", "write", "write"], |h| {
        let a = h.b.read("a", h.s);
        let u = h.update("u", a, h.x);
        h.b.write(h.s, u);
        h.b.write(h.s, u);
        vec![h.b.read("after", h.s)]
    }),
    ("an update written to another state", &["u", "write"], |h| {
        let a = h.b.read("a", h.s);
        let u = h.update("u", a, h.x);
        h.b.write(h.t, u);
        let after = h.b.read("after", h.t);
        let same = h.b.read("same", h.s);
        vec![after, same]
    }),
    ("two states change places", &["write", "write", "write"], |h| {
        let (a, b) = (h.b.read("a", h.s), h.b.read("b", h.t));
        let u = h.update("u", b, h.x);
        h.b.write(h.t, u);
        let b = h.b.read("c", h.t);
        h.b.write(h.s, b);
        h.b.write(h.t, a);
        vec![]
    }),
    ("two states, each in place", &[], |h| {
        let (a, b) = (h.b.read("a", h.s), h.b.read("b", h.t));
        let u = h.update("u", a, h.x);
        let d = h.double();
        let v = h.update("v", b, d);
        h.b.write(h.t, v);
        h.b.write(h.s, u);
        let (a, b) = (h.b.read("after", h.s), h.b.read("other", h.t));
        vec![a, b]
    }),
    ("rows move up within a state", &["u"], |h| {
        let a = h.b.read("a", h.s);
        let rest = h.b.slice("rest", a, &[1, 0], &[4, 3]);
        let args = [("x", a.into()), ("update", rest.into()), ("begin", [0, 0].into()), ("end", [3, 3].into())];
        let u = h.b.op("slice_update", "u", &args);
        let v = h.update("v", u, h.x);
        h.b.write(h.s, v);
        vec![h.b.read("after", h.s)]
    }),
    ("a state put into itself", &["u"], |h| {
        let a = h.b.read("a", h.s);
        let args = [("x", a.into()), ("update", a.into()), ("begin", [0, 0].into()), ("end", [4, 3].into())];
        let u = h.b.op("slice_update", "u", &args);
        let v = h.update("v", u, h.x);
        h.b.write(h.s, v);
        vec![h.b.read("after", h.s)]
    }),
    ("an update by another shape", &[], |h| {
        let a = h.b.read("a", h.s);
        let flat = h.b.reshape("flat", a, &[12]);
        let x = h.b.reshape("x_flat", h.x, &[3]);
        let args = [("x", flat.into()), ("update", x.into()), ("begin", [5].into()), ("end", [8].into())];
        let u = h.b.op("slice_update", "u", &args);
        let back = h.b.reshape("back", u, &[4, 3]);
        h.b.write(h.s, back);
        vec![h.b.read("after", h.s)]
    }),
    ("in single floats, as packages of those do", &[], |h| {
        let a = h.b.read("a", h.s);
        let to = |h: &mut Hazard, name: &str, x: ValueId, dtype: &str| {
            h.b.op("cast", name, &[("x", x.into()), ("dtype", dtype.into())])
        };
        let (wide, x) = (to(h, "wide", a, "fp32"), to(h, "x_wide", h.x, "fp32"));
        let u = h.update("u", wide, x);
        let u = to(h, "narrow", u, "fp16");
        h.b.write(h.s, u);
        vec![h.b.read("after", h.s)]
    }),
    ("an update that is turned before it goes back", &["u", "write"], |h| {
        let a = h.b.read("a", h.s);
        let u = h.update("u", a, h.x);
        let turned = h.b.transpose("turned", u, &[1, 0]);
        let back = h.b.reshape("back", turned, &[4, 3]);
        h.b.write(h.s, back);
        vec![h.b.read("after", h.s)]
    }),
    ("an update backwards", &["u", "write"], |h| {
        let a = h.b.read("a", h.s);
        let args = [
            ("x", a.into()),
            ("update", h.x.into()),
            ("begin", h.at.into()),
            ("end", h.end.into()),
            ("stride", [1, -1].into()),
            ("begin_mask", [false, true].into()),
            ("end_mask", [false, true].into()),
        ];
        let u = h.b.0.ops_typed("slice_update", "u", &args, &[anemone_mil::TensorType::fixed(DType::F16, &SHAPE)]);
        h.b.write(h.s, u.unwrap()[0]);
        vec![h.b.read("after", h.s)]
    }),
    ("a slice kept across a write", &["u"], |h| {
        let a = h.b.read("a", h.s);
        let part = h.b.slice("part", a, &[0, 1], &[4, 3]);
        let u = h.update("u", a, h.x);
        h.b.write(h.s, u);
        let sum = h.b.add("sum", part, part);
        vec![sum]
    }),
    ("a transposed view kept across a write", &["u"], |h| {
        let a = h.b.read("a", h.s);
        let turned = h.b.transpose("turned", a, &[1, 0]);
        let u = h.update("u", a, h.x);
        h.b.write(h.s, u);
        let part = h.b.slice("part", turned, &[1, 0], &[2, 4]);
        vec![part]
    }),
    ("a reshaped view kept across a write", &["u"], |h| {
        let a = h.b.read("a", h.s);
        let flat = h.b.reshape("flat", a, &[2, 6]);
        let u = h.update("u", a, h.x);
        h.b.write(h.s, u);
        let after = h.b.read("after", h.s);
        vec![flat, after]
    }),
    ("a view taken of old content after the write", &["u"], |h| {
        let a = h.b.read("a", h.s);
        let u = h.update("u", a, h.x);
        h.b.write(h.s, u);
        let part = h.b.slice("part", a, &[1, 0], &[2, 3]);
        vec![part]
    }),
    ("a write between two views of one read", &["sum", "u"], |h| {
        let a = h.b.read("a", h.s);
        let before = h.b.slice("before", a, &[0, 0], &[1, 3]);
        let sum = h.b.add("sum", before, h.x);
        let u = h.update("u", a, sum);
        h.b.write(h.s, u);
        let later = h.b.slice("later", a, &[0, 0], &[4, 1]);
        vec![later]
    }),
];

fn build(program: fn(&mut Hazard) -> Vec<ValueId>) -> Function {
    let mut h = Hazard::new();
    let outputs = program(&mut h);
    h.b.finish(&outputs)
}

fn inputs(run: usize) -> Tensors {
    let row = [1, 3, 0, 1][run % 4];
    named([
        ("x", halves(run as u64 + 1, &[1, 3])),
        ("at", Tensor::ints(DType::I32, &[2], &[row, 0])),
        ("end", Tensor::ints(DType::I32, &[2], &[row + 1, 3])),
    ])
}

/// The results or labels of the operations that make a plan copy a state.
fn copies(plan: &Plan) -> Vec<String> {
    let place = |note: &Note| match note {
        Note::StateCopied { place, .. } => place.rsplit('`').nth(1).map(str::to_owned),
        Note::Expanded { .. } => None,
    };
    let mut all: Vec<String> = plan.notes().iter().filter_map(place).collect();
    all.sort();
    all
}

#[test]
fn every_hazard_gives_what_the_interpreter_gives() {
    let mut wrong = Vec::new();
    for (name, _, program) in HAZARDS {
        let f = build(*program);
        let mut both = match Both::new(&f) {
            Ok(both) => both,
            Err(e) => {
                wrong.push(format!("{name}: {e}"));
                continue;
            }
        };
        both.set_state("s", &halves(77, &SHAPE));
        both.set_state("t", &halves(78, &SHAPE));
        for run in 0..4 {
            match both.run(&inputs(run), 0.0) {
                Ok(Ok(_)) => {}
                Ok(Err(e)) | Err(e) => wrong.push(format!("{name}, run {run}: {e}\n{}", both.plan())),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn copies_of_states_are_named_where_they_are_forced_and_nowhere_else() {
    let mut wrong = Vec::new();
    for (name, expected, program) in HAZARDS {
        let plan = Plan::new(&build(*program), &PlanOptions::default(), &PackCache::default()).unwrap();
        let found = copies(&plan);
        if found != *expected {
            wrong.push(format!("{name}: copies at {found:?}, expected {expected:?}\n{plan}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_position_out_of_range_is_refused_by_name_before_anything_is_written() {
    let f = build(HAZARDS[0].2);
    let mut both = Both::new(&f).unwrap();
    both.run(&inputs(0), 0.0).unwrap().unwrap();
    for (row, end) in [(4, 5), (2, 4), (2, 2), (i32::MAX, i32::MIN)] {
        let mut past = inputs(0);
        past.insert("at".to_owned(), Tensor::ints(DType::I32, &[2], &[row, 0]));
        past.insert("end".to_owned(), Tensor::ints(DType::I32, &[2], &[end, 3]));
        // Both refuse; the next run compares the states.
        let e = both.run(&past, 0.0).unwrap().unwrap_err();
        assert!(e.contains("`slice_update` giving `u`") && e.contains("`update`"), "{e}");
        let plan = both.failure(&past);
        assert!(plan.contains("`slice_update` giving `u`") && plan.contains("`update`"), "{plan}");
    }
    both.run(&inputs(1), 0.0).unwrap().unwrap();
}
