//! What `inspect` says of a package.

mod overview;
mod print;
mod weights;

use std::collections::BTreeMap;

use anemone_mil::model::Model;
use anemone_mil::port::{PortKind, PortShape};
use anemone_mil::types::Opset;
use anemone_mil::{Block, Function};
use anemone_package::Package;
use anemone_package::bundle::hex;
use anyhow::Result;
use serde::Serialize;

pub(crate) use overview::Overview;
use weights::Weights;

/// What a package holds.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    path: String,
    specification_version: i32,
    sha256: String,
    /// Positions of the cache, where the package says so.
    context: Option<u64>,
    default_function: String,
    functions: Vec<FunctionReport>,
    weights: Weights,
    metadata: MetadataReport,
    /// What keeps it from running here.
    problems: Vec<String>,
    /// What it holds beyond what is known here.
    left_out: Vec<String>,
}

#[derive(Debug, Serialize)]
struct FunctionReport {
    name: String,
    opset: String,
    /// The first system that has these operations.
    os: Option<&'static str>,
    inputs: Vec<PortReport>,
    outputs: Vec<PortReport>,
    states: Vec<StateReport>,
    /// Bytes that one set of states takes in memory.
    state_bytes: u64,
    operations: BTreeMap<String, usize>,
}

#[derive(Debug, Serialize)]
struct PortReport {
    name: String,
    #[serde(rename = "type")]
    kind: String,
    dtype: Option<&'static str>,
    /// The shapes that are allowed, in words.
    shape: String,
    /// The shape, where there is but one.
    fixed_shape: Option<Vec<usize>>,
    optional: bool,
    description: String,
}

#[derive(Debug, Serialize)]
struct StateReport {
    name: String,
    dtype: &'static str,
    shape: Vec<usize>,
    bytes: u64,
    description: String,
}

#[derive(Debug, Serialize)]
struct MetadataReport {
    description: String,
    author: String,
    license: String,
    version: String,
    user_defined: BTreeMap<String, String>,
}

impl Report {
    pub(crate) fn of(package: &Package, model: &Model, problems: Vec<String>) -> Result<Self> {
        let m = &model.metadata;
        Ok(Self {
            path: package.path().display().to_string(),
            specification_version: model.specification_version,
            sha256: hex(&package.digest()?),
            context: m.user_defined.get("anemone.context").and_then(|n| n.parse().ok()),
            default_function: model.default_name().to_owned(),
            functions: model.program.functions.iter().map(|(name, f)| FunctionReport::of(name, f)).collect(),
            weights: Weights::of(&model.program),
            metadata: MetadataReport {
                description: m.description.clone(),
                author: m.author.clone(),
                license: m.license.clone(),
                version: m.version.clone(),
                user_defined: m.user_defined.clone(),
            },
            problems,
            left_out: model.left_out.clone(),
        })
    }
}

impl FunctionReport {
    fn of(name: &str, f: &Function) -> Self {
        let mut operations = BTreeMap::new();
        count(&f.body, &mut operations);
        let states: Vec<StateReport> = f.states().map(|(id, name, _)| state(f, id, name)).collect();
        let inputs = f.inputs.iter().filter(|&&id| f.value(id).ty.state().is_none());
        Self {
            name: name.to_owned(),
            opset: f.opset.clone(),
            os: Opset::from_name(&f.opset).map(Opset::os),
            inputs: inputs.map(|&id| port(f, id, &f.ports.inputs)).collect(),
            outputs: f.body.outputs.iter().map(|&id| port(f, id, &f.ports.outputs)).collect(),
            state_bytes: states.iter().map(|s| s.bytes).sum(),
            states,
            operations,
        }
    }
}

fn count(block: &Block, all: &mut BTreeMap<String, usize>) {
    for op in &block.ops {
        *all.entry(op.name_of_kind.clone()).or_default() += 1;
        op.blocks.iter().for_each(|block| count(block, all));
    }
}

fn state(f: &Function, id: anemone_mil::ValueId, name: &str) -> StateReport {
    let wrapped = f.value(id).ty.state().and_then(|t| t.to_static());
    let description = f.ports.states.iter().find(|p| p.name == name).map_or("", |p| &p.description);
    let elements = wrapped.as_ref().map_or(0, |t| t.shape.iter().fold(1u64, |a, &b| a.saturating_mul(b as u64)));
    StateReport {
        name: name.to_owned(),
        dtype: wrapped.as_ref().map_or("?", |t| t.dtype.name()),
        shape: wrapped.as_ref().map_or_else(Vec::new, |t| t.shape.to_vec()),
        bytes: wrapped.map_or(0, |t| elements.saturating_mul(t.dtype.bits() as u64) / 8),
        description: description.to_owned(),
    }
}

fn port(f: &Function, id: anemone_mil::ValueId, ports: &[anemone_mil::Port]) -> PortReport {
    let value = f.value(id);
    let declared = ports.iter().find(|p| p.name == value.name);
    let tensor = value.ty.tensor();
    // Where the description does not say it, the program does.
    let from_program = || match tensor {
        Some(t) => t.to_string().split_once(", ").map_or_else(String::new, |(_, s)| s.trim_end_matches('>').to_owned()),
        None => value.ty.to_string(),
    };
    let (kind, shape) = match declared.map(|p| &p.kind) {
        Some(PortKind::Array { shape: PortShape::Unspecified, .. }) | None => ("multiArrayType", from_program()),
        Some(PortKind::Array { shape, .. }) => ("multiArrayType", shape_text(shape)),
        Some(kind @ PortKind::Other(_)) => (kind.name(), from_program()),
    };
    let fixed_shape = match declared.map(|p| &p.kind) {
        Some(PortKind::Array { shape: PortShape::Fixed(shape), .. }) => Some(shape.clone()),
        _ => tensor.and_then(|t| t.to_static()).map(|t| t.shape.to_vec()),
    };
    PortReport {
        name: value.name.clone(),
        kind: kind.to_owned(),
        dtype: tensor.map(|t| t.dtype.name()),
        shape,
        fixed_shape,
        optional: declared.is_some_and(|p| p.optional.is_some()),
        description: declared.map_or_else(String::new, |p| p.description.clone()),
    }
}

/// The shapes that a port allows, for people.
pub(crate) fn shape_text(shape: &PortShape) -> String {
    match shape {
        PortShape::Unspecified => "[...]".to_owned(),
        PortShape::Fixed(s) => format!("{s:?}"),
        PortShape::Enumerated { shapes, .. } => {
            shapes.iter().map(|s| format!("{s:?}")).collect::<Vec<_>>().join(" or ")
        }
        PortShape::Range { bounds, .. } => {
            let axis = |&(low, high): &(usize, Option<usize>)| match high {
                Some(high) if high == low => low.to_string(),
                Some(high) => format!("{low}..{high}"),
                None => format!("{low}.."),
            };
            format!("[{}]", bounds.iter().map(axis).collect::<Vec<_>>().join(", "))
        }
    }
}
