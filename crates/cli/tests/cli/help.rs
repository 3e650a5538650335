use super::support::anemone;

const NONE: [&str; 0] = [];

#[test]
fn alone_it_greets_and_shows_the_way() {
    let out = anemone(NONE).ok();
    for word in ["anemone run", "anemone chat", "anemone convert", "--help"] {
        assert!(out.contains(word), "{out}");
    }
}

#[test]
fn every_command_has_help_with_examples() {
    let out = anemone(["--help"]).ok();
    assert!(out.contains("Examples:") && out.contains("Exit codes: 0 "), "{out}");
    let commands = [
        "bench",
        "doctor",
        "explain",
        "placement",
        "run",
        "chat",
        "convert",
        "inspect",
        "predict",
        "models",
        "sessions",
        "prefix",
    ];
    for command in commands {
        assert!(out.contains(command), "{command}: {out}");
        for flag in ["--help", "-h"] {
            let help = anemone([command, flag]).ok();
            assert!(help.contains("Examples:") && help.contains(&format!("anemone {command}")), "{command}: {help}");
        }
    }
    assert!(anemone(["models", "remove", "--help"]).ok().contains("Example:"));
    assert!(anemone(["--version"]).ok().starts_with("anemone 0."));
}

#[test]
fn helps_fit_the_terminal() {
    for command in ["run", "chat", "convert", "inspect", "predict", "models", "placement", "doctor", "bench", "explain"]
    {
        for columns in [60, 100] {
            let help = anemone([command, "--help"]).env("COLUMNS", columns.to_string()).ok();
            let lines: Vec<usize> = help.lines().map(|line| line.chars().count()).collect();
            assert!(lines.iter().all(|&n| n <= columns), "{command} at {columns}: {help}");
            // A paragraph that was wrapped twice has a short line in its middle.
            let torn = help.lines().zip(help.lines().skip(1)).any(|(line, next)| {
                let word = next.split(' ').next().unwrap_or_default();
                let flows = |line: &str| !line.is_empty() && !line.starts_with([' ', '\x1b']) && !line.ends_with(':');
                flows(line) && flows(next) && line.chars().count() + 1 + word.chars().count() <= columns
            });
            assert!(!torn, "{command} at {columns}: {help}");
        }
    }
}

#[test]
fn wrong_arguments_end_with_2() {
    for arguments in [
        &["nonsense"][..],
        &["inspect"],
        &["inspect", "a", "--mil", "--json"],
        &["predict", "a", "--input", "x"],
        &["predict", "a", "--input", "x=many"],
        &["predict", "a", "--shape", "x=1,b"],
        &["predict", "a", "--threads", "0"],
        &["convert", "a"],
        &["convert", "a", "-o", "b", "--weights", "f13"],
        &["convert", "a", "-o", "b", "--context", "-1"],
        &["models", "destroy"],
    ] {
        let done = anemone(arguments).run();
        assert_eq!(done.code, Some(2), "{arguments:?}: {}", done.err);
        assert!(done.out.is_empty() && done.err.contains("error:"), "{arguments:?}: {}", done.err);
    }
    anemone(["models"]).env("ANEMONE_LOG", "a=b=c").fails(2, &["ANEMONE_LOG"]);
}

#[test]
fn what_is_not_there_ends_with_1_and_is_named() {
    for arguments in [&["inspect", "nowhere"][..], &["predict", "nowhere"], &["convert", "nowhere", "-o", "out"]] {
        anemone(arguments).fails(1, &["error:", "nowhere"]);
    }
}

#[test]
fn files_of_another_kind_are_named_as_such() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("notes.txt");
    std::fs::write(&file, "not a model").unwrap();
    let file = file.to_str().unwrap();
    for command in ["inspect", "predict", "lint"] {
        let err = anemone([command, file]).fails(1, &["notes.txt", ".mlpackage", ".mlmodel", "convert"]);
        assert!(!err.contains("download"), "{err}");
    }
    for command in [&["convert", file, "-o", "out"][..], &["run", "-m", file, "Hi"]] {
        anemone(command).fails(1, &["notes.txt", "GGUF", "a folder in Hugging Face's form"]);
    }
    anemone(["run", "-m", "nothing-like-it", "Hi"]).fails(1, &["no cached model of that name (nothing is cached yet)"]);
    anemone(["inspect", folder.path().to_str().unwrap()]).fails(1, &[".mlpackage"]);
}

#[test]
fn a_reader_who_has_read_enough_is_no_failure() {
    use std::process::{Command, Stdio};

    let path = super::support::package("tiny_article_fp16");
    for flag in ["--mil", "--json"] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_anemone"))
            .args(["inspect", path.to_str().unwrap(), flag])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let done = child.wait_with_output().unwrap();
        assert_eq!((done.status.code(), done.stderr.len()), (Some(0), 0), "{flag}");
    }
}
