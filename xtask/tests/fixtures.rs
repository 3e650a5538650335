//! The tiny chat model is what the code makes.

#[test]
fn the_fixtures_made_again_are_the_same_bytes() {
    let errors = xtask::fixtures::check().unwrap();
    assert!(errors.is_empty(), "\n{}", errors.join("\n"));
}
