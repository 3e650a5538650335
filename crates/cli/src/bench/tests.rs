use std::path::Path;
use std::sync::{Arc, Mutex};

use anemone::{ModelOptions, PackageRunner, Runner, RunnerError};

use super::*;

const SHORT: Plan = Plan { prompt: 16, tokens: 40, turns: 3, turn: 8 };

fn tiny() -> Result<PackageRunner, RunnerError> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../goldens/tiny/model/model.mlpackage");
    Ok(PackageRunner::open(&path, &ModelOptions::default())?)
}

fn bench(measured: Measured) -> Bench {
    let column = |subject: &str, outcome| Column { subject: subject.into(), units: None, outcome };
    Bench {
        model: "tiny\u{1b}[2J".into(),
        machine: Host::look(&std::env::temp_dir()),
        plan: SHORT,
        columns: vec![
            column("cpu-and-neural-engine", Outcome::Absent("not on this machine".into())),
            column("CPU runtime", Outcome::Measured(Box::new(measured))),
            column("cpu-and-gpu", Outcome::Failed("it broke".into())),
        ],
    }
}

#[test]
fn everything_is_measured_and_told() {
    let mut told = Vec::new();
    let measured = measure(tiny, &SHORT, &mut |what| told.push(what.to_owned())).unwrap();
    assert_eq!(told.len(), 4);
    assert_eq!(measured.curve.last().unwrap().tokens, 40);
    assert!(measured.curve.len() <= 16 && measured.turns.len() == 3);
    assert!(measured.per_token_median <= measured.per_token_p95 && measured.tokens_per_second > 0.0);
    assert!(measured.turns.iter().all(|turn| turn.kept > 0.0 && turn.again > 0.0));
    let bench = bench(measured);
    let mut out = Vec::new();
    write_table(&mut out, &bench).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert!(text.contains("cpu-and-neural-engine  not on this machine"), "{text}");
    assert!(text.contains("failed: it broke") && text.contains("tokens/s") && !text.contains('\u{1b}'), "{text}");
    let json = serde_json::to_value(&bench).unwrap();
    assert_eq!(json["columns"][0]["absent"], "not on this machine");
    assert!(json["columns"][1]["measured"]["curve"].is_array());
    let svg = plot(&bench).unwrap();
    assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>") && svg.contains("CPU runtime"), "{svg}");
}

/// A runner that writes down its calls: position and tokens.
struct Scribe {
    context: usize,
    calls: Arc<Mutex<Vec<(usize, usize)>>>,
}

impl Runner for Scribe {
    type State = usize;

    fn context(&self) -> usize {
        self.context
    }

    fn vocabulary(&self) -> usize {
        10
    }

    fn new_state(&self) -> Result<usize, RunnerError> {
        Ok(0)
    }

    fn feed(&self, read: &mut usize, position: usize, tokens: &[u32], logits: &mut [f32]) -> Result<(), RunnerError> {
        assert!(position <= *read && position + tokens.len() <= self.context, "the session's contract");
        *read = position + tokens.len();
        logits.fill(0.0);
        self.calls.lock().unwrap().push((position, tokens.len()));
        Ok(())
    }
}

#[test]
fn a_kept_cache_reads_only_the_turn_and_without_it_everything_is_read_again() {
    let plan = Plan { prompt: 4, tokens: 3, turns: 3, turn: 10 };
    let calls = Arc::default();
    measure(|| Ok(Scribe { context: 64, calls: Arc::clone(&calls) }), &plan, &mut |_| {}).unwrap();
    let calls = calls.lock().unwrap();
    // Warming up, the prompt, the load; then each turn with the cache kept, and with everything read again.
    assert_eq!(calls[..5], [(0, 4), (0, 4), (4, 1), (5, 1), (6, 1)]);
    assert_eq!(calls[5..], [(0, 10), (0, 10), (10, 10), (0, 20), (20, 10), (0, 30)]);
}

#[test]
fn short_contexts_are_not_overrun() {
    let plan = Plan { prompt: 100, tokens: 50, turns: 100, turn: 100 };
    let short = |context| measure(|| Ok(Scribe { context, calls: Arc::default() }), &plan, &mut |_| {});
    short(8).unwrap();
    assert!(short(3).is_err());
}
