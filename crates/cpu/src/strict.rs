//! Half floats as hardware computes them: in a strict plan whatever the program types as half floats is rounded to them as
//! soon as it is computed, and operations that make infinities or NaN of finite operands are noted.

use std::fmt;

use anemone_mil::op::Operands;
use anemone_mil::types::{DType, elements};
use anemone_mil::{Buffer, Data};
use half::f16;
use half::slice::HalfFloatSliceExt;

use crate::instance::{Instance, StepOperands};
use crate::plan::{Plan, RunStep};
use crate::state::Halves;

/// An operation that made infinities or NaN of finite operands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overflow {
    /// Where it stands in the program.
    pub place: String,
    /// How many runs had it.
    pub runs: usize,
}

impl fmt::Display for Overflow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let runs = if self.runs == 1 { "run" } else { "runs" };
        write!(f, "{} was not finite in {} {runs}", self.place, self.runs)
    }
}

impl Instance {
    /// Of a strict plan: the operations that made infinities or NaN of finite operands since the last time. In order.
    pub fn take_overflows(&mut self) -> Vec<Overflow> {
        let plan = std::sync::Arc::clone(self.plan());
        let told = |(step, runs): (usize, usize)| Overflow { place: plan.steps[step].place.to_string(), runs };
        std::mem::take(&mut self.overflows).into_iter().map(told).collect()
    }

    /// Rounds what the step `index` has computed.
    pub(crate) fn round(&mut self, plan: &Plan, index: usize, step: &RunStep, states: &[Halves]) {
        let mut finite = true;
        for target in step.outs.iter().filter(|target| target.dtype == DType::F16) {
            let n = elements(&self.tables.shapes[target.shape.0 as usize]);
            let slot = plan.memory.slot_of[target.buffer as usize] as usize;
            if let Buffer::F32(values) = &mut self.slots[slot] {
                finite &= round(&mut values[..n]);
            }
        }
        if finite {
            return;
        }
        let x = StepOperands { plan, step, tables: &self.tables, slots: &self.slots, states };
        let of_finite = (0..step.args.len()).all(|param| (0..x.count(param)).all(|i| is_finite(&x, param, i)));
        if of_finite {
            *self.overflows.entry(index).or_default() += 1;
        }
    }
}

/// Rounds to half floats; whether all are finite.
fn round(values: &mut [f32]) -> bool {
    let mut halves = [f16::ZERO; 512];
    let mut finite = true;
    for piece in values.chunks_mut(halves.len()) {
        let halves = &mut halves[..piece.len()];
        halves.convert_from_f32_slice(piece);
        halves.convert_to_f32_slice(piece);
        finite &= piece.iter().all(|v| v.is_finite());
    }
    finite
}

fn is_finite(x: &StepOperands<'_>, param: usize, index: usize) -> bool {
    let halves = x.halves_at(param, index).is_none_or(|halves| halves.iter().all(|h| h.is_finite()));
    let floats = match x.data_at(param, index) {
        Some(Data::F32(values)) => values.iter().all(|v| v.is_finite()),
        _ => true,
    };
    halves && floats
}
