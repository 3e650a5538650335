//! Holds the licence of every dependency, on every platform, to the list in `deny.toml`.
//!
//! `cargo deny` does this and more in the hosted CI; this needs nothing installed, so `.ci/run` can always do it.

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::{output_of, root};

/// Complaints, one for each package whose licence is not allowed.
pub fn check() -> Result<Vec<String>> {
    let policy = fs::read_to_string(root().join("deny.toml")).context("cannot read deny.toml")?;
    let allowed = allowed(&policy)?;
    let metadata = output_of("cargo", &["metadata", "--format-version=1", "--locked"])?;
    let metadata: Value = serde_json::from_str(&metadata).context("cargo metadata is not JSON")?;
    let packages = metadata["packages"].as_array().context("cargo metadata lists no packages")?;
    let mut complaints = Vec::new();
    for package in packages {
        let licence = package["license"].as_str().unwrap_or("(none stated)");
        if !is_allowed(licence, &allowed) {
            complaints.push(format!("{} {}: {licence}", package["name"], package["version"]));
        }
    }
    Ok(complaints)
}

/// The list `allow = [ … ]` of the section `[licenses]`.
fn allowed(policy: &str) -> Result<BTreeSet<String>> {
    let section = policy.split("[licenses]").nth(1).context("deny.toml has no [licenses]")?;
    let list = section.split_once("allow = [").and_then(|(_, rest)| rest.split_once(']'));
    let (list, _) = list.context("[licenses] in deny.toml has no `allow = [`")?;
    let names: BTreeSet<String> = list.split('"').skip(1).step_by(2).map(str::to_owned).collect();
    if names.is_empty() {
        bail!("deny.toml allows no licence at all");
    }
    Ok(names)
}

/// Whether an SPDX expression can be met with allowed licences alone. `A/B` is the old way to write `A OR B`.
fn is_allowed(expression: &str, allowed: &BTreeSet<String>) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    let value = any(&mut rest, allowed);
    value == Some(true) && rest.is_empty()
}

/// `all (OR all)*`; `None` where the expression makes no sense.
fn any(words: &mut &[&str], allowed: &BTreeSet<String>) -> Option<bool> {
    let mut value = all(words, allowed)?;
    while let Some((&"OR", rest)) = words.split_first() {
        *words = rest;
        value |= all(words, allowed)?;
    }
    Some(value)
}

/// `one (AND one)*`.
fn all(words: &mut &[&str], allowed: &BTreeSet<String>) -> Option<bool> {
    let mut value = one(words, allowed)?;
    while let Some((&"AND", rest)) = words.split_first() {
        *words = rest;
        value &= one(words, allowed)?;
    }
    Some(value)
}

/// A licence, perhaps `WITH` an exception (which only grants more), or an expression in parentheses.
fn one(words: &mut &[&str], allowed: &BTreeSet<String>) -> Option<bool> {
    let (first, rest) = words.split_first()?;
    *words = rest;
    if *first == "(" {
        let value = any(words, allowed)?;
        let (close, rest) = words.split_first()?;
        *words = rest;
        return (*close == ")").then_some(value);
    }
    if let ["WITH", _, rest @ ..] = *words {
        *words = rest;
    }
    Some(allowed.contains(*first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions() {
        let allowed = allowed("[licenses]\nallow = [\n  \"MIT\",\n  \"Apache-2.0\",\n  \"Zlib\",\n]\n").unwrap();
        for good in [
            "MIT",
            "MIT/Apache-2.0",
            "GPL-3.0 OR MIT",
            "MIT AND Zlib",
            "Apache-2.0 WITH LLVM-exception",
            "(GPL-3.0 OR MIT) AND Zlib",
        ] {
            assert!(is_allowed(good, &allowed), "{good}");
        }
        for bad in [
            "GPL-3.0",
            "MIT AND GPL-3.0",
            "(none stated)",
            "",
            "MIT MIT",
            "(MIT",
            "OR MIT",
            "(MIT OR GPL-3.0) AND GPL-2.0",
        ] {
            assert!(!is_allowed(bad, &allowed), "{bad}");
        }
    }
}
