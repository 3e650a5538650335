//! Makes checkpoints for tests, byte by byte.

#![allow(dead_code, reason = "each test uses its part")]

use std::path::PathBuf;

use bytes::Bytes;

/// A GGUF file under construction.
#[derive(Clone)]
pub(crate) struct GgufBuilder {
    version: u32,
    entries: Vec<u8>,
    entry_count: u64,
    tensors: Vec<(String, Vec<usize>, u32, Vec<u8>)>,
    alignment: usize,
}

pub(crate) const U32: u32 = 4;
pub(crate) const I32: u32 = 5;
pub(crate) const F32: u32 = 6;
pub(crate) const BOOL: u32 = 7;
pub(crate) const STRING: u32 = 8;
pub(crate) const ARRAY: u32 = 9;

impl GgufBuilder {
    pub(crate) fn new(version: u32) -> Self {
        Self { version, entries: Vec::new(), entry_count: 0, tensors: Vec::new(), alignment: 32 }
    }

    fn length(&self, out: &mut Vec<u8>, length: u64) {
        match self.version {
            1 => out.extend((length as u32).to_le_bytes()),
            _ => out.extend(length.to_le_bytes()),
        }
    }

    fn text(&self, out: &mut Vec<u8>, text: &[u8]) {
        self.length(out, text.len() as u64);
        out.extend(text);
    }

    /// An entry of which the caller gives the bytes behind the type.
    pub(crate) fn raw(mut self, key: &str, kind: u32, value: &[u8]) -> Self {
        let mut entries = std::mem::take(&mut self.entries);
        self.text(&mut entries, key.as_bytes());
        entries.extend(kind.to_le_bytes());
        entries.extend(value);
        self.entries = entries;
        self.entry_count += 1;
        self
    }

    pub(crate) fn u32(self, key: &str, value: u32) -> Self {
        self.raw(key, U32, &value.to_le_bytes())
    }

    pub(crate) fn f32(self, key: &str, value: f32) -> Self {
        self.raw(key, F32, &value.to_le_bytes())
    }

    pub(crate) fn bool(self, key: &str, value: bool) -> Self {
        self.raw(key, BOOL, &[u8::from(value)])
    }

    pub(crate) fn str(self, key: &str, value: &str) -> Self {
        let mut bytes = Vec::new();
        self.text(&mut bytes, value.as_bytes());
        self.raw(key, STRING, &bytes)
    }

    /// An array whose elements' bytes are given.
    pub(crate) fn array(self, key: &str, kind: u32, count: usize, elements: &[u8]) -> Self {
        let mut bytes = kind.to_le_bytes().to_vec();
        self.length(&mut bytes, count as u64);
        bytes.extend(elements);
        self.raw(key, ARRAY, &bytes)
    }

    pub(crate) fn strings<T: AsRef<[u8]>>(self, key: &str, values: &[T]) -> Self {
        let mut bytes = Vec::new();
        for value in values {
            self.text(&mut bytes, value.as_ref());
        }
        self.array(key, STRING, values.len(), &bytes)
    }

    pub(crate) fn i32s(self, key: &str, values: &[i32]) -> Self {
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        self.array(key, I32, values.len(), &bytes)
    }

    pub(crate) fn f32s(self, key: &str, values: &[f32]) -> Self {
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        self.array(key, F32, values.len(), &bytes)
    }

    pub(crate) fn alignment(mut self, alignment: u32) -> Self {
        self.alignment = alignment as usize;
        self.u32("general.alignment", alignment)
    }

    /// A tensor of row-major `shape`, with the bytes as stored.
    pub(crate) fn tensor(mut self, name: &str, shape: &[usize], code: u32, bytes: Vec<u8>) -> Self {
        self.tensors.push((name.to_owned(), shape.to_vec(), code, bytes));
        self
    }

    pub(crate) fn tensor_f32(self, name: &str, shape: &[usize], values: &[f32]) -> Self {
        self.tensor(name, shape, 0, values.iter().flat_map(|v| v.to_le_bytes()).collect())
    }

    pub(crate) fn build(&self) -> Bytes {
        let mut out = b"GGUF".to_vec();
        out.extend(self.version.to_le_bytes());
        self.length(&mut out, self.tensors.len() as u64);
        self.length(&mut out, self.entry_count);
        out.extend(&self.entries);
        let mut offset = 0usize;
        for (name, shape, code, bytes) in &self.tensors {
            self.text(&mut out, name.as_bytes());
            out.extend((shape.len() as u32).to_le_bytes());
            for &length in shape.iter().rev() {
                self.length(&mut out, length as u64);
            }
            out.extend(code.to_le_bytes());
            out.extend((offset as u64).to_le_bytes());
            offset = (offset + bytes.len()).next_multiple_of(self.alignment);
        }
        for (_, _, _, bytes) in &self.tensors {
            out.resize(out.len().next_multiple_of(self.alignment), 0);
            out.extend(bytes);
        }
        out.into()
    }
}

/// A folder of the fixtures beside the checkout.
pub(crate) fn fixtures() -> PathBuf {
    let path = std::env::var_os("ANEMONE_FIXTURES")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures"), PathBuf::from);
    assert!(path.is_dir(), "the fixtures are needed beside the checkout: {} is no folder", path.display());
    path
}

/// A file of `tests/data`.
pub(crate) fn data(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
    std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Numbers that look random and are the same every time.
pub(crate) struct Numbers(pub u64);

impl Numbers {
    pub(crate) fn next(&mut self) -> u64 {
        // splitmix64
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    pub(crate) fn f32(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    }

    pub(crate) fn f32s(&mut self, n: usize) -> Vec<f32> {
        (0..n).map(|_| self.f32()).collect()
    }
}

/// A tiny Llama: what both forms of checkpoint are made from.
pub(crate) struct TinyLlama {
    pub(crate) vocab: usize,
    pub(crate) hidden: usize,
    pub(crate) layers: usize,
    pub(crate) heads: usize,
    pub(crate) kv_heads: usize,
    pub(crate) head_dim: usize,
    pub(crate) ffn: usize,
    /// Hugging Face name, shape, values.
    pub(crate) tensors: Vec<(String, Vec<usize>, Vec<f32>)>,
}

impl TinyLlama {
    pub(crate) fn new() -> Self {
        let mut model =
            Self { vocab: 24, hidden: 16, layers: 2, heads: 4, kv_heads: 2, head_dim: 6, ffn: 20, tensors: Vec::new() };
        let mut numbers = Numbers(7);
        let (q, kv) = (model.heads * model.head_dim, model.kv_heads * model.head_dim);
        let mut shapes = vec![("model.embed_tokens.weight".to_owned(), vec![model.vocab, model.hidden])];
        for i in 0..model.layers {
            for (part, shape) in [
                ("input_layernorm", vec![model.hidden]),
                ("self_attn.q_proj", vec![q, model.hidden]),
                ("self_attn.k_proj", vec![kv, model.hidden]),
                ("self_attn.v_proj", vec![kv, model.hidden]),
                ("self_attn.o_proj", vec![model.hidden, q]),
                ("post_attention_layernorm", vec![model.hidden]),
                ("mlp.gate_proj", vec![model.ffn, model.hidden]),
                ("mlp.up_proj", vec![model.ffn, model.hidden]),
                ("mlp.down_proj", vec![model.hidden, model.ffn]),
            ] {
                shapes.push((format!("model.layers.{i}.{part}.weight"), shape));
            }
        }
        shapes.push(("model.norm.weight".to_owned(), vec![model.hidden]));
        shapes.push(("lm_head.weight".to_owned(), vec![model.vocab, model.hidden]));
        for (name, shape) in shapes {
            let values = numbers.f32s(shape.iter().product());
            model.tensors.push((name, shape, values));
        }
        model
    }

    /// `config.json`.
    pub(crate) fn config(&self) -> serde_json::Value {
        serde_json::json!({
            "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu",
            "vocab_size": self.vocab, "hidden_size": self.hidden, "num_hidden_layers": self.layers,
            "num_attention_heads": self.heads, "num_key_value_heads": self.kv_heads, "head_dim": self.head_dim,
            "intermediate_size": self.ffn, "rms_norm_eps": 1e-5, "rope_theta": 50000.0,
            "max_position_embeddings": 128, "tie_word_embeddings": false, "bos_token_id": 1, "eos_token_id": [2, 3],
        })
    }

    /// The metadata and tensors of a GGUF file, as llama.cpp's converter writes them.
    pub(crate) fn gguf(&self, version: u32) -> GgufBuilder {
        let mut tokens: Vec<String> = (0..self.vocab - 3).map(|i| char::from(b'a' + i as u8).to_string()).collect();
        tokens.splice(0..0, ["<unk>", "<s>", "</s>"].map(str::to_owned));
        let mut types = vec![1; self.vocab];
        types[..3].copy_from_slice(&[2, 3, 3]);
        let mut builder = self.gguf_settings(version).strings("tokenizer.ggml.tokens", &tokens);
        builder =
            builder.i32s("tokenizer.ggml.token_type", &types).f32s("tokenizer.ggml.scores", &vec![0.0; self.vocab]);
        for (name, shape, values) in &self.tensors {
            builder = builder.tensor_f32(&gguf_name(name), shape, &self.permuted(name, shape, values));
        }
        builder
    }

    pub(crate) fn gguf_settings(&self, version: u32) -> GgufBuilder {
        GgufBuilder::new(version)
            .str("general.architecture", "llama")
            .u32("llama.block_count", self.layers as u32)
            .u32("llama.context_length", 128)
            .u32("llama.embedding_length", self.hidden as u32)
            .u32("llama.feed_forward_length", self.ffn as u32)
            .u32("llama.attention.head_count", self.heads as u32)
            .u32("llama.attention.head_count_kv", self.kv_heads as u32)
            .u32("llama.attention.key_length", self.head_dim as u32)
            .u32("llama.attention.value_length", self.head_dim as u32)
            .u32("llama.rope.dimension_count", self.head_dim as u32)
            .f32("llama.rope.freq_base", 50000.0)
            .f32("llama.attention.layer_norm_rms_epsilon", 1e-5)
            .str("tokenizer.ggml.model", "llama")
            .u32("tokenizer.ggml.bos_token_id", 1)
            .u32("tokenizer.ggml.eos_token_id", 2)
    }

    /// Rows of queries and keys as the file has them: row `j` of a head's half `p` goes to `2j + p`.
    fn permuted(&self, name: &str, shape: &[usize], values: &[f32]) -> Vec<f32> {
        if !name.contains("q_proj") && !name.contains("k_proj") {
            return values.to_vec();
        }
        let (columns, half) = (shape[1], self.head_dim / 2);
        let mut out = Vec::new();
        for head in 0..shape[0] / self.head_dim {
            for j in 0..half {
                for p in 0..2 {
                    let row = head * self.head_dim + p * half + j;
                    out.extend(&values[row * columns..(row + 1) * columns]);
                }
            }
        }
        out
    }
}

fn gguf_name(name: &str) -> String {
    let mut name = name.replace("model.layers.", "blk.");
    for (from, to) in [
        ("model.embed_tokens", "token_embd"),
        ("model.norm", "output_norm"),
        ("lm_head", "output"),
        ("input_layernorm", "attn_norm"),
        ("post_attention_layernorm", "ffn_norm"),
        ("self_attn.q_proj", "attn_q"),
        ("self_attn.k_proj", "attn_k"),
        ("self_attn.v_proj", "attn_v"),
        ("self_attn.o_proj", "attn_output"),
        ("mlp.gate_proj", "ffn_gate"),
        ("mlp.up_proj", "ffn_up"),
        ("mlp.down_proj", "ffn_down"),
    ] {
        name = name.replace(from, to);
    }
    name
}
