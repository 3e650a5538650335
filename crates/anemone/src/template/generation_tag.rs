//! `{% generation %} … {% endgeneration %}` marks what the assistant said, for training. For a rendering it means
//! nothing, but its whitespace control does; so it becomes a block that always runs.

/// Rewrites generation tags as `if true` blocks; everything else stays as it is.
pub(super) fn rewrite(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(at) = rest.find('{') {
        let (text, tag) = rest.split_at(at);
        out.push_str(text);
        let length = match tag.as_bytes().get(1) {
            Some(b'#') => tag.find("#}").map_or(tag.len(), |end| end + 2),
            Some(b'%') => code_length(tag, "%}"),
            Some(b'{') => code_length(tag, "}}"),
            _ => 1,
        };
        let (tag, after) = tag.split_at(length);
        match tag.strip_prefix("{%").and_then(|inside| inside.strip_suffix("%}")) {
            Some(inside) => {
                let word = inside.trim_matches(|c: char| c.is_whitespace() || c == '-' || c == '+');
                let tag = match word {
                    "generation" => tag.replacen(word, "if true", 1),
                    "endgeneration" => tag.replacen(word, "endif", 1),
                    _ => tag.to_owned(),
                };
                out.push_str(&tag);
                rest = if word == "raw" { copy_raw(after, &mut out) } else { after };
            }
            None => {
                out.push_str(tag);
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

/// Length of a tag or an expression up to its closing mark, which does not count inside a string.
fn code_length(code: &str, close: &str) -> usize {
    let mut quote = None;
    let mut escaped = false;
    for (at, c) in code.char_indices().skip(2) {
        match quote {
            Some(_) if escaped => escaped = false,
            Some(_) if c == '\\' => escaped = true,
            Some(mark) if c == mark => quote = None,
            Some(_) => {}
            None if c == '\'' || c == '"' => quote = Some(c),
            None if code[at..].starts_with(close) => return at + close.len(),
            None => {}
        }
    }
    code.len()
}

/// Copies the body of a raw block unread; gives what follows it, beginning with its end tag.
fn copy_raw<'a>(body: &'a str, out: &mut String) -> &'a str {
    let mut from = 0;
    while let Some(at) = body[from..].find("{%").map(|at| from + at) {
        let word = body[at + 2..].trim_start_matches(|c: char| c.is_whitespace() || c == '-' || c == '+');
        if word.starts_with("endraw") {
            out.push_str(&body[..at]);
            return &body[at..];
        }
        from = at + 2;
    }
    out.push_str(body);
    ""
}

#[cfg(test)]
mod tests {
    use super::rewrite;

    #[test]
    fn tags_become_blocks_and_keep_their_whitespace_control() {
        assert_eq!(rewrite("a {%- generation -%} b {% endgeneration %} c"), "a {%- if true -%} b {% endif %} c");
    }

    #[test]
    fn strings_comments_raw_blocks_and_loose_braces_stay() {
        for same in [
            "{{ '{% generation %}' }}",
            "{# {% generation %} #}",
            "{% raw %}{% generation %}{% endraw %}",
            "{ % {",
            "{% set x = 'it\\'s %} {% generation %}' %}",
            "{{ unclosed",
            "{% raw %} never closed {% generation %}",
        ] {
            assert_eq!(rewrite(same), same);
        }
    }
}
