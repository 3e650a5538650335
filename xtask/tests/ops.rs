//! Every operation is documented.

#[test]
fn the_page_of_operations_is_as_the_operations_are() {
    let page = std::fs::read_to_string(xtask::root().join(xtask::ops::PAGE)).unwrap_or_default();
    let same = page == xtask::ops::page().unwrap();
    assert!(same, "{} is not up to date: run `cargo run -p xtask -- ops`", xtask::ops::PAGE);
}
