use tokenizers::Model as _;
use tokenizers::models::bpe::BPE;

use super::*;

/// Numbers that look random.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % end
    }

    fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }
}

const KNOWN: [char; 12] = ['a', 'b', 'c', ' ', 'Ġ', 'ä', '▁', '语', '🦀', '0', '\n', '\u{301}'];
const UNKNOWN: [char; 6] = ['x', 'é', '漢', '🐚', '\0', '\u{feff}'];

/// A vocabulary that grew by merges of words that it had, and the merges.
fn grown(numbers: &mut Numbers, merges: usize) -> (Vec<String>, Vec<(String, String)>) {
    let mut words: Vec<String> = KNOWN.iter().map(char::to_string).collect();
    let mut pairs = Vec::new();
    for _ in 0..merges {
        let pair = (numbers.pick(&words).clone(), numbers.pick(&words).clone());
        let whole = [pair.0.as_str(), &pair.1].concat();
        // The same word may be made of other pairs, and a pair may be there twice.
        if whole.len() < 24 && !words.contains(&whole) {
            words.push(whole);
        } else if !words.contains(&whole) {
            continue;
        }
        pairs.push(pair);
    }
    (words, pairs)
}

fn text(numbers: &mut Numbers, words: &[String], length: usize) -> String {
    let mut text = String::new();
    while text.len() < length {
        match numbers.below(8) {
            0 => text.push(*numbers.pick(&UNKNOWN)),
            1..4 => text.push(*numbers.pick(&KNOWN)),
            _ => text.push_str(&words[numbers.below(words.len())]),
        }
    }
    text
}

#[test]
fn words_are_split_as_the_crate_splits_them() {
    let mut numbers = Numbers(0x5eed);
    for round in 0..48 {
        let (mut words, merges) = grown(&mut numbers, 20 + 40 * (round % 5));
        words.push("<unk>".to_owned());
        let bit = |at: usize| round >> at & 1 == 1;
        // With all bytes, with some of them, with none.
        let bytes = [256, 0, 0xe0][round % 3];
        words.extend((0..bytes).map(|byte| format!("<0x{byte:02X}>")));
        // Some ids have no word, and they are not in the order of merges.
        let mut ids: Vec<u32> = (0..words.len() as u32 + 7).collect();
        (0..ids.len()).for_each(|at| ids.swap(at, numbers.below(at + 1)));
        let vocabulary: Vec<(String, u32)> = words.iter().cloned().zip(ids).collect();
        let mut builder = BPE::builder()
            .vocab_and_merges(vocabulary.iter().cloned().collect::<tokenizers::models::bpe::Vocab>(), merges.clone())
            .fuse_unk(bit(1))
            .byte_fallback(bit(2))
            .ignore_merges(bit(3));
        if bit(0) {
            builder = builder.unk_token("<unk>".to_owned());
        }
        let theirs = builder.build().unwrap();
        let mut listed = Listed::default();
        assert!(vocabulary.iter().all(|(word, id)| listed.push(word, *id)));
        let table = Words::new(&listed).unwrap();
        let options = Options {
            unknown: table.id("<unk>").filter(|_| bit(0)),
            fuse_unknown: bit(1),
            byte_fallback: bit(2),
            ignore_merges: bit(3),
        };
        let ours = Pairs::new(table, merges.iter().map(|(a, b)| (a.as_str(), b.as_str())), options).unwrap();
        assert_eq!(ours.vocabulary(), theirs.get_vocab());
        let lengths = (0..60).chain([300, 5000]);
        let texts = lengths.map(|length| text(&mut numbers, &words, length)).collect::<Vec<_>>();
        // Words twice: what was found out about them is remembered.
        for text in texts.iter().chain(&words).chain(&words) {
            let all = |tokens: Vec<Token>| tokens.into_iter().map(|t| (t.id, t.value, t.offsets)).collect::<Vec<_>>();
            assert_eq!(all(ours.tokenize(text)), all(theirs.tokenize(text).unwrap()), "{text:?}, {options:?}");
        }
    }
}

#[test]
fn a_long_word_takes_no_time_that_grows_with_its_square() {
    let mut listed = Listed::default();
    for (word, id) in ["a", "aa", "aaaa"].into_iter().zip(0..) {
        assert!(listed.push(word, id));
    }
    let merges = [("a", "a"), ("aa", "aa")];
    let pairs = Pairs::new(Words::new(&listed).unwrap(), merges.into_iter(), Options::default()).unwrap();
    let tokens = pairs.tokenize(&"a".repeat(1_000_003));
    assert_eq!(tokens.len(), 250_002);
    assert_eq!(
        tokens[250_000..].iter().map(|t| (t.id, t.offsets)).collect::<Vec<_>>(),
        [(1, (1_000_000, 1_000_002)), (0, (1_000_002, 1_000_003))]
    );
}

#[test]
fn merges_of_what_is_no_word_are_refused() {
    let mut listed = Listed::default();
    assert!(listed.push("a", 0) && listed.push("b", 1) && listed.push("ab", 2));
    let of = |merges: &[(&'static str, &'static str)]| {
        Pairs::new(Words::new(&listed).unwrap(), merges.iter().copied(), Options::default()).is_some()
    };
    assert!(of(&[("a", "b")]));
    assert!(!of(&[("b", "a")]) && !of(&[("a", "c")]) && !of(&[("", "ab")]));
}
