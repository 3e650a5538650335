//! Every rule of the linter is documented.

#[test]
fn the_page_of_rules_is_as_the_rules_are() {
    let page = std::fs::read_to_string(xtask::root().join(xtask::lint::PAGE)).unwrap_or_default();
    let same = page == xtask::lint::page().unwrap();
    assert!(same, "{} is not up to date: run `cargo run -p xtask -- lint`", xtask::lint::PAGE);
}
