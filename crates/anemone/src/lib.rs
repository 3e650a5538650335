//! A language model that keeps its conversation warm: model, tokenizer, chat template, sampler, session.
//!
//! A [`Session`] is one conversation. It renders the messages with the model's [`ChatTemplate`], encodes what is new with
//! its [`Tokenizer`], feeds to the [`Runner`] what the cache does not hold yet, draws tokens with a [`Sampler`] and turns
//! them into text with a [`Detokenizer`]. The cache stays between turns, so a turn costs what it adds.
//!
//! ```no_run
//! use anemone::{Event, Generation, Model, ModelOptions, Request, Session};
//!
//! // A folder that `anemone convert` made, or a `.mlpackage` with its tokenizer beside it.
//! let model = Model::open("smollm2".as_ref(), &ModelOptions::default())?;
//! println!("{} holds {} tokens", model.info().name, model.info().context);
//! let mut session = Session::new(model.into())?;
//! let request = Request::new(Generation { max_tokens: Some(100), ..session.model().generation.clone() });
//! let turn = session.say("Why is the sky blue?", &request, &mut |event| {
//!     if let Event::Text(text) = event {
//!         print!("{text}");
//!     }
//! })?;
//! println!("\n{} tokens were in the cache, {} were computed", turn.tokens_reused, turn.tokens_computed);
//! # Ok::<(), anemone::Error>(())
//! ```
//!
//! A [`Model`] runs Core ML packages: in Core ML on Apple's systems ([`CoreMlRunner`]), on this machine's processor elsewhere
//! ([`PackageRunner`]). Anything else that turns tokens into
//! logits can take its place. Here a model that always says the next word of its vocabulary stands for a real one:
//!
//! ```
//! use std::sync::Arc;
//!
//! use anemone::{
//!     ChatTemplate, Event, Generation, LanguageModel, Request, Runner, RunnerError, Session, Tokenizer,
//! };
//!
//! struct NextWord;
//!
//! impl Runner for NextWord {
//!     type State = ();
//!
//!     fn context(&self) -> usize {
//!         64
//!     }
//!
//!     fn vocabulary(&self) -> usize {
//!         5
//!     }
//!
//!     fn new_state(&self) -> Result<(), RunnerError> {
//!         Ok(())
//!     }
//!
//!     fn feed(&self, _: &mut (), _: usize, tokens: &[u32], logits: &mut [f32]) -> Result<(), RunnerError> {
//!         logits.fill(0.0);
//!         logits[(tokens[tokens.len() - 1] as usize + 1) % 5] = 1.0;
//!         Ok(())
//!     }
//! }
//!
//! let tokenizer = Tokenizer::from_bytes(br#"{
//!     "version": "1.0", "added_tokens": [], "pre_tokenizer": {"type": "Whitespace"},
//!     "model": {"type": "WordLevel", "unk_token": "one", "vocab": {"one": 0, "two": 1, "three": 2, "four": 3, "five": 4}}
//! }"#)?;
//! let template = ChatTemplate::new("{% for m in messages %}{{ m.content }} {% endfor %}")?;
//! let mut model = LanguageModel::new(NextWord, tokenizer, template);
//! model.end_tokens = vec![4];
//!
//! let mut session = Session::new(Arc::new(model))?;
//! let request = Request::new(Generation { max_tokens: Some(8), ..Generation::default() });
//! let mut shown = String::new();
//! let turn = session.say("one", &request, &mut |event| {
//!     if let Event::Text(text) = event {
//!         shown += text;
//!     }
//! })?;
//! assert_eq!(turn.text, "two three four");
//! assert_eq!(shown, turn.text);
//!
//! let turn = session.say("three", &request, &mut |_| {})?;
//! assert_eq!(turn.text, "four");
//! assert_eq!((turn.tokens_reused, turn.tokens_computed), (4, 1));
//! # Ok::<(), anemone::Error>(())
//! ```

pub mod calibrate;
mod core_ml_runner;
mod detokenizer;
mod disk;
mod error;
mod files;
mod generation;
mod guard;
mod handle;
mod heap;
mod kept;
mod language_model;
mod location;
mod message;
mod model;
mod model_runner;
mod overflow;
mod package_runner;
mod packed;
mod pool;
mod reference_runner;
mod runner;
mod sampler;
mod seen;
mod session;
mod signature;
mod snapshot;
mod step;
mod template;
#[cfg(test)]
mod testing;
mod tokenizer;
pub mod verify;

pub use anemone_coreml::{ComputeUnits, Progress as CompileProgress};
pub use core_ml_runner::{CoreMlOptions, CoreMlRunner, CoreMlState};
pub use detokenizer::Detokenizer;
pub use error::{Error, Result};
pub use generation::Generation;
pub use handle::{Answer, Pending, SessionHandle, Update};
pub use kept::{KeepError, KeepLimits, Notice, Reopened, SavedSession, SessionStore};
pub use language_model::LanguageModel;
pub use location::Location;
pub use message::Message;
pub use model::Model;
pub use model_runner::{Backend, BackendOptions, ModelRunner, ModelState};
pub use overflow::{Overflow, Overflowed};
pub use package_runner::{CallInfo, ModelOptions, PackageRunner, PackageState, RunnerInfo, Speculation, StateInfo};
pub use packed::PackedFolder;
pub use pool::{PoolCounts, Pooled, SessionPool};
pub use reference_runner::ReferenceRunner;
pub use runner::{Runner, RunnerError};
pub use sampler::Sampler;
pub use session::{Cancel, Event, Request, Session, StopReason, Turn, Usage};
pub use signature::{ChainCall, ChainStep, Misfit, chain};
pub use snapshot::{CacheLayout, CacheTensor, PrefixStore, Snapshot, SnapshotError, SnapshotInfo, SnapshotLimits};
pub use template::{ChatTemplate, Rendering};
pub use tokenizer::Tokenizer;
