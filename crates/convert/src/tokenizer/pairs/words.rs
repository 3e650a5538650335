//! A vocabulary in little memory: all words in one text, and a table of places to find them by.

use std::fmt;
use std::hash::{BuildHasher, RandomState};

/// Words in the order in which they were read, each with its id.
#[derive(Default)]
pub(in super::super) struct Listed {
    text: String,
    /// Where each word ends, and its id.
    words: Vec<(u32, u32)>,
}

impl Listed {
    /// Adds a word; false if there is no room for it.
    pub(in super::super) fn push(&mut self, word: &str, id: u32) -> bool {
        self.text.push_str(word);
        let end = u32::try_from(self.text.len());
        self.words.extend(end.map(|end| (end, id)));
        end.is_ok()
    }

    fn iter(&self) -> impl Iterator<Item = (&str, u32)> {
        let starts = std::iter::once(0).chain(self.words.iter().map(|&(end, _)| end as usize));
        self.words.iter().zip(starts).map(|(&(end, id), start)| (&self.text[start..end as usize], id))
    }
}

/// The words of a vocabulary by their ids, and back.
pub(in super::super) struct Words {
    text: Box<str>,
    /// Where the word of each id ends; it begins where the one before ends.
    ends: Box<[u32]>,
    /// Ids that have no word, in order.
    missing: Box<[u32]>,
    /// For a word's hash, and the places after it: a piece of a hash, and one more than an id. 0 where there is none.
    places: Box<[u32]>,
    hasher: RandomState,
}

/// Bits of a place that hold an id; those above hold a piece of the hash.
const ID_BITS: u32 = 24;
/// More ids without words than with them are not a usual vocabulary.
const MOST_MISSING: usize = 1024;

impl Words {
    /// None if a word or an id is there twice, or ids are large for so few words.
    pub(in super::super) fn new(listed: &Listed) -> Option<Self> {
        let count = listed.words.iter().map(|&(_, id)| id as usize + 1).max().unwrap_or(0);
        if count >= 1 << ID_BITS || count > 2 * listed.words.len() + MOST_MISSING {
            return None;
        }
        let mut by_id: Vec<Option<&str>> = vec![None; count];
        for (word, id) in listed.iter() {
            if by_id[id as usize].replace(word).is_some() {
                return None;
            }
        }
        let mut text = String::with_capacity(listed.text.len());
        let (mut ends, mut missing) = (Vec::with_capacity(count), Vec::new());
        for (word, id) in by_id.into_iter().zip(0..) {
            match word {
                Some(word) => text.push_str(word),
                None => missing.push(id),
            }
            ends.push(u32::try_from(text.len()).ok()?);
        }
        // A fifth of them is free at least.
        let places = vec![0; (count + count / 4 + 1).next_power_of_two()].into_boxed_slice();
        let (text, ends, missing) = (text.into_boxed_str(), ends.into_boxed_slice(), missing.into_boxed_slice());
        let mut words = Self { text, ends, missing, places, hasher: RandomState::new() };
        for id in 0..u32::try_from(count).ok()? {
            let Some(word) = words.word(id) else { continue };
            let free = words.find(word).err()?;
            words.places[free] = words.tag(word) | (id + 1);
        }
        Some(words)
    }

    pub(in super::super) fn id(&self, word: &str) -> Option<u32> {
        self.find(word).ok()
    }

    pub(in super::super) fn word(&self, id: u32) -> Option<&str> {
        let end = *self.ends.get(id as usize)?;
        let start = (id as usize).checked_sub(1).map_or(0, |before| self.ends[before]);
        let there = self.missing.binary_search(&id).is_err();
        there.then(|| &self.text[start as usize..end as usize])
    }

    /// How many words there are.
    pub(in super::super) fn len(&self) -> usize {
        self.ends.len() - self.missing.len()
    }

    /// One more than the largest id.
    pub(super) fn ids(&self) -> u32 {
        u32::try_from(self.ends.len()).expect("an id has fewer bits")
    }

    fn tag(&self, word: &str) -> u32 {
        ((self.hasher.hash_one(word) >> 32) as u32) >> ID_BITS << ID_BITS
    }

    /// The id of a word, or the place where it would be.
    fn find(&self, word: &str) -> Result<u32, usize> {
        let (hash, last) = (self.hasher.hash_one(word), self.places.len() - 1);
        let tag = (hash >> 32) as u32 >> ID_BITS;
        let mut at = hash as usize & last;
        loop {
            match self.places[at] {
                0 => return Err(at),
                place if place >> ID_BITS == tag => {
                    let id = (place & ((1 << ID_BITS) - 1)) - 1;
                    if self.word(id) == Some(word) {
                        return Ok(id);
                    }
                }
                _ => {}
            }
            at = (at + 1) & last;
        }
    }
}

impl fmt::Debug for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} words", self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(words: &[(&str, u32)]) -> Option<Words> {
        let mut listed = Listed::default();
        assert!(words.iter().all(|&(word, id)| listed.push(word, id)));
        Words::new(&listed)
    }

    #[test]
    fn words_are_found_by_id_and_ids_by_word() {
        for count in [0, 1, 2, 3, 7, 100, 3000] {
            let names: Vec<String> = (0..count).map(|i| "äb".repeat(i % 5) + &i.to_string()).collect();
            // Not in order.
            let mut all: Vec<(&str, u32)> = names.iter().map(String::as_str).zip(0..).collect();
            all.reverse();
            let words = of(&all).unwrap();
            assert_eq!(words.len(), count);
            for &(word, id) in &all {
                assert_eq!((words.id(word), words.word(id)), (Some(id), Some(word)));
            }
            assert_eq!((words.id("nowhere"), words.id(""), words.word(count as u32)), (None, None, None));
        }
    }

    #[test]
    fn ids_may_be_missing_and_a_word_empty() {
        let words = of(&[("a", 2), ("", 4), ("b", 7)]).unwrap();
        assert_eq!((words.len(), words.ids()), (3, 8));
        let found: Vec<Option<&str>> = (0..9).map(|id| words.word(id)).collect();
        assert_eq!(found, [None, None, Some("a"), None, Some(""), None, None, Some("b"), None]);
        assert_eq!((words.id(""), words.id("b")), (Some(4), Some(7)));
    }

    #[test]
    fn what_is_there_twice_or_far_away_is_refused() {
        assert!(of(&[("a", 0), ("a", 1)]).is_none());
        assert!(of(&[("a", 0), ("b", 0)]).is_none());
        assert!(of(&[("a", 0), ("b", 5000)]).is_none());
        assert!(of(&[("a", u32::MAX)]).is_none());
    }
}
