//! Functions, blocks and operations.

use std::collections::BTreeMap;

use anemone_package::proto::mil;

use super::{Encoder, types};
use crate::error::MilError;
use crate::place::Place;
use crate::program::{Argument, Block, Function, Operation, ValueId};

impl Encoder<'_> {
    pub(super) fn function(&mut self, name: &str, f: &Function) -> Result<mil::Function, MilError> {
        let place = Place::function(name);
        Ok(mil::Function {
            inputs: named(f, &f.inputs),
            opset: f.opset.clone(),
            block_specializations: BTreeMap::from([(f.opset.clone(), self.block(f, &f.body, &place, None)?)]),
            attributes: self.attributes(&f.attributes, &|| place.clone())?,
        })
    }

    fn block(
        &mut self,
        f: &Function,
        block: &Block,
        place: &Place,
        nested: Option<usize>,
    ) -> Result<mil::Block, MilError> {
        let mut operations = Vec::with_capacity(block.ops.len());
        for (index, op) in block.ops.iter().enumerate() {
            let output = op.outputs.first().map_or("", |&id| &f.value(id).name);
            operations.push(self.operation(f, op, &|| place.op(nested, index, &op.name_of_kind, output))?);
        }
        Ok(mil::Block {
            inputs: named(f, &block.inputs),
            outputs: block.outputs.iter().map(|&id| f.value(id).name.clone()).collect(),
            operations,
            attributes: self.attributes(&block.attributes, &|| place.clone())?,
        })
    }

    fn operation(
        &mut self,
        f: &Function,
        op: &Operation,
        place: &dyn Fn() -> Place,
    ) -> Result<mil::Operation, MilError> {
        let mut inputs = BTreeMap::new();
        for (param, args) in &op.inputs {
            let mut arguments = Vec::with_capacity(args.len());
            for arg in args {
                let binding = match arg {
                    Argument::Value(id) => mil::BindingKind::Name(f.value(*id).name.clone()),
                    Argument::Literal(c) => {
                        mil::BindingKind::Value(self.constant(c, &|| place().part(format!("argument `{param}`")))?)
                    }
                };
                arguments.push(mil::Binding { binding: Some(binding) });
            }
            inputs.insert(param.clone(), mil::Argument { arguments });
        }
        let mut blocks = Vec::with_capacity(op.blocks.len());
        for (i, b) in op.blocks.iter().enumerate() {
            blocks.push(self.block(f, b, &place(), Some(i))?);
        }
        Ok(mil::Operation {
            r#type: op.name_of_kind.clone(),
            inputs,
            outputs: named(f, &op.outputs),
            blocks,
            attributes: self.attributes(&op.attributes, place)?,
        })
    }
}

fn named(f: &Function, ids: &[ValueId]) -> Vec<mil::NamedValueType> {
    ids.iter()
        .map(|&id| {
            let v = f.value(id);
            mil::NamedValueType { name: v.name.clone(), r#type: Some(types::ty(&v.ty)) }
        })
        .collect()
}
