//! From a function and the shapes of its inputs to a graph: types are inferred, and what follows from constants and shapes
//! alone is computed now.

use std::collections::BTreeMap;
use std::sync::Arc;

use anemone_mil::lower::PackCache;
use anemone_mil::op::{Effect, Op, OpError};
use anemone_mil::operands::{apply, check_arity, infer, param_index};
use anemone_mil::types::{StaticType, elements};
use anemone_mil::{Argument, Const, Function, Kind, Operation, Tensor, Type, ValueId};
use smallvec::SmallVec;

use crate::error::{PlanError, PlanFault};
use crate::graph::{Graph, GraphValue, Known, Node, ValueKind};
use crate::state::StateLayout;
use crate::variant::Variant;

/// A constant of at most this many elements is kept unpacked, so that inference can read it.
const KNOWN_ELEMENTS: usize = 1 << 16;
/// What follows from shapes is computed at planning time up to this many elements.
const FOLDED_ELEMENTS: usize = 1 << 16;
/// No operation may make more elements than this.
pub(crate) const MAX_ELEMENTS: usize = 1 << 31;

/// Specialises a function to the shapes of its inputs.
///
/// # Errors
/// If a shape is missing or does not fit, or an operation does not accept its operands.
pub(crate) fn specialize(
    variant: &Variant<'_>,
    shapes: &BTreeMap<String, Vec<usize>>,
    states: &StateLayout,
    cache: &PackCache,
) -> Result<Graph, PlanError> {
    let function = variant.function;
    let mut s = Specializer::new(variant, shapes, states)?;
    for (index, op) in function.body.ops.iter().enumerate() {
        s.operation(index, op, cache)
            .map_err(|source| PlanError::Op { place: place(function, index, op).to_string(), source })?;
    }
    s.graph.outputs = function.body.outputs.clone();
    for &id in &s.graph.outputs {
        if !s.assigned[id.index()] {
            let value = function.value(id).name.clone();
            return Err(PlanError::Op { place: "the outputs".to_owned(), source: PlanFault::Unassigned { value } });
        }
        if s.graph.value(id).ty.dtype == anemone_mil::DType::String {
            let value = function.value(id).name.clone();
            return Err(PlanError::Op { place: "the outputs".to_owned(), source: PlanFault::Text { value } });
        }
    }
    Ok(s.graph)
}

struct Specializer<'f> {
    function: &'f Function,
    variant: &'f Variant<'f>,
    graph: Graph,
    assigned: Vec<bool>,
    /// Whether a value depends on constants alone, and not even on the shapes of inputs.
    fixed: Vec<bool>,
}

impl<'f> Specializer<'f> {
    fn new(
        variant: &'f Variant<'_>,
        shapes: &BTreeMap<String, Vec<usize>>,
        states: &StateLayout,
    ) -> Result<Self, PlanError> {
        let function = variant.function;
        let nothing = StaticType::new(anemone_mil::DType::Bool, &[]);
        let values: Vec<GraphValue> = function
            .values
            .iter()
            .map(|v| GraphValue { name: v.name.clone(), ty: nothing.clone(), kind: ValueKind::Computed })
            .collect();
        let mut assigned = vec![false; values.len()];
        let mut graph =
            Graph { values, nodes: Vec::new(), inputs: Vec::new(), outputs: Vec::new(), exact: false, strict: false };
        for &id in &function.inputs {
            let v = function.value(id);
            let slot = &mut graph.values[id.index()];
            match variant.ty(id) {
                Type::State(_) => {
                    let index = states.index(&v.name).expect("the layout is of this function's states");
                    slot.ty = StaticType { dtype: anemone_mil::DType::F16, shape: states.states[index].shape.clone() };
                    slot.kind = ValueKind::State(index);
                }
                Type::Tensor(declared) => {
                    let ty = match shapes.get(&v.name) {
                        Some(shape) => Some(StaticType::new(declared.dtype, shape)).filter(|t| declared.admits(t)),
                        None => declared.to_static(),
                    };
                    let ty = ty.filter(|t| t.dtype != anemone_mil::DType::String);
                    slot.ty = ty.ok_or_else(|| PlanError::Input {
                        name: v.name.clone(),
                        declared: declared.to_string(),
                        found: shapes.get(&v.name).map_or_else(|| "nothing".to_owned(), |s| format!("{s:?}")),
                    })?;
                    graph.inputs.push(id);
                }
                other => {
                    let (name, declared) = (v.name.clone(), other.to_string());
                    return Err(PlanError::Input { name, declared, found: "nothing".to_owned() });
                }
            }
            assigned[id.index()] = true;
        }
        if let Some(name) = shapes.keys().find(|name| graph.inputs.iter().all(|&id| function.value(id).name != **name))
        {
            let known: Vec<&str> = graph.inputs.iter().map(|&id| function.value(id).name.as_str()).collect();
            return Err(PlanError::NotThere { what: "input", name: name.clone(), known: known.join(", ") });
        }
        let fixed = vec![false; graph.values.len()];
        Ok(Self { function, variant, graph, assigned, fixed })
    }

    fn operation(&mut self, index: usize, op: &'f Operation, cache: &PackCache) -> Result<(), PlanFault> {
        let known = match op.kind {
            Kind::Unknown => return Err(PlanFault::Unknown),
            Kind::Op(_) if !op.blocks.is_empty() => return Err(PlanFault::Blocks),
            Kind::Op(known) => known,
            Kind::Const => {
                if let (Some(c), Some(&id)) = (self.variant.constant(index, op), op.outputs.first()) {
                    self.constant(id, c)?;
                }
                return Ok(());
            }
        };
        let args = self.arguments(known, op)?;
        let fixed = known.effect() == Effect::Pure && args.iter().flatten().all(|v| self.fixed[v.index()]);
        let operands = self.graph.operands(known, &args, cache);
        let mut declared = false;
        let types = match infer(known, &operands) {
            Ok(types) => types.to_vec(),
            Err(e @ OpError::NeedsValue { .. }) => {
                declared = true;
                self.declared(op).ok_or(e)?
            }
            Err(e) => return Err(e.into()),
        };
        let size = |t: &StaticType| t.shape.iter().fold(1u128, |a, &b| a.saturating_mul(b as u128));
        let total: u128 = types.iter().map(size).sum();
        if total > MAX_ELEMENTS as u128 {
            return Err(PlanFault::TooLarge { elements: total, bound: MAX_ELEMENTS });
        }
        let compressed = if fixed { known.compressed(&operands) } else { None };
        let folded = if compressed.is_some() || known.effect() != Effect::Pure {
            None
        } else if fixed {
            Some(self.fold_fixed(known, &args)?)
        } else if total <= FOLDED_ELEMENTS as u128 && types.iter().all(|t| !t.dtype.is_float()) {
            match apply(known, &operands) {
                Ok(results) => Some(results),
                Err(OpError::NeedsValue { .. }) => None,
                Err(e) => return Err(e.into()),
            }
        } else {
            None
        };
        for (i, &id) in op.outputs.iter().enumerate() {
            let Some(ty) = types.get(i) else {
                return Err(PlanFault::Unassigned { value: self.function.value(id).name.clone() });
            };
            self.check_declared(id, ty)?;
            let v = &mut self.graph.values[id.index()];
            v.ty = ty.clone();
            self.assigned[id.index()] = true;
            self.fixed[id.index()] = fixed;
        }
        if let Some(packed) = compressed {
            self.graph.values[op.outputs[0].index()].kind = ValueKind::Packed(packed);
        } else if let Some(results) = folded {
            for (&id, t) in op.outputs.iter().zip(results) {
                self.graph.values[id.index()].kind = ValueKind::Known(t.into());
            }
        } else {
            let place = place(self.function, index, op);
            self.graph.nodes.push(Node {
                op: known,
                args,
                outputs: op.outputs.iter().copied().collect(),
                declared,
                place,
            });
        }
        Ok(())
    }

    fn constant(&mut self, id: ValueId, c: &Const) -> Result<(), PlanFault> {
        let (ty, kind) = match (c.str(), c.tensor()) {
            (Some(text), _) => (StaticType::new(anemone_mil::DType::String, &[]), ValueKind::Text(text.into())),
            (None, Some(t)) if t.ty.dtype == anemone_mil::DType::String => (t.ty.clone(), ValueKind::Text("".into())),
            (None, Some(t)) => {
                let kind = if elements(&t.ty.shape) <= KNOWN_ELEMENTS {
                    ValueKind::Known(Known::stored(t)?)
                } else {
                    ValueKind::Packed(anemone_mil::packed::Packed::Plain(t.clone()))
                };
                (t.ty.clone(), kind)
            }
            (None, None) => (StaticType::new(anemone_mil::DType::String, &[]), ValueKind::Text("".into())),
        };
        let v = &mut self.graph.values[id.index()];
        (v.ty, v.kind) = (ty, kind);
        self.assigned[id.index()] = true;
        self.fixed[id.index()] = true;
        Ok(())
    }

    fn arguments(
        &mut self,
        known: &'static dyn Op,
        op: &'f Operation,
    ) -> Result<Vec<SmallVec<[ValueId; 1]>>, PlanFault> {
        let mut args = vec![SmallVec::new(); known.params().len()];
        for (param, list) in &op.inputs {
            let index = param_index(known, param)?;
            for arg in list {
                let id = match arg {
                    Argument::Value(id) => *id,
                    Argument::Literal(c) => self.literal(c)?,
                };
                if !self.assigned[id.index()] {
                    return Err(PlanFault::Unassigned { value: self.graph.value(id).name.clone() });
                }
                args[index].push(id);
            }
        }
        for (p, list) in known.params().iter().zip(&mut args) {
            // The compressions of iOS 16 keep their parameters in attributes.
            if list.is_empty()
                && let Some(c) = op.attributes.get(p.name)
            {
                list.push(self.literal(c)?);
            }
            check_arity(known, p, list.len())?;
        }
        Ok(args)
    }

    fn literal(&mut self, c: &Const) -> Result<ValueId, PlanFault> {
        let id = ValueId(u32::try_from(self.graph.values.len()).expect("fewer than 2^32 values"));
        let nothing = StaticType::new(anemone_mil::DType::Bool, &[]);
        self.graph.values.push(GraphValue {
            name: format!("literal {}", id.0),
            ty: nothing,
            kind: ValueKind::Computed,
        });
        self.assigned.push(false);
        self.fixed.push(false);
        self.constant(id, c)?;
        Ok(id)
    }

    /// Computes an operation whose operands are all constants.
    fn fold_fixed(&self, op: &'static dyn Op, args: &[SmallVec<[ValueId; 1]>]) -> Result<Vec<Tensor>, PlanFault> {
        let mut bound = anemone_mil::operands::Bound::new(op);
        for (param, list) in op.params().iter().zip(args) {
            for &id in list {
                bound.bind(op, param.name, [constant_operand(self.graph.value(id))])?;
            }
        }
        Ok(apply(op, &bound)?)
    }

    fn declared(&self, op: &Operation) -> Option<Vec<StaticType>> {
        op.outputs.iter().map(|&id| self.variant.ty(id).tensor()?.to_static()).collect()
    }

    fn check_declared(&self, id: ValueId, found: &StaticType) -> Result<(), PlanFault> {
        match self.variant.ty(id).tensor() {
            Some(declared) if !declared.admits(found) => Err(PlanFault::Declared {
                value: self.function.value(id).name.clone(),
                declared: declared.to_string(),
                found: found.to_string(),
            }),
            _ => Ok(()),
        }
    }
}

fn constant_operand(v: &GraphValue) -> anemone_mil::operands::Operand<'_> {
    use anemone_mil::operands::Operand;
    match &v.kind {
        ValueKind::Known(known) => Operand::Known(known.tensor()),
        ValueKind::Text(s) => Operand::Text(s),
        ValueKind::Packed(p) => Operand::Owned(unpack(p)),
        ValueKind::Computed | ValueKind::State(_) => Operand::Typed(v.ty.clone()),
    }
}

/// A packed constant with every element unpacked.
pub(crate) fn unpack(p: &anemone_mil::packed::Packed) -> Tensor {
    use anemone_mil::packed::Packed;
    if let Packed::Plain(t) = p
        && let Ok(t) = t.to_tensor()
    {
        return t;
    }
    let mut values = vec![0.0; p.ty().elements()];
    p.decode(0..values.len(), &mut values);
    Tensor { ty: p.ty().clone(), data: anemone_mil::Buffer::F32(values) }
}

fn place(function: &Function, index: usize, op: &Operation) -> Arc<str> {
    let result = op.outputs.first().map(|&id| function.value(id).name.as_str()).or(op.label()).unwrap_or("nothing");
    format!("operation {index}, `{}` giving `{result}`", op.name_of_kind).into()
}
