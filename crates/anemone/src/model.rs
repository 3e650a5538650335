//! A model on disk, ready to chat with.

mod speech;

use std::path::Path;
use std::thread;

use crate::location::Location;
use crate::package_runner::{ModelOptions, RunnerInfo};
use crate::{LanguageModel, ModelRunner, Result, heap};
use speech::Speech;

/// A package with its tokenizer, chat template and settings.
///
/// ```no_run
/// use anemone::{Model, ModelOptions, Request, Session};
///
/// let model = Model::open("smollm2".as_ref(), &ModelOptions::default())?;
/// let mut session = Session::new(model.into())?;
/// let turn = session.say("Why is the sky blue?", &Request::default(), &mut |_| {})?;
/// println!("{}", turn.text);
/// # Ok::<(), anemone::Error>(())
/// ```
pub type Model = LanguageModel<ModelRunner>;

impl LanguageModel<ModelRunner> {
    /// Opens a folder that `anemone convert` made, or a `.mlpackage` with its `tokenizer.json` (and, if there are,
    /// `tokenizer_config.json`, `chat_template.jinja` and `generation_config.json`) beside it.
    ///
    /// The files of a converted folder must be those that its manifest lists; for the package see
    /// [`ModelOptions::verify`].
    ///
    /// # Errors
    /// As [`ModelRunner::open`]; [`Error::NoTokenizer`](crate::Error::NoTokenizer), and errors of the tokenizer, the
    /// template and the settings.
    pub fn open(path: &Path, options: &ModelOptions) -> Result<Self> {
        let location = Location::find(path)?;
        let tokenizer = speech::tokenizer_folder(&location)?;
        let (speech, runner) = thread::scope(|scope| {
            let speech = scope.spawn(|| Speech::read(&location, tokenizer));
            let runner = ModelRunner::open_at(&location, options);
            (speech.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), runner)
        });
        let mut runner = runner?;
        let Speech { tokenizer, template, mut end_tokens, generation, notes } = speech?;
        end_tokens.retain(|&token| (token as usize) < runner.info().vocabulary);
        runner.add_notes(notes);
        heap::give_back();
        Ok(Self { runner, tokenizer, template, end_tokens, generation })
    }

    /// What the package is and what it costs.
    pub fn info(&self) -> &RunnerInfo {
        self.runner.info()
    }
}
