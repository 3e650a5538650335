//! What a Hugging Face repository says that it holds, and which of it a conversion needs.

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::digest::Digest;

/// No file of a model may be larger: 256 GiB.
const FILE_LIMIT: u64 = 256 << 30;

/// Small files that a conversion reads if they are there.
const PAPERS: [&str; 11] = [
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer.model",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "chat_template.jinja",
    "chat_template.json",
    "vocab.json",
    "merges.txt",
];

const INDEX: &str = "model.safetensors.index.json";

/// The files of a repository at one commit.
pub(super) struct Listing {
    /// The commit that the revision stands for.
    pub(super) commit: String,
    files: Vec<Value>,
}

/// One file to have.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) name: String,
    pub(super) size: u64,
    pub(super) digest: Digest,
}

impl Listing {
    /// Reads the answer to `/api/models/OWNER/NAME/revision/REVISION?blobs=true`.
    pub(super) fn parse(answer: &Value) -> Result<Listing> {
        let commit = answer["sha"].as_str().context("it has no text `sha`")?.to_owned();
        let files = answer["siblings"].as_array().context("it has no list `siblings`")?.clone();
        Ok(Listing { commit, files })
    }

    /// The one file that is asked for, or all that a conversion needs: weights as safetensors, and their papers.
    /// The weights come last, so that what is wrong with the rest shows early.
    pub(super) fn wanted(&self, file: Option<&str>) -> Result<Vec<Wanted>> {
        if let Some(file) = file {
            return Ok(vec![self.find(file)?.with_context(|| format!("it has no {file}; it has {}", self.names()))?]);
        }
        let mut wanted = Vec::new();
        for name in PAPERS {
            wanted.extend(self.find(name)?);
        }
        let has = |name: &str| wanted.iter().any(|file: &Wanted| file.name == name);
        if !has("config.json") {
            bail!("it has no config.json, so it is no checkpoint in Hugging Face's form; it has {}", self.names());
        }
        if !has("tokenizer.json") && !has("tokenizer.model") {
            bail!("it has neither tokenizer.json nor tokenizer.model; it has {}", self.names());
        }
        if let Some(index) = self.find(INDEX)? {
            wanted.push(index);
            let is_shard = |name: &&str| name.starts_with("model-") && name.ends_with(".safetensors") && is_plain(name);
            for name in self.files.iter().filter_map(name_of).filter(is_shard) {
                wanted.extend(self.find(name)?);
            }
        } else {
            let weights = self.find("model.safetensors")?;
            wanted.push(weights.with_context(|| format!("it has no model.safetensors; it has {}", self.names()))?);
        }
        Ok(wanted)
    }

    fn find(&self, name: &str) -> Result<Option<Wanted>> {
        let Some(entry) = self.files.iter().find(|entry| name_of(entry) == Some(name)) else { return Ok(None) };
        let size = entry["size"].as_u64().with_context(|| format!("{name} has no `size` in the listing"))?;
        if size > FILE_LIMIT {
            bail!("{name} would have {size} bytes; more than {FILE_LIMIT} are not downloaded");
        }
        let digest = entry["lfs"]["sha256"].as_str().or(entry["blobId"].as_str());
        let digest = Digest::parse(digest.with_context(|| format!("{name} has no digest in the listing"))?)?;
        Ok(Some(Wanted { name: name.to_owned(), size, digest }))
    }

    /// Some names, for messages.
    fn names(&self) -> String {
        let names: Vec<&str> = self.files.iter().filter_map(name_of).take(20).collect();
        format!("{}{}", names.join(", "), if self.files.len() > names.len() { ", …" } else { "" })
    }
}

fn name_of(entry: &Value) -> Option<&str> {
    entry["rfilename"].as_str()
}

/// Names come from outside and become file names.
fn is_plain(name: &str) -> bool {
    name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn listing(names: &[&str]) -> Listing {
        let files = names.iter().map(|name| json!({"rfilename": name, "size": 1, "blobId": "0".repeat(40)})).collect();
        Listing { commit: "0".repeat(40), files }
    }

    fn names(wanted: Vec<Wanted>) -> Vec<String> {
        wanted.into_iter().map(|file| file.name).collect()
    }

    #[test]
    fn takes_what_a_conversion_needs_and_nothing_else() {
        let listing = listing(&[
            ".gitattributes",
            "README.md",
            "model.safetensors",
            "config.json",
            "tokenizer.json",
            "onnx/model.onnx",
            "pytorch_model.bin",
        ]);
        assert_eq!(names(listing.wanted(None).unwrap()), ["config.json", "tokenizer.json", "model.safetensors"]);
    }

    #[test]
    fn takes_the_shards_of_an_index() {
        let shards = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"];
        let listing =
            listing(&["config.json", "tokenizer.json", INDEX, shards[0], shards[1], "model-/../x.safetensors"]);
        assert_eq!(names(listing.wanted(None).unwrap())[3..], shards);
    }

    #[test]
    fn says_what_is_missing_and_what_there_is() {
        let error = listing(&["model.Q4_0.gguf"]).wanted(None).unwrap_err().to_string();
        assert!(error.contains("config.json") && error.contains("model.Q4_0.gguf"), "{error}");
        let error = listing(&["config.json", "tokenizer.json"]).wanted(None).unwrap_err().to_string();
        assert!(error.contains("no model.safetensors"), "{error}");
        assert_eq!(names(listing(&["a.gguf"]).wanted(Some("a.gguf")).unwrap()), ["a.gguf"]);
        assert!(listing(&["a.gguf"]).wanted(Some("b.gguf")).unwrap_err().to_string().contains("a.gguf"));
    }

    #[test]
    fn hostile_listings_are_refused() {
        let bad =
            |entry: Value| Listing { commit: String::new(), files: vec![entry] }.wanted(Some("a.gguf")).unwrap_err();
        bad(json!({"rfilename": "a.gguf", "size": -1, "blobId": "0".repeat(40)}));
        bad(json!({"rfilename": "a.gguf", "size": u64::MAX, "blobId": "0".repeat(40)}));
        bad(json!({"rfilename": "a.gguf", "size": 1, "blobId": "../../etc/passwd"}));
        bad(json!({"rfilename": "a.gguf", "size": 1}));
        assert!(Listing::parse(&json!([])).is_err());
        assert!(Listing::parse(&json!({"sha": 1})).is_err());
    }
}
