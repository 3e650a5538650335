//! Plans that are written and read again.

mod common;

use anemone_cpu::{Plan, PlanOptions};
use common::{Fixture, Planned, drive, folder};

fn names() -> Vec<String> {
    let all = std::fs::read_dir(folder()).unwrap().map(|e| e.unwrap());
    let packages = all.filter(|e| e.path().join("model.mlpackage").is_dir());
    let mut all: Vec<String> = packages.map(|e| e.file_name().into_string().unwrap()).collect();
    all.sort();
    all
}

#[test]
fn what_is_read_computes_the_same_bits() {
    for name in names() {
        let fixture = Fixture::open(&name);
        let varying = fixture.ints.contains_key("call_lengths").then_some(("causalMask", 16));
        let has_mask = fixture
            .model
            .program
            .functions
            .values()
            .all(|f| f.inputs.iter().any(|&id| f.value(id).name == "causalMask"));
        for varying in [None, varying.filter(|_| has_mask)].into_iter().take(if has_mask { 2 } else { 1 }) {
            let splits =
                if fixture.floats.contains_key("y") { vec![fixture.ints["tokens"].len()] } else { fixture.splits() };
            let bits = |planned: Planned<'_>| {
                let mut planned = planned;
                drive(&fixture, &mut planned, &splits).into_iter().map(f32::to_bits).collect::<Vec<_>>()
            };
            let planned = || Planned::new(&fixture.model, 2, varying);
            assert_eq!(bits(planned()), bits(planned().kept(&fixture.package)), "{name}, {varying:?}");
        }
    }
}

/// A function of a fixture, planned and written.
fn written(fixture: &Fixture, planned: &Planned<'_>) -> (Plan, Vec<u8>) {
    let inputs = common::inputs_of(
        &fixture.model.program.functions[fixture.model.default_name()],
        &fixture.ints["tokens"][..1],
        0,
    );
    let shapes = inputs.iter().map(|(n, t)| (n.clone(), t.ty.shape.to_vec())).collect();
    let options = PlanOptions { shapes, owner: [7; 32], ..PlanOptions::default() };
    let function = &fixture.model.program.functions[fixture.model.default_name()];
    let plan = Plan::new(function, &options, planned.cache()).unwrap();
    let bytes = plan.take_kept().expect("it was asked for");
    assert!(plan.take_kept().is_none(), "it is given once");
    (plan, bytes)
}

#[test]
fn damaged_bytes_are_refused_or_make_some_other_plan() {
    let fixture = Fixture::open("tiny_article_fp16");
    let planned = Planned::new(&fixture.model, 1, None).kept(&fixture.package);
    let (plan, bytes) = written(&fixture, &planned);
    let whole = Plan::from_kept(&bytes, planned.cache()).unwrap();
    // All but where a table of rows says that it was found.
    let steps =
        |plan: &Plan| plan.to_string().lines().filter(|l| !l.contains("Rows")).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(steps(&whole), steps(&plan));
    assert_eq!((whole.states(), whole.inputs(), whole.outputs()), (plan.states(), plan.inputs(), plan.outputs()));
    assert_eq!((whole.temporary_bytes(), whole.notes()), (plan.temporary_bytes(), plan.notes()));
    for cut in (0..bytes.len()).step_by(bytes.len() / 97).chain([bytes.len() - 1]) {
        assert!(Plan::from_kept(&bytes[..cut], planned.cache()).is_none(), "cut at {cut}");
    }
    assert!(Plan::from_kept(&[&bytes[..], &[0]].concat(), planned.cache()).is_none(), "too long");
    // Every bit of the whole matters to a digest that holders of plans have; here, nothing may break.
    for at in (0..bytes.len()).step_by(bytes.len() / 2003) {
        for change in [1, 0x80] {
            let mut other = bytes.clone();
            other[at] ^= change;
            let _plan = Plan::from_kept(&other, planned.cache());
        }
    }
}
