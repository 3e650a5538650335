//! The verifier over every fixture.

mod common;

use anemone_mil::load;

#[test]
fn every_fixture_loads() {
    for (name, path) in common::packages() {
        let model = load(&path).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(model.left_out, Vec::<String>::new(), "{name}");
    }
}
