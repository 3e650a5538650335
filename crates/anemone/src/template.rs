//! Chat templates: a list of messages becomes the text that the model was trained on.
//!
//! Models carry their template as Jinja source meant for Python. This renders it with `minijinja` set up as Hugging Face
//! sets up Jinja: trimmed blocks, loop controls, Python's string and dictionary methods, `raise_exception`,
//! `strftime_now`, a `tojson` that does not escape HTML, and `{% generation %}` blocks
//! (<https://huggingface.co/docs/transformers/chat_templating_writing>).
//!
//! Templates come from outside: the work and the memory of one rendering are bounded.

mod generation_tag;
mod json;
mod strftime;

use std::time::{SystemTime, UNIX_EPOCH};

use minijinja::value::{Serde, Value};
use minijinja::{Environment, ErrorKind, State, syntax::SyntaxConfig};

use crate::guard::guard_deep;
use crate::{Error, Message, Result};

const NAME: &str = "chat_template";
/// Longest template source that is taken, in bytes. (Those of known models are below 32 KiB.) The parser recurses as deep as
/// a chain of operators is long, by about 500 bytes of stack each, and folds constants in a time that grows with its square.
const SOURCE_LIMIT: usize = 1 << 16;
/// Work of one rendering, in minijinja's unit: about an instruction, or 64 bytes of text made. Values can be nested once by
/// an instruction, and are written and dropped by recursion, which this keeps within the stack of [`guard_deep`] as well.
const FUEL: u64 = 400_000;
/// The context variable that carries the time of the rendering to `strftime_now`.
const NOW: &str = "__anemone_now";
const REFUSED: &str = "\u{1}refused: ";

/// A compiled chat template with the variables that belong to its model.
///
/// ```
/// use anemone::{ChatTemplate, Message, Rendering};
///
/// let template = ChatTemplate::new("{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}")?;
/// let text = template.render(&[Message::user("Hi")], &Rendering::default())?;
/// assert_eq!(text, "<user>Hi");
/// # Ok::<(), anemone::Error>(())
/// ```
#[derive(Debug)]
pub struct ChatTemplate {
    environment: Environment<'static>,
    source: String,
}

/// What a rendering is given besides the messages.
#[derive(Clone, Debug)]
pub struct Rendering<'a> {
    /// End with the opening of the assistant's turn.
    pub add_generation_prompt: bool,
    /// Tool definitions (JSON schemas), if the caller offers any.
    pub tools: Option<&'a serde_json::Value>,
    /// Further variables that the template may read, such as `enable_thinking`.
    pub variables: Option<&'a serde_json::Map<String, serde_json::Value>>,
    /// The time that `strftime_now` formats (in UTC).
    pub now: SystemTime,
}

impl Default for Rendering<'_> {
    /// With the generation prompt, no tools, and the present time.
    fn default() -> Self {
        Self { add_generation_prompt: true, tools: None, variables: None, now: SystemTime::now() }
    }
}

impl ChatTemplate {
    /// Compiles a template.
    ///
    /// # Errors
    /// [`Error::Template`] when the source is not valid, [`Error::TooLarge`] when it is longer than 64 KiB.
    pub fn new(source: &str) -> Result<Self> {
        if source.len() > SOURCE_LIMIT {
            return Err(Error::TooLarge {
                what: "the chat template".into(),
                found: source.len() as u64,
                limit: SOURCE_LIMIT as u64,
            });
        }
        let mut environment = Environment::new();
        let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build().map_err(problem)?;
        environment.set_syntax(syntax);
        environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
        environment.set_fuel(Some(FUEL));
        environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        environment.add_filter("tojson", json::tojson);
        environment.add_function("raise_exception", raise_exception);
        environment.add_function("strftime_now", strftime_now);
        guard_deep(broke, || environment.add_template_owned(NAME, generation_tag::rewrite(source)).map_err(problem))?;
        Ok(Self { environment, source: source.to_owned() })
    }

    /// Compiles the template that a `tokenizer_config.json` carries, with the special tokens named there.
    ///
    /// `source` stands for a template that is kept in a file of its own and then goes first. Where the configuration
    /// lists several templates, the one called `default` is taken.
    ///
    /// # Errors
    /// As [`ChatTemplate::new`]; also [`Error::Template`] when there is no template at all.
    pub fn from_config(config: &serde_json::Value, source: Option<&str>) -> Result<Self> {
        let named = |list: &'_ Vec<serde_json::Value>| {
            list.iter()
                .find(|entry| entry["name"] == "default")
                .or(list.first())
                .and_then(|entry| entry["template"].as_str())
                .map(str::to_owned)
        };
        let source = match (source, &config["chat_template"]) {
            (Some(source), _) => source.to_owned(),
            (None, serde_json::Value::String(source)) => source.clone(),
            (None, serde_json::Value::Array(list)) => named(list).ok_or_else(missing)?,
            (None, _) => return Err(missing()),
        };
        let mut template = Self::new(&source)?;
        for name in ["bos_token", "eos_token", "unk_token", "pad_token", "sep_token", "cls_token", "mask_token"] {
            let token = &config[name];
            if let Some(text) = token.as_str().or_else(|| token["content"].as_str()) {
                template.set_variable(name, text);
            }
        }
        Ok(template)
    }

    /// Sets a variable for all renderings, such as `bos_token`.
    pub fn set_variable(&mut self, name: &str, text: &str) {
        self.environment.add_global(name.to_owned(), text);
    }

    /// The template's source, as it was given.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Renders a conversation.
    ///
    /// # Errors
    /// [`Error::TemplateRefused`] with the template's own words when it raises, [`Error::Template`] when it fails.
    pub fn render(&self, messages: &[Message], rendering: &Rendering<'_>) -> Result<String> {
        let mut context = minijinja::value::Value::from_pairs([
            ("messages", Value::from(Serde(messages))),
            ("tools", rendering.tools.map_or(Value::from(()), |tools| Value::from(Serde(tools)))),
            ("documents", Value::from(())),
            ("add_generation_prompt", Value::from(rendering.add_generation_prompt)),
            (NOW, Value::from(rendering.now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()))),
        ]);
        if let Some(variables) = rendering.variables {
            context = minijinja::context! { ..Value::from(Serde(variables)), ..context };
        }
        guard_deep(broke, || {
            self.environment.get_template(NAME).and_then(|template| template.render(context)).map_err(problem)
        })
    }
}

/// The crate below overflows in some arithmetic, which debug builds panic at.
fn broke(problem: String) -> Error {
    Error::Template { problem }
}

fn missing() -> Error {
    Error::Template { problem: "the model's configuration has none; give one in a file of its own".into() }
}

fn problem(error: minijinja::Error) -> Error {
    match error.detail().and_then(|detail| detail.strip_prefix(REFUSED)) {
        Some(reason) => Error::TemplateRefused { reason: reason.to_owned() },
        None if error.kind() == ErrorKind::OutOfFuel => {
            Error::Template { problem: format!("it does more work than is allowed ({FUEL} steps)") }
        }
        None => Error::Template { problem: error.to_string() },
    }
}

fn raise_exception(reason: &str) -> Result<Value, minijinja::Error> {
    Err(minijinja::Error::new(ErrorKind::InvalidOperation, format!("{REFUSED}{reason}")))
}

fn strftime_now(state: &State<'_, '_>, format: &str) -> Result<String, minijinja::Error> {
    let now = state.lookup(NOW).and_then(|now| now.as_i64()).unwrap_or_default();
    strftime::format(now, format).map_err(|problem| minijinja::Error::new(ErrorKind::InvalidOperation, problem))
}

#[cfg(test)]
mod tests;
