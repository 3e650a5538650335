//! A model that says what the test wants, and checks how it is driven.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::{CacheLayout, CacheTensor, ChatTemplate, LanguageModel, Runner, RunnerError, Tokenizer};

/// ChatML as SmolLM2 has it.
pub(crate) const CHATML: &str = "{% for message in messages %}\
    {{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}\
    {% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

/// What to say next, given all tokens so far.
type Script = Box<dyn Fn(&[u32]) -> u32 + Send + Sync>;

/// What to do before a call at a position.
type Hook = Box<dyn FnMut(usize) + Send>;

/// A scripted model. It panics when a call breaks the rules of [`Runner`].
pub(crate) struct Scripted {
    pub(crate) context: usize,
    pub(crate) chunk: usize,
    pub(crate) copies: bool,
    /// How states are read and written, if they are.
    pub(crate) layout: Option<CacheLayout>,
    script: Script,
    /// Position and tokens of each call.
    pub(crate) calls: Mutex<Vec<(usize, Vec<u32>)>>,
    /// The call (counted from now) that fails.
    pub(crate) fail_in: AtomicUsize,
    /// Runs before each call.
    pub(crate) before_call: Mutex<Option<Hook>>,
}

impl std::fmt::Debug for Scripted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Scripted")
    }
}

/// The tokens that were read into each column.
pub(crate) struct Columns(Vec<u32>);

impl Runner for Scripted {
    type State = Columns;

    fn context(&self) -> usize {
        self.context
    }

    fn vocabulary(&self) -> usize {
        300
    }

    fn chunk(&self) -> usize {
        self.chunk
    }

    fn new_state(&self) -> Result<Columns, RunnerError> {
        Ok(Columns(Vec::new()))
    }

    fn feed(
        &self,
        state: &mut Columns,
        position: usize,
        tokens: &[u32],
        logits: &mut [f32],
    ) -> Result<(), RunnerError> {
        assert!(!tokens.is_empty() && tokens.len() <= self.chunk, "a call of {} tokens", tokens.len());
        assert!(position + tokens.len() <= self.context, "beyond the context");
        assert!(position <= state.0.len(), "position {position} was not read yet");
        assert_eq!(logits.len(), self.vocabulary());
        if let Some(before_call) = &mut *self.before_call.lock().unwrap() {
            before_call(position);
        }
        // Later columns are stale from here on; half-written ones as well if the call fails.
        state.0.truncate(position);
        if self.fail_in.fetch_sub(1, Ordering::Relaxed) == 1 {
            return Err("scripted failure".into());
        }
        state.0.extend_from_slice(tokens);
        self.calls.lock().unwrap().push((position, tokens.to_vec()));
        logits.fill(0.0);
        logits[(self.script)(&state.0) as usize] = 9.0;
        // A trace of all that was read, so that a wrong cache shows.
        let trace = state.0.iter().fold(7u32, |trace, &token| trace.wrapping_mul(31).wrapping_add(token));
        logits[299] = (trace % 1000) as f32 / 1000.0;
        Ok(())
    }

    fn cache_layout(&self) -> Option<&CacheLayout> {
        self.layout.as_ref()
    }

    fn read_columns(
        &self,
        state: &Columns,
        tensor: usize,
        rows: Range<usize>,
        columns: usize,
        to: &mut [u8],
    ) -> Result<(), RunnerError> {
        assert_eq!((tensor, to.len()), (0, rows.len() * columns * 4));
        // All rows hold the same.
        let bytes = state.0[..columns].iter().flat_map(|token| token.to_le_bytes()).cycle();
        to.iter_mut().zip(bytes).for_each(|(to, from)| *to = from);
        Ok(())
    }

    fn write_columns(
        &self,
        state: &mut Columns,
        tensor: usize,
        rows: Range<usize>,
        columns: usize,
        from: &[u8],
    ) -> Result<(), RunnerError> {
        assert_eq!((tensor, from.len()), (0, rows.len() * columns * 4));
        let words = from.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]));
        state.0 = words.take(columns).collect();
        Ok(())
    }

    fn copy_state(&self, state: &Columns, position: usize) -> Result<Option<Columns>, RunnerError> {
        Ok(self.copies.then(|| Columns(state.0[..position].to_vec())))
    }
}

/// Two rows of one word for each token.
pub(crate) fn layout(context: usize) -> CacheLayout {
    let tensor = CacheTensor { name: "tokens".into(), element_bytes: 4, shape: vec![2, context], axis: 1 };
    CacheLayout { package: [7; 32], context, tensors: vec![tensor] }
}

impl Scripted {
    /// A model that follows a function of all tokens so far.
    pub(crate) fn new(script: impl Fn(&[u32]) -> u32 + Send + Sync + 'static) -> Self {
        Self {
            context: 4096,
            chunk: 16,
            copies: true,
            layout: Some(layout(4096)),
            script: Box::new(script),
            calls: Mutex::default(),
            fail_in: AtomicUsize::new(0),
            before_call: Mutex::default(),
        }
    }

    /// A model that gives the n-th answer with the tokens of `answers[n]`, then `end`; `opening` are the tokens that
    /// open an answer.
    pub(crate) fn answering(opening: Vec<u32>, answers: Vec<Vec<u32>>, end: u32) -> Self {
        Self::new(move |read| {
            let openings: Vec<usize> =
                (0..read.len()).filter(|&at| read[at..].starts_with(&opening)).map(|at| at + opening.len()).collect();
            let said = openings.last().map_or(0, |&start| read.len() - start);
            let answer = openings.len().checked_sub(1).and_then(|index| answers.get(index));
            answer.and_then(|answer| answer.get(said)).copied().unwrap_or(end)
        })
    }

    /// All tokens that were fed since the last time this was asked.
    pub(crate) fn fed(&self) -> Vec<u32> {
        self.calls.lock().unwrap().drain(..).flat_map(|(_, tokens)| tokens).collect()
    }
}

/// Bytes of a text as single tokens of [`byte_level`](super::byte_level), which the tokenizer itself would merge.
pub(crate) fn bytes(text: &str) -> Vec<u32> {
    text.bytes().map(|byte| u32::from(byte) + 3).collect()
}

/// A ChatML model that gives these answers in order, byte by byte, each ended by `<|im_end|>`.
pub(crate) fn chatml(answers: &[&str]) -> LanguageModel<Scripted> {
    let tokenizer = super::byte_level();
    let opening = tokenizer.encode("<|im_start|>assistant\n", false).unwrap();
    let answers = answers.iter().map(|answer| bytes(answer)).collect();
    with(Scripted::answering(opening, answers, 2), tokenizer, CHATML)
}

/// A model from its parts.
pub(crate) fn with(runner: Scripted, tokenizer: Tokenizer, template: &str) -> LanguageModel<Scripted> {
    LanguageModel::new(runner, tokenizer, ChatTemplate::new(template).unwrap())
}

/// Shares a model, as sessions want it.
pub(crate) fn shared(model: LanguageModel<Scripted>) -> Arc<LanguageModel<Scripted>> {
    Arc::new(model)
}
