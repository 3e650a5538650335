//! A folder with the interface of ANEMLL's, made of the tiny checkpoint: what it says is what is pinned.
//!
//! The interface is that of its converter for Llama: embeddings of enumerated shapes, chunks with the functions `infer` and
//! `prefill` over one state for the layers of all chunks, a head that is split. As there, the last chunk's `prefill` leaves
//! the last feed-forward part out and gives one row that nobody reads.

use std::fs;
use std::path::Path;

use anemone::{Model, PackageRunner};
use anemone_convert::Source;
use anemone_mil::build::{Arg, FunctionBuilder};
use anemone_mil::model::Model as Package;
use anemone_mil::types::{DType, Dim, StaticType};
use anemone_mil::{Const, Function, Opset, Port, PortKind, PortShape, Ports, Program, StatePort, TensorType, ValueId};

use super::{holds, in_core_ml, options, tiny};

const CONTEXT: usize = 256;
const BATCH: usize = 16;
const HIDDEN: usize = 64;
const HEADS: usize = 4;
const KV_HEADS: usize = 2;
const SIZE: usize = 16;
const LAYERS: usize = 2;
const VOCABULARY: usize = 384;
/// Outputs that the logits are split into.
const SPLIT: usize = 8;
const STATE: &str = "model_model_kv_cache_0";

struct Net<'s> {
    f: FunctionBuilder,
    source: &'s Source,
    width: usize,
}

/// What the layers of a function share.
struct Shared {
    state: ValueId,
    cos: ValueId,
    sin: ValueId,
    mask: ValueId,
    start: ValueId,
    stop: ValueId,
}

impl<'s> Net<'s> {
    fn new(source: &'s Source, width: usize) -> Self {
        Self { f: FunctionBuilder::new(Opset::CoreML8), source, width }
    }

    fn op(&mut self, kind: &str, name: &str, args: &[(&str, Arg)]) -> ValueId {
        self.f.op(kind, name, args).unwrap()
    }

    fn input(&mut self, name: &str, dtype: DType, shape: &[usize]) -> ValueId {
        self.f.input(name, TensorType::fixed(dtype, shape))
    }

    /// Rows of a weight.
    fn weight(&mut self, name: &str, rows: std::ops::Range<usize>) -> ValueId {
        let tensor = self.source.tensor(name).unwrap();
        let columns = tensor.shape().get(1).copied();
        let (all, n) = (tensor.decode(), columns.unwrap_or(1));
        let rows = rows.start..rows.end.min(tensor.shape()[0]);
        let shape: Vec<usize> = [rows.len()].into_iter().chain(columns).collect();
        let values = &all[rows.start * n..rows.end * n];
        self.f.constant(&format!("{name}_{}", rows.start), Const::floats(DType::F16, &shape, values))
    }

    fn linear(&mut self, x: ValueId, name: &str) -> ValueId {
        let weight = self.weight(&format!("{name}.weight"), 0..usize::MAX);
        self.op("linear", name, &[("x", x.into()), ("weight", weight.into())])
    }

    fn binary(&mut self, kind: &str, name: &str, x: ValueId, y: ValueId) -> ValueId {
        self.op(kind, name, &[("x", x.into()), ("y", y.into())])
    }

    fn reshape(&mut self, x: ValueId, name: &str, shape: &[usize]) -> ValueId {
        let shape: Vec<i32> = shape.iter().map(|&n| n as i32).collect();
        self.op("reshape", name, &[("x", x.into()), ("shape", shape.as_slice().into())])
    }

    fn transpose(&mut self, x: ValueId, name: &str, perm: [i32; 4]) -> ValueId {
        self.op("transpose", name, &[("x", x.into()), ("perm", perm.into())])
    }

    fn concat(&mut self, values: &[ValueId], axis: i32, name: &str) -> ValueId {
        self.op("concat", name, &[("values", values.into()), ("axis", axis.into()), ("interleave", false.into())])
    }

    fn slice(&mut self, x: ValueId, name: &str, begin: &[i32], end: &[i32]) -> ValueId {
        self.op("slice_by_index", name, &[("x", x.into()), ("begin", begin.into()), ("end", end.into())])
    }

    fn norm(&mut self, x: ValueId, name: &str) -> ValueId {
        let squares = self.binary("mul", &format!("{name}_squares"), x, x);
        let args = [("x", squares.into()), ("axes", [-1].into()), ("keep_dims", true.into())];
        let mean = self.op("reduce_mean", &format!("{name}_mean"), &args);
        let small: Arg = half::f16::from_f32(1e-5).into();
        let mean = self.op("add", &format!("{name}_shifted"), &[("x", mean.into()), ("y", small)]);
        let inverse = self.op("rsqrt", &format!("{name}_inverse"), &[("x", mean.into())]);
        let scaled = self.binary("mul", &format!("{name}_scaled"), x, inverse);
        let weight = self.weight(&format!("{name}.weight"), 0..usize::MAX);
        self.binary("mul", name, scaled, weight)
    }

    fn rotate(&mut self, x: ValueId, shared: &Shared, name: &str) -> ValueId {
        let args = [("x", x.into()), ("split_sizes", [8, 8].into()), ("axis", (-1).into())];
        let halves = self.f.ops("split", &format!("{name}_halves"), &args).unwrap();
        let minus: Arg = half::f16::from_f32(-1.0).into();
        let negative = self.op("mul", &format!("{name}_negative"), &[("x", halves[1].into()), ("y", minus)]);
        let turned = self.concat(&[negative, halves[0]], -1, &format!("{name}_turned"));
        let a = self.binary("mul", &format!("{name}_cos"), x, shared.cos);
        let b = self.binary("mul", &format!("{name}_sin"), turned, shared.sin);
        self.binary("add", &format!("{name}_rotated"), a, b)
    }

    /// Cosines and sines of positions, (width, head size).
    fn angles(&mut self, positions: ValueId) -> [ValueId; 2] {
        [("cos", f64::cos as fn(f64) -> f64), ("sin", f64::sin)].map(|(name, f)| {
            let angle = |p: usize, i: usize| p as f64 * 10000f64.powf(-2.0 * (i % 8) as f64 / SIZE as f64);
            let table: Vec<f32> = (0..CONTEXT * SIZE).map(|i| f(angle(i / SIZE, i % SIZE)) as f32).collect();
            let table = self.f.constant(&format!("{name}_table"), Const::floats(DType::F16, &[CONTEXT, SIZE], &table));
            let args = [("x", table.into()), ("indices", positions.into()), ("axis", 0.into())];
            self.op("gather", name, &args)
        })
    }

    /// Writes rows of the cache, and gives them: (heads, 1, context, head size).
    fn write(&mut self, new: ValueId, shared: &Shared, row: usize, name: &str) -> ValueId {
        let row = row as i32;
        let mut corner = |end: i32, heads: i32, at: ValueId, size: i32| {
            let name = format!("{name}_corner_{end}");
            let before = self.f.constant(&format!("{name}_before"), [row + end, heads].into());
            let after = self.f.constant(&format!("{name}_after"), [size].into());
            self.concat(&[before, at, after], 0, &name)
        };
        let begin = corner(0, 0, shared.start, 0);
        let end = corner(1, KV_HEADS as i32, shared.stop, SIZE as i32);
        let old = self.op("read_state", &format!("{name}_old"), &[("input", shared.state.into())]);
        let args = [("x", old.into()), ("update", new.into()), ("begin", begin.into()), ("end", end.into())];
        let all = self.op("slice_update", &format!("{name}_new"), &args);
        self.f
            .ops("write_state", &format!("{name}_write"), &[("input", shared.state.into()), ("data", all.into())])
            .unwrap();
        let all = self.op("read_state", &format!("{name}_read"), &[("input", shared.state.into())]);
        let end = [row + 1, KV_HEADS as i32, CONTEXT as i32, SIZE as i32];
        let rows = self.slice(all, &format!("{name}_rows"), &[row, 0, 0, 0], &end);
        self.transpose(rows, &format!("{name}_heads"), [1, 0, 2, 3])
    }

    fn attention(&mut self, x: ValueId, shared: &Shared, layer: usize) -> ValueId {
        let (name, width) = (format!("model.layers.{layer}.self_attn"), self.width);
        let mut heads = |which: &str, count: usize| {
            let y = self.linear(x, &format!("{name}.{which}_proj"));
            let y = self.reshape(y, &format!("{name}_{which}_heads"), &[1, width, count, SIZE]);
            self.transpose(y, &format!("{name}_{which}"), [0, 2, 1, 3])
        };
        let (q, k, v) = (heads("q", HEADS), heads("k", KV_HEADS), heads("v", KV_HEADS));
        let (q, k) = (self.rotate(q, shared, &format!("{name}_q")), self.rotate(k, shared, &format!("{name}_k")));
        let keys = self.write(k, shared, layer, &format!("{name}_keys"));
        let values = self.write(v, shared, LAYERS + layer, &format!("{name}_values"));
        let q = self.reshape(q, &format!("{name}_q_groups"), &[KV_HEADS, HEADS / KV_HEADS, width, SIZE]);
        let product = |x: ValueId, y: ValueId, turned: bool| {
            [("x", x.into()), ("y", y.into()), ("transpose_x", false.into()), ("transpose_y", turned.into())]
        };
        let scores = self.op("matmul", &format!("{name}_scores"), &product(q, keys, true));
        let quarter: Arg = half::f16::from_f32(0.25).into();
        let scores = self.op("mul", &format!("{name}_scaled"), &[("x", scores.into()), ("y", quarter)]);
        let masked = self.binary("add", &format!("{name}_masked"), scores, shared.mask);
        let weights = self.op("softmax", &format!("{name}_weights"), &[("x", masked.into()), ("axis", (-1).into())]);
        let mixed = self.op("matmul", &format!("{name}_mixed"), &product(weights, values, false));
        let mixed = self.reshape(mixed, &format!("{name}_mixed_heads"), &[1, HEADS, width, SIZE]);
        let mixed = self.transpose(mixed, &format!("{name}_mixed_tokens"), [0, 2, 1, 3]);
        let mixed = self.reshape(mixed, &format!("{name}_mixed_flat"), &[1, width, HIDDEN]);
        self.linear(mixed, &format!("{name}.o_proj"))
    }

    fn mlp(&mut self, x: ValueId, layer: usize) -> ValueId {
        let name = format!("model.layers.{layer}.mlp");
        let gate = self.linear(x, &format!("{name}.gate_proj"));
        let gate = self.op("silu", &format!("{name}_active"), &[("x", gate.into())]);
        let up = self.linear(x, &format!("{name}.up_proj"));
        let both = self.binary("mul", &format!("{name}_gated"), gate, up);
        self.linear(both, &format!("{name}.down_proj"))
    }
}

/// A chunk of one layer: `infer`, or `prefill` of several tokens.
fn chunk(source: &Source, layer: usize, width: usize) -> Function {
    let mut net = Net::new(source, width);
    let mut x = net.input("hidden_states", DType::F16, &[1, width, HIDDEN]);
    let positions = net.input("position_ids", DType::I32, &[width]);
    let mask = net.input("causal_mask", DType::F16, &[1, 1, width, CONTEXT]);
    let start = net.input("current_pos", DType::I32, &[1]);
    let state = net.f.state(STATE, &StaticType::new(DType::F16, &[2 * LAYERS, KV_HEADS, CONTEXT, SIZE]));
    let stop = net.op("add", "stop", &[("x", start.into()), ("y", (width as i32).into())]);
    let [cos, sin] = net.angles(positions);
    let shared = Shared { state, cos, sin, mask, start, stop };
    let name = format!("model.layers.{layer}");
    let read = net.norm(x, &format!("{name}.input_layernorm"));
    let attended = net.attention(read, &shared, layer);
    x = net.binary("add", &format!("{name}_attended"), x, attended);
    let (last, prefill) = (layer + 1 == LAYERS, width > 1);
    if !(last && prefill) {
        let read = net.norm(x, &format!("{name}.post_attention_layernorm"));
        let fed = net.mlp(read, layer);
        x = net.binary("add", if last { "fed" } else { "output_hidden_states" }, x, fed);
    }
    if last {
        x = match prefill {
            true => net.slice(x, "output_hidden_states", &[0, 0, 0], &[1, 1, HIDDEN as i32]),
            false => {
                let normed = net.norm(x, "model.norm");
                net.op("identity", "output_hidden_states", &[("x", normed.into())])
            }
        };
    }
    described(net.f.finish(&[x]))
}

fn embeddings(source: &Source) -> Function {
    let mut net = Net::new(source, 1);
    let open = |dims: &[Option<usize>], dtype| TensorType {
        dtype,
        shape: Some(dims.iter().map(|n| n.map_or(Dim::Unknown, Dim::Known)).collect()),
    };
    let ids = net.f.input("input_ids", open(&[Some(1), None], DType::I32));
    let table = net.weight("model.embed_tokens.weight", 0..usize::MAX);
    let args = [("x", table.into()), ("indices", ids.into()), ("axis", 0.into())];
    let rows = net.f.ops_typed("gather", "hidden_states", &args, &[open(&[Some(1), None, Some(HIDDEN)], DType::F16)]);
    let mut function = net.f.finish(&[rows.unwrap()[0]]);
    let shape = PortShape::Enumerated { default: vec![1, 1], shapes: vec![vec![1, 1], vec![1, BATCH]] };
    function.ports.inputs = vec![port("input_ids", DType::I32, shape)];
    function.ports.outputs = vec![port("hidden_states", DType::F16, PortShape::Unspecified)];
    function
}

fn head(source: &Source) -> Function {
    let mut net = Net::new(source, 1);
    let x = net.input("hidden_states", DType::F16, &[1, 1, HIDDEN]);
    let rows = VOCABULARY / SPLIT;
    let logits: Vec<ValueId> = (0..SPLIT)
        .map(|i| {
            let weight = net.weight("lm_head.weight", i * rows..(i + 1) * rows);
            net.op("linear", &format!("logits{}", i + 1), &[("x", x.into()), ("weight", weight.into())])
        })
        .collect();
    described(net.f.finish(&logits))
}

fn port(name: &str, dtype: DType, shape: PortShape) -> Port {
    Port { name: name.to_owned(), description: String::new(), kind: PortKind::Array { dtype, shape }, optional: None }
}

/// With ports of fixed shapes.
fn described(mut function: Function) -> Function {
    let fixed = |id: &ValueId| {
        let value = function.value(*id);
        let ty = value.ty.tensor()?.to_static()?;
        Some(port(&value.name, ty.dtype, PortShape::Fixed(ty.shape.to_vec())))
    };
    let states = function.states().map(|(_, name, ty)| StatePort {
        name: name.to_owned(),
        description: String::new(),
        ty: ty.unwrap(),
    });
    let ports = Ports {
        inputs: function.inputs.iter().filter_map(fixed).collect(),
        outputs: function.body.outputs.iter().filter_map(fixed).collect(),
        states: states.collect(),
        ..Ports::default()
    };
    function.ports = ports;
    function
}

fn write(path: &Path, functions: Vec<(&str, Function)>) {
    let default_function = (functions.len() > 1).then(|| functions[0].0.to_owned());
    let functions = functions.into_iter().map(|(name, f)| (name.to_owned(), f)).collect();
    let program = Program { version: 1, functions, ..Program::default() };
    let model = Package { specification_version: 9, program, default_function, ..Package::default() };
    anemone_mil::encode::write(&model, path).unwrap();
}

fn make(folder: &Path) {
    let source = Source::open(tiny().join("tiny-llama")).unwrap();
    write(&folder.join("llama_embeddings.mlpackage"), vec![("main", embeddings(&source))]);
    for layer in 0..LAYERS {
        let name = format!("llama_FFN_PF_lut6_chunk_{:02}of{LAYERS:02}.mlpackage", layer + 1);
        let functions = vec![("infer", chunk(&source, layer, 1)), ("prefill", chunk(&source, layer, BATCH))];
        write(&folder.join(name), functions);
    }
    write(&folder.join("llama_lm_head_lut6.mlpackage"), vec![("main", head(&source))]);
    let meta = format!(
        "model_info:
  name: anemll-tiny-llama-ctx{CONTEXT}
  version: 0.3.4
  description: |
    Demonstarates running tiny-llama on Apple Neural Engine
    Context length: {CONTEXT}
  license: MIT
  author: Anemll
  framework: Core ML
  language: Python
  architecture: llama
  parameters:
    context_length: {CONTEXT}
    batch_size: {BATCH}
    lut_embeddings: none
    lut_ffn: 6
    lut_lmhead: 6
    num_chunks: {LAYERS}
    model_prefix: llama
    embeddings: llama_embeddings.mlmodelc
    lm_head: llama_lm_head_lut6.mlmodelc
    ffn: llama_FFN_PF_lut6.mlmodelc
    split_lm_head: {SPLIT}
"
    );
    fs::write(folder.join("meta.yaml"), meta).unwrap();
    for name in ["tokenizer.json", "tokenizer_config.json", "config.json", "generation_config.json"] {
        fs::copy(tiny().join("tiny-llama").join(name), folder.join(name)).unwrap();
    }
}

#[test]
fn a_folder_of_anemll_says_the_same() {
    let folder = tempfile::tempdir().unwrap();
    make(folder.path());
    let own = Model::open(folder.path(), &options()).unwrap();
    let info = own.info();
    assert_eq!((info.name.as_str(), info.signature, info.parts), ("anemll-tiny-llama-ctx256", "parts", 4));
    assert_eq!((info.context, info.vocabulary, info.states.len()), (CONTEXT, VOCABULARY, LAYERS));
    assert_eq!(info.calls.iter().map(|call| call.width).collect::<Vec<_>>(), [1, BATCH]);
    holds(own, "ANEMLL");
    holds(in_core_ml(folder.path()), "ANEMLL, Core ML");
    // Its description names it too.
    PackageRunner::open(&folder.path().join("meta.yaml"), &options()).unwrap();

    fs::rename(folder.path().join("llama_lm_head_lut6.mlpackage"), folder.path().join("llama_lm_head_lut6.mlmodelc"))
        .unwrap();
    let compiled = PackageRunner::open(folder.path(), &options()).unwrap_err().to_string();
    assert!(compiled.contains("llama_lm_head_lut6.mlmodelc") && compiled.contains("compiled from"), "{compiled}");
}
