//! Runs `filetests/lint`, beside the crates: `RULE.bad.mil` breaks a rule, `RULE.good.mil` keeps it; there may be more of
//! each, with a word between. A file begins with what it is for:
//!
//! ```text
//! // for: ane ios18
//! // specification: 9
//! // default: decode
//! // metadata: KEY = VALUE
//! // port NAME: 1 x 1..64
//! // port NAME: 1 x 1 | 1 x 64
//! ```
//!
//! of which only the first must be there, and ends with what the rule finds, a line `// finding: …` each. In the program,
//! `// repeat N: …` stands for N lines with `@` counted up, and `BLOBFILE(path = string("zeros fp16"), offset = uint64(N))` for
//! N bytes of zeros. With `BLESS=1` in the environment the findings are rewritten.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

use anemone_convert::lint::{Os, Profile, RULES, find, lint};
use anemone_mil::model::{Metadata, Model};
use anemone_mil::text::parse;
use anemone_mil::{Blobs, DType, Function, Port, PortKind, PortShape, Ports, StatePort, StaticType, ValueId};
use bytes::Bytes;

const FINDING: &str = "// finding: ";

/// Zeros of any type and length: the path says which, the offset how many bytes.
struct Zeros;

impl Blobs for Zeros {
    fn blob(&self, file: &str, offset: u64) -> Result<(DType, Bytes), String> {
        let name = file.strip_prefix("zeros ").ok_or("expected `zeros TYPE`")?;
        let dtype = DType::from_name(name).ok_or("no such type")?;
        // The system gives memory of zeros only where it is touched.
        Ok((dtype, Bytes::from(vec![0; usize::try_from(offset).map_err(|e| e.to_string())?])))
    }
}

/// The program with its repeated lines.
fn expand(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        match line.trim().strip_prefix("// repeat ").and_then(|rest| rest.split_once(": ")) {
            Some((n, line)) => {
                let n: usize = n.parse().expect("a number after `repeat`");
                out.extend((0..n).map(|i| line.replace('@', &i.to_string()) + "\n"));
            }
            None => out.extend([line, "\n"]),
        }
    }
    out
}

fn port(name: &str, shapes: &str) -> Port {
    let axes = |shape: &str| shape.split(" x ").map(|n| n.trim().to_owned()).collect::<Vec<_>>();
    let number = |n: &str| n.parse::<usize>().expect("an extent");
    let shape = if shapes.contains("..") {
        let bounds = axes(shapes).into_iter().map(|axis| match axis.split_once("..") {
            Some((low, high)) => (number(low), (!high.is_empty()).then(|| number(high))),
            None => (number(&axis), Some(number(&axis))),
        });
        PortShape::Range { default: Vec::new(), bounds: bounds.collect() }
    } else {
        let shapes: Vec<Vec<usize>> =
            shapes.split('|').map(|shape| axes(shape.trim()).iter().map(|n| number(n)).collect()).collect();
        PortShape::Enumerated { default: shapes[0].clone(), shapes }
    };
    let kind = PortKind::Array { dtype: DType::I32, shape };
    Port { name: name.to_owned(), description: String::new(), kind, optional: None }
}

/// What a description says of a function where nothing else is said: the types of the program.
fn ports(f: &Function) -> Ports {
    let port = |&id: &ValueId| {
        let value = f.value(id);
        let ty = value.ty.tensor()?;
        let shape = ty.to_static().map_or(PortShape::Unspecified, |ty| PortShape::Fixed(ty.shape.to_vec()));
        let kind = PortKind::Array { dtype: ty.dtype, shape };
        Some(Port { name: value.name.clone(), description: String::new(), kind, optional: None })
    };
    let state = |(_, name, ty): (ValueId, &str, Option<StaticType>)| {
        Some(StatePort { name: name.to_owned(), description: String::new(), ty: ty? })
    };
    Ports {
        inputs: f.inputs.iter().filter_map(port).collect(),
        outputs: f.body.outputs.iter().filter_map(port).collect(),
        states: f.states().filter_map(state).collect(),
        ..Ports::default()
    }
}

/// The model of a file, and what it is for.
fn model(text: &str) -> (Model, Profile, Os) {
    let program = parse(&expand(text), &Zeros).unwrap_or_else(|e| panic!("{e}"));
    let default = program.functions.keys().next().filter(|name| *name != "main").cloned();
    let specification_version = 9;
    let mut model = Model { specification_version, program, default_function: default, ..Model::default() };
    model.program.functions.values_mut().for_each(|f| f.ports = ports(f));
    let mut target = None;
    for line in text.lines().filter_map(|line| line.strip_prefix("// ")) {
        let Some((key, value)) = line.split_once(": ") else { continue };
        match key {
            "for" => {
                let (profile, os) = value.split_once(' ').expect("a profile and a system");
                target = Some((Profile::from_name(profile).expect("a profile"), Os::from_name(os).expect("a system")));
            }
            "specification" => model.specification_version = value.parse().expect("a version"),
            "default" => model.default_function = Some(value.to_owned()),
            "metadata" => {
                let (key, value) = value.split_once(" = ").expect("a key and a value");
                let user_defined = [(key.to_owned(), value.to_owned())].into();
                model.metadata = Metadata { user_defined, ..Metadata::default() };
            }
            _ => {
                if let Some(name) = key.strip_prefix("port ") {
                    let functions = model.program.functions.values_mut();
                    let ports = functions.flat_map(|f| &mut f.ports.inputs);
                    ports.filter(|port| port.name == name).for_each(|own| *own = port(name, value));
                }
            }
        }
    }
    let (profile, os) = target.expect("`// for: PROFILE OS`");
    (model, profile, os)
}

#[test]
fn every_rule_finds_the_bad_and_passes_the_good() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../filetests/lint");
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut wrong = String::new();
    let (mut bad, mut good) = (BTreeSet::new(), BTreeSet::new());
    for path in entries.map(|entry| entry.expect("an entry of the folder").path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let parts: Vec<&str> = name.split('.').collect();
        let [id, .., kind, "mil"] = parts[..] else { panic!("{name} is no name of a test") };
        let rule = find(id).unwrap_or_else(|| panic!("{name}: there is no rule {id}"));
        let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{name}: {e}"));
        let program = text.find(&format!("\n{FINDING}")).map_or(text.as_str(), |at| &text[..=at]);
        let (model, profile, os) = model(program);
        let findings = lint(&model, profile, os);
        let own = findings.iter().filter(|finding| finding.rule.id == rule.id);
        let found: String = own
            .map(|finding| format!("{FINDING}{}: {}: {}\n", finding.severity.name(), finding.place, finding.message))
            .collect();
        match kind {
            "bad" => bad.insert(rule.id),
            "good" => good.insert(rule.id),
            _ => panic!("{name}: neither bad nor good"),
        };
        if (kind == "bad") == found.is_empty() {
            let _ = writeln!(wrong, "{name}:\n{}", if found.is_empty() { "nothing is found" } else { &found });
            continue;
        }
        let should_be = format!("{program}{found}");
        if text == should_be {
            continue;
        }
        if std::env::var_os("BLESS").is_some_and(|v| v == "1") {
            std::fs::write(&path, should_be).unwrap_or_else(|e| panic!("{name}: {e}"));
        } else {
            let _ = writeln!(wrong, "{name}\nexpected:\n{}found:\n{found}", &text[program.len()..]);
        }
    }
    for rule in RULES {
        for (kind, all) in [("bad", &bad), ("good", &good)] {
            if !all.contains(rule.id) {
                let _ = writeln!(wrong, "there is no {}.{kind}.mil", rule.id);
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}(BLESS=1 rewrites what is found)");
}
