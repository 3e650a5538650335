//! The targets. Each goes as far into the library as bytes from outside go.

use std::cell::OnceCell;
use std::path::Path;

use anemone_convert::Source;
use anemone_convert::source::gguf::Gguf;
use anemone_mil::decode::Blobs;
use anemone_mil::{DType, MilError, Program};
use anemone_package::{blob, manifest, proto};
use bytes::Bytes;

use super::{Shape, Target};

const MIB: usize = 1 << 20;

pub(super) const TARGETS: &[Target] = &[
    Target { name: "manifest", run: manifest, shape: Shape::Text, memory_per_byte: 64, memory_fixed: MIB, weight: 1 },
    Target { name: "blob", run: blob, shape: Shape::Binary, memory_per_byte: 0, memory_fixed: MIB / 16, weight: 1 },
    Target {
        name: "model",
        run: model,
        shape: Shape::Protobuf,
        memory_per_byte: 1024,
        memory_fixed: 64 * MIB,
        weight: 4,
    },
    Target {
        name: "mil_text",
        run: mil_text,
        shape: Shape::Text,
        memory_per_byte: 1024,
        memory_fixed: 16 * MIB,
        weight: 3,
    },
    Target { name: "run", run, shape: Shape::Text, memory_per_byte: 1024, memory_fixed: 64 * MIB, weight: 5 },
    Target {
        name: "programs",
        run: programs,
        shape: Shape::Binary,
        memory_per_byte: 1 << 14,
        memory_fixed: 64 * MIB,
        weight: 4,
    },
    Target { name: "gguf", run: gguf, shape: Shape::Binary, memory_per_byte: 1024, memory_fixed: 64 * MIB, weight: 3 },
    Target {
        name: "safetensors",
        run: safetensors,
        shape: Shape::Binary,
        memory_per_byte: 1024,
        memory_fixed: 64 * MIB,
        weight: 2,
    },
    Target {
        name: "config",
        run: config,
        shape: Shape::Text,
        memory_per_byte: 1024,
        memory_fixed: 64 * MIB,
        weight: 2,
    },
    Target { name: "index", run: index, shape: Shape::Text, memory_per_byte: 1024, memory_fixed: 64 * MIB, weight: 1 },
    Target { name: "bundle", run: bundle, shape: Shape::Text, memory_per_byte: 64, memory_fixed: MIB, weight: 1 },
    Target {
        name: "tokenizer",
        run: tokenizer,
        shape: Shape::Text,
        memory_per_byte: 4096,
        memory_fixed: 64 * MIB,
        weight: 2,
    },
    Target {
        name: "template",
        run: template,
        shape: Shape::Text,
        memory_per_byte: 4096,
        memory_fixed: 256 * MIB,
        weight: 1,
    },
];

/// `Manifest.json`.
fn manifest(input: &[u8]) {
    if let Ok(manifest) = manifest::parse(input) {
        let again = manifest::parse(&manifest.to_bytes()).expect("what we write we can read");
        assert_eq!(again.root_model_path(), manifest.root_model_path(), "it means the same");
    }
}

/// A weight file after the offset (eight bytes) at which a blob is to be read.
fn blob(input: &[u8]) {
    let Some((offset, file)) = input.split_first_chunk() else { return };
    let file = Bytes::copy_from_slice(file);
    for offset in [u64::from_le_bytes(*offset), 64] {
        if let Ok(found) = blob::read(&file, offset) {
            assert!(found.elements() <= file.len() as u64 * 8, "no more elements than bits");
        }
    }
}

/// The weight file of an input of `model`, whatever it is called.
struct OneFile(Bytes);

impl Blobs for OneFile {
    fn blob(&self, _: &str, offset: u64) -> Result<(DType, Bytes), String> {
        let found = blob::read(&self.0, offset).map_err(|error| error.to_string())?;
        // In the order of their codes in weight files, from 1 on.
        const TYPES: [DType; 17] = [
            DType::F16,
            DType::F32,
            DType::U8,
            DType::I8,
            DType::BF16,
            DType::I16,
            DType::U16,
            DType::I4,
            DType::U1,
            DType::U2,
            DType::U4,
            DType::U3,
            DType::U6,
            DType::I32,
            DType::U32,
            DType::F8E4M3FN,
            DType::F8E5M2,
        ];
        let dtype = TYPES[found.dtype.code() as usize - 1];
        Ok((dtype, found.bytes))
    }
}

/// A model message, its length in four bytes before it and a weight file after it: decoded, verified, printed, parsed.
fn model(input: &[u8]) {
    let Some((length, rest)) = input.split_first_chunk() else { return };
    let Some((message, file)) = rest.split_at_checked(u32::from_le_bytes(*length) as usize) else { return };
    let Ok(decoded) = proto::decode_model(&Bytes::copy_from_slice(message)) else { return };
    let blobs = OneFile(Bytes::copy_from_slice(file));
    let Ok(model) = anemone_mil::decode_model(&decoded.model, &blobs) else { return };
    let faults = anemone_mil::verify::verify_model(&model);
    for fault in &faults {
        assert!(!fault.to_string().is_empty(), "a fault says something");
    }
    if faults.is_empty() {
        let text = anemone_mil::text::print(&model.program);
        let again = anemone_mil::text::parse(&text, &blobs);
        let again = again.unwrap_or_else(|error| panic!("a valid program's text is read back: {error}\n{text}"));
        assert_eq!(anemone_mil::text::print(&again), text, "and is the same");
    }
}

/// The text of a program.
fn mil_text(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    match anemone_mil::text::parse(text, &anemone_mil::text::NoBlobs) {
        Ok(program) => {
            drop(anemone_mil::verify::verify(&program));
            let text = anemone_mil::text::print(&program);
            let again = anemone_mil::text::parse(&text, &anemone_mil::text::NoBlobs);
            let again = again.unwrap_or_else(|error| panic!("what is printed is read back: {error}\n{text}"));
            assert_eq!(anemone_mil::text::print(&again), text, "and is the same");
        }
        Err(MilError::Text { .. }) => {}
        Err(other) => panic!("not an error of text: {other}"),
    }
}

/// The text of a program that is then planned and run, and interpreted.
fn run(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let Ok(program) = anemone_mil::text::parse(text, &anemone_mil::text::NoBlobs) else { return };
    if anemone_mil::verify::verify(&program).is_empty() {
        for function in program.functions.values() {
            super::execute::function(function);
        }
    }
}

/// A random program, which the verifier must accept, and both executors give the same.
fn programs(input: &[u8]) {
    let function = super::programs::random(input);
    if function.body.outputs.is_empty() {
        return;
    }
    let program =
        Program { version: 1, functions: [("main".to_owned(), function)].into(), attributes: Default::default() };
    let faults = anemone_mil::verify::verify(&program);
    assert!(faults.is_empty(), "a program that the builder made is not valid: {}\n{program}", faults[0]);
    super::execute::function(&program.functions["main"]);
}

/// A GGUF file: settings, tokenizer, and the first and last row of each tensor.
fn gguf(input: &[u8]) {
    let Ok(file) = Gguf::parse(Bytes::copy_from_slice(input)) else { return };
    let Ok(source) = Source::from_gguf(file) else { return };
    checkpoint(&source);
}

/// A safetensors file in a folder whose other files are well.
fn safetensors(input: &[u8]) {
    in_folder(|folder| {
        std::fs::write(folder.join("config.json"), super::seeds::CONFIG).expect("the disk takes it");
        std::fs::write(folder.join("model.safetensors"), input).expect("the disk takes it");
    });
}

/// A `config.json` in a folder whose other files are well.
fn config(input: &[u8]) {
    in_folder(|folder| {
        std::fs::write(folder.join("config.json"), input).expect("the disk takes it");
        std::fs::write(folder.join("model.safetensors"), super::seeds::safetensors()).expect("the disk takes it");
    });
}

/// The index of weights in several files, in a folder whose other files are well.
fn index(input: &[u8]) {
    in_folder(|folder| {
        let _ = std::fs::remove_file(folder.join("model.safetensors"));
        std::fs::write(folder.join("config.json"), super::seeds::CONFIG).expect("the disk takes it");
        std::fs::write(folder.join(super::seeds::SHARD), super::seeds::safetensors()).expect("the disk takes it");
        std::fs::write(folder.join("model.safetensors.index.json"), input).expect("the disk takes it");
    });
}

/// The manifest of a converted model, and the files it names.
fn bundle(input: &[u8]) {
    in_a_folder(|folder| {
        std::fs::write(folder.join(anemone_package::bundle::MANIFEST), input).expect("the disk takes it");
        if let Ok(manifest) = anemone_package::bundle::BundleManifest::read(folder) {
            drop(manifest.check_files(folder));
            std::fs::write(folder.join(anemone_package::bundle::MANIFEST), manifest.to_json())
                .expect("the disk takes it");
            let again = anemone_package::bundle::BundleManifest::read(folder);
            assert_eq!(again.expect("what we write we can read"), manifest, "and is the same");
        }
    });
}

/// Fills a folder and opens it as a checkpoint.
fn in_folder(fill: impl FnOnce(&Path)) {
    in_a_folder(|folder| {
        fill(folder);
        if let Ok(source) = Source::open(folder) {
            checkpoint(&source);
        }
    });
}

/// Works in a folder that is made once a thread.
fn in_a_folder(work: impl FnOnce(&Path)) {
    thread_local! {
        static FOLDER: OnceCell<tempfile::TempDir> = const { OnceCell::new() };
    }
    FOLDER.with(|folder| work(folder.get_or_init(temporary).path()));
}

/// A folder in memory, where there is one.
fn temporary() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    let folder = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    folder.expect("there is a place for temporary files")
}

/// Reads what a conversion reads of a checkpoint.
fn checkpoint(source: &Source) {
    let mut row = Vec::new();
    for name in ["model.embed_tokens.weight", "model.norm.weight", "model.layers.0.self_attn.q_proj.weight"] {
        let Ok(tensor) = source.tensor(name) else { continue };
        if tensor.rows() == 0 || tensor.row_len() > 1 << 16 {
            continue;
        }
        row.resize(tensor.row_len(), 0.0);
        for at in [0, tensor.rows() - 1] {
            tensor.decode_rows(at..at + 1, &mut row);
        }
    }
    if let Ok(files) = source.tokenizer() {
        tokenizer(files.json.as_bytes());
        if let Some(chat_template) = files.chat_template {
            template(chat_template.as_bytes());
        }
    }
}

/// A `tokenizer.json`, and some text encoded and decoded with it.
fn tokenizer(input: &[u8]) {
    let Ok(tokenizer) = anemone::Tokenizer::from_bytes(input) else { return };
    for text in ["", "Hello, world! 123", " é\u{1f980}\n\t", "<|im_start|>user"] {
        let Ok(ids) = tokenizer.encode(text, true) else { continue };
        drop(tokenizer.decode(&ids));
    }
    drop(tokenizer.decode(&[0, 1, u32::MAX]));
}

/// A chat template, rendered.
fn template(input: &[u8]) {
    let Ok(source) = std::str::from_utf8(input) else { return };
    let Ok(template) = anemone::ChatTemplate::new(source) else { return };
    let messages =
        [anemone::Message::system("Be brief."), anemone::Message::user("Hi"), anemone::Message::assistant("Yes?")];
    drop(template.render(&messages, &anemone::Rendering::default()));
    drop(template.render(&[], &anemone::Rendering { add_generation_prompt: false, ..Default::default() }));
}
