use std::time::Duration;

use anemone::{CoreMlOptions, CoreMlRunner, ModelOptions, PackageRunner, ReferenceRunner, Runner, RunnerError};

use super::*;

const GENEROUS: Limits = Limits { silence: Duration::from_secs(60), time: Duration::from_secs(60), memory: 1 << 40 };

fn shell(script: &str, limits: &Limits) -> Examination {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    examine("a fake", &mut command, limits).unwrap()
}

fn text(examination: &Examination) -> String {
    let host = crate::host::Host::look(&std::env::temp_dir());
    let mut out = Vec::new();
    write_report(&mut out, &host, std::slice::from_ref(examination)).unwrap();
    String::from_utf8(out).unwrap()
}

const LOADED: &str = r#"echo '{"event":"begin","step":"load"}'
echo '{"event":"found","step":"load","grade":"ok","text":"context 64","seconds":0.1}'"#;

#[test]
fn a_process_that_gets_through_is_well() {
    let well = shell(&format!("{LOADED}\necho noise\necho '{{\"event\":\"done\"}}'"), &GENEROUS);
    assert_eq!((well.grade(), well.died_in, well.findings.len()), (Grade::Ok, None, 1));
    assert!(text(&well).contains("  ok    load            context 64"), "{}", text(&well));
}

#[test]
fn one_that_is_killed_in_a_prediction_is_named_with_the_step_and_explained() {
    let script = format!(
        "{LOADED}\necho '{{\"event\":\"begin\",\"step\":\"prefill\"}}'\necho ANECCompile FAILED >&2\nkill -KILL $$"
    );
    let killed = shell(&script, &GENEROUS);
    assert_eq!((killed.grade(), killed.died_in), (Grade::Fail, Some(Step::Prefill)));
    let text = text(&killed);
    assert!(text.contains("killed by SIGKILL during the step `prefill`"), "{text}");
    assert!(text.contains("anemone explain killed") && text.contains("anemone explain aneccompile"), "{text}");
}

#[test]
fn one_that_hangs_is_ended_and_named() {
    let limits = Limits { silence: Duration::from_millis(300), ..GENEROUS };
    let hung = shell("echo '{\"event\":\"begin\",\"step\":\"load\"}'\nexec sleep 100", &limits);
    assert_eq!((hung.grade(), hung.died_in), (Grade::Fail, Some(Step::Load)));
    assert!(text(&hung).contains("said nothing for 0 s, and was ended during the step `load`"), "{}", text(&hung));
}

#[test]
fn one_that_ends_early_did_not_get_through_whatever_its_code() {
    for script in [LOADED, "exit 0", "exit 7"] {
        let early = shell(script, &GENEROUS);
        assert_eq!(early.grade(), Grade::Fail, "{script}");
        assert!(early.died_in.is_some());
    }
}

#[test]
fn a_step_that_failed_is_explained_by_its_own_words() {
    let script =
        r#"echo '{"event":"found","step":"load","grade":"fail","seconds":1,"text":"… with error code: -14."}'; exit 1"#;
    let failed = shell(script, &GENEROUS);
    assert_eq!(failed.explanations.first().map(|entry| entry.name), Some("minus-14"));
    assert!(!text(&failed).contains("ended with code 1"), "{}", text(&failed));
}

fn tiny() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../goldens/tiny/model/model.mlpackage")
}

const SHORT: Probe = Probe { prompt: 19, decode: 3, soak: 24 };

fn findings<R: Runner, T: Runner>(
    open: impl FnOnce() -> std::result::Result<R, RunnerError>,
    trusted: impl FnOnce() -> std::result::Result<T, RunnerError>,
) -> (Grade, Vec<Event>) {
    let mut events = Vec::new();
    let plain = None::<fn() -> std::result::Result<PackageRunner, RunnerError>>;
    let grade = probe(open, trusted, plain, SHORT, &mut |event| events.push(event));
    (grade, events)
}

fn planned() -> std::result::Result<PackageRunner, RunnerError> {
    Ok(PackageRunner::open(&tiny(), &ModelOptions::default())?)
}

fn exact() -> std::result::Result<PackageRunner, RunnerError> {
    Ok(PackageRunner::open(&tiny(), &ModelOptions { exact: true, ..ModelOptions::default() })?)
}

#[test]
fn the_plan_is_well_by_exact_arithmetic_and_by_the_interpreter() {
    let model = anemone_mil::load(&tiny()).unwrap();
    let mut events = Vec::new();
    let plain = || Ok(ReferenceRunner::new(std::slice::from_ref(&model), &tiny())?);
    let grade = probe(planned, exact, Some(plain), SHORT, &mut |event| events.push(event));
    assert_eq!(grade, Grade::Ok, "{events:#?}");
    assert_eq!(events.last(), Some(&Event::Done));
    let begun: Vec<Step> =
        events.iter().filter_map(|e| if let Event::Begin { step } = e { Some(*step) } else { None }).collect();
    assert_eq!(
        begun,
        [
            Step::Load,
            Step::State,
            Step::Prefill,
            Step::Decode,
            Step::Compare,
            Step::Plain,
            Step::Again,
            Step::End,
            Step::Soak
        ]
    );
}

/// What the doctor does on a Mac: Core ML (here its fake) beside our own runtime.
#[test]
fn core_ml_is_well_by_the_plan() {
    let (fake, folder) = (std::sync::Arc::new(anemone_coreml::fake::Fake::new()), tempfile::tempdir().unwrap());
    let open = || {
        let mut tell = |_| {};
        let mut options = CoreMlOptions {
            units: anemone_coreml::ComputeUnits::default(),
            specialization: anemone_coreml::Specialization::default(),
            compiled: folder.path().to_owned(),
            tell: &mut tell,
        };
        Ok(CoreMlRunner::open(&fake, &tiny(), &mut options)?)
    };
    let (grade, events) = findings(open, planned);
    assert_eq!(grade, Grade::Ok, "{events:#?}");
}

/// A runner that errs in one way.
struct Liar {
    inner: PackageRunner,
    lie: fn(usize, &mut [f32]),
    calls: std::sync::atomic::AtomicUsize,
}

impl Runner for Liar {
    type State = anemone::PackageState;

    fn context(&self) -> usize {
        self.inner.context()
    }

    fn vocabulary(&self) -> usize {
        self.inner.vocabulary()
    }

    fn new_state(&self) -> std::result::Result<Self::State, RunnerError> {
        self.inner.new_state()
    }

    fn feed(
        &self,
        state: &mut Self::State,
        position: usize,
        tokens: &[u32],
        logits: &mut [f32],
    ) -> std::result::Result<(), RunnerError> {
        self.inner.feed(state, position, tokens, logits)?;
        (self.lie)(self.calls.fetch_add(1, std::sync::atomic::Ordering::SeqCst), logits);
        Ok(())
    }
}

#[test]
fn wrong_numbers_are_found() {
    let lied = |lie: fn(usize, &mut [f32])| {
        let (_, events) = findings(|| Ok(Liar { inner: planned()?, lie, calls: 0.into() }), planned);
        let grade = |step| {
            events.iter().find_map(|e| match e {
                Event::Found(finding) if finding.step == step => Some(finding.grade),
                _ => None,
            })
        };
        (grade(Step::Prefill), grade(Step::Compare), grade(Step::Again))
    };
    assert_eq!(lied(|_, _| {}), (Some(Grade::Ok), Some(Grade::Ok), Some(Grade::Ok)));
    assert_eq!(lied(|_, logits| logits.reverse()).1, Some(Grade::Fail));
    assert_eq!(lied(|_, logits| logits[3] = f32::NAN).0, Some(Grade::Fail));
    assert_eq!(lied(|call, logits| logits[0] += 1e-3 * (call as f32)).2, Some(Grade::Warning));
}
