//! Prose for a terminal.

/// Lines are broken before this column.
const WIDTH: usize = 100;

/// The words of `text` in lines that leave room for `indent` columns.
#[must_use]
pub fn wrapped(text: &str, indent: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() + indent <= WIDTH => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Text of files and processes, with its control characters made visible: it must not command the terminal.
#[must_use]
pub fn printable(text: &str) -> String {
    let visible = |c: char| if c.is_control() && c != '\n' && c != '\t' { '\u{fffd}' } else { c };
    text.chars().map(visible).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_kept_whole_and_lines_short() {
        let text = "word ".repeat(50) + &"x".repeat(150);
        let lines = wrapped(&text, 4);
        assert_eq!(lines.len(), 4);
        assert!(lines[..3].iter().all(|line| line.len() <= 96) && lines[..2].iter().all(|line| line.len() > 80));
        assert_eq!(lines.join(" "), text);
        assert!(wrapped("  ", 0).is_empty());
    }
}
