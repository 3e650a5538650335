//! Packages of coremltools, by the interpreter and by plans, against PyTorch.

mod common;

use common::{Executor, Fixture, Plain, Planned, drive, folder};

fn names() -> Vec<String> {
    let mut all: Vec<String> = std::fs::read_dir(folder())
        .unwrap()
        .map(|e| e.unwrap())
        .filter(|e| e.path().join("model.mlpackage").is_dir())
        .map(|e| e.file_name().into_string().unwrap())
        .collect();
    all.sort();
    assert!(all.len() >= 26, "the fixtures are incomplete: {all:?}");
    all
}

fn check(fixture: &Fixture, what: &str, logits: &[f32], run: &dyn Executor) -> Result<(), String> {
    let expected = fixture.floats.get("logits").or(fixture.floats.get("y")).expect("a reference");
    close(fixture, what, "the output", logits, expected)?;
    let width = if fixture.floats.contains_key("logits") { 256 } else { 64 };
    for (row, (a, b)) in logits.chunks(width).zip(expected.chunks(width)).enumerate() {
        if argmax(a) != argmax(b) {
            return Err(format!("{} {what}: row {row}: argmax {} for {}", fixture.name, argmax(a), argmax(b)));
        }
    }
    for (name, content) in fixture.floats.iter().filter_map(|(k, v)| Some((k.strip_prefix("state_")?, v))) {
        close(fixture, what, name, &run.state(name), content)?;
    }
    Ok(())
}

fn close(fixture: &Fixture, what: &str, part: &str, found: &[f32], expected: &[f32]) -> Result<(), String> {
    if found.len() != expected.len() {
        return Err(format!("{} {what}: {part}: {} elements for {}", fixture.name, found.len(), expected.len()));
    }
    let worst = found.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    let nan = found.iter().any(|v| v.is_nan());
    if nan || worst > fixture.tolerance() {
        return Err(format!("{} {what}: {part} is off by up to {worst}", fixture.name));
    }
    Ok(())
}

fn argmax(row: &[f32]) -> usize {
    (0..row.len()).max_by(|&a, &b| row[a].total_cmp(&row[b])).unwrap()
}

/// Ways to feed a fixture's tokens: as the reference did, one at a time, and otherwise.
fn splits(fixture: &Fixture) -> Vec<Vec<usize>> {
    let n = fixture.ints["tokens"].len();
    let mut all = vec![fixture.splits()];
    if fixture.floats.contains_key("y") {
        return vec![vec![n]];
    }
    all.push(vec![1; n]);
    if fixture.functions.is_none() && fixture.ints.contains_key("call_lengths") {
        all.push(vec![n]);
        all.push(vec![2, n - 5, 3]);
    }
    all
}

#[test]
fn the_interpreter_agrees_with_pytorch() {
    let mut wrong = Vec::new();
    for name in names() {
        let fixture = Fixture::open(&name);
        for split in splits(&fixture) {
            let mut run = Plain::new(&fixture.model);
            let logits = drive(&fixture, &mut run, &split);
            wrong.extend(check(&fixture, &format!("in calls of {split:?}"), &logits, &run).err());
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn plans_agree_with_pytorch() {
    let mut wrong = Vec::new();
    for name in names() {
        let fixture = Fixture::open(&name);
        for split in splits(&fixture) {
            let mut run = Planned::new(&fixture.model, 2, None);
            let logits = drive(&fixture, &mut run, &split);
            wrong.extend(check(&fixture, &format!("in calls of {split:?}"), &logits, &run).err());
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn one_plan_serves_every_position_with_the_same_bits() {
    let mut wrong = Vec::new();
    for name in names().iter().filter(|n| n.starts_with("tiny_article") || n.contains("pal4_lut")) {
        let fixture = Fixture::open(name);
        for split in splits(&fixture) {
            let mut family = Planned::new(&fixture.model, 2, Some(("causalMask", 64)));
            let mut single = Planned::new(&fixture.model, 1, None);
            let (a, b) = (drive(&fixture, &mut family, &split), drive(&fixture, &mut single, &split));
            if a != b {
                wrong.push(format!("{name} in calls of {split:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
