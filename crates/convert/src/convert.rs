//! From an opened checkpoint to a folder with a package and what is needed to chat through it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use anemone_mil::model::{Metadata, Model};
use anemone_mil::port::{Port, PortKind, PortShape, Ports, StatePort};
use anemone_mil::types::{StaticType, elements};
use anemone_mil::{Function, Program};
use anemone_package::bundle::{self, BundleManifest, Roles, SourceInfo, hex};
use sha2::{Digest, Sha256};

use crate::check::{Fidelity, check};
use crate::error::{ConvertError, Result};
use crate::net::{CACHE, Net, cache_type};
use crate::quantize::{Scheme, Shared, Watch, Weights};
use crate::source::{Format, Source};
use crate::staging::write_synced;
use crate::tokenizer::{TokenizerFiles, reach};
use crate::{arch, quantize, staging};

/// The context length of a conversion that does not ask for one, if the model was made for at least as much.
pub const DEFAULT_CONTEXT: usize = 4096;
/// Tokens per call of the function `prefill`, if nothing else is asked for.
pub const DEFAULT_PREFILL: usize = 64;
/// The function of one token per call, and the default one.
pub const DECODE: &str = "decode";
/// The function of several tokens per call.
pub const PREFILL: &str = "prefill";
/// Specification version of iOS 18, the first with states.
const SPECIFICATION: i32 = 9;
/// Room asked for beyond the package itself: tokenizer, program, file system.
const SPARE_DISK: u64 = 64 << 20;

/// What a conversion should make.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Positions of the cache, which is baked into the package. At most what the model was made for; [`DEFAULT_CONTEXT`] or
    /// the model's own if absent.
    pub context: Option<usize>,
    /// How weights are stored.
    pub weights: &'static Scheme,
    /// Tokens per call of `prefill`, at least 2 and at most the context; [`DEFAULT_PREFILL`] or the context if absent.
    pub prefill: Option<usize>,
}

impl Default for Options {
    fn default() -> Self {
        let weights = quantize::find("f16").expect("the list of schemes has f16");
        Self { context: None, weights, prefill: None }
    }
}

/// What a package will cost, known before anything is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Estimate {
    /// Positions of the cache.
    pub context: usize,
    /// The context that the model was made for.
    pub trained_context: usize,
    /// Bytes of one conversation's state.
    pub cache_bytes: u64,
    /// Bytes of the weights in the package.
    pub weight_bytes: u64,
    /// Number of weights, for progress.
    pub weights: u64,
}

/// A conversion checked against its source: it can be costed, then carried out.
#[derive(Debug)]
pub struct Conversion<'s> {
    source: &'s Source,
    weights: &'static Scheme,
    prefill: usize,
    estimate: Estimate,
    build: arch::Build,
    tokenizer: Option<TokenizerFiles>,
    /// Tokens that no text becomes, since the model has no rows for them.
    unreachable: Vec<String>,
}

impl<'s> Conversion<'s> {
    /// Checks that the options fit the source.
    ///
    /// # Errors
    /// [`ConvertError::Options`] if they do not; [`ConvertError::Tokenizer`] if the tokenizer cannot be understood, or has
    /// tokens that the model does not know.
    pub fn new(source: &'s Source, options: &Options) -> Result<Self> {
        let c = source.config();
        let trained = c.context_length;
        let context = options.context.unwrap_or(trained.min(DEFAULT_CONTEXT));
        let problem = |option, problem| Err(ConvertError::Options { option, problem });
        if context < 2 || context > trained {
            let most = format!("{trained}, the context that the model was made for");
            return problem("context", format!("{context}; expected 2 to {most}"));
        }
        let prefill = options.prefill.unwrap_or(DEFAULT_PREFILL.min(context));
        if prefill < 2 || prefill > context {
            return problem("prefill", format!("{prefill}; expected 2 to {context}, the context of the package"));
        }
        let build = arch::build(c.family);
        let (mut weight_bytes, mut weights) = (0, 0);
        for (name, shape) in (c.family.tensors)(c) {
            let n = elements(&shape) as u64;
            match shape[..] {
                [_, _] if c.tie_embeddings && name == "lm_head.weight" => {}
                [_, _] => {
                    weight_bytes += options.weights.bytes(&source.tensor(&name)?);
                    weights += n;
                }
                _ => weight_bytes += 2 * n,
            }
        }
        let tokenizer = source.has_tokenizer().then(|| source.tokenizer()).transpose()?;
        let unreachable = match &tokenizer {
            Some(files) => reach::check(source.path(), &files.json, c.vocab_size)?,
            None => Vec::new(),
        };
        let cache_bytes = 2 * cache_type(c, context).elements() as u64;
        let estimate = Estimate { context, trained_context: c.context_length, cache_bytes, weight_bytes, weights };
        Ok(Self { source, weights: options.weights, prefill, estimate, build, tokenizer, unreachable })
    }

    /// What the package will cost.
    #[must_use]
    pub fn estimate(&self) -> Estimate {
        self.estimate
    }

    /// What the user should know before it is carried out, one sentence each.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let speechless = "the source has no tokenizer: its package can be used with `predict`, and be chatted with once \
                          the model's `tokenizer.json` is put beside it";
        let mut notes = Vec::new();
        if self.tokenizer.is_none() {
            notes.push(speechless.to_owned());
        }
        if !self.unreachable.is_empty() {
            let tokens = self.unreachable.join(", ");
            notes.push(format!(
                "the model has no rows for these tokens of its tokenizer, which texts must not use: {tokens}"
            ));
        }
        if self.source.is_part() {
            notes.push(
                "the model also reads other things than text; the part that speaks is converted alone".to_owned(),
            );
        }
        notes
    }

    /// Converts into the folder `dest`, which appears complete or not at all. A converted model that is there already is
    /// replaced. What was written is decoded and compared with the source before it appears.
    ///
    /// # Errors
    /// If the disk is too full, a weight cannot be stored, `watch` says stop, or the system refuses.
    pub fn run(&self, dest: &Path, watch: &Watch) -> Result<Fidelity> {
        crate::finite::check(self.source, watch)?;
        let staging = staging::begin(dest, self.estimate.weight_bytes + SPARE_DISK)?;
        let stopped = |e: ConvertError| if watch.stop.load(Ordering::Relaxed) { ConvertError::Stopped } else { e };
        let manifest = self.write(staging.folder(), watch).map_err(stopped)?;
        let package = staging.folder().join(bundle::PACKAGE);
        let fidelity = check(&package, DECODE, self.source, self.weights, watch)?;
        staging::commit(staging, &manifest)?;
        Ok(fidelity)
    }

    fn write(&self, folder: &Path, watch: &Watch) -> Result<BundleManifest> {
        let source_sha256 = digest_files(self.source.weight_files(), watch)?;
        let model = self.model(watch, &source_sha256)?;
        let package = folder.join(bundle::PACKAGE);
        anemone_mil::encode::write(&model, &package)?;
        let package_sha256 = hex(&anemone_package::Package::open(&package)?.digest()?);

        let mut files = BTreeMap::new();
        let mut add = |name: &str, text: &str| {
            files.insert(name.to_owned(), hex(&Sha256::digest(text)));
            write_synced(&folder.join(name), text.as_bytes())
        };
        if let Some(tokenizer) = &self.tokenizer {
            add(bundle::TOKENIZER, &tokenizer.json)?;
        }
        let none = TokenizerFiles::default();
        let tokenizer = self.tokenizer.as_ref().unwrap_or(&none);
        if let Some(template) = &tokenizer.chat_template {
            add(bundle::CHAT_TEMPLATE, template)?;
        }
        let generation = serde_json::json!({
            "settings": self.source.generation(),
            "special_tokens": tokenizer.special_tokens,
            "named_templates": tokenizer.named_templates,
        });
        let generation =
            serde_json::to_string_pretty(&generation).map_err(|e| ConvertError::Internal { problem: e.to_string() })?;
        add(bundle::GENERATION, &generation)?;
        let c = self.source.config();
        Ok(BundleManifest {
            version: bundle::VERSION,
            name: self.source.name(),
            context: self.estimate.context,
            weights: self.weights.name.to_owned(),
            functions: BTreeMap::from([(DECODE.to_owned(), 1), (PREFILL.to_owned(), self.prefill)]),
            roles: Roles {
                tokens: "input_ids".into(),
                positions: "cache_position".into(),
                logits: "logits".into(),
                cache: vec![CACHE.into()],
            },
            source: SourceInfo {
                format: match self.source.format() {
                    Format::Gguf => "gguf".into(),
                    Format::HuggingFace => "safetensors".into(),
                },
                architecture: c.family.name.to_owned(),
                sha256: source_sha256,
            },
            package_sha256,
            files,
        })
    }

    fn model(&self, watch: &Watch, source_sha256: &str) -> Result<Model> {
        let weights = Weights { scheme: self.weights, watch: watch.clone(), shared: Shared::default() };
        let mut functions = BTreeMap::new();
        for (name, width) in [(DECODE, 1), (PREFILL, self.prefill)] {
            let net = Net::new(self.source, &weights, width, self.estimate.context);
            let mut function = (self.build)(net)?;
            function.ports = ports(&function);
            functions.insert(name.to_owned(), function);
        }
        let c = self.source.config();
        let user_defined = [
            ("anemone.context", self.estimate.context.to_string()),
            ("anemone.weights", self.weights.name.to_owned()),
            ("anemone.architecture", c.family.name.to_owned()),
            ("anemone.source.sha256", source_sha256.to_owned()),
            ("anemone.version", env!("CARGO_PKG_VERSION").to_owned()),
        ];
        Ok(Model {
            specification_version: SPECIFICATION,
            program: Program { version: 1, functions, attributes: BTreeMap::new() },
            default_function: Some(DECODE.to_owned()),
            metadata: Metadata {
                description: format!(
                    "{}: a language model whose key-value cache is state, for {} positions",
                    self.source.name(),
                    self.estimate.context
                ),
                user_defined: user_defined.map(|(k, v)| (k.to_owned(), v)).into(),
                ..Metadata::default()
            },
            ..Model::default()
        })
    }
}

/// What the model description says of a function: its values of fixed shape as they are.
fn ports(function: &Function) -> Ports {
    let port = |name: &str, ty: &StaticType| Port {
        name: name.to_owned(),
        description: describe(name).to_owned(),
        kind: PortKind::Array { dtype: ty.dtype, shape: PortShape::Fixed(ty.shape.to_vec()) },
        optional: None,
    };
    let fixed = |id: anemone_mil::ValueId| {
        let v = function.value(id);
        v.ty.tensor().and_then(|t| t.to_static()).map(|t| port(&v.name, &t))
    };
    Ports {
        inputs: function.inputs.iter().copied().filter_map(fixed).collect(),
        outputs: function.body.outputs.iter().copied().filter_map(fixed).collect(),
        states: function
            .states()
            .filter_map(|(_, name, ty)| {
                Some(StatePort { name: name.to_owned(), description: CACHE_TEXT.to_owned(), ty: ty? })
            })
            .collect(),
        ..Ports::default()
    }
}

const CACHE_TEXT: &str = "The key-value cache: keys of all layers, then values of all layers.";

fn describe(port: &str) -> &'static str {
    match port {
        "input_ids" => "Token ids. A call of fewer tokens than its width repeats the last one.",
        "cache_position" => "The position of each token. A call of fewer tokens than its width repeats the last one.",
        "logits" => "Scores of the token after the last one.",
        _ => "",
    }
}

/// SHA-256 of files one after the other.
fn digest_files(files: &[PathBuf], watch: &Watch) -> Result<String> {
    let mut sha = Sha256::new();
    let mut piece = vec![0; 1 << 20];
    for path in files {
        let mut file = File::open(path).map_err(|e| ConvertError::io(path, "open", e))?;
        loop {
            if watch.stop.load(Ordering::Relaxed) {
                return Err(ConvertError::Stopped);
            }
            let n = file.read(&mut piece).map_err(|e| ConvertError::io(path, "read", e))?;
            if n == 0 {
                break;
            }
            sha.update(&piece[..n]);
        }
    }
    Ok(hex(&sha.finalize()))
}
