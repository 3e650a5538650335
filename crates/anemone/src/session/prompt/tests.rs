use super::*;

fn generated(text: &str, tokens: usize) -> Generated {
    let ends = (1..=tokens).map(|index| text.len() * index / tokens).collect();
    Generated { text: text.into(), tokens: vec![0; tokens], ends, before: String::new() }
}

#[test]
fn unchanged_text_is_found_from_its_first_token() {
    assert_eq!(unchanged_from(&generated("abcd", 4), "abcd"), Some(0));
    assert_eq!(unchanged_from(&generated(" abcd\n", 6), "abcd"), Some(0));
    assert_eq!(unchanged_from(&generated("ab  cd", 6), "cd"), Some(4));
    assert_eq!(unchanged_from(&generated("abcd", 2), "bcd"), None, "inside a token");
    assert_eq!(unchanged_from(&generated("abcd", 4), "abc"), None, "cut at the end");
    assert_eq!(unchanged_from(&generated("abcd", 4), ""), None);
}

#[test]
fn texts_between_markers_must_come_in_order() {
    let marker = |index: usize| format!("<{index}>");
    assert_eq!(split("a<0>b<2>c", &[0, 2], marker), Some(vec!["a", "b", "c"]));
    assert_eq!(split("a<2>b<0>c", &[0, 2], marker), None);
}
