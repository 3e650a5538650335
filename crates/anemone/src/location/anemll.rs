//! Folders of ANEMLL: a `meta.yaml` beside the packages of one model: embeddings, chunks of layers, head.
//!
//! What the keys are called and how files are named is that of its `generate_meta_yaml.py`, `chat.py` and `YAMLConfig.swift`
//! (version 0.3.4).

use std::path::{Path, PathBuf};

use anemone_package::bundle::{MAX_PARTS, is_file_name};

use super::yaml;
use crate::files::read_text;
use crate::{Error, Result};

/// The file that says what the folder holds.
pub(super) const META: &str = "meta.yaml";
/// The longest such file that is read, in bytes.
const LIMIT: u64 = 1 << 20;
/// What the parameters lie in.
const PARAMETERS: [&str; 2] = ["model_info", "parameters"];

/// What a folder holds.
#[derive(Debug)]
pub(super) struct Folder {
    pub(super) name: Option<String>,
    /// The packages in the order in which they run.
    pub(super) parts: Vec<PathBuf>,
}

/// Reads `meta.yaml` and finds the packages.
///
/// # Errors
/// If the file cannot be read or does not say what it should, or a package is missing or there in compiled form alone.
pub(super) fn read(folder: &Path) -> Result<Folder> {
    let path = folder.join(META);
    let text = read_text(&path, LIMIT)?;
    let malformed = |problem| Error::Malformed { path: path.clone(), problem };
    let scalars = yaml::scalars(&text).map_err(malformed)?;
    let [outer, inner] = PARAMETERS;
    if !scalars.iter().any(|(path, _)| path.len() > 2 && path[..2] == PARAMETERS) {
        let found = if scalars.is_empty() { "it is empty" } else { "it has none" };
        return Err(malformed(format!(
            "{found}; expected `{outer}` with `{inner}` such as `num_chunks` and `model_prefix`, as ANEMLL writes them; copy the \
             file from the folder of the model again"
        )));
    }
    let parameter = |key: &str| {
        let found = scalars.iter().find(|(path, _)| path[..] == [outer, inner, key]);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    };
    let chunks = parameter("num_chunks").unwrap_or("1");
    let chunks = chunks.parse::<usize>().ok().filter(|n| (1..MAX_PARTS - 1).contains(n)).ok_or_else(|| {
        malformed(format!("`num_chunks` is {chunks:?}; expected a number from 1 to {}", MAX_PARTS - 2))
    })?;
    // A name that is given, or one made of the prefix and the bits of the palettes.
    let stem = |key: &str, usual: &str, bits: &str| {
        let made = || {
            let prefix = parameter("model_prefix").unwrap_or("llama");
            let bits = parameter(bits).filter(|bits| *bits != "none").map(|bits| format!("_lut{bits}"));
            format!("{prefix}_{usual}{}", bits.unwrap_or_default())
        };
        let name = parameter(key).map_or_else(made, |given| without_ending(given).to_owned());
        if is_file_name(&name) {
            Ok(name)
        } else {
            Err(malformed(format!("{name:?} is no name of a file in the folder")))
        }
    };
    let find = |names: &[String]| find(folder, names);
    let embeddings = stem("embeddings", "embeddings", "lut_embeddings")?;
    let plain = embeddings.split_once("_lut").map(|(plain, _)| plain.to_owned());
    let mut parts = vec![find(&[vec![embeddings], plain.into_iter().collect()].concat())?];
    let layers = stem("ffn", "FFN_PF", "lut_ffn")?;
    let layers = layers.split("_chunk_").next().unwrap_or_default();
    for chunk in 1..=chunks {
        let mut names = vec![format!("{layers}_chunk_{chunk:02}of{chunks:02}")];
        if chunks == 1 {
            names.push(layers.to_owned());
        }
        parts.push(find(&names)?);
    }
    parts.push(find(&[stem("lm_head", "lm_head", "lut_lmhead")?])?);
    let name = scalars.into_iter().find(|(path, _)| path[..] == ["model_info", "name"]).map(|(_, name)| name);
    Ok(Folder { name, parts })
}

fn without_ending(name: &str) -> &str {
    [".mlmodelc", ".mlpackage"].iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(name)
}

/// The package of the first of these names that there is.
fn find(folder: &Path, names: &[String]) -> Result<PathBuf> {
    let paths = |ending: &str| names.iter().map(|name| folder.join(format!("{name}.{ending}"))).collect::<Vec<_>>();
    let packages = paths("mlpackage");
    if let Some(found) = packages.iter().find(|path| path.is_dir()) {
        return Ok(found.clone());
    }
    let compiled = paths("mlmodelc").into_iter().find(|path| path.is_dir());
    let (path, found, remedy) = match compiled {
        Some(path) => (
            path,
            "a compiled part of a model of ANEMLL",
            "Anemone needs the package that it was compiled from: put the `.mlpackage` of the same name beside it",
        ),
        None => (packages[0].clone(), "nothing", "`meta.yaml` tells of a package of this name; copy the whole folder"),
    };
    Err(Error::NotAModel { path, found: found.to_owned(), remedy })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const META_YAML: &str = "model_info:
  name: anemll-tiny-ctx512
  version: 0.3.4
  description: |
    Demonstrates a model
    Chunks: 2
  architecture: llama
  parameters:
    context_length: 512
    batch_size: 64
    lut_embeddings: 8
    lut_ffn: 4
    lut_lmhead: none
    num_chunks: 2
    model_prefix: llama
";

    fn folder(meta: &str, packages: &[&str]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(META), meta).unwrap();
        packages.iter().for_each(|name| fs::create_dir(dir.path().join(name)).unwrap());
        dir
    }

    fn names(folder: &Folder) -> Vec<String> {
        folder.parts.iter().map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect()
    }

    const CHUNKS: [&str; 2] = ["llama_FFN_PF_lut4_chunk_01of02.mlpackage", "llama_FFN_PF_lut4_chunk_02of02.mlpackage"];

    #[test]
    fn names_are_made_of_the_prefix_and_the_bits() {
        // Embeddings without a palette stand in for those with one.
        let all = [&["llama_embeddings.mlpackage"][..], &CHUNKS, &["llama_lm_head.mlpackage"]].concat();
        let found = read(folder(META_YAML, &all).path()).unwrap();
        assert_eq!(
            (found.name.as_deref(), names(&found)),
            (Some("anemll-tiny-ctx512"), all.iter().map(|n| n.to_string()).collect())
        );
    }

    #[test]
    fn names_that_are_given_count() {
        let meta = format!(
            "{META_YAML}    embeddings: e.mlmodelc\n    ffn: f_chunk_01of02.mlmodelc\n    lm_head: h.mlmodelc\n"
        );
        let all = ["e.mlpackage", "f_chunk_01of02.mlpackage", "f_chunk_02of02.mlpackage", "h.mlpackage"];
        assert_eq!(names(&read(folder(&meta, &all).path()).unwrap()), all);
        let outside = META_YAML.replace("model_prefix: llama", "model_prefix: ../x");
        let error = read(folder(&outside, &[]).path()).unwrap_err().to_string();
        assert!(error.contains("no name of a file"), "{error}");
    }

    #[test]
    fn what_is_missing_or_compiled_alone_is_named() {
        let error = |packages: &[&str]| read(folder(META_YAML, packages).path()).unwrap_err().to_string();
        assert!(error(&[]).contains("llama_embeddings_lut8.mlpackage"), "{}", error(&[]));
        let compiled = error(&["llama_embeddings_lut8.mlmodelc"]);
        assert!(compiled.contains("compiled from"), "{compiled}");
        for nothing in
            ["", "# model_info:\n", "model_info:\n", "model_info:\n  name: x\n", "parameters:\n  num_chunks: 1\n"]
        {
            let error = read(folder(nothing, &[]).path()).unwrap_err().to_string();
            assert!(
                error.contains("meta.yaml") && error.contains("expected `model_info` with `parameters`"),
                "{error}"
            );
        }
        for (from, to) in
            [("num_chunks: 2", "num_chunks: many"), ("num_chunks: 2", "num_chunks: 100000"), ("model_info:", "a: [")]
        {
            let error = read(folder(&META_YAML.replace(from, to), &[]).path()).unwrap_err().to_string();
            assert!(error.contains("meta.yaml"), "{to}: {error}");
        }
    }
}
