//! Where each operation of a function would run, as far as that can be told without the hardware: by element types, ranks,
//! extents, kinds of operations and forms of weights. Core ML's own plan (`MLComputePlan`) has the last word, and a measurement
//! the very last.

use anemone_mil::model::Model;
use anemone_mil::types::{DType, Dim, TensorType};
use anemone_mil::{Kind, Operation};
use serde::Serialize;

use super::blocks_of_weights::in_blocks;
use super::int4_linear::of_four_bits;
use super::look::{Look, extents, operands};
use super::target::Os;

/// What computes an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Device {
    /// Nothing, when the function runs: it is a constant or follows from constants.
    Nothing,
    /// The CPU.
    Cpu,
    /// The GPU.
    Gpu,
    /// The Neural Engine.
    NeuralEngine,
}

/// Which devices a model may use: Core ML's compute units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Units {
    /// Only the CPU.
    CpuOnly,
    /// The CPU and the GPU.
    CpuAndGpu,
    /// The CPU and the Neural Engine.
    CpuAndNeuralEngine,
    /// All.
    All,
}

/// Where one operation would run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Prediction {
    /// Its index in the function's block.
    pub op: usize,
    /// What computes it.
    pub device: Device,
    /// Why, where that is not what was asked for; else empty.
    pub reason: String,
}

/// The largest extent of an axis on the Neural Engine, from A16 on.
pub const AXIS_LIMIT: usize = 65_536;
/// The largest extent of an axis on the Neural Engine up to A15 (and M1 and M2, which are of that age).
pub const OLD_AXIS_LIMIT: usize = 16_384;
/// The highest rank of a tensor on the Neural Engine.
pub const RANK_LIMIT: usize = 5;

/// Where each operation of a model's function would run; nothing if there is no such function.
#[must_use]
pub fn predict(model: &Model, function: &str, units: Units, os: Os) -> Vec<Prediction> {
    let Some((name, function)) = model.program.functions.get_key_value(function) else { return Vec::new() };
    let look = Look::new(name, function, os);
    let on = |p: &Prediction| match (units, p.device) {
        (_, Device::Nothing) => p.clone(),
        (Units::CpuOnly, _) => Prediction { op: p.op, device: Device::Cpu, reason: String::new() },
        (Units::CpuAndNeuralEngine, _) | (Units::All, Device::NeuralEngine) => p.clone(),
        (Units::CpuAndGpu | Units::All, _) => on_gpu(&look, p.op),
    };
    look.predictions.iter().map(on).collect()
}

/// Where the operations of a function would run on the CPU and the Neural Engine.
pub(super) fn predict_function(look: &Look<'_>, os: Os) -> Vec<Prediction> {
    let each = |(i, op): (usize, &Operation)| {
        if look.is_folded(op) {
            return Prediction { op: i, device: Device::Nothing, reason: String::new() };
        }
        match obstacle(look, op, os) {
            Some(reason) => Prediction { op: i, device: Device::Cpu, reason },
            None => Prediction { op: i, device: Device::NeuralEngine, reason: String::new() },
        }
    };
    look.function.body.ops.iter().enumerate().map(each).collect()
}

/// What keeps an operation from the Neural Engine.
fn obstacle(look: &Look<'_>, op: &Operation, _os: Os) -> Option<String> {
    let kind = op.name_of_kind.as_str();
    if let Some((_, why)) = OFF_ENGINE.iter().find(|(kinds, _)| kinds.contains(&kind)) {
        return Some((*why).to_owned());
    }
    if matches!(op.kind, Kind::Unknown) {
        return Some(format!("`{kind}` is not known here"));
    }
    if !op.blocks.is_empty() {
        return Some("it has nested blocks".to_owned());
    }
    if kind == "gather" && look.operand(op, "indices").is_some_and(|id| !look.is_fixed(id)) {
        return Some("it looks rows up by numbers that only a run knows".to_owned());
    }
    if let Some(reason) = operands(op).find_map(|id| weights(look, look.maker(id)?.1)) {
        return Some(reason);
    }
    let results = op.outputs.iter().filter_map(|&id| look.ty(id));
    results.map(|ty| (true, ty)).chain(operands(op).filter_map(|id| Some((false, look.ty(id)?)))).find_map(misfit)
}

/// What keeps an operation from the Neural Engine that takes what `maker` makes of stored weights.
fn weights(look: &Look<'_>, maker: &Operation) -> Option<String> {
    if let Some(scales) = in_blocks(look, maker) {
        return Some(format!("its weights have a scale for each block ({}), not for each row", extents(&scales)));
    }
    of_four_bits(look, maker).map(|dtype| format!("its weights are {dtype}, and no palette"))
}

/// What is wrong with a result (`true`) or an operand.
fn misfit((result, ty): (bool, &TensorType)) -> Option<String> {
    let what = if result { "its result" } else { "an operand" };
    let halves = matches!(ty.dtype, DType::F16 | DType::I8 | DType::U8 | DType::I16 | DType::U16);
    // Integers of other widths and text are parameters, such as where a slice begins.
    let parameter = !result && (ty.dtype.is_int() || ty.dtype == DType::String || scalar(ty));
    if !halves && !parameter {
        return Some(format!("{what} is {}; the Neural Engine computes with fp16, int8 and int16", ty.dtype));
    }
    let Some(dims) = &ty.shape else { return Some(format!("{what} has no known rank")) };
    if dims.contains(&Dim::Unknown) {
        return Some(format!("{what} has extents that only a run knows"));
    }
    if dims.len() > RANK_LIMIT {
        return Some(format!("{what} has {} axes; the Neural Engine takes {RANK_LIMIT}", dims.len()));
    }
    let shape: Vec<usize> = ty.to_static()?.shape.to_vec();
    shape
        .iter()
        .any(|&n| n > AXIS_LIMIT)
        .then(|| format!("{what} is {}; no axis may exceed {AXIS_LIMIT} on the Neural Engine", extents(&shape)))
}

fn scalar(ty: &TensorType) -> bool {
    ty.shape.as_ref().is_some_and(Vec::is_empty) && ty.dtype == DType::Bool
}

/// Where an operation would run on the CPU and the GPU.
fn on_gpu(look: &Look<'_>, index: usize) -> Prediction {
    let op = &look.function.body.ops[index];
    let kind = op.name_of_kind.as_str();
    let reason = if matches!(op.kind, Kind::Unknown) || !op.blocks.is_empty() {
        format!("`{kind}` is not known here, or has nested blocks")
    } else if SHAPES_BY_DATA.contains(&kind) {
        "the shape of its result depends on its elements".to_owned()
    } else {
        String::new()
    };
    let device = if reason.is_empty() { Device::Gpu } else { Device::Cpu };
    Prediction { op: index, device, reason }
}

const SHAPES_BY_DATA: &[&str] = &["non_zero", "range_1d", "shape", "tile_by_data"];

/// Kinds of operations that the Neural Engine does not take, and why.
///
/// Facts: Apple's rules for authors of models (coreai-models, `neural_engine_rules.md`: no fused attention, half floats and
/// short integers alone); reports of placement (stablehlo-coreml#89 and #110, executorch#4091, mobius#77).
const OFF_ENGINE: &[(&[&str], &str)] = &[
    (&["scaled_dot_product_attention"], "the Neural Engine has no path for fused attention"),
    (SHAPES_BY_DATA, "the shape of its result depends on its elements"),
    (
        &["equal", "not_equal", "less", "less_equal", "greater", "greater_equal"],
        "comparisons give truth values, which the Neural Engine does not hold",
    ),
    (
        &["logical_and", "logical_or", "logical_xor", "logical_not"],
        "it works on truth values, which the Neural Engine does not hold",
    ),
    (
        &["scatter", "scatter_along_axis", "scatter_nd", "gather_along_axis", "gather_nd"],
        "it moves elements by numbers that only a run knows",
    ),
    (
        &["argsort", "topk", "cumsum", "reverse_sequence", "one_hot"],
        "sorting, running sums and counting run on the CPU",
    ),
    (&["cond", "while_loop", "list_read", "list_write", "make_list"], "control flow runs on the CPU"),
    (&["band_part", "inverse", "sinh", "cosh", "tan", "asin", "acos", "atan", "atanh"], "the Neural Engine lacks it"),
    (
        &["random_normal", "random_uniform", "random_bernoulli", "random_categorical"],
        "random numbers are drawn on the CPU",
    ),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use anemone_mil::build::FunctionBuilder;
    use anemone_mil::{Function, Opset, Program};

    use super::*;

    fn model(f: Function) -> Model {
        let functions = BTreeMap::from([("main".to_owned(), f)]);
        Model { program: Program { version: 1, functions, ..Program::default() }, ..Model::default() }
    }

    #[test]
    fn integers_and_singles_stay_on_the_cpu() {
        let mut b = FunctionBuilder::new(Opset::CoreML8);
        let x = b.input("x", TensorType::fixed(DType::F16, &[1, 4]));
        let i = b.input("i", TensorType::fixed(DType::I32, &[1]));
        let sum = b.op("add", "sum", &[("x", i.into()), ("y", 1.into())]).unwrap();
        let half = b.op("mul", "half", &[("x", x.into()), ("y", half::f16::from_f32(0.5).into())]).unwrap();
        let single = b.op("cast", "single", &[("x", half.into()), ("dtype", "fp32".into())]).unwrap();
        let model = model(b.finish(&[sum, single]));
        let device = |units, name: &str| {
            let f = &model.program.functions["main"];
            let at = f.body.ops.iter().position(|op| f.value(op.outputs[0]).name == name).unwrap();
            predict(&model, "main", units, Os::Ios18)[at].device
        };
        assert_eq!(device(Units::CpuAndNeuralEngine, "sum"), Device::Cpu);
        assert_eq!(device(Units::CpuAndNeuralEngine, "half"), Device::NeuralEngine);
        assert_eq!(device(Units::CpuAndNeuralEngine, "single"), Device::Cpu);
        assert_eq!(device(Units::CpuAndNeuralEngine, "sum_y_0"), Device::Nothing);
        assert_eq!(device(Units::All, "sum"), Device::Gpu);
        assert_eq!(device(Units::CpuOnly, "half"), Device::Cpu);
        assert!(predict(&model, "other", Units::All, Os::Ios18).is_empty());
    }
}
