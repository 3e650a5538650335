//! Models that are no chats, of well-known shapes and with drawn weights: for measuring, and for tests of whole programs.

use anemone_mil::build::{Arg, BuildError, FunctionBuilder};
use anemone_mil::types::TensorType;
use anemone_mil::{Const, DType, Function, Opset, StaticType, ValueId};

/// A function being built, and where its weights are drawn from.
struct Model {
    b: FunctionBuilder,
    drawn: u64,
    number: usize,
}

impl Model {
    fn new() -> Self {
        Self { b: FunctionBuilder::new(Opset::CoreML7), drawn: 0x9e37_79b9_7f4a_7c15, number: 0 }
    }

    /// Half floats around `mean`, `spread` wide.
    fn weights(&mut self, shape: &[usize], mean: f32, spread: f32) -> Arg {
        let draw = |_| {
            self.drawn ^= self.drawn << 13;
            self.drawn ^= self.drawn >> 7;
            self.drawn ^= self.drawn << 17;
            mean + spread * ((self.drawn >> 40) as f32 / (1 << 23) as f32 - 1.0)
        };
        let values: Vec<f32> = (0..shape.iter().product()).map(draw).collect();
        Const::floats(DType::F16, shape, &values).into()
    }

    fn op(&mut self, kind: &str, args: &[(&str, Arg)]) -> Result<ValueId, BuildError> {
        self.number += 1;
        self.b.op(kind, &format!("{kind}_{}", self.number), args)
    }

    fn input(&mut self, name: &str, dtype: DType, shape: &[usize]) -> ValueId {
        self.b.input(name, TensorType::from(&StaticType::new(dtype, shape)))
    }

    fn shape(&self, x: ValueId) -> Vec<usize> {
        self.b.ty(x).shape.to_vec()
    }

    fn conv(
        &mut self,
        x: ValueId,
        to: usize,
        window: usize,
        stride: i32,
        groups: usize,
    ) -> Result<ValueId, BuildError> {
        let from = self.shape(x)[1] / groups;
        let spread = (6.0 / (from * window * window) as f32).sqrt();
        let weight = self.weights(&[to, from, window, window], 0.0, spread);
        let bias = self.weights(&[to], 0.0, 0.1);
        let pad = (window / 2) as i32;
        self.op(
            "conv",
            &[
                ("x", x.into()),
                ("weight", weight),
                ("bias", bias),
                ("strides", [stride, stride].into()),
                ("pad_type", "custom".into()),
                ("pad", [pad; 4].into()),
                ("dilations", [1, 1].into()),
                ("groups", (groups as i32).into()),
            ],
        )
    }

    fn linear(&mut self, x: ValueId, to: usize) -> Result<ValueId, BuildError> {
        let from = *self.shape(x).last().unwrap_or(&1);
        let weight = self.weights(&[to, from], 0.0, (3.0 / from as f32).sqrt());
        let bias = self.weights(&[to], 0.0, 0.1);
        self.op("linear", &[("x", x.into()), ("weight", weight), ("bias", bias)])
    }

    fn layer_norm(&mut self, x: ValueId) -> Result<ValueId, BuildError> {
        let width = *self.shape(x).last().unwrap_or(&1);
        let (gamma, beta) = (self.weights(&[width], 1.0, 0.1), self.weights(&[width], 0.0, 0.1));
        self.op(
            "layer_norm",
            &[
                ("x", x.into()),
                ("axes", [-1].into()),
                ("gamma", gamma),
                ("beta", beta),
                ("epsilon", Const::floats(DType::F16, &[], &[1e-5]).into()),
            ],
        )
    }

    /// (1, n, heads · width) as (1, heads, n, width).
    fn heads(&mut self, x: ValueId, heads: usize) -> Result<ValueId, BuildError> {
        let [_, n, hidden] = self.shape(x)[..] else { unreachable!("rows of one text") };
        let shape = [1, n as i32, heads as i32, (hidden / heads) as i32];
        let x = self.op("reshape", &[("x", x.into()), ("shape", shape.into())])?;
        self.op("transpose", &[("x", x.into()), ("perm", [0, 2, 1, 3].into())])
    }
}

/// MobileNetV2 over one image of `edge` pixels: 3×3, depthwise and 1×1 convolutions. 0.3 billion multiplications at 224.
///
/// # Errors
/// If an operation does not take its operands.
pub(crate) fn vision(edge: usize) -> Result<Function, BuildError> {
    let mut m = Model::new();
    let image = m.input("image", DType::F16, &[1, 3, edge, edge]);
    let x = m.conv(image, 32, 3, 2, 1)?;
    let mut x = m.op("relu6", &[("x", x.into())])?;
    // How much wider inside, channels, how often, stride of the first.
    for (wider, to, count, stride) in
        [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]
    {
        for i in 0..count {
            let (from, stride) = (m.shape(x)[1], if i == 0 { stride } else { 1 });
            let inside = from * wider;
            let mut y = x;
            if wider > 1 {
                y = m.conv(y, inside, 1, 1, 1)?;
                y = m.op("relu6", &[("x", y.into())])?;
            }
            y = m.conv(y, inside, 3, stride, inside)?;
            y = m.op("relu6", &[("x", y.into())])?;
            y = m.conv(y, to, 1, 1, 1)?;
            x = if stride == 1 && from == to { m.op("add", &[("x", x.into()), ("y", y.into())])? } else { y };
        }
    }
    x = m.conv(x, 1280, 1, 1, 1)?;
    x = m.op("relu6", &[("x", x.into())])?;
    x = m.op("reduce_mean", &[("x", x.into()), ("axes", [2, 3].into()), ("keep_dims", false.into())])?;
    x = m.linear(x, 1000)?;
    x = m.op("softmax", &[("x", x.into()), ("axis", (-1).into())])?;
    Ok(m.b.finish(&[x]))
}

/// ResNet-18's kinds of layers over one image of `edge` pixels, with batch norms, a max pool and two groups: 3×3
/// convolutions of many channels. 1.8 billion multiplications at 224.
///
/// # Errors
/// If an operation does not take its operands.
pub(crate) fn residual(edge: usize) -> Result<Function, BuildError> {
    let mut m = Model::new();
    let image = m.input("image", DType::F16, &[1, 3, edge, edge]);
    let norm = |m: &mut Model, x: ValueId| {
        let n = m.shape(x)[1];
        let [mean, variance] = [m.weights(&[n], 0.0, 0.1), m.weights(&[n], 1.0, 0.1)];
        let [gamma, beta] = [m.weights(&[n], 0.7, 0.1), m.weights(&[n], 0.0, 0.1)];
        m.op("batch_norm", &[("x", x.into()), ("mean", mean), ("variance", variance), ("gamma", gamma), ("beta", beta)])
    };
    let x = m.conv(image, 64, 7, 2, 1)?;
    let x = norm(&mut m, x)?;
    let x = m.op("relu", &[("x", x.into())])?;
    let pool: [(&str, Arg); 5] = [
        ("x", x.into()),
        ("kernel_sizes", [3, 3].into()),
        ("strides", [2, 2].into()),
        ("pad_type", "custom".into()),
        ("pad", [1, 1, 1, 1].into()),
    ];
    let mut x = m.op("max_pool", &pool)?;
    for (to, stride) in [(64, 1), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1)] {
        let mut y = m.conv(x, to, 3, stride, 1)?;
        y = norm(&mut m, y)?;
        y = m.op("relu", &[("x", y.into())])?;
        y = m.conv(y, to, 3, 1, if to == 256 { 2 } else { 1 })?;
        y = norm(&mut m, y)?;
        if stride > 1 {
            x = m.conv(x, to, 1, stride, 1)?;
            x = norm(&mut m, x)?;
        }
        x = m.op("add", &[("x", x.into()), ("y", y.into())])?;
        x = m.op("relu", &[("x", x.into())])?;
    }
    let window = m.shape(x)[2] as i32;
    x = m.op("avg_pool", &[("x", x.into()), ("kernel_sizes", [window; 2].into()), ("pad_type", "valid".into())])?;
    x = m.op("reshape", &[("x", x.into()), ("shape", [1, 512].into())])?;
    x = m.linear(x, 1000)?;
    Ok(m.b.finish(&[x]))
}

/// The encoder of all-MiniLM-L6 over `n` tokens, the mean of whose rows is the embedding: 6 layers of 384, 12 heads.
///
/// # Errors
/// If an operation does not take its operands.
pub(crate) fn embedding(n: usize) -> Result<Function, BuildError> {
    const HIDDEN: usize = 384;
    const HEADS: usize = 12;
    let mut m = Model::new();
    let tokens = m.input("tokens", DType::I32, &[1, n]);
    let mask = m.input("mask", DType::F16, &[1, 1, 1, n]);
    let words = m.weights(&[3000, HIDDEN], 0.0, 0.1);
    let x = m.op("gather", &[("x", words), ("indices", tokens.into()), ("axis", 0.into())])?;
    let places = m.weights(&[1, n, HIDDEN], 0.0, 0.1);
    let x = m.op("add", &[("x", x.into()), ("y", places)])?;
    let mut x = m.layer_norm(x)?;
    for _ in 0..6 {
        let [q, k, v] = [m.linear(x, HIDDEN)?, m.linear(x, HIDDEN)?, m.linear(x, HIDDEN)?];
        let [q, k, v] = [m.heads(q, HEADS)?, m.heads(k, HEADS)?, m.heads(v, HEADS)?];
        let scores = m.op("matmul", &[("x", q.into()), ("y", k.into()), ("transpose_y", true.into())])?;
        let scale = Const::floats(DType::F16, &[], &[(HIDDEN as f32 / HEADS as f32).sqrt().recip()]);
        let scores = m.op("mul", &[("x", scores.into()), ("y", scale.into())])?;
        let scores = m.op("add", &[("x", scores.into()), ("y", mask.into())])?;
        let weights = m.op("softmax", &[("x", scores.into()), ("axis", (-1).into())])?;
        let y = m.op("matmul", &[("x", weights.into()), ("y", v.into())])?;
        let y = m.op("transpose", &[("x", y.into()), ("perm", [0, 2, 1, 3].into())])?;
        let y = m.op("reshape", &[("x", y.into()), ("shape", [1, n as i32, HIDDEN as i32].into())])?;
        let y = m.linear(y, HIDDEN)?;
        let y = m.op("add", &[("x", y.into()), ("y", x.into())])?;
        x = m.layer_norm(y)?;
        let y = m.linear(x, 4 * HIDDEN)?;
        let y = m.op("gelu", &[("x", y.into()), ("mode", "EXACT".into())])?;
        let y = m.linear(y, HIDDEN)?;
        let y = m.op("add", &[("x", y.into()), ("y", x.into())])?;
        x = m.layer_norm(y)?;
    }
    x = m.op("reduce_mean", &[("x", x.into()), ("axes", [1].into()), ("keep_dims", false.into())])?;
    Ok(m.b.finish(&[x]))
}
