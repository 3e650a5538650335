//! Where a manifest and its packages say different things.

use std::collections::BTreeSet;

use anemone_mil::Function;
use anemone_mil::model::Model;
use anemone_mil::types::Dim;
use anemone_package::bundle::{BundleManifest, Roles};

/// What the manifest says that is not so, what the packages have instead, and what to do; none if they agree. A conversation
/// has room for `context` tokens.
pub(super) fn contradiction(manifest: &BundleManifest, models: &[Model], context: usize) -> Option<String> {
    if manifest.context != context {
        let found = manifest.context;
        return Some(said(
            "context",
            &found.to_string(),
            &format!("{context}, which is what the package has room for"),
        ));
    }
    widths(manifest, models).or_else(|| roles(&manifest.roles, models))
}

fn said(field: &str, found: &str, expected: &str) -> String {
    format!("`{field}` is {found}; expected {expected}; convert the model again")
}

/// Names in words.
fn listed<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    let names: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// What is wrong with the functions and the tokens that they take.
fn widths(manifest: &BundleManifest, models: &[Model]) -> Option<String> {
    let told: BTreeSet<&str> = manifest.functions.keys().map(String::as_str).collect();
    let found: BTreeSet<&str> = models.iter().flat_map(|m| m.program.functions.keys()).map(String::as_str).collect();
    if told != found {
        let told = listed(told.iter().copied());
        return Some(said("functions", &told, &format!("{}, which the package has", listed(found))));
    }
    let first = models.first()?;
    manifest.functions.iter().find_map(|(name, &told)| {
        let function = first.program.functions.get(name)?;
        let tokens = named_input(function, &manifest.roles.tokens)?;
        let shape = function.value(tokens).ty.tensor()?.shape.as_ref()?;
        match shape.last()? {
            Dim::Known(found) if *found != told => {
                let expected = format!("{found}, the tokens that a call of it takes");
                Some(said(&format!("functions.{name}"), &told.to_string(), &expected))
            }
            _ => None,
        }
    })
}

fn named_input(function: &Function, name: &str) -> Option<anemone_mil::ValueId> {
    function.inputs.iter().copied().find(|&id| function.value(id).name == name)
}

/// What is wrong with the ports.
fn roles(roles: &Roles, models: &[Model]) -> Option<String> {
    let all: Vec<&Function> = models.iter().flat_map(|model| model.program.functions.values()).collect();
    let names = |function: &Function, ids: &[anemone_mil::ValueId]| -> Vec<String> {
        ids.iter().map(|&id| function.value(id).name.clone()).collect()
    };
    let is_state = |function: &Function, name: &str| function.states().any(|(_, state, _)| state == name);
    let inputs: BTreeSet<String> =
        all.iter().flat_map(|f| names(f, &f.inputs).into_iter().filter(|name| !is_state(f, name))).collect();
    let states: BTreeSet<String> = all.iter().flat_map(|f| f.states().map(|(_, name, _)| name.to_owned())).collect();
    let outputs: BTreeSet<String> = all.iter().flat_map(|f| names(f, &f.body.outputs)).collect();
    let held = if roles.columns.is_empty() { (&states, "the states") } else { (&inputs, "among the inputs") };

    let one = |field: &str, name: &str, there: &BTreeSet<String>, what: &str| {
        let all = || listed(there.iter().map(String::as_str));
        (!there.contains(name))
            .then(|| said(&format!("roles.{field}"), &format!("`{name}`"), &format!("one of the {what}, {}", all())))
    };
    one("tokens", &roles.tokens, &inputs, "inputs")
        .or_else(|| one("positions", &roles.positions, &inputs, "inputs"))
        .or_else(|| one("logits", &roles.logits, &outputs, "outputs"))
        .or_else(|| roles.columns.iter().find_map(|name| one("columns", name, &outputs, "outputs")))
        .or_else(|| {
            let told: BTreeSet<&str> = roles.cache.iter().map(String::as_str).collect();
            let there: BTreeSet<&str> = held.0.iter().map(String::as_str).collect();
            let agrees =
                if roles.columns.is_empty() { told == there } else { !told.is_empty() && told.is_subset(&there) };
            (!agrees).then(|| said("roles.cache", &listed(told), &format!("{}, {}", held.1, listed(there))))
        })
}
