//! The verifier over every fixture.

mod common;

use anemone_mil::{Problem, verify_model};

#[test]
fn every_fixture_is_valid() {
    for (name, path) in common::packages() {
        let found: Vec<String> = verify_model(&common::model(&path))
            .into_iter()
            .filter(|d| !matches!(d.problem, Problem::UnknownOp { .. }))
            .map(|d| d.to_string())
            .collect();
        assert!(found.is_empty(), "{name}:\n{}", found.join("\n"));
    }
}
