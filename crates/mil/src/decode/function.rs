//! Functions, blocks and operations.

use anemone_package::proto::mil::{self, BindingKind};

use super::{Context, MAX_DEPTH};
use crate::error::{Fault, MilError};
use crate::names::Names;
use crate::ops;
use crate::place::Place;
use crate::port::Ports;
use crate::program::{Argument, Block, Function, Kind, Operation, ValueId};

impl Context<'_> {
    pub(super) fn function(&self, name: &str, from: &mil::Function) -> Result<Function, MilError> {
        let place = Place::function(name);
        let at = |fault: Fault| fault.at(place.clone());
        let Some(block) = from.block_specializations.get(&from.opset) else {
            let found = from.block_specializations.keys().map(|o| format!("`{o}`")).collect::<Vec<_>>().join(", ");
            return Err(at(Fault::new(
                format!("a block for the operation set `{}`", from.opset),
                format!("[{found}]"),
            )));
        };
        if from.block_specializations.len() > 1 {
            self.leave_out(format!("the blocks of function `{name}` for operation sets other than `{}`", from.opset));
        }
        let mut names = Names::new();
        let inputs = self.define(&from.inputs, &mut names).map_err(at)?;
        let body = self.block(block, &mut names, &place, None, 0)?;
        Ok(Function {
            opset: from.opset.clone(),
            inputs,
            body,
            attributes: self.attributes(&from.attributes).map_err(at)?,
            ports: Ports::default(),
            values: names.values,
        })
    }

    fn define(&self, from: &[mil::NamedValueType], names: &mut Names) -> Result<Vec<ValueId>, Fault> {
        from.iter()
            .map(|v| {
                let ty = self.ty(v.r#type.as_ref(), 0).map_err(|e| e.in_part(|| format!("type of `{}`", v.name)))?;
                Ok(names.define(&v.name, ty))
            })
            .collect()
    }

    /// The block of `place`: nested block number `nested`, or a function's own.
    fn block(
        &self,
        from: &mil::Block,
        names: &mut Names,
        place: &Place,
        nested: Option<usize>,
        depth: usize,
    ) -> Result<Block, MilError> {
        let at = |fault: Fault| fault.at(place.clone());
        if depth > MAX_DEPTH {
            return Err(at(Fault::new(format!("blocks nested at most {MAX_DEPTH} deep"), "a deeper one")));
        }
        let inputs = self.define(&from.inputs, names).map_err(at)?;
        let mut ops = Vec::with_capacity(from.operations.len());
        for (index, op) in from.operations.iter().enumerate() {
            let place = || place.op(nested, index, &op.r#type, op.outputs.first().map_or("", |o| &o.name));
            ops.push(self.operation(op, names, &place, depth)?);
        }
        Ok(Block {
            inputs,
            ops,
            outputs: from.outputs.iter().map(|name| names.resolve(name)).collect(),
            attributes: self.attributes(&from.attributes).map_err(at)?,
        })
    }

    fn operation(
        &self,
        from: &mil::Operation,
        names: &mut Names,
        place: &dyn Fn() -> Place,
        depth: usize,
    ) -> Result<Operation, MilError> {
        let at = |fault: Fault| fault.at(place());
        let mut inputs = Vec::with_capacity(from.inputs.len());
        for (param, argument) in &from.inputs {
            let args = argument.arguments.iter().map(|a| match &a.binding {
                Some(BindingKind::Name(name)) => Ok(Argument::Value(names.resolve(name))),
                Some(BindingKind::Value(value)) => Ok(Argument::Literal(self.constant(value, 0)?)),
                None => Err(Fault::new("a name or a value", "neither")),
            });
            let args = args.collect::<Result<Vec<_>, Fault>>();
            inputs.push((param.clone(), args.map_err(|e| at(e.in_part(|| format!("argument `{param}`"))))?));
        }
        let attributes = self.attributes(&from.attributes).map_err(at)?;
        let mut blocks = Vec::with_capacity(from.blocks.len());
        for (i, b) in from.blocks.iter().enumerate() {
            names.enter();
            blocks.push(self.block(b, names, &place(), Some(i), depth + 1)?);
            names.leave();
        }
        let outputs = self.define(&from.outputs, names).map_err(at)?;
        Ok(Operation {
            kind: Kind::of(&from.r#type),
            name_of_kind: from.r#type.clone(),
            inputs,
            outputs,
            blocks,
            attributes,
        })
    }
}

impl Kind {
    /// What the name of an operation in MIL means.
    #[must_use]
    pub fn of(name: &str) -> Self {
        match name {
            "const" => Kind::Const,
            _ => ops::find(name).map_or(Kind::Unknown, Kind::Op),
        }
    }
}
