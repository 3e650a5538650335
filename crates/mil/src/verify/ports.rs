//! The model description against the program: same names, same types.

use std::collections::BTreeSet;

use super::{Diagnostic, Problem};
use crate::model::Model;
use crate::place::Place;
use crate::port::{Port, PortKind, PortShape, Ports};
use crate::program::{Function, Value};
use crate::types::{DType, Dim, Opset, StaticType, TensorType};

/// Ports of a function that has any.
pub(super) fn check_function(f: &Function, place: &Place, out: &mut Vec<Diagnostic>) {
    if f.ports.is_empty() {
        return;
    }
    let values = |ids: &[crate::ValueId]| ids.iter().filter_map(|id| f.values.get(id.index())).collect::<Vec<_>>();
    let (states, inputs): (Vec<_>, Vec<_>) = values(&f.inputs).into_iter().partition(|v| v.ty.state().is_some());
    let Ports { inputs: input_ports, outputs: output_ports, states: state_ports, .. } = &f.ports;
    let mut side = Side { place, out };
    side.pair("input", input_ports.iter().map(|p| &p.name), &inputs, |i, v| port_problem(&input_ports[i], v));
    side.pair("output", output_ports.iter().map(|p| &p.name), &values(&f.body.outputs), |i, v| {
        port_problem(&output_ports[i], v)
    });
    side.pair("state", state_ports.iter().map(|p| &p.name), &states, |i, v| {
        let declared = &state_ports[i].ty;
        let wrapped = v.ty.state()?;
        (wrapped.to_static().as_ref() != Some(declared))
            .then(|| Problem::PortType { declared: declared.to_string(), found: wrapped.to_string() })
    });
}

/// What the description says of the model as a whole.
pub(super) fn check_model(model: &Model, out: &mut Vec<Diagnostic>) {
    if model.function(None).is_none() {
        let known = list(model.program.functions.keys());
        let problem = Problem::NoDefault { name: model.default_name().to_owned(), known };
        out.push(Diagnostic { place: Place::whole(), problem });
    }
    for (name, f) in &model.program.functions {
        let described = model.default_function.is_some() || name == model.default_name();
        if described && f.ports.is_empty() {
            for &id in &f.body.outputs {
                let Some(v) = f.values.get(id.index()) else { continue };
                let problem = Problem::Undeclared { what: "output", name: v.name.clone() };
                out.push(Diagnostic { place: Place::function(name), problem });
            }
        }
        if let Some(opset) = Opset::from_name(&f.opset) {
            // CoreML5 came with version 6, and each later set with the next version.
            let needs = opset as i32 - Opset::CoreML5 as i32 + 6;
            if model.specification_version < needs {
                let problem = Problem::SpecificationVersion { opset, needs, found: model.specification_version };
                out.push(Diagnostic { place: Place::function(name), problem });
            }
        }
    }
}

struct Side<'a> {
    place: &'a Place,
    out: &'a mut Vec<Diagnostic>,
}

impl Side<'_> {
    /// Pairs ports with values by name; `check` looks at each pair.
    fn pair<'p>(
        &mut self,
        what: &'static str,
        ports: impl Iterator<Item = &'p String>,
        values: &[&Value],
        check: impl Fn(usize, &Value) -> Option<Problem>,
    ) {
        let mut declared = BTreeSet::new();
        for (i, name) in ports.enumerate() {
            if !declared.insert(name) {
                self.report(what, name, Problem::DeclaredTwice { what, name: name.clone() });
                continue;
            }
            match values.iter().find(|v| v.name == *name) {
                None => {
                    let known = list(values.iter().map(|v| &v.name));
                    self.report(what, name, Problem::NoCounterpart { what, name: name.clone(), known });
                }
                Some(v) => {
                    if let Some(problem) = check(i, v) {
                        self.report(what, name, problem);
                    }
                }
            }
        }
        for v in values.iter().filter(|v| !declared.contains(&v.name)) {
            self.report(what, &v.name, Problem::Undeclared { what, name: v.name.clone() });
        }
    }

    fn report(&mut self, what: &str, name: &str, problem: Problem) {
        self.out.push(Diagnostic { place: self.place.clone().part(format!("{what} port `{name}`")), problem });
    }
}

/// What is wrong between a port and its value.
fn port_problem(port: &Port, value: &Value) -> Option<Problem> {
    let PortKind::Array { dtype, shape } = &port.kind else { return None };
    let fits = value.ty.tensor().is_some_and(|t| t.dtype == *dtype && shape_fits(*dtype, shape, t));
    (!fits).then(|| Problem::PortType { declared: render(*dtype, shape), found: value.ty.to_string() })
}

/// Whether every shape that the port allows is one that the value may have.
fn shape_fits(dtype: DType, shape: &PortShape, ty: &TensorType) -> bool {
    let admits = |shape: &[usize]| ty.admits(&StaticType::new(dtype, shape));
    match shape {
        PortShape::Unspecified => true,
        // A scalar passes the border as an array of one element.
        PortShape::Fixed(s) => admits(s) || (s == &[1] && admits(&[])),
        PortShape::Enumerated { shapes, .. } => shapes.iter().all(|s| admits(s)),
        PortShape::Range { bounds, .. } => ty.shape.as_ref().is_none_or(|dims| {
            dims.len() == bounds.len()
                && dims.iter().zip(bounds).all(|(d, &(low, high))| match d {
                    Dim::Known(n) => (low, high) == (*n, Some(*n)),
                    Dim::Unknown => true,
                })
        }),
    }
}

fn render(dtype: DType, shape: &PortShape) -> String {
    let axes = |s: &[usize]| s.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    match shape {
        PortShape::Unspecified => format!("{dtype} of any shape"),
        PortShape::Fixed(s) => format!("{dtype} [{}]", axes(s)),
        PortShape::Enumerated { shapes, .. } => {
            format!("{dtype} {}", shapes.iter().map(|s| format!("[{}]", axes(s))).collect::<Vec<_>>().join(" or "))
        }
        PortShape::Range { bounds, .. } => {
            let bound = |&(low, high): &(usize, Option<usize>)| match high {
                Some(high) if high == low => format!("{low}"),
                Some(high) => format!("{low}..={high}"),
                None => format!("{low}.."),
            };
            format!("{dtype} [{}]", bounds.iter().map(bound).collect::<Vec<_>>().join(", "))
        }
    }
}

/// Names for people; "none" if there are none.
fn list<'a>(names: impl Iterator<Item = &'a String>) -> String {
    let all: Vec<String> = names.map(|n| format!("`{n}`")).collect();
    if all.is_empty() { "none".to_owned() } else { all.join(", ") }
}
