//! One operation: its arguments, results, types and use of states.

use smallvec::SmallVec;

use super::{Check, Problem, constants, is_const, named};
use crate::constant::Const;
use crate::op::{Effect, Op, OpError};
use crate::operands::{BindError, Bound, Operand, check_arity, param_index};
use crate::place::Place;
use crate::program::{Arg, Kind, Operation, ValueId};
use crate::types::{Dim, StaticType};

/// Constants of more elements than this take no part in inference.
const INFERENCE_ELEMENTS: usize = 4096;

impl<'a> Check<'a> {
    pub(super) fn operation(&mut self, op: &'a Operation, at: &Place) {
        constants::check_attributes(&op.attributes, at, &mut self.out);
        let mut usable = true;
        for (i, (param, args)) in op.inputs.iter().enumerate() {
            if op.inputs[..i].iter().any(|(p, _)| p == param) {
                self.report(at.clone(), Problem::GivenTwice { param: param.clone() });
                usable = false;
            }
            for arg in args {
                match arg {
                    crate::Argument::Value(id) => usable &= self.is_usable(*id, at),
                    crate::Argument::Literal(c) => {
                        constants::check(c, &|| format!("argument `{param}`"), at, &mut self.out);
                    }
                }
            }
        }
        match op.kind {
            _ if is_const(op) => self.constant(op, at),
            Kind::Op(known) => self.known(known, op, at, usable),
            _ => {
                let problem = Problem::UnknownOp { name: op.name_of_kind.clone(), opset: self.function.opset.clone() };
                self.report(at.clone(), problem);
            }
        }
    }

    fn constant(&mut self, op: &'a Operation, at: &Place) {
        let Some(value) = op.constant() else {
            return self.report(at.clone(), Problem::NoValue);
        };
        let &[id] = &op.outputs[..] else {
            return self.report(at.clone(), Problem::Results { expected: 1, found: op.outputs.len() });
        };
        let Some(declared) = self.function.values.get(id.index()) else { return };
        self.constants[id.index()] = Some(value);
        let found = value.ty();
        if !constants::declares(&declared.ty, &found) {
            let (name, declared) = (declared.name.clone(), declared.ty.to_string());
            self.report(at.clone(), Problem::ConstType { name, declared, found: found.to_string() });
        } else if let Some(t) = value.tensor() {
            self.types[id.index()] = Some(t.ty.clone());
        }
    }

    fn known(&mut self, known: &'static dyn Op, op: &'a Operation, at: &Place, usable: bool) {
        if let Some(opset) = self.opset
            && known.since() > opset
        {
            let problem = Problem::TooNew { op: known.name().to_owned(), since: known.since(), opset };
            self.report(at.clone(), problem);
        }
        let before = self.out.len();
        for (param, _) in &op.inputs {
            if let Err(e) = param_index(known, param) {
                self.report(at.clone(), Problem::Arguments(e));
            }
        }
        for param in known.params() {
            match check_arity(known, param, op.operand_args(param.name).len()) {
                Ok(()) => {}
                Err(e @ BindError::Count { .. }) => self.report(at.clone(), Problem::Arguments(e)),
                Err(e) => unreachable!("counting arguments found {e}"),
            }
        }
        self.states(known, op, at);
        if self.out.len() > before || !usable {
            return;
        }
        self.results(known, op, at);
    }

    /// States are taken by the operations on states, and by no other.
    fn states(&mut self, known: &'static dyn Op, op: &'a Operation, at: &Place) {
        let taker = (known.effect() != Effect::Pure).then(|| known.params()[0].name);
        for (param, args) in &op.inputs {
            for arg in args {
                let value = named(arg).and_then(|id| self.function.values.get(id.index()));
                let state = value.and_then(|v| v.ty.state());
                if taker == Some(param.as_str()) {
                    if state.is_none() {
                        let found = match (value, arg) {
                            (Some(v), _) => format!("`{}` of type {}", v.name, v.ty),
                            (None, crate::Argument::Literal(c)) => format!("a constant of type {}", c.ty()),
                            (None, crate::Argument::Value(_)) => continue,
                        };
                        self.report(at.clone(), Problem::NoState { param: param.clone(), found });
                    }
                } else if let (Some(_), Some(v)) = (state, value) {
                    self.report(at.clone(), Problem::StateAsValue { name: v.name.clone() });
                }
            }
        }
        if known.effect() == Effect::WriteState {
            let arg = |param: usize| op.args(known.params()[param].name).first();
            let value = |param: usize| arg(param).and_then(named).and_then(|id| self.function.values.get(id.index()));
            let data = match arg(1) {
                Some(crate::Argument::Literal(c)) => Some(c.ty()),
                _ => value(1).map(|v| v.ty.clone()).filter(|t| t.state().is_none()),
            };
            if let (Some(state), Some(data)) = (value(0), data)
                && let Some(wrapped) = state.ty.state()
                && data.tensor() != Some(wrapped)
            {
                let (state, wrapped, found) = (state.name.clone(), wrapped.to_string(), data.to_string());
                self.report(at.clone(), Problem::Written { state, wrapped, found });
            }
        }
    }

    /// The declared results are what the operands give, as far as that is known here.
    fn results(&mut self, known: &'static dyn Op, op: &'a Operation, at: &Place) {
        let Some((count, inferred)) = self.infer(known, op, at) else { return };
        if count != op.outputs.len() {
            self.report(at.clone(), Problem::Results { expected: count, found: op.outputs.len() });
            return;
        }
        match inferred {
            Ok(types) => {
                for (&id, ty) in op.outputs.iter().zip(types) {
                    self.result(id, ty, at);
                }
            }
            Err(OpError::NeedsValue { .. }) => {}
            Err(e) => self.report(at.clone(), Problem::Operands(e)),
        }
    }

    fn result(&mut self, id: ValueId, inferred: StaticType, at: &Place) {
        let Some(v) = self.function.values.get(id.index()) else { return };
        let dims: Vec<Dim> = inferred.shape.iter().map(|&n| Dim::Known(n)).collect();
        if let Err(fault) = crate::decode::check_size(&dims) {
            let problem = Problem::Operands(OpError::mismatch(fault.expected, fault.found));
            return self.report(at.clone(), problem);
        }
        match v.ty.tensor() {
            Some(declared) if declared.admits(&inferred) => self.types[id.index()] = Some(inferred),
            _ => {
                let (name, declared) = (v.name.clone(), v.ty.to_string());
                self.report(at.clone(), Problem::Declared { name, declared, inferred: inferred.to_string() });
            }
        }
    }

    /// How many results the operands give, and of which types; `None` if not every operand's type is concrete.
    #[allow(clippy::type_complexity, reason = "named once")]
    fn infer(
        &mut self,
        known: &'static dyn Op,
        op: &'a Operation,
        at: &Place,
    ) -> Option<(usize, Result<SmallVec<[StaticType; 1]>, OpError>)> {
        // Small constants first: they are kept, and operands borrow them.
        for param in known.params() {
            for arg in op.operand_args(param.name).iter() {
                if let Arg::Value(id) = arg {
                    self.keep_small(id, param.name, at)?;
                }
            }
        }
        let mut bound = Bound::new(known);
        for param in known.params() {
            for arg in op.operand_args(param.name).iter() {
                let operand = match arg {
                    Arg::Value(id) => match (self.small.get(&id), self.constants[id.index()].and_then(Const::str)) {
                        (Some(t), _) => Operand::Known(t),
                        (None, Some(text)) => Operand::Text(text),
                        (None, None) => {
                            let v = self.function.value(id);
                            if v.ty.tensor().or(v.ty.state()).is_none() {
                                let problem = Problem::NoTensor {
                                    param: param.name.to_owned(),
                                    name: v.name.clone(),
                                    found: v.ty.to_string(),
                                };
                                self.report(at.clone(), problem);
                                return None;
                            }
                            Operand::Typed(self.types[id.index()].clone()?)
                        }
                    },
                    Arg::Literal(c) => match operand(c) {
                        Ok(operand) => operand,
                        Err(source) => {
                            self.report(at.clone(), Problem::Literal { param: param.name.to_owned(), source });
                            return None;
                        }
                    },
                };
                bound.bind(known, param.name, [operand]).expect("it is a parameter of the operation");
            }
        }
        Some((known.results(&bound), known.infer(&bound)))
    }

    /// Keeps the elements of a small constant for inference; `None` if it cannot be an operand.
    fn keep_small(&mut self, id: ValueId, param: &str, at: &Place) -> Option<()> {
        if self.small.contains_key(&id) {
            return Some(());
        }
        let Some(c) = self.constants[id.index()] else { return Some(()) };
        match operand(c) {
            Ok(Operand::Owned(t)) => {
                self.small.insert(id, t);
                Some(())
            }
            Ok(_) => Some(()),
            Err(source) => {
                self.report(at.clone(), Problem::Literal { param: param.to_owned(), source });
                None
            }
        }
    }
}

/// A constant as an operand of inference: with its elements if they are few.
fn operand(c: &Const) -> Result<Operand<'_>, crate::ConstError> {
    match c.tensor() {
        Some(t) if t.deferred.is_some() || (t.strings.is_empty() && t.ty.elements() > INFERENCE_ELEMENTS) => {
            Ok(Operand::Typed(t.ty.clone()))
        }
        _ => Operand::from_const(c),
    }
}
