//! Inputs that failed once do not fail again, and the first rounds of every target pass.

use xtask::fuzz::{Shape, TARGETS, Target, mutate, one, regressions, seeds};

#[global_allocator]
static ALLOCATOR: xtask::fuzz::memory::Counting = xtask::fuzz::memory::Counting;

/// One test for all, since memory is counted for the whole process.
#[test]
fn regressions_seeds_and_first_rounds() {
    what_is_wrong_is_seen();
    // Not a test of its own: memory is counted for the whole process, which must do nothing else meanwhile.
    every_target_has_its_program_for_libfuzzer();
    for target in TARGETS {
        for (name, input) in regressions(target).unwrap() {
            one(target, &input).unwrap_or_else(|what| panic!("{}: regression {name}: {what}", target.name));
        }
        let seeds = seeds(target).unwrap();
        for (name, input) in &seeds {
            one(target, input).unwrap_or_else(|what| panic!("{}: seed {name}: {what}", target.name));
        }
        for round in 0..20 {
            let input = mutate::input(target.name, target.shape, &seeds, round);
            one(target, &input).unwrap_or_else(|what| panic!("{}: round {round}: {what}", target.name));
        }
    }
}

fn every_target_has_its_program_for_libfuzzer() {
    let manifest = std::fs::read_to_string(xtask::root().join("fuzz/Cargo.toml")).unwrap();
    for target in TARGETS {
        assert!(manifest.contains(&format!("name = \"{}\"", target.name)), "{}", target.name);
        let program = xtask::root().join(format!("fuzz/fuzz_targets/{}.rs", target.name));
        let program = std::fs::read_to_string(program).unwrap();
        assert!(program.contains(&format!("run_target(\"{}\"", target.name)), "{}", target.name);
    }
}

/// The runner is not blind.
fn what_is_wrong_is_seen() {
    let target =
        |run| Target { name: "wrong", run, shape: Shape::Binary, memory_per_byte: 10, memory_fixed: 1000, weight: 1 };
    assert_eq!(one(&target(|_| {}), b"x"), Ok(()));
    let error = one(&target(|_| panic!("on purpose")), b"x").unwrap_err();
    assert!(error.contains("on purpose"), "{error}");
    let error = one(&target(|_| drop(std::hint::black_box(vec![1u8; 5000]))), b"x").unwrap_err();
    assert!(error.contains("made it take 5000"), "{error}");
}
