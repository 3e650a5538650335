//! Small GGUF files with everything that a reader looks at: the seeds of the target `gguf`.

/// The kind of vocabulary of a file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Vocabulary {
    /// Byte-level pairs (`gpt2`).
    Bytes,
    /// SentencePiece with scores (`llama`).
    Pieces,
    /// SentencePiece's unigrams (`t5`).
    Unigrams,
}

const HIDDEN: u64 = 32;
const FFN: u64 = 32;

/// Type number, elements in a block, bytes of a block.
const F32: (u32, u64, u64) = (0, 1, 4);
const F16: (u32, u64, u64) = (1, 1, 2);
const Q4_0: (u32, u64, u64) = (2, 32, 18);
const Q8_0: (u32, u64, u64) = (8, 32, 34);

/// A one-layer Llama whose matrices are of one type.
pub(super) fn llama(vocabulary: Vocabulary, quantized: bool) -> Vec<u8> {
    let matrix = match (vocabulary, quantized) {
        (Vocabulary::Bytes, true) => Q4_0,
        (_, true) => Q8_0,
        (_, false) => F16,
    };
    let tokens = tokens(vocabulary);
    let mut file = File::default();
    file.text("general.architecture", "llama");
    file.text("general.name", "seed");
    file.number("general.alignment", 32);
    for (key, value) in [
        ("block_count", 1),
        ("context_length", 64),
        ("embedding_length", HIDDEN as u32),
        ("feed_forward_length", FFN as u32),
        ("attention.head_count", 2),
        ("attention.head_count_kv", 1),
        ("rope.dimension_count", 16),
        ("vocab_size", tokens.len() as u32),
    ] {
        file.number(&format!("llama.{key}"), value);
    }
    file.float("llama.attention.layer_norm_rms_epsilon", 1e-5);
    file.float("llama.rope.freq_base", 10000.0);
    file.tokenizer(vocabulary, &tokens);
    let vocab = tokens.len() as u64;
    file.tensor("token_embd.weight", &[HIDDEN, vocab], matrix);
    file.tensor("output_norm.weight", &[HIDDEN], F32);
    for (name, shape) in [
        ("attn_norm", &[HIDDEN][..]),
        ("attn_q", &[HIDDEN, 32]),
        ("attn_k", &[HIDDEN, 16]),
        ("attn_v", &[HIDDEN, 16]),
        ("attn_output", &[32, HIDDEN]),
        ("ffn_norm", &[HIDDEN]),
        ("ffn_gate", &[HIDDEN, FFN]),
        ("ffn_up", &[HIDDEN, FFN]),
        ("ffn_down", &[FFN, HIDDEN]),
    ] {
        file.tensor(&format!("blk.0.{name}.weight"), shape, if shape.len() == 1 { F32 } else { matrix });
    }
    if vocabulary == Vocabulary::Pieces {
        file.tensor("rope_freqs.weight", &[8], F32);
        // Factors, which must be numbers that divide a frequency.
        let factors = file.data.len() - 8 * 4;
        file.data[factors..].as_chunks_mut().0.iter_mut().for_each(|factor| *factor = 1.0_f32.to_le_bytes());
    }
    file.finish()
}

/// Texts of the tokens: special ones, then bytes or pieces, then a few longer.
fn tokens(vocabulary: Vocabulary) -> Vec<String> {
    let mut tokens: Vec<String> = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"].map(str::to_owned).to_vec();
    match vocabulary {
        Vocabulary::Bytes => {
            // GPT-2's alphabet: printable bytes stand for themselves, the others for letters from 256 on.
            let mut next = 256;
            for byte in 0..=255u32 {
                let plain = matches!(byte, 33..=126 | 161..=172 | 174..=255);
                let letter = if plain { byte } else { next };
                next += u32::from(!plain);
                tokens.extend(char::from_u32(letter).map(String::from));
            }
            tokens.extend(["he", "ll", "hell", "hello", "Ġw"].map(str::to_owned));
        }
        Vocabulary::Pieces | Vocabulary::Unigrams => {
            tokens[..3].clone_from_slice(&["<unk>", "<s>", "</s>"].map(str::to_owned));
            tokens.extend((0..=255).map(|byte| format!("<0x{byte:02X}>")));
            tokens.extend(["▁", "h", "e", "l", "o", "he", "ll", "hell", "hello", "▁hello"].map(str::to_owned));
        }
    }
    tokens
}

#[derive(Default)]
struct File {
    metadata: Vec<u8>,
    metadata_count: u64,
    tensors: Vec<u8>,
    tensor_count: u64,
    data: Vec<u8>,
}

impl File {
    fn key(&mut self, key: &str, kind: u32) {
        string(&mut self.metadata, key);
        self.metadata.extend_from_slice(&kind.to_le_bytes());
        self.metadata_count += 1;
    }

    fn text(&mut self, key: &str, value: &str) {
        self.key(key, 8);
        string(&mut self.metadata, value);
    }

    fn number(&mut self, key: &str, value: u32) {
        self.key(key, 4);
        self.metadata.extend_from_slice(&value.to_le_bytes());
    }

    fn float(&mut self, key: &str, value: f32) {
        self.key(key, 6);
        self.metadata.extend_from_slice(&value.to_le_bytes());
    }

    fn array(&mut self, key: &str, kind: u32, count: usize) {
        self.key(key, 9);
        self.metadata.extend_from_slice(&kind.to_le_bytes());
        self.metadata.extend_from_slice(&(count as u64).to_le_bytes());
    }

    fn texts(&mut self, key: &str, texts: &[String]) {
        self.array(key, 8, texts.len());
        texts.iter().for_each(|text| string(&mut self.metadata, text));
    }

    fn tokenizer(&mut self, vocabulary: Vocabulary, tokens: &[String]) {
        let (model, pre) = match vocabulary {
            Vocabulary::Bytes => ("gpt2", "smollm"),
            Vocabulary::Pieces => ("llama", "default"),
            Vocabulary::Unigrams => ("t5", "default"),
        };
        self.text("tokenizer.ggml.model", model);
        self.text("tokenizer.ggml.pre", pre);
        self.texts("tokenizer.ggml.tokens", tokens);
        self.array("tokenizer.ggml.token_type", 5, tokens.len());
        for (id, token) in tokens.iter().enumerate() {
            let kind: i32 = match id {
                0 if vocabulary != Vocabulary::Bytes => 2,
                0..=2 => 3,
                _ if token.starts_with("<0x") => 6,
                _ => 1,
            };
            self.metadata.extend_from_slice(&kind.to_le_bytes());
        }
        if vocabulary == Vocabulary::Bytes {
            self.texts("tokenizer.ggml.merges", &["h e", "l l", "he ll", "hell o", "Ġ w"].map(str::to_owned));
        } else {
            self.array("tokenizer.ggml.scores", 6, tokens.len());
            (0..tokens.len()).for_each(|id| self.metadata.extend_from_slice(&(-(id as f32)).to_le_bytes()));
        }
        self.number("tokenizer.ggml.bos_token_id", 1);
        self.number("tokenizer.ggml.eos_token_id", 2);
        self.key("tokenizer.ggml.add_bos_token", 7);
        self.metadata.push(1);
        self.text("tokenizer.chat_template", super::seeds::TEMPLATE);
    }

    fn tensor(&mut self, name: &str, shape: &[u64], (kind, block, bytes): (u32, u64, u64)) {
        string(&mut self.tensors, name);
        self.tensors.extend_from_slice(&(shape.len() as u32).to_le_bytes());
        shape.iter().for_each(|extent| self.tensors.extend_from_slice(&extent.to_le_bytes()));
        self.tensors.extend_from_slice(&kind.to_le_bytes());
        self.tensors.extend_from_slice(&(self.data.len() as u64).to_le_bytes());
        let length = shape.iter().product::<u64>() / block * bytes;
        self.data.extend((0..length).map(|at| (at % 61) as u8));
        self.data.resize(self.data.len().next_multiple_of(32), 0);
        self.tensor_count += 1;
    }

    fn finish(self) -> Vec<u8> {
        let mut file = b"GGUF\x03\0\0\0".to_vec();
        file.extend_from_slice(&self.tensor_count.to_le_bytes());
        file.extend_from_slice(&self.metadata_count.to_le_bytes());
        file.extend_from_slice(&self.metadata);
        file.extend_from_slice(&self.tensors);
        file.resize(file.len().next_multiple_of(32), 0);
        file.extend_from_slice(&self.data);
        file
    }
}

fn string(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(&(text.len() as u64).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
}
