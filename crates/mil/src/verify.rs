//! What makes a program valid: [`verify`] reports everything that does not, each fault with its place.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use crate::build::is_identifier;
use crate::constant::Const;
use crate::model::Model;
use crate::place::{OneLine, Place};
use crate::program::{Argument, Block, Function, Kind, Operation, Program, ValueId};
use crate::tensor::Tensor;
use crate::types::{Opset, StaticType, Type};

mod constants;
mod operation;
mod ports;
mod problem;

pub use problem::Problem;

/// One fault of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Where.
    pub place: Place,
    /// What is wrong there.
    pub problem: Problem,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", OneLine(format_args!("{}: {}", self.place, self.problem)))
    }
}

/// All faults of a program, in its order; none if it is valid.
#[must_use]
pub fn verify(program: &Program) -> Vec<Diagnostic> {
    let mut out = Vec::new();
    if program.version != 1 {
        out.push(Diagnostic { place: Place::whole(), problem: Problem::Version { found: program.version } });
    }
    if program.functions.is_empty() {
        out.push(Diagnostic { place: Place::whole(), problem: Problem::NoFunctions });
    }
    constants::check_attributes(&program.attributes, &Place::whole(), &mut out);
    for (name, function) in &program.functions {
        let mut check = Check::new(name, function, out);
        check.function(name);
        out = check.out;
    }
    out
}

/// All faults of a model: those of its program, and of what its description adds.
#[must_use]
pub fn verify_model(model: &Model) -> Vec<Diagnostic> {
    let mut out = verify(&model.program);
    ports::check_model(model, &mut out);
    out
}

/// Checks one function.
struct Check<'a> {
    function: &'a Function,
    opset: Option<Opset>,
    /// Where the walk is: the function, and the operations that hold the present block.
    place: Place,
    /// Number of the present block in the innermost of them.
    nested: Option<usize>,
    /// Values that are assigned somewhere in the function.
    assigned: Vec<bool>,
    /// Values that are assigned before the present operation, in a block that it sees.
    visible: Vec<bool>,
    /// Values that were assigned, even if their block has ended.
    seen: Vec<bool>,
    names: HashMap<&'a str, ValueId>,
    /// Types of values as far as they are concrete: declared, or inferred where the declaration leaves axes open.
    types: Vec<Option<StaticType>>,
    constants: Vec<Option<&'a Const>>,
    small: HashMap<ValueId, Tensor>,
    out: Vec<Diagnostic>,
}

impl<'a> Check<'a> {
    fn new(name: &str, function: &'a Function, out: Vec<Diagnostic>) -> Self {
        let n = function.values.len();
        let mut assigned = vec![false; n];
        let mut mark = |id: &ValueId| {
            if let Some(a) = assigned.get_mut(id.index()) {
                *a = true;
            }
        };
        function.inputs.iter().for_each(&mut mark);
        mark_assigned(&function.body, &mut mark);
        Self {
            function,
            opset: Opset::from_name(&function.opset),
            place: Place::function(name),
            nested: None,
            assigned,
            visible: vec![false; n],
            seen: vec![false; n],
            names: HashMap::new(),
            types: vec![None; n],
            constants: vec![None; n],
            small: HashMap::new(),
            out,
        }
    }

    fn report(&mut self, place: Place, problem: Problem) {
        self.out.push(Diagnostic { place, problem });
    }

    fn function(&mut self, name: &str) {
        let (f, place) = (self.function, self.place.clone());
        if !is_identifier(name) {
            self.report(place.clone(), Problem::Identifier { name: name.to_owned() });
        }
        if self.opset.is_none() {
            self.report(place.clone(), Problem::Opset { found: f.opset.clone() });
        }
        constants::check_attributes(&f.attributes, &place, &mut self.out);
        for &id in &f.inputs {
            self.assign(id, &place);
            if let Some(v) = f.values.get(id.index()) {
                match &v.ty {
                    Type::Tensor(_) => {}
                    Type::State(t) if t.dtype == crate::types::DType::F16 && t.to_static().is_some() => {}
                    Type::State(t) => {
                        let problem = Problem::StateType { name: v.name.clone(), found: t.to_string() };
                        self.report(place.clone(), problem);
                    }
                    other => {
                        let problem = Problem::InputType { name: v.name.clone(), found: other.to_string() };
                        self.report(place.clone(), problem);
                    }
                }
            }
        }
        self.block(&f.body);
        if f.body.outputs.is_empty() {
            self.report(place, Problem::NoOutputs);
        }
        ports::check_function(f, &self.place.clone(), &mut self.out);
    }

    fn block(&mut self, block: &'a Block) {
        let place = self.place.clone();
        let mut local: Vec<ValueId> = block.inputs.clone();
        for &id in &block.inputs {
            self.assign(id, &place);
        }
        constants::check_attributes(&block.attributes, &place, &mut self.out);
        for (index, op) in block.ops.iter().enumerate() {
            let output = op.outputs.first().and_then(|id| self.function.values.get(id.index()));
            let label = output.map_or_else(|| op.label().unwrap_or_default(), |v| v.name.as_str());
            let at = place.op(self.nested, index, &op.name_of_kind, label);
            self.operation(op, &at);
            self.blocks(op, &at);
            for &id in &op.outputs {
                self.assign(id, &at);
                local.push(id);
            }
        }
        for &id in &block.outputs {
            let part = place.clone().part("outputs");
            if self.is_usable(id, &part) && self.function.value(id).ty.state().is_some() {
                let name = self.function.value(id).name.clone();
                self.report(part, Problem::StateAsValue { name });
            }
        }
        if self.nested.is_some() {
            for id in local {
                self.leave(id);
            }
        }
    }

    fn blocks(&mut self, op: &'a Operation, at: &Place) {
        for (i, nested) in op.blocks.iter().enumerate() {
            let outer = (std::mem::replace(&mut self.place, at.clone()), self.nested.replace(i));
            self.block(nested);
            (self.place, self.nested) = outer;
        }
    }

    /// A value is assigned: once, under a name of its own.
    fn assign(&mut self, id: ValueId, at: &Place) {
        let Some(v) = self.function.values.get(id.index()) else {
            return self.report(at.clone(), Problem::Foreign { id: id.0 });
        };
        if !is_identifier(&v.name) {
            self.report(at.clone(), Problem::Identifier { name: v.name.clone() });
        }
        let twice = std::mem::replace(&mut self.seen[id.index()], true);
        if twice || self.names.get(v.name.as_str()).is_some_and(|other| self.visible[other.index()]) {
            self.report(at.clone(), Problem::AssignedTwice { name: v.name.clone() });
        }
        self.names.insert(&v.name, id);
        self.visible[id.index()] = true;
        if self.types[id.index()].is_none() {
            self.types[id.index()] = v.ty.tensor().or(v.ty.state()).and_then(|t| t.to_static());
        }
    }

    /// The block that assigned the value ends.
    fn leave(&mut self, id: ValueId) {
        if let Some(v) = self.visible.get_mut(id.index()) {
            *v = false;
        }
    }

    /// Whether a value may be used here; says why, if not.
    fn is_usable(&mut self, id: ValueId, at: &Place) -> bool {
        let Some(v) = self.function.values.get(id.index()) else {
            self.report(at.clone(), Problem::Foreign { id: id.0 });
            return false;
        };
        if self.visible[id.index()] {
            return true;
        }
        let name = v.name.clone();
        let problem = if self.seen[id.index()] {
            Problem::OutOfScope { name }
        } else if self.assigned[id.index()] {
            Problem::UsedBeforeAssigned { name }
        } else {
            Problem::NeverAssigned { name }
        };
        self.report(at.clone(), problem);
        false
    }
}

fn mark_assigned(block: &Block, mark: &mut impl FnMut(&ValueId)) {
    block.inputs.iter().for_each(&mut *mark);
    for op in &block.ops {
        op.outputs.iter().for_each(&mut *mark);
        op.blocks.iter().for_each(|b| mark_assigned(b, mark));
    }
}

/// Unknown operations among diagnostics, by name: where each is.
pub(crate) fn unknown_ops(all: &[Diagnostic]) -> BTreeMap<(&str, &str), Vec<&Place>> {
    let mut found = BTreeMap::<_, Vec<_>>::new();
    for d in all {
        if let Problem::UnknownOp { name, opset } = &d.problem {
            found.entry((name.as_str(), opset.as_str())).or_default().push(&d.place);
        }
    }
    found
}

/// The value that an argument names.
fn named(arg: &Argument) -> Option<ValueId> {
    match arg {
        Argument::Value(id) => Some(*id),
        Argument::Literal(_) => None,
    }
}

/// Whether the operation is a constant.
fn is_const(op: &Operation) -> bool {
    matches!(op.kind, Kind::Const)
}

#[cfg(test)]
mod tests;
