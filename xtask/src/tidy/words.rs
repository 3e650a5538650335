//! Words that do not land: work left undone, tests switched off, names of somebody's machine.

use super::Text;

/// Each word in two halves, so that this file does not find itself, with what is wrong about it.
const UNDONE: [(&str, &str, &str); 7] = [
    ("TO", "DO", "work left undone: do it, or file an issue"),
    ("FIX", "ME", "work left undone: do it, or file an issue"),
    ("XX", "X", "work left undone: do it, or file an issue"),
    ("to", "do!(", "work left undone"),
    ("unimple", "mented!(", "work left undone"),
    ("#[ig", "nore", "a test that does not run: make it run, or remove it"),
    ("db", "g!(", "left from debugging"),
];

/// Not in code, papers or scripts: they hold on one machine or in one network only.
const ELSEWHERE: [(&str, &str, &str); 9] = [
    ("crates", ".io", "a package registry's host"),
    ("py", "pi.org", "a package registry's host"),
    ("python", "hosted", "a package registry's host"),
    ("npm", "js.org", "a package registry's host"),
    ("deb.", "debian.org", "a package registry's host"),
    ("proxy.", "golang", "a package registry's host"),
    ("/wo", "rk/", "a path of one machine"),
    ("/ro", "ot/", "a path of one machine"),
    ("/ho", "me/", "a path of one machine"),
];

/// The one reason for which a test may not run by itself. The step `model` of `.ci/run` runs those that give it.
const NEEDS_MODEL: &str = "= \"needs the GGUF file: set ANEMONE_SMOLLM2_GGUF\"]";

/// The lock file names the registry by its nature, and licences are not ours to word.
const EXEMPT: [&str; 4] = ["Cargo.lock", "fuzz/Cargo.lock", "LICENSE-APACHE", "LICENSE-MIT"];

pub(super) fn check(text: &Text) -> Vec<String> {
    if EXEMPT.contains(&text.path.as_str()) {
        return Vec::new();
    }
    let mut errors = Vec::new();
    for (number, line) in text.lines() {
        for (head, tail, wrong) in UNDONE.iter().chain(&ELSEWHERE) {
            if has(line, &format!("{head}{tail}")) && !line.ends_with(NEEDS_MODEL) {
                errors.push(format!("{}:{number}: {head}{tail}: {wrong}", text.path));
            }
        }
    }
    errors
}

/// Whether a line has the word, and not only as part of a longer one.
fn has(line: &str, word: &str) -> bool {
    let is_part = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_');
    line.match_indices(word).any(|(at, _)| {
        let (before, after) = (line[..at].chars().next_back(), line[at + word.len()..].chars().next());
        let starts = !is_part(word.chars().next()) || !is_part(before);
        let ends = !is_part(word.chars().next_back()) || !is_part(after);
        starts && ends
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_words_only() {
        let complaints = |text: String| check(&Text { path: "a.rs".into(), text }).len();
        assert_eq!(complaints(format!("// {}{}: later", "TO", "DO")), 1);
        assert_eq!(complaints(format!("let MAS{}{}N = 1;", "TO", "DO")), 0);
        assert_eq!(complaints(format!("ok\n    {}{}\n", "to", "do!()")), 1);
        assert_eq!(complaints(format!("open(\"{}{}main\")", "/wo", "rk/")), 1);
        assert_eq!(complaints(format!("#[ig{}]\n#[ig{} = \"slow\"]", "nore", "nore")), 2);
        assert_eq!(complaints(format!("#[ig{} {NEEDS_MODEL}", "nore")), 0);
        assert_eq!(complaints("#[test]\nfn works() {}\n".to_owned()), 0);
    }
}
