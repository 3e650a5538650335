//! `norm-overflow`: norms that half floats survive.

use anemone_mil::ValueId;
use anemone_mil::types::DType;

use super::look::{Look, Subject};
use super::{Found, Grades, Rule, Severity};

pub(super) static RULE: Rule = Rule {
    id: "norm-overflow",
    asks: "Norms divide by the largest magnitude before they square",
    reason: "Squares of values beyond 255 overflow half floats. SmolLM2's residual reaches 24926: a plain norm \
             gives zeros or NaN where sums are kept in half floats.",
    source: "measured on SmolLM2-135M; CoreML-LLM uses LayerNorm of (x, −x) for the same reason",
    remedy: "Divide x by its largest magnitude first and epsilon by the square of that, or use `layer_norm` over \
             (x, −x).",
    grades: Grades::ane(Severity::Warning).gpu(Severity::Note).portable(Severity::Note),
    from: None,
    check,
};

fn check(subject: &Subject<'_>, found: &mut Found<'_>) {
    for look in &subject.functions {
        for (i, op) in look.computing() {
            let squares = match op.name_of_kind.as_str() {
                "reduce_sum_square" | "reduce_l2_norm" => look.operand(op, "x"),
                "reduce_mean" | "reduce_sum" => look.operand(op, "x").and_then(|id| squared(look, id)),
                _ => None,
            };
            let Some(x) = squares.filter(|&id| look.ty(id).is_some_and(|ty| ty.dtype == DType::F16)) else { continue };
            if !is_scaled(look, x) {
                found.add(look.at(i), format!("it sums squares of `{}` in half floats", look.function.value(x).name));
            }
        }
    }
}

/// What `id` is the square of.
fn squared(look: &Look<'_>, id: ValueId) -> Option<ValueId> {
    let (_, op) = look.maker(id)?;
    let x = look.operand(op, "x")?;
    let two = |c: &anemone_mil::TensorConst| {
        c.ty.dtype.is_float() && c.ty.elements() == 1 && c.floats(0..1).next() == Some(2.0)
    };
    let is_square = match op.name_of_kind.as_str() {
        "square" => true,
        "mul" => look.operand(op, "y") == Some(x),
        "pow" => look.constant(op, "y").is_some_and(two),
        _ => false,
    };
    is_square.then_some(x)
}

/// Whether a value was made small: divided by something, or multiplied by what is not itself large.
fn is_scaled(look: &Look<'_>, id: ValueId) -> bool {
    let Some((_, op)) = look.maker(id) else { return false };
    match op.name_of_kind.as_str() {
        "real_div" => look.operand(op, "y").is_some_and(|y| !look.is_fixed(y) || small(look, op, "y", |v| v > 1.0)),
        "mul" => small(look, op, "y", |v| v.abs() < 0.1) || small(look, op, "x", |v| v.abs() < 0.1),
        "softmax" | "sigmoid" | "tanh" => true,
        "reshape" | "transpose" | "expand_dims" | "squeeze" => {
            look.operand(op, "x").is_some_and(|x| is_scaled(look, x))
        }
        _ => false,
    }
}

fn small(look: &Look<'_>, op: &anemone_mil::Operation, param: &str, fits: impl Fn(f32) -> bool) -> bool {
    let scalar = |c: &&anemone_mil::TensorConst| c.ty.dtype.is_float() && c.ty.elements() == 1 && c.deferred.is_none();
    look.constant(op, param).filter(scalar).and_then(|c| c.floats(0..1).next()).is_some_and(fits)
}
