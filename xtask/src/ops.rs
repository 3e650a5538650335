//! `docs/ops.md`: the operations, from the list itself and from the first paragraph of each one's file.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;

use anemone_mil::op::Arity;
use anemone_mil::{Op, ops};
use anyhow::{Context, Result, bail};

use crate::root;

/// Where the page is, from the root.
pub const PAGE: &str = "docs/ops.md";

/// The page as it should be.
pub fn page() -> Result<String> {
    let mut page = String::from(
        "# Operations\n\n\
        What Anemone understands of MIL, Core ML's language. A program that uses another operation is refused when it is\n\
        loaded, with all such operations named. Parameters in brackets may be left out; `…` takes several values.\n\n\
        Written by `cargo run -p xtask -- ops` from the operations' own files; a test holds it to them.\n\n\
        | operation | since | parameters | meaning |\n|---|---|---|---|\n",
    );
    let meanings = meanings()?;
    for op in ops::ALL {
        let Some(meaning) = meanings.get(op.name()) else {
            bail!("no file of crates/mil/src/ops begins with `{}`: and its meaning", op.name());
        };
        let meaning = meaning.replace('|', "\\|");
        writeln!(page, "| `{}` | {} | {} | {meaning} |", op.name(), op.since().os(), parameters(*op))?;
    }
    Ok(page)
}

/// Writes the page.
pub fn write() -> Result<()> {
    fs::write(root().join(PAGE), page()?).with_context(|| format!("cannot write {PAGE}"))
}

fn parameters(op: &dyn Op) -> String {
    let names = op.params().iter().map(|param| match param.arity {
        Arity::Required => format!("`{}`", param.name),
        Arity::Optional => format!("[`{}`]", param.name),
        Arity::Variadic => format!("`{}`…", param.name),
    });
    names.collect::<Vec<_>>().join(", ")
}

/// The first paragraphs of the operations' files, by the name that they begin with.
fn meanings() -> Result<BTreeMap<String, String>> {
    let folder = root().join("crates/mil/src/ops");
    let mut meanings = BTreeMap::new();
    for entry in fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))? {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let lines = text.lines().map_while(|line| line.strip_prefix("//!")).map(str::trim);
        let paragraph = lines.take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
        if let Some((name, meaning)) = paragraph.strip_prefix('`').and_then(|rest| rest.split_once("`: ")) {
            meanings.insert(name.to_owned(), meaning.to_owned());
        }
    }
    Ok(meanings)
}
