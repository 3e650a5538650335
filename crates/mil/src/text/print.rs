//! From a program to text.

use std::collections::BTreeMap;
use std::fmt;

use super::literal::{self, Style};
use crate::build::is_identifier;
use crate::constant::Const;
use crate::program::{Argument, Block, Function, Operation, Program, ValueId};
use crate::types::Opset;

pub(super) fn program(program: &Program, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let short = program.functions.values().any(|f| Opset::from_name(&f.opset).is_none_or(|o| o >= Opset::CoreML8));
    let style = if short { Style::Short } else { Style::Long };
    match (program.version, style) {
        (1, Style::Short) => f.write_str("program(1.3)")?,
        (1, Style::Long) => f.write_str("program(1.0)")?,
        (other, _) => write!(f, "program({other})")?,
    }
    if !program.attributes.is_empty() {
        f.write_str("\n")?;
    }
    let mut p = Printer { f, style };
    p.attributes(&program.attributes)?;
    p.f.write_str("\n{\n")?;
    for (name, function) in &program.functions {
        p.function(name, function)?;
    }
    p.f.write_str("}\n")
}

struct Printer<'a, 'b> {
    f: &'a mut fmt::Formatter<'b>,
    style: Style,
}

impl Printer<'_, '_> {
    fn function(&mut self, name: &str, function: &Function) -> fmt::Result {
        self.f.write_str("    func ")?;
        self.name(name)?;
        self.f.write_str("<")?;
        match Opset::from_name(&function.opset) {
            Some(opset) => self.f.write_str(&opset_word(opset))?,
            None => self.name(&function.opset)?,
        }
        self.f.write_str(">")?;
        self.inputs(function, &function.inputs)?;
        if !function.attributes.is_empty() {
            self.f.write_str(" ")?;
            self.attributes(&function.attributes)?;
        }
        self.block(function, &function.body, 1)?;
        self.f.write_str(";\n")
    }

    /// ` { operations } -> (outputs)[attributes]`
    fn block(&mut self, function: &Function, block: &Block, depth: usize) -> fmt::Result {
        self.f.write_str(" {\n")?;
        for op in &block.ops {
            self.operation(function, op, depth + 1)?;
        }
        self.indent(depth)?;
        self.f.write_str("} -> (")?;
        self.list(&block.outputs, |p, &id| p.value(function, id))?;
        self.f.write_str(")")?;
        self.attributes(&block.attributes)
    }

    fn operation(&mut self, function: &Function, op: &Operation, depth: usize) -> fmt::Result {
        self.indent(depth)?;
        match op.outputs.as_slice() {
            [] => {}
            [one] => {
                self.typed(function, *one)?;
                self.f.write_str(" = ")?;
            }
            several => {
                self.f.write_str("(")?;
                self.list(several, |p, &id| p.typed(function, id))?;
                self.f.write_str(") = ")?;
            }
        }
        self.name(&op.name_of_kind)?;
        self.f.write_str("(")?;
        self.list(&op.inputs, |p, (param, args)| {
            p.name(param)?;
            p.f.write_str(" = ")?;
            match args.as_slice() {
                [one] => p.argument(function, one),
                several => {
                    p.f.write_str("(")?;
                    p.list(several, |p, arg| p.argument(function, arg))?;
                    p.f.write_str(")")
                }
            }
        })?;
        self.f.write_str(")")?;
        self.attributes(&op.attributes)?;
        for block in &op.blocks {
            self.f.write_str("\n")?;
            self.indent(depth)?;
            self.f.write_str("block")?;
            self.inputs(function, &block.inputs)?;
            self.block(function, block, depth)?;
        }
        self.f.write_str(";\n")
    }

    fn inputs(&mut self, function: &Function, inputs: &[ValueId]) -> fmt::Result {
        self.f.write_str("(")?;
        self.list(inputs, |p, &id| p.typed(function, id))?;
        self.f.write_str(")")
    }

    fn argument(&mut self, function: &Function, argument: &Argument) -> fmt::Result {
        match argument {
            Argument::Value(id) => self.value(function, *id),
            Argument::Literal(c) => literal::typed(c, self.style, self.f),
        }
    }

    /// `[name = value, …]`; nothing if there are none.
    fn attributes(&mut self, attributes: &BTreeMap<String, Const>) -> fmt::Result {
        if attributes.is_empty() {
            return Ok(());
        }
        self.f.write_str("[")?;
        self.list(attributes, |p, (name, value)| {
            p.name(name)?;
            p.f.write_str(" = ")?;
            literal::typed(value, p.style, p.f)
        })?;
        self.f.write_str("]")
    }

    /// A value where it is assigned: its type and its name.
    fn typed(&mut self, function: &Function, id: ValueId) -> fmt::Result {
        if let Some(v) = function.values.get(id.index()) {
            literal::ty(&v.ty, self.style, self.f)?;
            self.f.write_str(" ")?;
        }
        self.value(function, id)
    }

    fn value(&mut self, function: &Function, id: ValueId) -> fmt::Result {
        match function.values.get(id.index()) {
            Some(v) => self.name(&v.name),
            // An invalid program; its text need not be one that can be read.
            None => write!(self.f, "#{}", id.0),
        }
    }

    fn name(&mut self, name: &str) -> fmt::Result {
        if is_identifier(name) { self.f.write_str(name) } else { literal::quoted(name, self.f) }
    }

    fn list<T>(
        &mut self,
        items: impl IntoIterator<Item = T>,
        mut each: impl FnMut(&mut Self, T) -> fmt::Result,
    ) -> fmt::Result {
        for (i, item) in items.into_iter().enumerate() {
            if i > 0 {
                self.f.write_str(", ")?;
            }
            each(self, item)?;
        }
        Ok(())
    }

    fn indent(&mut self, depth: usize) -> fmt::Result {
        (0..depth).try_for_each(|_| self.f.write_str("    "))
    }
}

/// How text names an operation set: `ios18`.
pub(super) fn opset_word(opset: Opset) -> String {
    opset.os().to_ascii_lowercase().replace(' ', "")
}
