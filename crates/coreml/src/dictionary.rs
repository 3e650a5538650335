//! What Core ML's errors mean: one entry a file, found by the text of a message or by name.
//!
//! Core ML says little: the same sentence stands for a dozen causes. An entry tells what is known, from whom, and what to
//! try first. Nothing in it was seen by us on a device; the evidence is where others saw it.

mod bad_cast;
mod data_type_mismatch;
mod e5rt;
mod enumerated_with_range;
mod execution_plan;
mod feature_shape;
mod flexible_state;
mod function_name;
mod helper_application;
mod killed;
mod minus_14;
mod missing_feature;
mod mlstate;
mod mps_dequantize;
mod neural_engine_compile;
mod neural_engine_request;
mod only_on_macos;
mod program_input;
mod propagate_shapes;
mod tensor_width;
mod weight_file;
mod zero_devices;

use serde::Serialize;

/// Every entry, the most telling first: a message may have the marks of several.
pub const ENTRIES: &[&Entry] = &[
    &neural_engine_request::ENTRY,
    &tensor_width::ENTRY,
    &neural_engine_compile::ENTRY,
    &function_name::ENTRY,
    &mlstate::ENTRY,
    &helper_application::ENTRY,
    &enumerated_with_range::ENTRY,
    &flexible_state::ENTRY,
    &program_input::ENTRY,
    &weight_file::ENTRY,
    &zero_devices::ENTRY,
    &mps_dequantize::ENTRY,
    &propagate_shapes::ENTRY,
    &missing_feature::ENTRY,
    &feature_shape::ENTRY,
    &data_type_mismatch::ENTRY,
    &killed::ENTRY,
    &only_on_macos::ENTRY,
    &bad_cast::ENTRY,
    &minus_14::ENTRY,
    &execution_plan::ENTRY,
    &e5rt::ENTRY,
];

/// What is known of one error.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// What to call it, as in `anemone explain minus-14`.
    pub name: &'static str,
    /// One line.
    pub title: &'static str,
    /// Texts of messages, any of which is its mark; case does not matter.
    #[serde(skip)]
    pub marks: &'static [&'static str],
    /// What else people call it: codes and words that are looked up and are too short to search messages for.
    #[serde(skip)]
    pub aliases: &'static [&'static str],
    /// Why it comes.
    pub cause: &'static str,
    /// Who saw it, and where.
    pub evidence: &'static [&'static str],
    /// What to try, the likeliest first.
    pub remedies: &'static [&'static str],
    /// A message as it is met.
    pub example: &'static str,
}

/// The entries whose marks a message has, the most telling first; none for a message that nobody has explained yet.
#[must_use]
pub fn explain(message: &str) -> Vec<&'static Entry> {
    let message = folded(message);
    ENTRIES.iter().copied().filter(|entry| entry.marks.iter().any(|mark| message.contains(&folded(mark)))).collect()
}

/// The entries that a user may mean by `word`: a name, a code such as `-14` or `0x1d`, or a piece of a message. The name
/// or the code itself comes first.
#[must_use]
pub fn search(word: &str) -> Vec<&'static Entry> {
    let word = folded(word.trim());
    if word.is_empty() {
        return Vec::new();
    }
    let is_it =
        |entry: &&'static Entry| folded(entry.name) == word || entry.aliases.iter().any(|alias| folded(alias) == word);
    let named: Vec<_> = ENTRIES.iter().copied().filter(is_it).collect();
    if !named.is_empty() {
        return named;
    }
    let explained = explain(&word);
    if !explained.is_empty() {
        return explained;
    }
    let talks_of_it = |entry: &&'static Entry| {
        [entry.name, entry.title, entry.example].iter().chain(entry.marks).any(|text| folded(text).contains(&word))
    };
    ENTRIES.iter().copied().filter(talks_of_it).collect()
}

/// What to do about an error that is not in the dictionary.
pub const GENERAL: &[&str] = &[
    "Load with the compute units cpu-only: if that works, the package is sound and the Neural Engine or the GPU refuses it.",
    "`anemone doctor PACKAGE` loads and runs the package in a process of its own and compares its numbers with our runtime's.",
    "`anemone placement PACKAGE` lists operations that are not expected on the Neural Engine.",
    "Look at the whole log (Console, or standard error): Core ML prints the cause before it returns a general error.",
    "Check the free disk space and the system version, and try once more after a restart: compiled programs are cached by the system.",
];

/// Lower case, with one kind of apostrophe and single spaces.
fn folded(text: &str) -> String {
    let plain: String = text
        .chars()
        .map(|c| match c {
            '\u{2018}' | '\u{2019}' => '\'',
            '\u{201c}' | '\u{201d}' => '"',
            c => c,
        })
        .collect();
    plain.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
