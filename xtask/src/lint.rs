//! `docs/lint.md`: the rules of `anemone lint`, from the rules themselves.

use std::fmt::Write;
use std::fs;

use anemone_convert::lint::{Profile, RULES, Severity};
use anyhow::{Context, Result};

use crate::root;

/// Where the page is, from the root.
pub const PAGE: &str = "docs/lint.md";

/// The page as it should be.
///
/// # Errors
/// None but those of writing text.
pub fn page() -> Result<String> {
    let mut page = String::from(
        "# Rules of `anemone lint`\n\n\
        What keeps a package from running well, or at all, on Apple's hardware. Nothing is run to find out: rules look at the\n\
        program and at what the package says around it. Device facts are second-hand, from Apple's documentation and from what\n\
        people reported; each rule says from where. Each is proved both ways by programs in `filetests/lint`.\n\n\
        `anemone lint PACKAGE --profile ane --os ios18` asks about one kind of hardware and the oldest system; `--explain RULE`\n\
        says what stands here.\n\n\
        Written by `cargo run -p xtask -- lint` from the rules; a test holds it to them.\n\n\
        | rule | asks for | ane | gpu | portable |\n|---|---|---|---|---|\n",
    );
    for rule in RULES {
        let grade = |profile| rule.grades.of(profile).map_or("", Severity::name);
        let [ane, gpu, portable] = [Profile::Ane, Profile::Gpu, Profile::Portable].map(grade);
        writeln!(page, "| [`{0}`](#{0}) | {1} | {ane} | {gpu} | {portable} |", rule.id, rule.asks.replace('|', "\\|"))?;
    }
    for rule in RULES {
        write!(page, "\n## {}\n\n{}.\n\n{}\n\n", rule.id, rule.asks, rule.reason)?;
        if let Some(from) = rule.from {
            write!(page, "Since {from}.\n\n")?;
        }
        write!(page, "- Remedy: {}\n- Source: {}\n", rule.remedy, rule.source)?;
    }
    Ok(page)
}

/// Writes the page.
///
/// # Errors
/// If the disk refuses.
pub fn write() -> Result<()> {
    fs::write(root().join(PAGE), page()?).with_context(|| format!("cannot write {PAGE}"))
}
