use super::*;
use crate::testing::{byte_level, sentence_piece, word_piece};

/// All text that comes for `tokens`, piece by piece; nothing may come after a stop.
fn stream(tokenizer: &Tokenizer, tokens: &[u32], stop: &[&str]) -> (Vec<String>, Option<String>) {
    let stop: Vec<String> = stop.iter().map(|&stop| stop.to_owned()).collect();
    let mut detokenizer = Detokenizer::new(tokenizer, &stop).unwrap();
    let mut pieces: Vec<String> = tokens.iter().map(|&token| detokenizer.push(token).unwrap().to_owned()).collect();
    pieces.push(detokenizer.finish().unwrap().to_owned());
    let stopped = detokenizer.stopped().map(str::to_owned);
    (pieces, stopped)
}

/// A repeatable stream of numbers below `limit`.
fn numbers(seed: u64, limit: u32) -> impl Iterator<Item = u32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    std::iter::repeat_with(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 33) as u32 % limit
    })
}

#[test]
fn any_tokens_stream_to_their_full_decode() {
    for tokenizer in [byte_level(), sentence_piece(true), sentence_piece(false), word_piece()] {
        for seed in 0..600 {
            let limit = tokenizer.vocabulary() as u32 + 5;
            let mut tokens: Vec<u32> = numbers(seed, limit).take((seed % 23) as usize).collect();
            if seed % 3 == 0 {
                // Mostly bytes of characters, so that valid and broken ones are both met.
                let text: Vec<u8> = "é🌊 日本ß".bytes().cycle().skip(seed as usize % 7).take(20).collect();
                tokens.extend(text.iter().filter_map(|&byte| tokenizer.id(&format!("<0x{byte:02X}>"))));
                tokens.extend(text.iter().map(|&byte| u32::from(byte) + 3).filter(|&id| id < limit));
            }
            let (pieces, _) = stream(&tokenizer, &tokens, &[]);
            assert_eq!(pieces.concat(), tokenizer.decode(&tokens).unwrap(), "{tokens:?}");
        }
    }
}

#[test]
fn characters_come_whole_and_at_once() {
    let tokenizer = byte_level();
    let tokens = tokenizer.encode("a🌊b", false).unwrap();
    assert_eq!(tokens.len(), 6);
    assert_eq!(stream(&tokenizer, &tokens, &[]).0, ["a", "", "", "", "🌊", "b", ""]);
    assert_eq!(stream(&tokenizer, &tokens[..3], &[]).0, ["a", "", "", "\u{fffd}"]);
}

#[test]
fn byte_tokens_come_when_their_run_ends() {
    let tokenizer = sentence_piece(true);
    let id = |token: &str| tokenizer.id(token).unwrap();
    let tokens = [id("▁hi"), id("<0xC3>"), id("<0xA9>"), id("a"), id("<0xC3>")];
    assert_eq!(stream(&tokenizer, &tokens, &[]).0, ["hi", "", "", "éa", "", "\u{fffd}"]);
}

#[test]
fn leading_space_goes_only_from_a_new_text() {
    let tokenizer = sentence_piece(true);
    let hi = tokenizer.id("▁hi").unwrap();
    assert_eq!(stream(&tokenizer, &[hi, hi], &[]).0.concat(), "hi hi");
    assert_eq!(Detokenizer::continuing(&tokenizer, &[]).unwrap().push(hi).unwrap(), " hi");
}

#[test]
fn metaspace_decoders_drop_the_first_tokens_marks() {
    let json = r#"{"version":"1.0","added_tokens":[],"decoder":{"type":"Metaspace","replacement":"▁","prepend_scheme":"always","split":true},
        "model":{"type":"WordLevel","vocab":{"▁▁a▁":0,"▁b":1,"c":2},"unk_token":"c"}}"#;
    let tokenizer = Tokenizer::from_bytes(json.as_bytes()).unwrap();
    for tokens in [&[0, 1, 0, 2][..], &[1, 1], &[2, 0], &[7, 0, 0]] {
        let text = stream(&tokenizer, tokens, &[]).0.concat();
        assert_eq!(text, tokenizer.decode(tokens).unwrap(), "{tokens:?}");
    }
}

#[test]
fn stop_strings_never_show_however_tokens_split_them() {
    let tokenizer = byte_level();
    for text in ["hello world", "one\n\nUser: two", "aabaabaab!", "é🌊é🌊!x", "ab"] {
        let tokens = tokenizer.encode(text, false).unwrap();
        for stops in [&["o w"][..], &["\n\nUser:", "\n\nUser"], &["aabaab!", "zz"], &["🌊!", "é🌊!"], &["abc"]] {
            let (pieces, stopped) = stream(&tokenizer, &tokens, stops);
            // The stop string that is complete after the fewest characters counts.
            let found = stops.iter().filter_map(|stop| Some((text.find(stop)?, *stop)));
            let first = found.min_by_key(|(at, stop)| (at + stop.len(), *at));
            assert_eq!(pieces.concat(), first.map_or(text, |(at, _)| &text[..at]), "{text:?} {stops:?}");
            assert_eq!(stopped.as_deref(), first.map(|(_, stop)| stop));
        }
    }
}

#[test]
fn a_begun_stop_string_comes_out_when_it_is_none() {
    let tokenizer = byte_level();
    let tokens = tokenizer.encode("x<st", false).unwrap();
    assert_eq!(stream(&tokenizer, &tokens, &["<stop>"]).0, ["x", "", "", "", "<st"]);
    let tokens = tokenizer.encode("x<sty", false).unwrap();
    assert_eq!(stream(&tokenizer, &tokens, &["<stop>"]).0, ["x", "", "", "", "<sty", ""]);
}

#[test]
fn special_and_unknown_tokens_have_no_text() {
    let tokenizer = byte_level();
    let [a, b] = [b'a', b'b'].map(|byte| u32::from(byte) + 3);
    assert_eq!(stream(&tokenizer, &[a, 2, 100_000, b], &[]).0, ["a", "", "", "b", ""]);
}

#[test]
fn ends_tell_where_each_token_ends() {
    let tokenizer = byte_level();
    let mut detokenizer = Detokenizer::new(&tokenizer, &[]).unwrap();
    for token in tokenizer.encode("hello 🌊!", false).unwrap() {
        detokenizer.push(token).unwrap();
    }
    assert_eq!(detokenizer.ends(), [5, 6, 7, 8, 9, 10, 11]);
}
