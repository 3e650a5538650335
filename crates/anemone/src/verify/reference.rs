//! What a checkpoint computes, by the plain formulas in single floats: nothing of the packages' programs and kernels is used.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use anemone_convert::source::config::{Config, Rope};
use anemone_convert::source::family::{Activation, QkNorm};
use anemone_convert::{Calibration, ConvertError, Source};
use rayon::prelude::*;

/// Rows of a matrix that are decoded and multiplied together.
const ROWS: usize = 64;

/// Logits after each of `tokens` from position `from` on, a row of the vocabulary's size each; for a package of `context`
/// positions, on which the rotations of some models depend.
///
/// Takes memory for the activations of all tokens and for those logits.
///
/// # Errors
/// If a tensor cannot be read.
///
/// # Panics
/// If a token is none of the vocabulary.
pub fn logits(source: &Source, tokens: &[u32], context: usize, from: usize) -> Result<Vec<Vec<f32>>, ConvertError> {
    let model = Forward { source, c: source.config(), context, notes: None, stop: &AtomicBool::new(false) };
    let mut x = model.embedding(tokens)?;
    for layer in 0..model.c.layers {
        model.layer(&mut x, layer)?;
    }
    let c = model.c;
    let last = x.split_off(from.min(tokens.len()) * c.hidden_size);
    let normed = model.norm(&last, "model.norm", c.hidden_size, c.residual_scale)?;
    let mut logits = model.product(&normed, "lm_head.weight", None)?;
    if let Some(cap) = c.logit_softcap {
        logits.iter_mut().for_each(|x| *x = soft(*x, cap));
    }
    Ok(logits.chunks_exact(c.vocab_size).map(<[f32]>::to_vec).collect())
}

/// What the linear layers of a model read on `tokens`, that to logits included.
///
/// # Errors
/// If a tensor cannot be read, or `stop` says so. `read` is told how many layers are done.
///
/// # Panics
/// If a token is none of the vocabulary.
pub(crate) fn inputs(
    source: &Source,
    tokens: &[u32],
    stop: &AtomicBool,
    mut read: impl FnMut(usize),
) -> Result<Calibration, ConvertError> {
    let notes = Mutex::new(Notes::default());
    let c = source.config();
    let model = Forward { source, c, context: c.context_length, notes: Some(&notes), stop };
    let mut x = model.embedding(tokens)?;
    for layer in 0..c.layers {
        model.layer(&mut x, layer)?;
        read(layer + 1);
    }
    let normed = model.norm(&x, "model.norm", c.hidden_size, c.residual_scale)?;
    let mut notes = notes.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    // Tied weights have the name of the embedding, whose rows are read as they are.
    notes.add(source.tensor("lm_head.weight")?.name().to_owned(), c.hidden_size, &normed);
    notes.settle();
    Ok(std::mem::take(&mut notes.calibration))
}

/// Gathers what layers read. Several that follow each other read the same.
#[derive(Default)]
struct Notes {
    calibration: Calibration,
    weights: Vec<String>,
    columns: usize,
    values: Vec<f32>,
}

impl Notes {
    fn add(&mut self, weight: String, columns: usize, values: &[f32]) {
        if self.values != values {
            self.settle();
            self.columns = columns;
            values.clone_into(&mut self.values);
        }
        self.weights.push(weight);
    }

    fn settle(&mut self) {
        if !self.weights.is_empty() {
            self.calibration.add(&std::mem::take(&mut self.weights), self.columns, &self.values);
        }
    }
}

struct Forward<'s> {
    source: &'s Source,
    c: &'s Config,
    context: usize,
    notes: Option<&'s Mutex<Notes>>,
    /// Looked at in each product, often.
    stop: &'s AtomicBool,
}

impl Forward<'_> {
    /// (tokens, hidden size), as all activations.
    fn embedding(&self, tokens: &[u32]) -> Result<Vec<f32>, ConvertError> {
        let table = self.source.tensor("model.embed_tokens.weight")?;
        let mut x = vec![0.0; tokens.len() * self.c.hidden_size];
        for (&token, row) in tokens.iter().zip(x.chunks_exact_mut(self.c.hidden_size)) {
            let token = token as usize;
            assert!(token < table.rows(), "token {token} of {}", table.rows());
            table.decode_rows(token..token + 1, row);
            row.iter_mut().for_each(|v| *v *= (self.c.embedding_scale * self.c.residual_scale) as f32);
        }
        Ok(x)
    }

    fn layer(&self, x: &mut [f32], layer: usize) -> Result<(), ConvertError> {
        let (shape, hidden) = (&self.c.family.layer, self.c.hidden_size);
        let name = format!("model.layers.{layer}");
        // The sum over the layers is kept multiplied by its scale, which is in the weights of what is added to it.
        let norm = |x: Vec<f32>, which: Option<&str>, scale: f64| match which {
            Some(which) => self.norm(&x, &format!("{name}.{which}"), hidden, scale),
            None => Ok(x),
        };
        let residual = self.c.residual_scale;
        let read = norm(x.to_vec(), shape.before_attention, residual)?;
        let attended = norm(self.attention(&read, layer, &name)?, shape.after_attention, 1.0)?;
        x.iter_mut().zip(attended).for_each(|(x, a)| *x += a);
        let read = norm(x.to_vec(), shape.before_mlp, residual)?;
        let gate = self.linear(&read, &format!("{name}.mlp.gate_proj"))?;
        let mut up = self.linear(&read, &format!("{name}.mlp.up_proj"))?;
        let active = match shape.activation {
            Activation::Silu => |g: f32| g / (1.0 + (-g).exp()),
            Activation::GeluTanh => {
                |g: f32| 0.5 * g * (1.0 + ((2.0 / std::f32::consts::PI).sqrt() * (g + 0.044_715 * g * g * g)).tanh())
            }
        };
        up.iter_mut().zip(gate).for_each(|(u, g)| *u *= active(g));
        let fed = norm(self.linear(&up, &format!("{name}.mlp.down_proj"))?, shape.after_mlp, 1.0)?;
        x.iter_mut().zip(fed).for_each(|(x, f)| *x += f);
        Ok(())
    }

    fn attention(&self, x: &[f32], layer: usize, name: &str) -> Result<Vec<f32>, ConvertError> {
        let c = self.c;
        let (n, size) = (x.len() / c.hidden_size, c.head_dim);
        let norms = c.family.layer.qk_norm;
        let rope = c.rotary_layers.contains(layer).then(|| {
            let local = c.local_rope.as_ref().filter(|_| c.sliding_layers.contains(layer));
            local.unwrap_or(&c.rope)
        });
        let part = |which: &str, norms: QkNorm| -> Result<Vec<f32>, ConvertError> {
            let mut y = self.linear(x, &format!("{name}.self_attn.{which}_proj"))?;
            let norm = format!("{name}.self_attn.{which}_norm");
            y = match norms {
                QkNorm::None => y,
                QkNorm::Heads => self.norm(&y, &norm, size, 1.0)?,
                QkNorm::Whole => {
                    let width = y.len() / n;
                    self.norm(&y, &norm, width, 1.0)?
                }
            };
            Ok(y)
        };
        let (mut q, mut k) = (part("q", norms)?, part("k", norms)?);
        let v = part("v", QkNorm::None)?;
        if let Some(rope) = rope {
            self.rotate(&mut q, rope, c.heads);
            self.rotate(&mut k, rope, c.kv_heads);
        }
        let (group, window) = (c.heads / c.kv_heads, c.window(layer).unwrap_or(usize::MAX));
        let row = |x: &[f32], t: usize, head: usize, heads: usize| -> Vec<f32> {
            x[(t * heads + head) * size..(t * heads + head + 1) * size].to_vec()
        };
        let mut mixed = vec![0.0; n * c.heads * size];
        mixed.par_chunks_mut(size).enumerate().for_each(|(i, out)| {
            if self.stop.load(Ordering::Relaxed) {
                return;
            }
            let (t, head) = (i / c.heads, i % c.heads);
            let q = row(&q, t, head, c.heads);
            let first = (t + 1).saturating_sub(window);
            let score = |s: usize| {
                let k = &k[(s * c.kv_heads + head / group) * size..][..size];
                let score = dot(&q, k) * c.attention_scale as f32;
                c.attention_softcap.map_or(score, |cap| soft(score, cap))
            };
            let mut scores: Vec<f32> = (first..=t).map(score).collect();
            let top = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            scores.iter_mut().for_each(|s| *s = (*s - top).exp());
            let sum: f32 = scores.iter().sum();
            for (s, weight) in (first..=t).zip(scores) {
                let v = &v[(s * c.kv_heads + head / group) * size..][..size];
                out.iter_mut().zip(v).for_each(|(o, v)| *o += weight / sum * v);
            }
        });
        self.linear(&mixed, &format!("{name}.self_attn.o_proj"))
    }

    /// Rotates the heads of every token: the first half of the rotated dimensions against the second.
    fn rotate(&self, x: &mut [f32], rope: &Rope, heads: usize) {
        let (frequencies, magnitude) = (rope.inverse_frequencies(self.context), rope.magnitude());
        let half = rope.dimensions / 2;
        x.par_chunks_mut(self.c.head_dim).enumerate().for_each(|(i, head)| {
            for (d, frequency) in frequencies.iter().enumerate() {
                let (sin, cos) = ((i / heads) as f64 * frequency).sin_cos();
                let (a, b) = (f64::from(head[d]), f64::from(head[d + half]));
                head[d] = (magnitude * (a * cos - b * sin)) as f32;
                head[d + half] = (magnitude * (b * cos + a * sin)) as f32;
            }
        });
    }

    /// Root mean square norm of rows of `width`, which are kept multiplied by `scale`.
    fn norm(&self, x: &[f32], name: &str, width: usize, scale: f64) -> Result<Vec<f32>, ConvertError> {
        let weight = self.source.tensor(&format!("{name}.weight"))?.decode();
        let mut out = x.to_vec();
        for row in out.chunks_exact_mut(width) {
            let mean = row.iter().map(|&v| f64::from(v).powi(2)).sum::<f64>() / width as f64;
            let factor = (mean + self.c.norm_eps * scale * scale).sqrt().recip() as f32;
            row.iter_mut().zip(&weight).for_each(|(v, w)| *v *= factor * w);
        }
        Ok(out)
    }

    fn linear(&self, x: &[f32], tensor: &str) -> Result<Vec<f32>, ConvertError> {
        let bias = match self.c.has_bias(tensor) {
            true => Some(self.source.tensor(&format!("{tensor}.bias"))?.decode()),
            false => None,
        };
        let weight = format!("{tensor}.weight");
        if let Some(notes) = self.notes {
            let columns = self.source.tensor(&weight)?.row_len();
            notes.lock().unwrap_or_else(std::sync::PoisonError::into_inner).add(weight.clone(), columns, x);
        }
        self.product(x, &weight, bias.as_deref())
    }

    /// `x · weightᵀ + bias`.
    fn product(&self, x: &[f32], tensor: &str, bias: Option<&[f32]>) -> Result<Vec<f32>, ConvertError> {
        let stopped = || self.stop.load(Ordering::Relaxed);
        let weight = self.source.tensor(tensor)?;
        let (rows, k) = (weight.rows(), weight.row_len());
        let n = x.len() / k.max(1);
        // Row by row of the weight, all tokens side by side.
        let mut columns = vec![0.0; rows * n];
        columns.par_chunks_mut((ROWS * n).max(1)).enumerate().for_each_init(
            || vec![0.0; ROWS * k],
            |decoded, (i, out)| {
                if stopped() {
                    return;
                }
                let rows = i * ROWS..(i * ROWS + out.len() / n.max(1));
                let decoded = &mut decoded[..rows.len() * k];
                weight.decode_rows(rows.clone(), decoded);
                for ((row, w), out) in rows.zip(decoded.chunks_exact(k)).zip(out.chunks_exact_mut(n)) {
                    let bias = bias.map_or(0.0, |bias| bias[row]);
                    out.iter_mut().zip(x.chunks_exact(k)).for_each(|(o, x)| *o = dot(x, w) + bias);
                }
            },
        );
        if stopped() {
            return Err(ConvertError::Stopped);
        }
        let mut out = vec![0.0; n * rows];
        out.par_chunks_mut(rows.max(1)).enumerate().for_each(|(t, out)| {
            out.iter_mut().enumerate().for_each(|(row, o)| *o = columns[row * n + t]);
        });
        Ok(out)
    }
}

fn soft(x: f32, cap: f64) -> f32 {
    let cap = cap as f32;
    cap * (x / cap).tanh()
}

/// In eight sums, which a processor does side by side.
fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0f32; 8];
    let (a8, a_rest) = a.as_chunks::<8>();
    let (b8, b_rest) = b.as_chunks::<8>();
    for (a, b) in a8.iter().zip(b8) {
        for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
            *sum += a * b;
        }
    }
    sums.iter().sum::<f32>() + a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum::<f32>()
}
