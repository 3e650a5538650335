use tempfile::TempDir;

use super::*;

fn entries(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    let mut names: Vec<_> =
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn create(dest: &Path) -> Result<Staging, PackageError> {
    let in_the_way = |folder: &Path| Ok((!folder.join("Manifest.json").is_file()).then(|| "no package".to_owned()));
    Staging::create(dest, "Manifest.json", in_the_way)
}

/// A package, for these tests: a folder with a manifest.
fn package(at: &Path, manifest: &str) {
    fs::create_dir(at).expect("a new folder");
    fs::write(at.join("Manifest.json"), manifest).expect("a manifest");
}

fn manifest(at: &Path) -> String {
    fs::read_to_string(at.join("Manifest.json")).expect("a manifest")
}

#[test]
fn a_dropped_one_leaves_nothing() {
    let folder = TempDir::new().expect("a temporary folder");
    let staging = create(&folder.path().join("m.mlpackage")).expect("a staging folder");
    fs::write(staging.folder().join("file"), "content").expect("a file");
    assert_eq!(entries(folder.path()).len(), 1);
    drop(staging);
    assert!(entries(folder.path()).is_empty());
}

#[test]
fn committing_makes_or_replaces_the_package_and_leaves_nothing_else() {
    let folder = TempDir::new().expect("a temporary folder");
    let dest = folder.path().join("m.mlpackage");
    for content in ["first", "second"] {
        let staging = create(&dest).expect("a staging folder");
        fs::create_dir(staging.folder().join("Data")).expect("a folder");
        fs::write(staging.folder().join("Data").join(content), "").expect("a file");
        staging.commit(content.as_bytes()).expect("a package");
        assert_eq!(manifest(&dest), content);
        assert_eq!(entries(&dest.join("Data")), [content]);
        assert_eq!(entries(folder.path()), ["m.mlpackage"]);
    }
}

#[test]
fn replacing_without_an_exchange_of_folders() {
    let folder = TempDir::new().expect("a temporary folder");
    let dest = folder.path().join("m");
    package(&dest, "old");
    let staging = create(&dest).expect("a staging folder");
    fs::write(staging.folder().join("Manifest.json"), "new").expect("a manifest");
    staging.replace_by_renames().expect("a replacement");
    assert_eq!(manifest(&dest), "new");
    drop(staging);
    assert_eq!(entries(folder.path()), ["m"]);
}

#[test]
fn live_writers_are_left_alone_and_dead_ones_cleared_away() {
    let folder = TempDir::new().expect("a temporary folder");
    let dest = folder.path().join("m");
    let live = create(&dest).expect("a staging folder");
    package(&folder.path().join(".m.anemone-1-2.partial"), "");
    package(&folder.path().join(".n.anemone-1-2.partial"), "another destination's");
    package(&folder.path().join(".m.anemone-x-2.partial"), "not of our making");
    fs::create_dir(folder.path().join(".m.anemone-3-4.partial")).expect("a folder made this moment");
    let half_removed = folder.path().join(".m.anemone-5-6.partial");
    fs::create_dir(&half_removed).expect("a folder");
    fs::write(half_removed.join("weight.bin"), "large").expect("a file");
    let other = create(&dest).expect("a second staging folder");
    let name = |staging: &Staging| staging.folder().file_name().expect("a name").to_string_lossy().into_owned();
    let mut expected = vec![
        name(&live),
        name(&other),
        ".n.anemone-1-2.partial".into(),
        ".m.anemone-x-2.partial".into(),
        ".m.anemone-3-4.partial".into(),
    ];
    expected.sort();
    assert_eq!(entries(folder.path()), expected);
    live.commit(b"live").expect("it was left alone");
    assert_eq!(manifest(&dest), "live");
}

#[test]
fn killed_between_the_two_renames() {
    let folder = TempDir::new().expect("a temporary folder");
    let dest = folder.path().join("m");
    package(&folder.path().join(".m.anemone-1-2.partial"), "new");
    package(&folder.path().join(".m.anemone-1-2.old"), "old");
    drop(create(&dest).expect("a staging folder"));
    assert_eq!(entries(folder.path()), ["m"]);
    assert_eq!(manifest(&dest), "old");

    package(&folder.path().join(".m.anemone-1-2.old"), "older");
    drop(create(&dest).expect("a staging folder"));
    assert_eq!((entries(folder.path()), manifest(&dest)), (vec!["m".into()], "old".into()));
}

#[test]
fn killed_after_an_exchange() {
    let folder = TempDir::new().expect("a temporary folder");
    let dest = folder.path().join("m");
    package(&dest, "new");
    package(&folder.path().join(".m.anemone-1-2.partial"), "old");
    drop(create(&dest).expect("a staging folder"));
    assert_eq!((entries(folder.path()), manifest(&dest)), (vec!["m".into()], "new".into()));
}

#[test]
fn only_packages_are_replaced() {
    let folder = TempDir::new().expect("a temporary folder");
    let dest = folder.path().join("d");
    fs::create_dir(&dest).expect("a folder");
    drop(create(&dest).expect("an empty folder may be replaced"));
    fs::write(dest.join("letter.txt"), "dear").expect("a file");
    let file = dest.join("letter.txt");
    for (dest, found) in [(&dest, "no package"), (&file, "a file")] {
        let error = create(dest).expect_err("not a package");
        assert!(error.to_string().contains(found), "{error}");
    }
    for dest in ["", "/", "..", "missing/m"] {
        let dest = if dest == "missing/m" { folder.path().join(dest) } else { dest.into() };
        assert!(matches!(create(&dest), Err(PackageError::Invalid { .. })), "{}", dest.display());
    }
    assert_eq!(entries(folder.path()), ["d"]);
}

#[test]
fn a_path_that_ends_with_a_dot() {
    let folder = TempDir::new().expect("a temporary folder");
    let dest = folder.path().join("m");
    package(&dest, "old");
    create(&dest.join(".")).expect("a staging folder").commit(b"new").expect("a package");
    assert_eq!((entries(folder.path()), manifest(&dest)), (vec!["m".into()], "new".into()));
}

#[cfg(unix)]
#[test]
fn a_link_is_not_replaced() {
    let folder = TempDir::new().expect("a temporary folder");
    package(&folder.path().join("m"), "linked");
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(folder.path().join("m"), &link).expect("a link");
    let error = create(&link).expect_err("a link");
    assert!(error.to_string().contains("a link"), "{error}");
}
