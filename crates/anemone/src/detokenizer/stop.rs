//! Stop strings: the one that is complete first ends a text, however tokens split it.

use crate::{Error, Result};

#[derive(Debug)]
pub(super) struct Stops(Vec<String>);

impl Stops {
    pub(super) fn new(stops: &[String]) -> Result<Self> {
        if stops.iter().any(String::is_empty) {
            return Err(Error::Setting { name: "stop", found: "\"\"".into(), expected: "texts that are not empty" });
        }
        Ok(Self(stops.to_vec()))
    }

    pub(super) fn get(&self, index: usize) -> &str {
        &self.0[index]
    }

    /// Where the stop string begins that is complete first in `text` (of those, the longest), and which it is.
    pub(super) fn find(&self, text: &str) -> Option<(usize, usize)> {
        let found = self.0.iter().enumerate().filter_map(|(index, stop)| Some((text.find(stop)?, index)));
        found.min_by_key(|&(at, index)| (at + self.0[index].len(), at))
    }

    /// Length of the longest end of `text` that begins a stop string.
    pub(super) fn begun(&self, text: &str) -> usize {
        let begins = |stop: &String| {
            let longest = text.len().min(stop.len() - 1);
            (1..=longest).rev().find(|&length| text.as_bytes().ends_with(&stop.as_bytes()[..length]))
        };
        self.0.iter().filter_map(begins).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stops(stops: &[&str]) -> Stops {
        Stops::new(&stops.iter().map(|&stop| stop.to_owned()).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn first_complete_wins() {
        assert_eq!(stops(&["abc", "b"]).find("xabc"), Some((2, 1)));
        assert_eq!(stops(&["c", "abc"]).find("xabc"), Some((1, 1)));
        assert_eq!(stops(&["zz"]).find("xabc"), None);
    }

    #[test]
    fn beginnings_are_measured() {
        assert_eq!(stops(&["abab!"]).begun("xabab"), 4);
        assert_eq!(stops(&["abab!"]).begun("ababa"), 3);
        assert_eq!(stops(&["ab", "bcd"]).begun("abc"), 2);
        assert_eq!(stops(&["éa"]).begun("xé"), 2);
        assert_eq!(stops(&[]).begun("x"), 0);
    }

    #[test]
    fn empty_is_refused() {
        assert!(matches!(Stops::new(&[String::new()]), Err(Error::Setting { name: "stop", .. })));
    }
}
