//! What rules look at: a model with the facts about its values that several of them need.

use anemone_mil::model::Model;
use anemone_mil::op::Effect;
use anemone_mil::place::Place;
use anemone_mil::program::Arg;
use anemone_mil::types::{Dim, TensorType};
use anemone_mil::{Const, Function, Kind, Operation, TensorConst, ValueId};

use super::placement::{Prediction, predict_function};
use super::target::Os;

/// A model under inspection.
#[derive(Debug)]
pub struct Subject<'m> {
    /// The model.
    pub model: &'m Model,
    /// The system that it is meant for.
    pub os: Os,
    /// Its functions.
    pub functions: Vec<Look<'m>>,
}

impl<'m> Subject<'m> {
    /// Looks at every function.
    #[must_use]
    pub fn new(model: &'m Model, os: Os) -> Self {
        let functions = model.program.functions.iter().map(|(name, f)| Look::new(name, f, os)).collect();
        Self { model, os, functions }
    }
}

/// A function under inspection.
#[derive(Debug)]
pub struct Look<'m> {
    /// Its name.
    pub name: &'m str,
    /// The function.
    pub function: &'m Function,
    /// Constants by value.
    constants: Vec<Option<&'m Const>>,
    /// The operation that assigns each value; inputs have none.
    makers: Vec<Option<usize>>,
    /// The operations that take each value.
    users: Vec<Vec<usize>>,
    /// Whether each value depends on constants alone.
    fixed: Vec<bool>,
    /// Where each operation would run on the CPU and the Neural Engine.
    pub predictions: Vec<Prediction>,
}

impl<'m> Look<'m> {
    /// Looks at one function.
    #[must_use]
    pub fn new(name: &'m str, function: &'m Function, os: Os) -> Self {
        let n = function.values.len();
        let constants = function.constants();
        let mut fixed: Vec<bool> = constants.iter().map(Option::is_some).collect();
        let (mut makers, mut users) = (vec![None; n], vec![Vec::new(); n]);
        for (i, op) in function.body.ops.iter().enumerate() {
            let pure = op.op().is_some_and(|known| known.effect() == Effect::Pure);
            let all = pure && operands(op).all(|id| fixed[id.index()]);
            for id in operands(op) {
                users[id.index()].push(i);
            }
            for &id in &op.outputs {
                makers[id.index()] = Some(i);
                fixed[id.index()] |= all;
            }
        }
        let mut look = Self { name, function, constants, makers, users, fixed, predictions: Vec::new() };
        look.predictions = predict_function(&look, os);
        look
    }

    /// The function as a whole.
    #[must_use]
    pub fn place(&self) -> Place {
        Place::function(self.name)
    }

    /// The place of operation `index` of the function's own block.
    #[must_use]
    pub fn at(&self, index: usize) -> Place {
        let op = &self.function.body.ops[index];
        let output = match op.outputs.first() {
            Some(&id) => self.function.value(id).name.as_str(),
            None => op.label().unwrap_or_default(),
        };
        self.place().op(None, index, &op.name_of_kind, output)
    }

    /// Operations of the function's own block that compute something when it runs: no constants, nothing that depends on
    /// constants alone.
    pub fn computing(&self) -> impl Iterator<Item = (usize, &'m Operation)> + '_ {
        self.function.body.ops.iter().enumerate().filter(|(_, op)| !self.is_folded(op))
    }

    /// All operations of this kind that compute something when the function runs.
    pub fn of_kind<'s>(&'s self, kind: &'s str) -> impl Iterator<Item = (usize, &'m Operation)> + 's {
        self.computing().filter(move |(_, op)| op.name_of_kind == kind)
    }

    /// Whether an operation is a constant, or depends on constants alone.
    #[must_use]
    pub fn is_folded(&self, op: &Operation) -> bool {
        matches!(op.kind, Kind::Const) || !op.outputs.is_empty() && op.outputs.iter().all(|id| self.fixed[id.index()])
    }

    /// Whether a value depends on constants alone.
    #[must_use]
    pub fn is_fixed(&self, id: ValueId) -> bool {
        self.fixed[id.index()]
    }

    /// The tensor type of a value.
    #[must_use]
    pub fn ty(&self, id: ValueId) -> Option<&'m TensorType> {
        self.function.value(id).ty.tensor()
    }

    /// The extents of a value, if all are known.
    #[must_use]
    pub fn shape(&self, id: ValueId) -> Option<Vec<usize>> {
        let extent = |dim: &Dim| match dim {
            Dim::Known(n) => Some(*n),
            Dim::Unknown => None,
        };
        self.ty(id)?.shape.as_ref()?.iter().map(extent).collect()
    }

    /// The operation that assigns a value.
    #[must_use]
    pub fn maker(&self, id: ValueId) -> Option<(usize, &'m Operation)> {
        self.makers[id.index()].map(|i| (i, &self.function.body.ops[i]))
    }

    /// The operations that take a value.
    #[must_use]
    pub fn users(&self, id: ValueId) -> &[usize] {
        &self.users[id.index()]
    }

    /// The value bound to a parameter, if one is.
    #[must_use]
    pub fn operand(&self, op: &'m Operation, param: &str) -> Option<ValueId> {
        op.operand_args(param).iter().find_map(|arg| match arg {
            Arg::Value(id) => Some(id),
            Arg::Literal(_) => None,
        })
    }

    /// The constant bound to a parameter, whether in place or by name.
    #[must_use]
    pub fn constant(&self, op: &'m Operation, param: &str) -> Option<&'m TensorConst> {
        op.operand_args(param).iter().next().and_then(|arg| match arg {
            Arg::Value(id) => self.constants[id.index()].and_then(Const::tensor),
            Arg::Literal(c) => c.tensor(),
        })
    }

    /// The shape of what is bound to a parameter.
    #[must_use]
    pub fn operand_shape(&self, op: &'m Operation, param: &str) -> Option<Vec<usize>> {
        match self.operand(op, param) {
            Some(id) => self.shape(id),
            None => self.constant(op, param).map(|c| c.ty.shape.to_vec()),
        }
    }

    /// Whether a value depends on one for which `is` says yes.
    #[must_use]
    pub fn depends(&self, id: ValueId, is: &dyn Fn(ValueId) -> bool) -> bool {
        let mut seen = vec![false; self.function.values.len()];
        let mut open = vec![id];
        while let Some(next) = open.pop() {
            if std::mem::replace(&mut seen[next.index()], true) {
                continue;
            }
            if is(next) {
                return true;
            }
            if let Some((_, op)) = self.maker(next) {
                open.extend(operands(op));
            }
        }
        false
    }
}

/// The values that an operation takes.
pub(super) fn operands(op: &Operation) -> impl Iterator<Item = ValueId> + '_ {
    op.inputs.iter().flat_map(|(_, args)| args).filter_map(|arg| match arg {
        anemone_mil::Argument::Value(id) => Some(*id),
        anemone_mil::Argument::Literal(_) => None,
    })
}

/// Extents for people.
pub(super) fn extents(shape: &[usize]) -> String {
    let all: Vec<String> = shape.iter().map(ToString::to_string).collect();
    format!("({})", all.join(", "))
}
