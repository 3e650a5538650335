//! Views and updates in place agree with the plain meaning: for every operation and each of its cases.

use anemone_mil::case::{Case, CaseArg};
use anemone_mil::layout::Layout;
use anemone_mil::operands::{Bound, Operand};
use anemone_mil::{Buffer, Op, Operands, Tensor, ops};

fn bind<'a>(op: &dyn Op, case: &'a Case) -> Bound<'a> {
    let mut bound = Bound::new(op);
    for (param, args) in &case.inputs {
        for arg in args {
            let arg = match arg {
                CaseArg::Const(c) => Operand::from_const(c).expect("a constant of numbers or text"),
                CaseArg::Tensor(t) => Operand::Known(t),
            };
            bound.bind(op, param, [arg]).expect("a parameter of the operation");
        }
    }
    bound
}

/// The elements as floats, whatever their class.
fn numbers(t: &Buffer) -> Vec<f32> {
    match t {
        Buffer::F32(v) => v.clone(),
        Buffer::I32(v) => v.iter().map(|&v| v as f32).collect(),
        Buffer::Bool(v) => v.iter().map(|&v| f32::from(u8::from(v))).collect(),
    }
}

fn operand(case: &Case, param: &str) -> Option<Tensor> {
    let (_, args) = case.inputs.iter().find(|(p, _)| *p == param)?;
    match &args[0] {
        CaseArg::Tensor(t) => Some(t.clone()),
        CaseArg::Const(c) => c.tensor()?.to_tensor().ok(),
    }
}

/// `values` laid out as `shape` in two ways: row-major behind some other elements, and with its axes turned round.
fn storages(shape: &[usize], values: &[f32]) -> [(Layout, Vec<f32>); 2] {
    let mut plain = Layout::contiguous(shape);
    plain.offset = 3;
    let backwards: Vec<usize> = (0..shape.len()).rev().collect();
    let turned_shape: Vec<usize> = shape.iter().rev().copied().collect();
    let turned = Layout::contiguous(&turned_shape).permuted(&backwards);
    [plain, turned].map(|layout| {
        let mut storage = vec![f32::NAN; values.len() + layout.offset];
        layout.for_each(|i, at| storage[at] = values[i]);
        (layout, storage)
    })
}

#[test]
fn views_show_what_evaluation_computes() {
    let mut seen = std::collections::BTreeSet::new();
    for op in ops::ALL {
        for case in op.cases() {
            let Some(x) = operand(&case, op.params()[0].name) else { continue };
            let bound = bind(*op, &case);
            for (layout, storage) in storages(&x.ty.shape, &numbers(&x.data)) {
                let Some(view) = op.view(&bound, &layout) else { continue };
                let place = format!("{}: {}", op.name(), case.name);
                assert_eq!(view.shape, case.expect[0].ty.shape, "{place}");
                let mut found = vec![f32::NAN; view.shape.iter().product()];
                view.for_each(|i, at| found[i] = storage[at]);
                assert_eq!(found, numbers(&case.expect[0].data), "{place}: {view:?}");
                seen.insert(op.name());
            }
        }
    }
    for name in ["expand_dims", "identity", "reshape", "slice_by_index", "squeeze", "tile", "transpose"] {
        assert!(seen.contains(name), "{name} is never a view");
    }
}

#[test]
fn regions_take_what_evaluation_overwrites() {
    let mut updates = 0;
    for op in ops::ALL {
        let Some(update) = op.update() else { continue };
        for case in op.cases() {
            let bound = bind(*op, &case);
            let target = operand(&case, op.params()[update.target].name).expect("a target");
            let source = operand(&case, op.params()[update.source].name).expect("a source");
            let mut content = numbers(&target.data);
            let Ok(region) = op.region(&bound, &Layout::contiguous(bound.ty_at(update.target, 0).1)) else { continue };
            region.for_each(|i, at| content[at] = numbers(&source.data)[i]);
            assert_eq!(content, numbers(&case.expect[0].data), "{}: {}", op.name(), case.name);
            updates += 1;
        }
    }
    assert!(updates > 3, "only {updates} updates in place");
}
