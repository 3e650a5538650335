//! The binary `anemone`.
fn main() {}
