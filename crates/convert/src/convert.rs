//! From an opened checkpoint to a folder with a package and what is needed to chat through it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use anemone_mil::Program;
use anemone_mil::model::{Metadata, Model};
use anemone_package::bundle::{self, BundleManifest, PartInfo, SourceInfo, hex};
use sha2::{Digest, Sha256};

use crate::calibration::Calibration;
use crate::check::{Fidelity, check};
use crate::error::{ConvertError, Result};
use crate::lint::{Finding, Os, Profile, lint};
use crate::part::{Frame, GIVES, Kv, Part, TAKES};
use crate::quantize::{Recipe, Rule, Scheme, Shared, Text, Watch, Weights};
use crate::source::{Format, Source};
use crate::split::{Cut, Size, Split};
use crate::staging::write_synced;
use crate::tokenizer::{TokenizerFiles, reach};
use crate::{profile, quantize, split, staging};

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
#[derive(Debug, Clone)]
pub struct Options {
    /// Positions of the cache, which is baked into the package. At most what the model was made for; [`DEFAULT_CONTEXT`] or
    /// the model's own if absent.
    pub context: Option<usize>,
    /// How weights are stored.
    pub weights: &'static Scheme,
    /// Matrices that are stored otherwise: the last rule that matches counts.
    pub rules: Vec<Rule>,
    /// Tokens per call of `prefill`, at least 2 and at most the context; [`DEFAULT_PREFILL`] or the context if absent.
    pub prefill: Option<usize>,
    /// The hardware that the package is meant for.
    pub profile: Profile,
    /// Where the key-value cache is kept.
    pub kv: Kv,
    /// Into how many packages the model is put.
    pub split: Split,
}

impl Default for Options {
    fn default() -> Self {
        let weights = quantize::find("f16").expect("the list of schemes has f16");
        Self {
            context: None,
            weights,
            rules: Vec::new(),
            prefill: None,
            profile: Profile::Portable,
            kv: Kv::State,
            split: Split::Auto,
        }
    }
}

impl Options {
    /// How weights are stored, as packages say it: the scheme, and the rules behind it.
    #[must_use]
    pub fn weights_name(&self) -> String {
        quantize::name(self.weights, &self.rules)
    }

    /// Of what use a text is to what it stores.
    #[must_use]
    pub fn text(&self) -> Text {
        self.rules.iter().map(|rule| rule.scheme().text).fold(self.weights.text, Text::max)
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
    /// Packages.
    pub parts: usize,
}

/// A conversion checked against its source: it can be costed, then carried out.
#[derive(Debug)]
pub struct Conversion<'s> {
    source: &'s Source,
    recipe: Recipe,
    prefill: usize,
    profile: Profile,
    kv: Kv,
    parts: Vec<Part>,
    calibration: Option<Arc<Calibration>>,
    estimate: Estimate,
    tokenizer: Option<TokenizerFiles>,
    /// Tokens that no text becomes, since the model has no rows for them.
    unreachable: Vec<String>,
    /// Bytes that two of the parts hold.
    stored_twice: Option<u64>,
}

impl<'s> Conversion<'s> {
    /// Checks that the options fit the source.
    ///
    /// # Errors
    /// [`ConvertError::Options`] if they do not; [`ConvertError::Tokenizer`] if the tokenizer cannot be understood, or has
    /// tokens that the model does not know.
    pub fn new(source: &'s Source, options: &Options) -> Result<Self> {
        let c = source.config();
        let context = profile::context(options.profile, c, options.context)?;
        let problem = |option, problem| Err(ConvertError::Options { option, problem });
        let prefill = options.prefill.unwrap_or(DEFAULT_PREFILL.min(context));
        if prefill < 2 || prefill > context {
            return problem("prefill", format!("{prefill}; expected 2 to {context}, the context of the package"));
        }
        let recipe = Recipe {
            scheme: options.weights,
            rules: options.rules.clone(),
            tied: c.tie_embeddings,
            engine: options.profile == Profile::Ane,
        };
        recipe.check(source)?;
        if options.kv == Kv::Io && options.profile == Profile::Gpu {
            let why = "the apps that packages for the GPU are made for know the cache as state alone";
            return problem("kv", format!("{}; expected state: {why}", options.kv));
        }
        let cut = Cut {
            source,
            recipe: &recipe,
            profile: options.profile,
            kv: options.kv,
            widths: profile::widths(options.profile, prefill).into_values().collect(),
            context,
        };
        let parts = cut.parts(options.split)?;
        let mut size = Size::default();
        for part in &parts {
            let Size { bytes, weights } = cut.size(part)?;
            size = Size { bytes: size.bytes + bytes, weights: size.weights + weights };
        }
        let stored_twice = cut.stored_twice(&parts)?;
        let tokenizer = source.has_tokenizer().then(|| source.tokenizer()).transpose()?;
        let unreachable = match &tokenizer {
            Some(files) => reach::check(source.path(), &files.json, c.vocab_size)?,
            None => Vec::new(),
        };
        let states = profile::states(options.profile, c, context);
        let cache_bytes = states.iter().map(|(_, ty)| 2 * ty.elements() as u64).sum();
        let estimate = Estimate {
            context,
            trained_context: c.context_length,
            cache_bytes,
            weight_bytes: size.bytes,
            weights: size.weights,
            parts: parts.len(),
        };
        Ok(Self {
            source,
            recipe,
            prefill,
            profile: options.profile,
            kv: options.kv,
            parts,
            calibration: None,
            estimate,
            tokenizer,
            unreachable,
            stored_twice,
        })
    }

    /// Makes palettes and four-bit integers for what the layers read on a text.
    #[must_use]
    pub fn calibrated(self, calibration: Calibration) -> Self {
        Self { calibration: Some(Arc::new(calibration)), ..self }
    }

    /// What the package will cost.
    #[must_use]
    pub fn estimate(&self) -> Estimate {
        self.estimate
    }

    /// Whether it can go to `dest`, as far as what is there tells. Nothing is written.
    ///
    /// # Errors
    /// [`ConvertError::Occupied`] if something else is there.
    pub fn check(&self, dest: &Path) -> Result<()> {
        staging::check(dest)
    }

    /// What the user should know before it is carried out, one sentence each.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let speechless = "the source has no tokenizer: its package can be used with `predict`, and be chatted with once \
                          the model's `tokenizer.json` is put beside it";
        let mut notes = Vec::new();
        notes.extend(self.source.lora().map(|(_, about)| about.to_owned()));
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
        notes.extend(self.stored_twice.map(|bytes| {
            format!(
                "the embedding is the output projection too, and the first and the last part both need it: it is stored twice, \
                 which takes {:.1} MB more than one package",
                bytes as f64 / 1e6
            )
        }));
        notes
    }

    /// What the rules for the profile find in the package, before anything is written.
    ///
    /// # Errors
    /// If the model cannot be built.
    pub fn lint(&self, os: Os) -> Result<Vec<Finding>> {
        let mut all = Vec::new();
        for model in self.models(&Watch::default(), "")? {
            all.extend(lint(&model, self.profile, os));
        }
        all.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
        Ok(all)
    }

    /// How near the weights will be to their source, by a few rows of each matrix. Nothing is written.
    ///
    /// # Errors
    /// If a tensor cannot be read, or holds what cannot be stored.
    pub fn sample(&self) -> Result<Fidelity> {
        crate::sample::sample(self.source, &self.recipe)
    }

    /// Refuses weights that the profile's hardware does not compute with.
    fn check_weights(&self) -> Result<()> {
        const RULES: [&str; 4] = ["blocks-of-weights", "int4-linear", "palette-blocks", "palette-scale"];
        if self.profile != Profile::Ane {
            return Ok(());
        }
        let findings = self.lint(Os::Ios18)?;
        match findings.iter().find(|finding| RULES.contains(&finding.rule.id)) {
            None => Ok(()),
            Some(finding) => {
                let (name, rule) = (self.recipe.name(), finding.rule);
                let problem = format!("{name} is nothing for the Neural Engine: {} {}", rule.reason, rule.remedy);
                Err(ConvertError::Options { option: "weights", problem })
            }
        }
    }

    /// Converts into the folder `dest`, which appears complete or not at all. A converted model that is there already is
    /// replaced. What was written is decoded and compared with the source before it appears.
    ///
    /// # Errors
    /// If the disk is too full, a weight cannot be stored, `watch` says stop, or the system refuses.
    pub fn run(&self, dest: &Path, watch: &Watch) -> Result<Fidelity> {
        self.check_weights()?;
        watch.begin(0);
        crate::finite::check(self.source, watch)?;
        watch.begin(1);
        let staging = staging::begin(dest, self.estimate.weight_bytes + SPARE_DISK)?;
        let stopped = |e: ConvertError| if watch.stop.load(Ordering::Relaxed) { ConvertError::Stopped } else { e };
        let manifest = self.write(staging.folder(), watch).map_err(stopped)?;
        let packages = split::names(&self.parts).into_iter().map(|name| staging.folder().join(name));
        let packages: Vec<PathBuf> = packages.collect();
        let widths = profile::widths(self.profile, self.prefill);
        let function = widths.keys().next().expect("each profile has a function");
        watch.begin(2);
        let fidelity = check(&packages, function, self.source, &self.recipe, watch)?;
        staging::commit(staging, &manifest)?;
        Ok(fidelity)
    }

    fn write(&self, folder: &Path, watch: &Watch) -> Result<BundleManifest> {
        let mut files = self.source.weight_files().to_vec();
        if let Some((weights, _)) = self.source.lora() {
            files.extend([weights.to_owned(), weights.with_file_name("adapter_config.json")]);
        }
        let source_sha256 = digest_files(&files, watch)?;
        let mut digests = Vec::new();
        for (model, name) in self.models(watch, &source_sha256)?.iter().zip(split::names(&self.parts)) {
            let package = folder.join(name);
            anemone_mil::encode::write(model, &package)?;
            digests.push(anemone_package::Package::open(&package)?.digest()?);
        }
        let package_sha256 = hex(&bundle::digest_of_parts(&digests));

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
            version: if digests.len() == 1 { bundle::VERSION_OF_ONE } else { bundle::VERSION },
            name: self.source.name(),
            context: self.estimate.context,
            weights: self.recipe.name(),
            functions: profile::widths(self.profile, self.prefill),
            roles: profile::roles(self.profile, self.kv, c, self.estimate.context),
            source: SourceInfo {
                format: match self.source.format() {
                    Format::Gguf => "gguf".into(),
                    Format::HuggingFace => "safetensors".into(),
                },
                architecture: c.family.name.to_owned(),
                sha256: source_sha256,
            },
            package_sha256,
            parts: self.part_infos(&digests),
            files,
        })
    }

    /// What the manifest says of the parts; nothing of a model in one package.
    fn part_infos(&self, digests: &[[u8; 32]]) -> Vec<PartInfo> {
        if digests.len() == 1 {
            return Vec::new();
        }
        let parts = self.parts.iter().zip(digests).zip(split::names(&self.parts));
        let info = |((part, digest), package): ((&Part, &[u8; 32]), String)| PartInfo {
            package,
            layers: [part.layers.start, part.layers.end],
            takes: if part.embeddings { "input_ids" } else { TAKES }.to_owned(),
            gives: if part.head { "logits" } else { GIVES }.to_owned(),
            sha256: hex(digest),
        };
        parts.map(info).collect()
    }

    /// The packages, in order.
    fn models(&self, watch: &Watch, source_sha256: &str) -> Result<Vec<Model>> {
        self.parts.iter().map(|part| self.model(part, watch, source_sha256)).collect()
    }

    fn model(&self, part: &Part, watch: &Watch, source_sha256: &str) -> Result<Model> {
        let weights = Weights {
            recipe: self.recipe.clone(),
            watch: watch.clone(),
            calibration: self.calibration.clone(),
            shared: Shared::default(),
        };
        let mut functions = BTreeMap::new();
        for (name, width) in profile::widths(self.profile, self.prefill) {
            let frame = Frame { width, context: self.estimate.context, part: part.clone(), kv: self.kv };
            let function = profile::build(self.profile, self.source, &weights, &frame)?;
            functions.insert(name, function);
        }
        let c = self.source.config();
        let mut user_defined = profile::metadata(self.profile, self.source);
        if self.kv == Kv::Io {
            user_defined.push(("anemone.kv", self.kv.name().to_owned()));
        }
        if !part.is_whole() {
            let Range { start, end } = part.layers;
            user_defined.push(("anemone.layers", format!("{start}..{end}")));
        }
        user_defined.extend([
            ("anemone.context", self.estimate.context.to_string()),
            ("anemone.weights", self.recipe.name()),
            ("anemone.architecture", c.family.name.to_owned()),
            ("anemone.source.sha256", source_sha256.to_owned()),
            ("anemone.version", env!("CARGO_PKG_VERSION").to_owned()),
        ]);
        user_defined.extend(self.source.lora().map(|(_, about)| ("anemone.lora", about.to_owned())));
        Ok(Model {
            specification_version: SPECIFICATION,
            program: Program { version: 1, functions, attributes: BTreeMap::new() },
            default_function: profile::default_function(self.profile),
            metadata: Metadata {
                description: format!(
                    "{}: a language model whose key-value cache is {}, for {} positions",
                    self.source.name(),
                    if self.kv == Kv::Io { "an input" } else { "state" },
                    self.estimate.context
                ),
                user_defined: user_defined.into_iter().map(|(k, v)| (k.to_owned(), v)).collect(),
                ..Metadata::default()
            },
            ..Model::default()
        })
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
