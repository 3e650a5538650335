//! The model sums up what goes: what it is asked, what of its answer is accepted, and how the summary is marked.

use crate::StopReason;

/// How many tokens a summary may have.
pub(crate) fn budget(context: usize) -> usize {
    (context / 8).clamp(16, 512)
}

/// Tokens that marking a summary takes at most, which are counted on before there is one.
pub(crate) const MARKING: usize = 32;

/// What the model is asked, as the next message after the turns that go.
pub(crate) fn request(budget: usize) -> String {
    // Some three quarters of a word to a token, and a model that is told a number overshoots it.
    let words = (budget / 2).max(8);
    format!(
        "Summarize our conversation so far in at most {words} words, as one paragraph. Keep names, numbers, decisions and \
         open questions. Write only the summary."
    )
}

/// A user's message with the summary of what came before it.
pub(crate) fn mark(summary: &str, message: &str) -> String {
    format!("[Summary of the earlier conversation: {summary}]\n\n{message}")
}

/// Why a summary is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unusable {
    #[error("the summary was empty")]
    Empty,
    #[error("the summary was longer than the {budget} tokens that it may have")]
    TooLong { budget: usize },
    #[error("the model refused to sum up")]
    Refused,
    #[error("the message leaves no room for a summary")]
    NoRoom,
    #[error("the model's chat template refused the request for a summary")]
    Template,
    #[error("the conversation would be no shorter with the summary")]
    NoGain,
}

/// The beginnings of answers that are no summary, in lower case.
const REFUSALS: [&str; 8] =
    ["i'm sorry", "i am sorry", "sorry,", "i can't", "i cannot", "i can not", "i'm unable", "i am unable"];

/// The summary in an answer. Of one that goes on beyond its tokens, as those of small models do whatever they are told,
/// the whole sentences are taken.
pub(crate) fn judge(text: &str, ended: StopReason, budget: usize) -> Result<String, Unusable> {
    // What a model thought before it answered is not part of the answer.
    let mut text = text.rsplit("</think>").next().unwrap_or(text).trim();
    if !matches!(ended, StopReason::Eos | StopReason::StopString) {
        text = whole_sentences(text).ok_or(Unusable::TooLong { budget })?;
    }
    if !text.chars().any(char::is_alphanumeric) {
        return Err(Unusable::Empty);
    }
    let begins = text.chars().take(24).collect::<String>().to_lowercase().replace('’', "'");
    if REFUSALS.iter().any(|refusal| begins.starts_with(refusal)) {
        return Err(Unusable::Refused);
    }
    Ok(text.to_owned())
}

/// A text up to the end of its last whole sentence, if it has one.
fn whole_sentences(text: &str) -> Option<&str> {
    let ends = |&(at, mark): &(usize, char)| {
        let (before, after) = (&text[..at], &text[at + mark.len_utf8()..]);
        match mark {
            '。' | '！' | '？' => true,
            '!' | '?' => after.starts_with(char::is_whitespace),
            // Neither the point of a number nor that of an item's number.
            '.' => after.starts_with(char::is_whitespace) && before.ends_with(|c: char| !c.is_ascii_digit()),
            _ => false,
        }
    };
    let (at, mark) = text.char_indices().rfind(ends)?;
    Some(&text[..at + mark.len_utf8()])
}

/// A text cut to about a share of its length, at a character and if possible at a word.
pub(crate) fn shorten(text: &str, share: f64) -> String {
    let most = (text.len() as f64 * share) as usize;
    let end = (0..=most.min(text.len())).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
    let end = text[..end].rfind(char::is_whitespace).filter(|&space| space > end / 2).unwrap_or(end);
    format!("{} …", &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_finished_summaries_are_accepted() {
        let judged = |text| judge(text, StopReason::Eos, 9);
        assert_eq!(judged(" Ada asked.\n"), Ok("Ada asked.".into()));
        assert_eq!(judged("<think>hm</think>\nAda asked."), Ok("Ada asked.".into()));
        assert_eq!(judge("Ada asked", StopReason::MaxTokens, 9), Err(Unusable::TooLong { budget: 9 }));
        assert_eq!(judge("Ada asked", StopReason::ContextFull, 9), Err(Unusable::TooLong { budget: 9 }));
        let cut = |text| judge(text, StopReason::MaxTokens, 9);
        assert_eq!(cut("Ada asked. Why? She w"), Ok("Ada asked. Why?".into()));
        assert_eq!(cut("艾达问。她"), Ok("艾达问。".into()));
        for text in ["1. Ada", "It took 3.5 hours", "Ada asked.", ""] {
            assert_eq!(cut(text), Err(Unusable::TooLong { budget: 9 }), "{text:?}");
        }
        assert_eq!(cut("I'm sorry. But"), Err(Unusable::Refused));
        for text in ["", " \n", "…", "<think>Ada</think>"] {
            assert_eq!(judged(text), Err(Unusable::Empty), "{text:?}");
        }
        for text in ["I'm sorry, but I can't.", "I’m sorry", "I cannot do that", "SORRY, no"] {
            assert_eq!(judged(text), Err(Unusable::Refused), "{text:?}");
        }
    }

    #[test]
    fn texts_are_cut_between_words() {
        assert_eq!(shorten("one two three four", 0.5), "one two …");
        assert_eq!(shorten("ééééé", 0.5), "éé …");
        assert_eq!(shorten("", 0.5), " …");
    }
}
