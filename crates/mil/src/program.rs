//! A program in memory: functions of typed values in single static assignment.

use std::collections::BTreeMap;
use std::fmt;

use crate::constant::Const;
use crate::op::Op;
use crate::port::Ports;
use crate::types::{StaticType, Type};

/// A MIL program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Program {
    /// Version of the program format (1).
    pub version: i64,
    /// Functions by name.
    pub functions: BTreeMap<String, Function>,
    /// Attributes of the program, such as `buildInfo`.
    pub attributes: BTreeMap<String, Const>,
}

/// Names one value of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValueId(pub u32);

impl ValueId {
    /// The index into [`Function::values`].
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A value: assigned once, by an input of a function or block or by an operation.
#[derive(Clone, Debug, PartialEq)]
pub struct Value {
    /// Unique within the function.
    pub name: String,
    /// Declared type.
    pub ty: Type,
}

/// One function of a program.
#[derive(Clone, Debug)]
pub struct Function {
    /// Operation set as the package names it, such as `CoreML8`.
    pub opset: String,
    /// Every value of the function, inputs first; [`ValueId`] indexes it.
    pub values: Vec<Value>,
    /// Inputs in declaration order, states included.
    pub inputs: Vec<ValueId>,
    /// Operations and results.
    pub body: Block,
    /// Attributes of the function.
    pub attributes: BTreeMap<String, Const>,
    /// What the model description says of inputs, outputs and states. Empty for programs not read from a package.
    pub ports: Ports,
}

/// A sequence of operations with its results.
#[derive(Clone, Debug, Default)]
pub struct Block {
    /// Inputs of a nested block; a function's own block has none.
    pub inputs: Vec<ValueId>,
    /// Operations in order of execution.
    pub ops: Vec<Operation>,
    /// Results.
    pub outputs: Vec<ValueId>,
    /// Attributes of the block.
    pub attributes: BTreeMap<String, Const>,
}

/// What an operation is.
#[derive(Clone, Copy)]
pub enum Kind {
    /// A constant: its value is the attribute `val`.
    Const,
    /// An operation of the registry.
    Op(&'static dyn Op),
    /// An operation that is not in the registry; [`Operation::name_of_kind`] has its name.
    Unknown,
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Const => f.write_str("const"),
            Kind::Op(op) => f.write_str(op.name()),
            Kind::Unknown => f.write_str("unknown"),
        }
    }
}

/// What is bound to a parameter.
#[derive(Clone, Copy, Debug)]
pub enum Args<'a> {
    /// Arguments of the operation's inputs.
    Inputs(&'a [Argument]),
    /// A constant of the operation's attributes, as the iOS 16 compressions have it.
    Attribute(&'a Const),
}

/// One argument, as an executor sees it.
#[derive(Clone, Copy, Debug)]
pub enum Arg<'a> {
    /// The value of an earlier operation or input.
    Value(ValueId),
    /// A constant written in place.
    Literal(&'a Const),
}

impl<'a> Args<'a> {
    /// How many there are; 0 if the parameter was left out.
    #[must_use]
    pub fn len(self) -> usize {
        match self {
            Args::Inputs(args) => args.len(),
            Args::Attribute(_) => 1,
        }
    }

    /// Whether the parameter was left out.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The arguments in order.
    pub fn iter(self) -> impl Iterator<Item = Arg<'a>> {
        let (inputs, attribute) = match self {
            Args::Inputs(args) => (args, None),
            Args::Attribute(c) => (&[][..], Some(Arg::Literal(c))),
        };
        let input = |arg: &'a Argument| match arg {
            Argument::Value(id) => Arg::Value(*id),
            Argument::Literal(c) => Arg::Literal(c),
        };
        inputs.iter().map(input).chain(attribute)
    }
}

/// One argument of an operation.
#[derive(Clone, Debug)]
pub enum Argument {
    /// The value of an earlier operation or input.
    Value(ValueId),
    /// A constant written in place.
    Literal(Const),
}

/// One operation.
#[derive(Clone, Debug)]
pub struct Operation {
    /// The operation's name in MIL, such as `slice_update`.
    pub name_of_kind: String,
    /// What it resolved to.
    pub kind: Kind,
    /// Arguments by parameter; a variadic parameter has several.
    pub inputs: Vec<(String, Vec<Argument>)>,
    /// Values that it assigns.
    pub outputs: Vec<ValueId>,
    /// Nested blocks.
    pub blocks: Vec<Block>,
    /// Attributes: `name`, `val` of a constant, parameters of the iOS 16 compressions.
    pub attributes: BTreeMap<String, Const>,
}

impl Operation {
    /// The arguments bound to `param`; none if it is absent.
    #[must_use]
    pub fn args(&self, param: &str) -> &[Argument] {
        self.inputs.iter().find(|(p, _)| p == param).map_or(&[], |(_, a)| a)
    }

    /// What is bound to `param`, in either form: an input, else an attribute of that name.
    #[must_use]
    pub fn operand_args(&self, param: &str) -> Args<'_> {
        match self.args(param) {
            [] => match self.attributes.get(param) {
                Some(c) if param != "name" => Args::Attribute(c),
                _ => Args::Inputs(&[]),
            },
            args => Args::Inputs(args),
        }
    }

    /// The attribute `name`: what the author called the operation.
    #[must_use]
    pub fn label(&self) -> Option<&str> {
        self.attributes.get("name").and_then(Const::str)
    }

    /// The value of a constant operation.
    #[must_use]
    pub fn constant(&self) -> Option<&Const> {
        match self.kind {
            Kind::Const => self.attributes.get("val"),
            _ => None,
        }
    }

    /// The registry's entry.
    #[must_use]
    pub fn op(&self) -> Option<&'static dyn Op> {
        match self.kind {
            Kind::Op(op) => Some(op),
            _ => None,
        }
    }
}

impl Function {
    /// The value that `id` names.
    ///
    /// # Panics
    /// If `id` belongs to another function.
    #[must_use]
    pub fn value(&self, id: ValueId) -> &Value {
        &self.values[id.index()]
    }

    /// Adds a value; its name must be unique in the function.
    pub fn add_value(&mut self, name: impl Into<String>, ty: Type) -> ValueId {
        self.values.push(Value { name: name.into(), ty });
        ValueId(u32::try_from(self.values.len() - 1).expect("fewer than 2^32 values"))
    }

    /// Inputs that are states, with the name and type that they wrap. States have fixed shapes.
    pub fn states(&self) -> impl Iterator<Item = (ValueId, &str, Option<StaticType>)> {
        self.inputs.iter().filter_map(|&id| {
            let v = self.value(id);
            v.ty.state().map(|t| (id, v.name.as_str(), t.to_static()))
        })
    }

    /// Every constant of the function's own block, indexed by value.
    #[must_use]
    pub fn constants(&self) -> Vec<Option<&Const>> {
        let mut all = vec![None; self.values.len()];
        for op in &self.body.ops {
            if let (Some(c), Some(&id)) = (op.constant(), op.outputs.first()) {
                all[id.index()] = Some(c);
            }
        }
        all
    }
}
