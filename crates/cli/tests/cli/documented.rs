//! Every command and flag that the papers and the helps show is one that the binary has.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use super::support::anemone;

const COMMANDS: [&str; 14] = [
    "run",
    "chat",
    "convert",
    "inspect",
    "verify",
    "lint",
    "predict",
    "models",
    "sessions",
    "prefix",
    "placement",
    "doctor",
    "bench",
    "explain",
];

/// The command and the flags of a line that runs `anemone`, if it does.
fn used(line: &str) -> Option<(&str, Vec<&str>)> {
    let rest = ["cargo run --release -- ", "anemone "].iter().find_map(|start| Some(line.split_once(start)?.1))?;
    let (command, rest) = rest.split_once([' ', '`']).unwrap_or((rest, ""));
    let flags = rest.split([' ', '`', ';', ',', ')', '[', ']', '=']).filter(|word| {
        let name = word.trim_start_matches('-');
        word.starts_with('-') && name.starts_with(|c: char| c.is_ascii_lowercase()) && !name.contains('.')
    });
    Some((command, flags.collect()))
}

#[test]
fn the_papers_and_helps_show_only_what_there_is() {
    let mut helps: BTreeMap<&str, String> =
        COMMANDS.iter().map(|command| (*command, anemone([command, "--help"]).ok())).collect();
    // Its flags are shown behind the word that it begins with.
    helps.entry("sessions").or_default().push_str(&anemone(["sessions", "export", "--help"]).ok());
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let papers = [
        "README.md",
        "CONTRIBUTING.md",
        "ARCHITECTURE.md",
        "CHANGELOG.md",
        "docs/numerics.md",
        "docs/apple.md",
        "docs/sessions.md",
    ];
    let papers = papers.map(|name| (name, fs::read_to_string(root.join(name)).unwrap()));
    let texts = papers.iter().map(|(name, text)| (*name, text)).chain(helps.iter().map(|(name, text)| (*name, text)));
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for (name, text) in texts {
        for line in text.lines() {
            let Some((command, flags)) = used(line) else { continue };
            // Prose about the program is no use of it.
            let Some(help) = helps.get(command) else { continue };
            for flag in flags {
                seen += 1;
                let lists = |line: &str| line.split([' ', ',']).any(|word| word == flag);
                if !help.lines().filter(|line| line.trim_start().starts_with('-')).any(lists) {
                    wrong.push(format!("{name}: `anemone {command}` has no {flag}: {line}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen > 15, "only {seen} flags were found");
}

#[test]
fn uses_are_recognized() {
    assert_eq!(
        used("$ printf 'a\\n' | cargo run --release -- chat --json --seed 3"),
        Some(("chat", vec!["--json", "--seed"]))
    );
    assert_eq!(used("anemone convert a.gguf -o b/   # --weights int8"), Some(("convert", vec!["-o", "--weights"])));
    assert_eq!(used("cargo test --workspace"), None);
}
