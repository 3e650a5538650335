//! From messages to the tokens of a prompt, without ever tokenizing again what the model generated.
//!
//! The template decides the text of the whole conversation. But encoding that text would not give back the tokens that
//! were generated (a model need not write a word the way its tokenizer would), and then the cache would be worthless.
//! So the text is taken apart: answers that this session generated go in as their own tokens, and only the text between
//! them is encoded.
//!
//! Where the answers are is found without guessing: the template is rendered twice, once as it is and once with a marker
//! in place of each answer. Whatever the template does to a conversation, it is followed; if an answer can't be found
//! again unchanged, its text is encoded like any other.

use std::sync::Arc;

use crate::{ChatTemplate, Message, Rendering, Result, Tokenizer};

/// A message of the conversation.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) message: Message,
    /// How it was generated, if it was.
    pub(super) generated: Option<Arc<Generated>>,
    /// For a generated message: where in the transcript it ends.
    pub(super) end: usize,
}

impl Entry {
    pub(super) fn new(message: Message) -> Self {
        Self { message, generated: None, end: 0 }
    }
}

/// The tokens of an answer, and the text that stood before it when it was generated.
#[derive(Debug, PartialEq)]
pub(super) struct Generated {
    pub(super) text: String,
    pub(super) tokens: Vec<u32>,
    /// For each token, where in `text` it ends.
    pub(super) ends: Vec<usize>,
    pub(super) before: String,
}

/// A prompt, ready to be fed.
#[derive(Debug, PartialEq)]
pub(super) struct Prompt {
    pub(super) tokens: Vec<u32>,
    /// The text after the last generated answer.
    pub(super) tail: String,
    /// For each generated answer that is in the prompt: its entry, and where its tokens end.
    pub(super) ends: Vec<(usize, usize)>,
}

/// A part of the conversation's text.
#[derive(Debug, PartialEq)]
enum Part {
    Text(String),
    /// The tokens of an entry's answer, from an index on.
    Tokens {
        entry: usize,
        from: usize,
    },
}

/// Makes prompts; remembers the last one's texts, so that only new text is encoded.
#[derive(Clone, Debug, Default)]
pub(super) struct Prompter {
    encoded: Vec<(String, Vec<u32>)>,
}

impl Prompter {
    pub(super) fn prompt(
        &mut self,
        tokenizer: &Tokenizer,
        template: &ChatTemplate,
        entries: &[Entry],
        rendering: &Rendering<'_>,
    ) -> Result<Prompt> {
        let parts = parts(template, entries, rendering)?;
        let mut prompt = Prompt { tokens: Vec::new(), tail: String::new(), ends: Vec::new() };
        let mut encoded = Vec::new();
        for part in parts {
            match part {
                Part::Tokens { entry, from } => {
                    let generated = entries[entry].generated.as_ref().expect("parts name generated entries");
                    prompt.tokens.extend_from_slice(&generated.tokens[from..]);
                    prompt.ends.push((entry, prompt.tokens.len()));
                    prompt.tail.clear();
                }
                Part::Text(text) => {
                    let tokens = match self.encoded.get(encoded.len()) {
                        Some((known, tokens)) if *known == text => tokens.clone(),
                        _ if prompt.tokens.is_empty() => tokenizer.encode(&text, false)?,
                        _ => tokenizer.encode_continuing(&text)?,
                    };
                    prompt.tokens.extend_from_slice(&tokens);
                    prompt.tail.clone_from(&text);
                    encoded.push((text, tokens));
                }
            }
        }
        self.encoded = encoded;
        Ok(prompt)
    }
}

/// Takes the conversation's text apart.
fn parts(template: &ChatTemplate, entries: &[Entry], rendering: &Rendering<'_>) -> Result<Vec<Part>> {
    let mut messages: Vec<Message> = entries.iter().map(|entry| entry.message.clone()).collect();
    let text = template.render(&messages, rendering)?;
    let mut marked: Vec<usize> = (0..entries.len())
        .filter(|&index| entries[index].generated.as_ref().is_some_and(|generated| !generated.tokens.is_empty()))
        .collect();
    let Some(mark) = ('\u{e000}'..='\u{f8ff}').find(|&mark| !text.contains(mark)) else {
        return Ok(vec![Part::Text(text)]);
    };
    let marker = |index: usize| format!("{mark}{index}{mark}");
    // A marker that doesn't come up exactly once belongs to a message that the template leaves out or repeats.
    while !marked.is_empty() {
        for (index, message) in messages.iter_mut().enumerate() {
            message.content =
                if marked.contains(&index) { marker(index) } else { entries[index].message.content.clone() };
        }
        let Ok(skeleton) = template.render(&messages, rendering) else { break };
        let before = marked.len();
        marked.retain(|&index| skeleton.matches(&marker(index)).count() == 1);
        if marked.len() == before {
            let between = split(&skeleton, &marked, marker);
            return Ok(between.and_then(|between| align(&text, &between, &marked, entries)).unwrap_or_else(|| {
                tracing::debug!("the template rewrites answers; the whole conversation is encoded anew");
                vec![Part::Text(text)]
            }));
        }
    }
    Ok(vec![Part::Text(text)])
}

/// The texts before, between and after the markers, if those come in order.
fn split<'a>(skeleton: &'a str, marked: &[usize], marker: impl Fn(usize) -> String) -> Option<Vec<&'a str>> {
    let mut rest = skeleton;
    let mut between = Vec::with_capacity(marked.len() + 1);
    for &index in marked {
        let (before, after) = rest.split_once(&marker(index))?;
        between.push(before);
        rest = after;
    }
    between.push(rest);
    Some(between)
}

/// Finds the answers in the text by what stands between them.
fn align(text: &str, between: &[&str], marked: &[usize], entries: &[Entry]) -> Option<Vec<Part>> {
    let mut rest = text.strip_prefix(between[0])?;
    let mut parts = Vec::new();
    let mut open = between[0].to_owned();
    for (step, &entry) in marked.iter().enumerate() {
        let next = between[step + 1];
        let last = step + 1 == marked.len();
        let said = entries[entry].message.content.as_str();
        let fits = |length: usize| {
            rest.get(length..).is_some_and(|after| if last { after == next } else { after.starts_with(next) })
        };
        let length = if rest.starts_with(said) && fits(said.len()) {
            said.len()
        } else if last {
            rest.len().checked_sub(next.len()).filter(|&length| fits(length))?
        } else {
            // Nothing between two answers leaves no way to tell where the first ends.
            rest.find(next).filter(|_| !next.is_empty())?
        };
        let (content, after) = rest.split_at(length);
        let generated = entries[entry].generated.as_ref()?;
        match unchanged_from(generated, content) {
            Some(from) => {
                let text = std::mem::take(&mut open);
                // The template may put another space between its own text and an answer than stood there when the
                // answer was generated. What stood there is in the cache.
                let same = from == 0 && text != generated.before && text.trim_end() == generated.before.trim_end();
                parts.push(Part::Text(if same { generated.before.clone() } else { text }));
                parts.push(Part::Tokens { entry, from });
            }
            None => open.push_str(content),
        }
        open.push_str(next);
        rest = &after[next.len()..];
    }
    parts.push(Part::Text(open));
    parts.retain(|part| *part != Part::Text(String::new()));
    Some(parts)
}

/// The index of the token from which on an answer's tokens are what a template made of it: all, or, if the template
/// left out its beginning (as some do with what a model thought), those of the rest. Space around it does not count.
fn unchanged_from(generated: &Generated, content: &str) -> Option<usize> {
    let content = content.trim();
    if generated.text.trim() == content {
        return Some(0);
    }
    if content.is_empty() {
        return None;
    }
    // The last such token, so that space between the two parts is left out with the first.
    let is_start = |index: usize| {
        let start = generated.ends[index - 1];
        generated.text.get(start..).is_some_and(|text| text.trim() == content)
    };
    (1..generated.tokens.len()).rev().find(|&index| is_start(index))
}

#[cfg(test)]
mod tests;
