//! Functions of the fake, run by our own runtime.

use std::collections::BTreeMap;
use std::sync::Arc;

use anemone_cpu::{Instance, Plan, PlanOptions, Pool, State};
use anemone_mil::lower::PackCache;
use anemone_mil::types::elements;
use anemone_mil::{DType, Data, DataMut, Function, Port as DeclaredPort, TensorType};

use super::{Array, generic};
use crate::{ElementType, Failure, Port, Ports};

/// A loaded function.
#[derive(Debug)]
pub struct FakeModel {
    function: Function,
    weights: PackCache,
}

/// A function with its arrays.
#[derive(Debug)]
pub struct FakeCall {
    planned: Option<Instance>,
    pub(super) inputs: Vec<Array>,
    pub(super) outputs: Vec<Array>,
}

/// States in padded arrays.
#[derive(Debug)]
pub struct FakeState {
    arrays: Vec<Array>,
}

fn element(dtype: DType) -> Option<ElementType> {
    match dtype {
        DType::F16 => Some(ElementType::F16),
        DType::F32 => Some(ElementType::F32),
        DType::I32 => Some(ElementType::I32),
        _ => None,
    }
}

/// The port of a value: its description's default shape, or else what the program says.
fn port(name: &str, ty: &TensorType, declared: &[DeclaredPort]) -> Option<Port> {
    let described = declared.iter().find(|p| p.name == name).and_then(|p| p.kind.array());
    let dtype = described.map_or(ty.dtype, |(dtype, _)| dtype);
    let shape = described.and_then(|(_, shape)| shape.default_shape().map(<[usize]>::to_vec));
    let shape = shape.or_else(|| ty.to_static().map(|t| t.shape.to_vec())).unwrap_or_default();
    Some(Port::new(name, element(dtype)?, shape))
}

impl FakeModel {
    pub(super) fn new(function: Function) -> Result<Self, Failure> {
        Ok(Self { function, weights: PackCache::default() })
    }

    pub(super) fn ports(&self) -> Ports {
        let f = &self.function;
        let mut ports = Ports::default();
        for &id in &f.inputs {
            let value = f.value(id);
            match (value.ty.state(), value.ty.tensor()) {
                (Some(ty), _) => ports.states.extend(port(&value.name, ty, &[])),
                (None, Some(ty)) => ports.inputs.extend(port(&value.name, ty, &f.ports.inputs)),
                (None, None) => {}
            }
        }
        let outputs = f.body.outputs.iter().map(|&id| f.value(id));
        ports.outputs = outputs.filter_map(|value| port(&value.name, value.ty.tensor()?, &f.ports.outputs)).collect();
        ports
    }
}

impl FakeCall {
    pub(super) fn new(inputs: &[Port]) -> Self {
        Self { planned: None, inputs: inputs.iter().map(Array::new).collect(), outputs: Vec::new() }
    }

    /// The function for these inputs: arrays can be made for shapes that it does not take, and then it fails here.
    fn plan(&mut self, model: &FakeModel) -> Result<Instance, Failure> {
        if let Some(planned) = self.planned.take() {
            return Ok(planned);
        }
        let shapes: BTreeMap<_, _> =
            self.inputs.iter().map(|input| (input.port.name.clone(), input.port.shape.clone())).collect();
        let options = PlanOptions { shapes, ..PlanOptions::default() };
        let plan = Plan::new(&model.function, &options, &model.weights).map_err(generic)?;
        let declared = model.ports().outputs;
        let outputs = plan.outputs().iter().filter_map(|p| {
            let element = declared.iter().find(|port| port.name == p.name)?.element;
            Some(Array::new(&Port::new(p.name.clone(), element, p.shape.to_vec())))
        });
        self.outputs = outputs.collect();
        Ok(Instance::new(Arc::new(plan), Pool::new(1)))
    }

    pub(super) fn run(&mut self, model: &FakeModel, state: Option<&mut FakeState>) -> Result<(), Failure> {
        let mut instance = self.plan(model)?;
        self.run_on(&mut instance, state)?;
        self.planned = Some(instance);
        Ok(())
    }

    fn run_on(&mut self, instance: &mut Instance, state: Option<&mut FakeState>) -> Result<(), Failure> {
        for input in &self.inputs {
            let index = instance.input_index(&input.port.name).ok_or_else(|| generic("no such input"))?;
            let view = input.view().map_err(generic)?;
            match instance.input_mut(index) {
                DataMut::F32(to) => view.read_f32(0, to).map_err(generic)?,
                DataMut::I32(to) => view.read_i32(to).map_err(generic)?,
                DataMut::Bool(_) => return Err(generic("the fake takes no truth values")),
            }
        }
        let mut own = State::new(Arc::clone(instance.plan().states()));
        if let Some(state) = &state {
            for array in &state.arrays {
                let to = own.get_mut(&array.port.name).ok_or_else(|| generic("no such state"))?;
                let (rows, columns) = (0..rows(&array.port), 0..columns(&array.port));
                array.view().and_then(|view| view.read_columns(rows, columns, to)).map_err(generic)?;
            }
        }
        instance.run(&mut own).map_err(generic)?;
        if let Some(state) = state {
            for array in &mut state.arrays {
                let (rows, columns) = (0..rows(&array.port), 0..columns(&array.port));
                let from = own.get(&array.port.name).expect("read above");
                array.view_mut().and_then(|mut view| view.write_columns(rows, columns, from)).map_err(generic)?;
            }
        }
        for output in &mut self.outputs {
            let index = instance.output_index(&output.port.name).expect("made from the plan");
            debug_assert_eq!(elements(instance.output_shape(index)), elements(&output.port.shape));
            let mut view = output.view_mut().map_err(generic)?;
            match instance.output(index) {
                Data::F32(values) => view.write_f32(values).map_err(generic)?,
                Data::I32(values) => view.write_i32(values).map_err(generic)?,
                Data::Bool(_) => return Err(generic("the fake gives no truth values")),
            }
        }
        Ok(())
    }
}

fn rows(port: &Port) -> usize {
    port.shape.len().checked_sub(2).map_or(0, |axis| port.shape[..axis].iter().product())
}

fn columns(port: &Port) -> usize {
    port.shape.len().checked_sub(2).map_or(0, |axis| port.shape[axis])
}

impl FakeState {
    pub(super) fn rubbish(ports: &[Port]) -> Self {
        Self { arrays: ports.iter().map(Array::new).collect() }
    }

    fn index(&self, name: &str) -> usize {
        self.arrays.iter().position(|a| a.port.name == name).expect("names are checked by the caller")
    }

    pub(super) fn array(&self, name: &str) -> &Array {
        &self.arrays[self.index(name)]
    }

    /// The array, at another address than before.
    pub(super) fn moved(&mut self, name: &str) -> &mut Array {
        let index = self.index(name);
        self.arrays[index] = self.arrays[index].clone();
        &mut self.arrays[index]
    }
}
