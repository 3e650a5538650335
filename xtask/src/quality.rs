//! What each compression costs in quality: docs/quality.md, by converting and verifying one model in every way.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anemone_convert::{Conversion, SCHEMES, Source};
use anyhow::{Context, Result, ensure};
use clap::Args;
use serde_json::Value;

/// What to measure.
#[derive(Debug, Args)]
pub struct Options {
    /// The checkpoint.
    source: PathBuf,
    /// The text to compare on.
    #[arg(long, default_value = "docs/bench/text.txt")]
    text: PathBuf,
    /// Tokens of it.
    #[arg(long, default_value_t = 512)]
    tokens: usize,
    /// Only these compressions, each with its rules behind it: `int4`, `int4 lm_head=f16`.
    #[arg(long)]
    weights: Vec<String>,
    /// Only these profiles.
    #[arg(long)]
    profile: Vec<String>,
    /// The arithmetic of half floats as well, at these positions, for f16.
    #[arg(long)]
    strict: Vec<usize>,
    /// The program to measure with.
    #[arg(long, default_value = "target/release/anemone")]
    program: PathBuf,
}

const PROFILES: [&str; 3] = ["portable", "gpu", "ane"];
/// Between these lines of the page the table stands.
const MARKS: [&str; 2] = ["<!-- measured: begin -->\n", "<!-- measured: end -->\n"];

/// What stands above the rows: of weights, and of the arithmetic of half floats.
const HEADS: [&str; 2] = [
    "| `convert` with | MB | bits a weight | perplexity | times the source's | best tokens | mean KL | KL of 99 % |\n\
     |---|---|---|---|---|---|---|---|\n",
    "| `convert` with | from position | best tokens | mean KL | overflows |\n|---|---|---|---|---|\n",
];

/// Measures, and writes the rows into the tables of docs/quality.md. Rows of what is not measured stay as they are, so that it
/// can be done in pieces.
///
/// # Errors
/// If a conversion fails for another reason than that the profile does not take it.
pub fn measure(options: &Options) -> Result<()> {
    let root = crate::root();
    let work = tempfile::tempdir()?;
    let source = Source::open(&options.source)?;
    let matrices = Conversion::new(&source, &anemone_convert::Options::default())?.estimate().weights;
    let all: Vec<String> = SCHEMES.iter().map(|s| s.name.to_owned()).collect();
    let weights = if options.weights.is_empty() { &all } else { &options.weights };
    let profiles: Vec<&str> = match options.profile.is_empty() {
        true => PROFILES.to_vec(),
        false => options.profile.iter().map(String::as_str).collect(),
    };
    let page = root.join("docs/quality.md");
    for recipe in weights {
        for profile in &profiles {
            let package = work.path().join("model");
            let flags = flags(recipe, profile);
            let ran = Command::new(&options.program)
                .args([Path::new("convert"), &options.source, Path::new("-o"), &package])
                .args(&flags)
                .stdin(Stdio::null())
                .output()
                .with_context(|| options.program.display().to_string())?;
            if ran.status.code() == Some(2) {
                // What the profile refuses is no row.
                continue;
            }
            ensure!(ran.status.success(), "convert {flags:?}: {}", String::from_utf8_lossy(&ran.stderr));
            let strict_at: &[usize] = if recipe == "f16" { &options.strict } else { &[] };
            let report = verify(options, &package, strict_at)?;
            let mut rows = vec![row(&flags, &package, matrices as f64, &report["logits"])?];
            for s in report["strict"].as_array().into_iter().flatten() {
                let a = &s["agreement"];
                let overflows = s["overflows"].as_array().map_or(0, Vec::len);
                let (at, kl) = (&s["position"], number(&a["mean_divergence"]));
                rows.push(format!("| `{}` | {at} | {} | {kl:.1e} | {overflows} |", flags.join(" "), share(a)));
            }
            fs::remove_dir_all(&package)?;
            insert(&page, &rows, options.strict.is_empty())?;
        }
    }
    Ok(())
}

/// The flags of a recipe, a scheme with rules behind it.
fn flags(recipe: &str, profile: &str) -> Vec<String> {
    let mut words = recipe.split_whitespace();
    let mut flags = vec!["--weights".to_owned(), words.next().unwrap_or("f16").to_owned()];
    for rule in words {
        flags.extend(["--rule".to_owned(), rule.to_owned()]);
    }
    flags.extend(["--profile".to_owned(), profile.to_owned()]);
    flags
}

fn verify(options: &Options, package: &Path, strict: &[usize]) -> Result<Value> {
    let mut command = Command::new(&options.program);
    command.args([Path::new("verify"), package, Path::new("--against"), &options.source]);
    command.arg("--text").arg(&options.text).args(["--tokens", &options.tokens.to_string(), "--json"]);
    if !strict.is_empty() {
        command.arg("--strict-fp16");
        for at in strict {
            command.args(["--at", &at.to_string()]);
        }
    }
    // It fails where bounds are broken, and reports all the same.
    let ran = command.stdin(Stdio::null()).output()?;
    serde_json::from_slice(&ran.stdout).with_context(|| String::from_utf8_lossy(&ran.stderr).into_owned())
}

fn row(flags: &[String], package: &Path, weights: f64, logits: &Value) -> Result<String> {
    let blob = package.join("model.mlpackage/Data/com.apple.CoreML/weights/weight.bin");
    let bytes = fs::metadata(blob)?.len() as f64;
    let (own, source) = (number(&logits["perplexity"]), number(&logits["reference_perplexity"]));
    Ok(format!(
        "| `{}` | {:.1} | {:.2} | {own:.3} | {:.4} | {} | {:.1e} | {:.1e} |",
        flags.join(" "),
        bytes / 1e6,
        8.0 * bytes / weights,
        own / source,
        share(logits),
        number(&logits["mean_divergence"]),
        number(&logits["divergence_99"]),
    ))
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}

fn share(agreement: &Value) -> String {
    format!("{:.1} %", 100.0 * number(&agreement["same"]) / number(&agreement["positions"]))
}

/// Writes rows of one conversion over those of the same flags between the marks of the page; those of the arithmetic of half
/// floats stay if they were not measured.
fn insert(page: &Path, rows: &[String], keep_strict: bool) -> Result<()> {
    let text = fs::read_to_string(page).with_context(|| page.display().to_string())?;
    let [begin, end] = MARKS;
    let (before, rest) = text.split_once(begin).context("docs/quality.md lacks its first mark")?;
    let (table, after) = rest.split_once(end).context("docs/quality.md lacks its second mark")?;
    fs::write(page, format!("{before}{begin}\n{}\n{end}{after}", merged(table, rows, keep_strict)))?;
    Ok(())
}

/// The tables with `rows` in place of those of the same conversion, in the order of the compressions and profiles.
fn merged(table: &str, rows: &[String], keep_strict: bool) -> String {
    let flags = |row: &str| row.split('`').nth(1).unwrap_or_default().to_owned();
    let strict = |row: &&str| row.matches(" | ").count() < 6;
    let new = rows.first().map(|row| flags(row));
    let stays = |row: &&str| row.starts_with("| `--") && (Some(flags(row)) != new || keep_strict && strict(row));
    let mut all: Vec<&str> = table.lines().filter(stays).chain(rows.iter().map(String::as_str)).collect();
    let place = |row: &str| {
        let flags = flags(row);
        let words: Vec<&str> = flags.split_whitespace().collect();
        let scheme = SCHEMES.iter().position(|scheme| words.get(1) == Some(&scheme.name));
        (scheme, words.len(), PROFILES.iter().position(|profile| words.last() == Some(profile)))
    };
    // Rows of one conversion stay in their order.
    all.sort_by_key(|row| place(row));
    let (strict, plain): (Vec<&str>, Vec<&str>) = all.into_iter().partition(strict);
    let tables = [plain, strict].into_iter().zip(HEADS).filter(|(rows, _)| !rows.is_empty());
    tables.map(|(rows, head)| format!("{head}{}\n", rows.join("\n"))).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recipes_become_flags() {
        let expected = ["--weights", "int4", "--rule", "lm_head=f16", "--profile", "gpu"];
        assert_eq!(flags("int4 lm_head=f16", "gpu"), expected);
    }

    #[test]
    fn rows_take_the_place_of_their_own_and_the_others_stay() {
        let row = |flags: &str, top: &str| format!("| `{flags}` | 1 | 2 | 3 | 4 | {top} | 6 | 7 |");
        let strict = |flags: &str, top: &str| format!("| `{flags}` | 10 | {top} | 1e-3 | 0 |");
        let (half, eight) = ("--weights f16 --profile gpu", "--weights int8 --profile portable");
        let once = merged("", &[row(eight, "a")], true);
        let twice = merged(&once, &[row(half, "b"), strict(half, "c")], false);
        let tables = |halves: [String; 2], eights: String| {
            format!("{}{}\n{eights}\n\n{}{}\n", HEADS[0], halves[0], HEADS[1], halves[1])
        };
        assert_eq!(twice, tables([row(half, "b"), strict(half, "c")], row(eight, "a")));
        let again = merged(&twice, &[row(half, "d")], true);
        assert_eq!(again, tables([row(half, "d"), strict(half, "c")], row(eight, "a")));
    }
}
