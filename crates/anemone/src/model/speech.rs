//! What a model speaks with: tokenizer, chat template, the tokens that end an answer, recommended settings.

use std::collections::BTreeMap;
use std::path::Path;

use anemone_convert::{GenerationSettings, TokenizerFiles};
use anemone_package::bundle;
use serde::Deserialize;

use crate::files::read_text;
use crate::location::Location;
use crate::{ChatTemplate, Error, Generation, Result, Tokenizer};

/// Longest template or file of settings that is read, in bytes.
const LIMIT: u64 = 4 << 20;

pub(super) struct Speech {
    pub(super) tokenizer: Tokenizer,
    pub(super) template: ChatTemplate,
    pub(super) end_tokens: Vec<u32>,
    pub(super) generation: Generation,
    /// What a user may want to know.
    pub(super) notes: Vec<String>,
}

/// The folder that holds the tokenizer.
pub(super) fn tokenizer_folder(location: &Location) -> Result<&Path> {
    let found = location.folders.iter().find(|folder| folder.join(bundle::TOKENIZER).is_file());
    Ok(found.ok_or_else(|| Error::NoTokenizer { folders: location.folders.clone() })?)
}

impl Speech {
    /// Reads what the folder holds: as conversion writes it, or as Hugging Face does beside a bare package.
    pub(super) fn read(location: &Location, folder: &Path) -> Result<Self> {
        let (files, settings) = match &location.manifest {
            Some(_) => converted(folder)?,
            None => (hugging_face(folder)?, beside(folder)?),
        };
        let unlisted = location.manifest.as_ref().map_or_else(Vec::new, |manifest| manifest.unlisted(folder));
        let unchecked = |name| format!("`{name}` is not among the files of `{}`, and so not checked", bundle::MANIFEST);
        let mut notes: Vec<String> = unlisted.into_iter().map(unchecked).collect();
        let tokenizer = Tokenizer::from_bytes(files.json.as_bytes())?.at(&folder.join(bundle::TOKENIZER));
        let template = match &files.chat_template {
            Some(source) => ChatTemplate::new(source),
            None => {
                notes.push("the model has no chat template: messages are put one after the other".to_owned());
                ChatTemplate::new(if settings.add_bos { PLAIN_AFTER_BOS } else { PLAIN })
            }
        };
        let mut template = template?;
        files.special_tokens.iter().for_each(|(role, text)| template.set_variable(role, text));
        let mut end_tokens = settings.eos.clone();
        let named = files.special_tokens.get("eos_token").and_then(|text| tokenizer.id(text));
        for token in tokenizer.usual_end_tokens().into_iter().chain(named) {
            if !end_tokens.contains(&token) {
                end_tokens.push(token);
            }
        }
        let mut generation = recommended(&settings);
        if let Err(problem) = generation.check() {
            notes.push(format!("the model's recommended settings are not used: {problem}"));
            generation = Generation::default();
        }
        Ok(Self { tokenizer, template, end_tokens, generation, notes })
    }
}

/// For models that come without a template.
const PLAIN: &str = "{% for message in messages %}{{ message.content }}\n{% endfor %}";
const PLAIN_AFTER_BOS: &str = "{{ bos_token }}{% for message in messages %}{{ message.content }}\n{% endfor %}";

/// The settings of a converted folder.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Converted {
    settings: GenerationSettings,
    special_tokens: BTreeMap<String, String>,
}

fn converted(folder: &Path) -> Result<(TokenizerFiles, GenerationSettings)> {
    let template = folder.join(bundle::CHAT_TEMPLATE);
    let generation = folder.join(bundle::GENERATION);
    let read: Converted = if generation.is_file() { json(&generation)? } else { Converted::default() };
    let files = TokenizerFiles {
        json: read_text(&folder.join(bundle::TOKENIZER), crate::tokenizer::FILE_LIMIT)?,
        chat_template: template.is_file().then(|| read_text(&template, LIMIT)).transpose()?,
        special_tokens: read.special_tokens,
        ..TokenizerFiles::default()
    };
    Ok((files, read.settings))
}

fn hugging_face(folder: &Path) -> Result<TokenizerFiles> {
    TokenizerFiles::from_folder(folder).map_err(|e| Error::Tokenizer { problem: e.to_string() })
}

/// Settings under Hugging Face's names.
#[derive(Default, Deserialize)]
#[serde(default)]
struct HuggingFace {
    eos_token_id: Option<OneOrMany>,
    do_sample: Option<bool>,
    temperature: Option<f32>,
    top_k: Option<u32>,
    top_p: Option<f32>,
    min_p: Option<f32>,
    repetition_penalty: Option<f32>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(u32),
    Many(Vec<u32>),
}

fn beside(folder: &Path) -> Result<GenerationSettings> {
    let path = folder.join("generation_config.json");
    if !path.is_file() {
        return Ok(GenerationSettings::default());
    }
    let read: HuggingFace = json(&path)?;
    Ok(GenerationSettings {
        eos: match read.eos_token_id {
            None => Vec::new(),
            Some(OneOrMany::One(token)) => vec![token],
            Some(OneOrMany::Many(tokens)) => tokens,
        },
        do_sample: read.do_sample,
        temperature: read.temperature,
        top_k: read.top_k,
        top_p: read.top_p,
        min_p: read.min_p,
        repetition_penalty: read.repetition_penalty,
        ..GenerationSettings::default()
    })
}

fn json<T: for<'d> Deserialize<'d>>(path: &Path) -> Result<T> {
    let text = read_text(path, LIMIT)?;
    serde_json::from_str(&text).map_err(|e| {
        let problem =
            format!("not the JSON that is expected: {e}; copy or download it again, or convert the model again");
        Error::Malformed { path: path.to_owned(), problem }
    })
}

/// What the model's makers recommend: greedy, unless they say that tokens are drawn or how.
fn recommended(settings: &GenerationSettings) -> Generation {
    let plain = Generation::default();
    let repetition_penalty = settings.repetition_penalty.unwrap_or(plain.repetition_penalty);
    if !settings.do_sample.unwrap_or(settings.temperature.is_some()) {
        return Generation { repetition_penalty, ..plain };
    }
    Generation {
        repetition_penalty,
        temperature: settings.temperature.unwrap_or(1.0),
        top_k: settings.top_k.map_or(plain.top_k, |k| k as usize),
        top_p: settings.top_p.unwrap_or(plain.top_p),
        min_p: settings.min_p.unwrap_or(plain.min_p),
        ..plain
    }
}
