//! Runs `filetests/verify` and `filetests/text`, beside the crates.
//!
//! A file holds a program. What is expected follows it:
//! - in `verify`, one `// error: …` line for each diagnostic, in order; none for a valid program;
//! - in `text`, `// prints:` and the text that printing gives, if it is another than the file's own;
//! - in both, one `// error: …` line if the text cannot be read.
//!
//! With `BLESS=1` in the environment the expectations are rewritten; read the difference before you keep it.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use anemone_mil::text::{NoBlobs, parse};
use anemone_mil::verify;

const ERROR: &str = "// error: ";
const PRINTS: &str = "// prints:\n";

fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../filetests").join(folder);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut all: Vec<PathBuf> = entries.map(|e| e.expect("an entry of the folder").path()).collect();
    all.retain(|path| path.extension().is_some_and(|e| e == "mil"));
    all.sort();
    assert!(!all.is_empty(), "no files in {}", folder.display());
    all
}

/// The program of a file, without what is expected of it.
fn program(text: &str) -> &str {
    let ends = [text.find("\n// error: "), text.find("\n// prints:\n")];
    let end = ends.into_iter().flatten().min();
    end.map_or(text, |at| &text[..=at])
}

/// Runs every file of a folder; `expected` gives what should follow a program.
fn run(folder: &str, expected: impl Fn(&str) -> String) {
    let mut wrong = String::new();
    for path in files(folder) {
        let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let program = program(&text);
        let should_be = format!("{program}{}", expected(program));
        if text == should_be {
            continue;
        }
        if std::env::var_os("BLESS").is_some_and(|v| v == "1") {
            std::fs::write(&path, should_be).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        } else {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let (found, expected) = (&should_be[program.len()..], &text[program.len()..]);
            let _ = writeln!(wrong, "{folder}/{name}\nexpected:\n{expected}\nfound:\n{found}");
        }
    }
    assert!(wrong.is_empty(), "{wrong}(BLESS=1 rewrites what is expected)");
}

fn errors(all: impl IntoIterator<Item = String>) -> String {
    all.into_iter().map(|e| format!("{ERROR}{e}\n")).collect()
}

#[test]
fn verifier() {
    run("verify", |text| match parse(text, &NoBlobs) {
        Ok(program) => errors(verify(&program).iter().map(ToString::to_string)),
        Err(e) => errors([e.to_string()]),
    });
}

#[test]
fn text() {
    run("text", |text| match parse(text, &NoBlobs) {
        Ok(program) => {
            let printed = program.to_string();
            let again = parse(&printed, &NoBlobs).unwrap_or_else(|e| panic!("{e}:\n{printed}"));
            assert!(again == program, "another program comes back:\n{printed}");
            // Comments before the program are the file's own.
            let body = text.lines().skip_while(|l| l.starts_with("//")).map(|l| format!("{l}\n")).collect::<String>();
            if printed == body { String::new() } else { format!("{PRINTS}{printed}") }
        }
        Err(e) => errors([e.to_string()]),
    });
}
