//! The house: a crate depends only on crates above it, and takes the workspace's lints.

use serde_json::Value;

/// From the ground up: each may use those before it.
const LAYERS: [&str; 9] = [
    "anemone-kernels",
    "anemone-package",
    "anemone-mil",
    "anemone-cpu",
    "anemone-coreml",
    "anemone-convert",
    "anemone",
    "anemone-server",
    "anemone-cli",
];

/// Crates that may use any layer and that no layer may use.
const OUTSIDE: [&str; 1] = ["xtask"];

/// Complaints about the output of `cargo metadata --no-deps`.
pub(super) fn check(metadata: &Value) -> Vec<String> {
    let packages = || metadata["packages"].as_array().into_iter().flatten();
    let names: Vec<&str> = packages().filter_map(|package| package["name"].as_str()).collect();
    let mut errors = Vec::new();
    if names.is_empty() {
        errors.push("cargo metadata lists no package".to_owned());
    }
    for package in packages() {
        let name = package["name"].as_str().unwrap_or_default();
        let layer = LAYERS.iter().position(|layer| *layer == name);
        if layer.is_none() && !OUTSIDE.contains(&name) {
            errors.push(format!("crate {name} has no place in the house: give it one in {}", file!()));
            continue;
        }
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let used = dependency["name"].as_str().unwrap_or_default();
            if !names.contains(&used) || used == name {
                continue;
            }
            let used_layer = LAYERS.iter().position(|layer| *layer == used);
            // `None` is less than any layer: those outside may use all, and be used by none.
            if used_layer.is_none() || layer.is_some_and(|layer| used_layer >= Some(layer)) {
                errors.push(format!("crate {name} depends on {used}, which is not above it in the house"));
            }
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn house(packages: &[(&str, &[&str])]) -> Vec<String> {
        let packages = packages.iter().map(|(name, uses)| {
            let uses: Vec<Value> = uses.iter().map(|used| json!({"name": used})).collect();
            json!({"name": name, "dependencies": uses})
        });
        check(&json!({"packages": packages.collect::<Vec<_>>()}))
    }

    #[test]
    fn the_order_is_kept() {
        let kernels: (&str, &[&str]) = ("anemone-kernels", &[]);
        assert_eq!(house(&[kernels, ("anemone-mil", &["anemone-kernels", "serde"])]), [""; 0]);
        assert_eq!(house(&[kernels, ("xtask", &["anemone-kernels"])]), [""; 0]);
        assert_eq!(house(&[("anemone-kernels", &["anemone-mil"]), ("anemone-mil", &[])]).len(), 1);
        assert_eq!(house(&[("anemone-kernels", &["xtask"]), ("xtask", &[])]).len(), 1);
        assert_eq!(house(&[("anemone-extra", &[])]).len(), 1);
        assert_eq!(house(&[]).len(), 1);
    }
}
