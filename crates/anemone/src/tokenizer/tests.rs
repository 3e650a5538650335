use super::*;
use crate::testing::{byte_level, byte_level_json, sentence_piece, word_piece};

#[test]
fn text_goes_there_and_back() {
    let tokenizer = byte_level();
    for text in ["hello world", "", " ", "naïve 🌊\n\tx", "<|im_start|>user"] {
        let ids = tokenizer.encode(text, false).unwrap();
        assert_eq!(tokenizer.decode(&ids).unwrap(), text.replace("<|im_start|>", ""));
    }
    let ids = tokenizer.encode("<|im_start|>user", false).unwrap();
    assert_eq!(ids, [1, tokenizer.id("user").unwrap()]);
}

#[test]
fn truncation_and_padding_of_the_file_are_off() {
    assert_eq!(byte_level().encode("abcdefgh", true).unwrap().len(), 8);
}

#[test]
fn special_tokens_are_known() {
    let tokenizer = byte_level();
    assert_eq!(tokenizer.usual_end_tokens(), [2, 0]);
    assert!(tokenizer.is_special(1) && !tokenizer.is_special(3) && !tokenizer.is_special(u32::MAX));
    assert_eq!(tokenizer.token(2).as_deref(), Some("<|im_end|>"));
    assert_eq!(tokenizer.token(100_000), None);
    assert_eq!(tokenizer.vocabulary(), 3 + 256 + 12);
}

#[test]
fn a_continuing_text_gets_no_space_before_it() {
    for old_style in [true, false] {
        let tokenizer = sentence_piece(old_style);
        let tokens = |ids: Vec<u32>| ids.iter().map(|&id| tokenizer.token(id).unwrap()).collect::<Vec<_>>();
        assert_eq!(tokens(tokenizer.encode("hi", false).unwrap()), ["▁hi"]);
        assert_eq!(tokens(tokenizer.encode_continuing("hi").unwrap()), ["h", "i"]);
        assert_eq!(tokens(tokenizer.encode_continuing(" hi</s>").unwrap()), ["▁hi", "</s>"]);
        // After a special token the old style puts a space, the new one doesn't; as in an unbroken text.
        let unbroken = tokens(tokenizer.encode("hi</s>hi", false).unwrap());
        let continuing = tokens(tokenizer.encode_continuing("b</s>hi").unwrap());
        assert_eq!(continuing[1..], unbroken[1..]);
        assert_eq!(continuing[0], "b");
    }
}

#[test]
fn files_that_are_no_tokenizer_end_in_an_error() {
    let valid = byte_level_json();
    for bad in
        ["", "{", "[]", "null", "{}", r#"{"version":"1.0","model":{"type":"BPE","vocab":{},"merges":[["a","b"]]}}"#]
    {
        assert!(matches!(Tokenizer::from_bytes(bad.as_bytes()), Err(Error::Tokenizer { .. })), "{bad}");
    }
    for cut in (0..valid.len()).step_by(97) {
        if valid.is_char_boundary(cut) {
            assert!(Tokenizer::from_bytes(&valid.as_bytes()[..cut]).is_err());
        }
    }
    let decoder = valid.replace(r#""decoder":{"type":"ByteLevel""#, r#""decoder":{"type":"Nothing""#);
    assert_ne!(decoder, valid);
    assert!(Tokenizer::from_bytes(decoder.as_bytes()).is_err());
}

#[test]
fn ids_out_of_bounds_are_refused_before_a_table_is_made() {
    let json = r#"{"version":"1.0","added_tokens":[],"model":{"type":"WordLevel","vocab":{"a":0,"b":4294967295},"unk_token":"a"}}"#;
    let error = Tokenizer::from_bytes(json.as_bytes()).unwrap_err().to_string();
    assert!(error.contains("4294967295"), "{error}");
}

#[test]
fn missing_files_are_named() {
    let error = Tokenizer::from_file("/nowhere/tokenizer.json".as_ref()).unwrap_err().to_string();
    assert!(error.contains("/nowhere/tokenizer.json"), "{error}");
}

#[test]
fn decoders_are_recognized() {
    let spaces = |count| Decoding::Marked { mark: '▁', strip: Strip::Spaces(count) };
    assert_eq!(byte_level().pieces().decoding(), &Decoding::Bytes);
    assert_eq!(sentence_piece(true).pieces().decoding(), &spaces(1));
    assert_eq!(word_piece().pieces().decoding(), &Decoding::Whole);
}
