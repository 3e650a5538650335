use std::sync::Arc;

use super::*;
use crate::Failure;
use crate::fake::{Fake, Step};

const UNITS: ComputeUnits = ComputeUnits::CpuAndNeuralEngine;

/// Any folder does for the fake's compiler.
fn package() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn the_key_names_all_that_the_result_depends_on() {
    let key = CompileCache::key(&[0xab; 32], "24G419", UNITS);
    assert_eq!(key, format!("{}-24G419-cpu-and-neural-engine", "ab".repeat(16)));
    assert_ne!(key, CompileCache::key(&[0xac; 32], "24G419", UNITS));
    assert_ne!(key, CompileCache::key(&[0xab; 32], "24G420", UNITS));
    assert_ne!(key, CompileCache::key(&[0xab; 32], "24G419", ComputeUnits::CpuOnly));
    let hostile = CompileCache::key(&[0; 32], "../../etc/\0", UNITS);
    assert!(!hostile.contains(['/', '.', '\0']) && CompileCache::key(&[0; 32], "", UNITS).contains("-unknown-"));
}

#[test]
fn the_first_run_compiles_and_says_so_and_later_ones_do_not() {
    let (folder, fake) = (tempfile::tempdir().unwrap(), Fake::new());
    let cache = CompileCache::new(folder.path().join("not/there/yet"));
    let mut told = Vec::new();
    let first = cache.get(&fake, &package(), &[1; 32], UNITS, &mut |p| told.push(p)).unwrap();
    assert!(first.fresh && first.path.join("package.path").is_file());
    assert!(matches!(told[..], [Progress::FirstRun, Progress::Done(_)]));
    told.clear();
    let second = cache.get(&fake, &package(), &[1; 32], UNITS, &mut |p| told.push(p)).unwrap();
    assert_eq!((second.path, second.fresh, fake.counts().compiles), (first.path, false, 1));
    assert!(told.is_empty());
    let other = cache.get(&fake, &package(), &[1; 32], ComputeUnits::CpuOnly, &mut |_| {}).unwrap();
    assert!(other.fresh);
}

#[test]
fn a_new_system_compiles_anew_and_the_old_one_goes() {
    let (folder, fake) = (tempfile::tempdir().unwrap(), Fake::new());
    let cache = CompileCache::new(folder.path());
    let get = |digest| cache.get(&fake, &package(), &[digest; 32], UNITS, &mut |_| {}).unwrap();
    let (old, bystander) = (get(1), get(2));
    fake.set_build("25A354");
    let new = get(1);
    assert!(new.fresh && new.path.exists() && !old.path.exists());
    assert!(bystander.path.exists());
}

#[test]
fn what_is_not_whole_is_compiled_again() {
    let (folder, fake) = (tempfile::tempdir().unwrap(), Fake::new());
    let cache = CompileCache::new(folder.path());
    let get = || cache.get(&fake, &package(), &[1; 32], UNITS, &mut |_| {}).unwrap();
    let first = get();
    fs::write(first.path.join("package.path"), "cut").unwrap();
    assert!(get().fresh);
    fs::remove_file(first.path.parent().unwrap().join("complete")).unwrap();
    assert!(get().fresh);
    fs::remove_dir_all(&first.path).unwrap();
    assert!(get().fresh && !get().fresh);
}

#[test]
fn a_compile_that_failed_leaves_nothing() {
    let (folder, fake) = (tempfile::tempdir().unwrap(), Fake::new());
    let cache = CompileCache::new(folder.path());
    fake.fail(Step::Compile, Failure::new("com.apple.CoreML", 0, "ANECCompile() FAILED (11)"));
    let error = cache.get(&fake, &package(), &[1; 32], UNITS, &mut |_| {}).unwrap_err();
    assert!(error.to_string().contains("anemone explain aneccompile"), "{error}");
    // Left behind by a process that was killed.
    fs::create_dir(folder.path().join(format!("{}.part", CompileCache::key(&[1; 32], "24G419", UNITS)))).unwrap();
    assert!(cache.get(&fake, &package(), &[1; 32], UNITS, &mut |_| {}).unwrap().fresh);
}

#[test]
fn many_ask_and_one_compiles() {
    let (folder, fake) = (tempfile::tempdir().unwrap(), Arc::new(Fake::new()));
    let cache = CompileCache::new(folder.path());
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| cache.get(&*fake, &package(), &[1; 32], UNITS, &mut |_| {}).unwrap()))
            .collect();
        assert_eq!(all.into_iter().filter(|_| true).map(|t| t.join().unwrap().fresh).filter(|&f| f).count(), 1);
    });
    assert_eq!(fake.counts().compiles, 1);
}

#[test]
fn folders_are_copied_where_they_cannot_be_renamed() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    fs::create_dir_all(from.join("weights")).unwrap();
    fs::write(from.join("weights/weight.bin"), "12345").unwrap();
    copy_folder(&from, &to).unwrap();
    assert_eq!(Record::of(&from).unwrap(), Record::of(&to).unwrap());
    assert_eq!(fs::read_to_string(to.join("weights/weight.bin")).unwrap(), "12345");
}
