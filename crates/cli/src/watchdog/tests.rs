use super::*;

const GENEROUS: Limits = Limits { silence: Duration::from_secs(60), time: Duration::from_secs(60), memory: 1 << 40 };

fn shell(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    command
}

fn run(command: &mut Command, limits: &Limits) -> (Watched, Vec<String>) {
    let mut lines = Vec::new();
    let watched = watch(command, limits, &mut |line| lines.push(line.to_owned())).unwrap();
    (watched, lines)
}

#[test]
fn one_that_ends_is_reported_with_all_it_said() {
    let (watched, lines) = run(&mut shell("echo one; echo two; echo oh >&2; exit 3"), &GENEROUS);
    assert_eq!((watched.end, lines), (End::Exited { code: 3 }, vec!["one".to_owned(), "two".to_owned()]));
    assert_eq!(watched.stderr, "oh");
}

#[test]
fn one_that_hangs_is_ended() {
    let limits = Limits { silence: Duration::from_millis(300), ..GENEROUS };
    let (watched, lines) = run(&mut shell("echo begin; exec sleep 100"), &limits);
    assert!(matches!(watched.end, End::TooLong { silent: true, .. }), "{watched:?}");
    assert_eq!(lines, ["begin"]);
    assert!(watched.seconds < 30.0);
}

#[test]
fn one_that_talks_for_ever_is_ended_too() {
    let limits = Limits { silence: Duration::from_secs(60), time: Duration::from_millis(400), ..GENEROUS };
    let (watched, lines) = run(&mut shell("while true; do echo still; sleep 0.05; done"), &limits);
    assert!(matches!(watched.end, End::TooLong { silent: false, .. }), "{watched:?}");
    assert!(lines.len() > 1);
}

#[test]
fn one_that_dies_by_a_signal_is_reported_by_its_name() {
    for (signal, name) in [("SEGV", "SIGSEGV"), ("KILL", "SIGKILL"), ("ABRT", "SIGABRT")] {
        let (watched, lines) = run(&mut shell(&format!("echo alive; kill -{signal} $$")), &GENEROUS);
        assert!(matches!(&watched.end, End::Signalled { name: found, .. } if found == name), "{watched:?}");
        assert_eq!(lines, ["alive"]);
    }
    assert_eq!(signal_name(64), "signal 64");
}

/// Not a test of its own: what the next one starts.
#[test]
fn eater_of_memory() {
    if std::env::var_os("ANEMONE_TEST_EATS").is_none() {
        return;
    }
    // A bound in case nobody stops it.
    let mut eaten = Vec::new();
    for i in 0..60u8 {
        eaten.push(std::hint::black_box(vec![i | 1; 16 << 20]));
        thread::sleep(Duration::from_millis(40));
    }
    thread::sleep(Duration::from_secs(30));
}

#[test]
fn one_that_eats_memory_is_ended() {
    let limits = Limits { memory: 200 << 20, ..GENEROUS };
    let mut eater = Command::new(std::env::current_exe().unwrap());
    eater.args(["--exact", "watchdog::tests::eater_of_memory"]).env("ANEMONE_TEST_EATS", "1");
    let (watched, _) = run(&mut eater, &limits);
    let End::TooLarge { bytes, limit } = watched.end else { panic!("{watched:?}") };
    assert!(limit == 200 << 20 && bytes > limit && watched.peak_memory == bytes);
}

#[test]
fn what_holds_the_pipes_open_is_not_waited_for() {
    let begin = Instant::now();
    let (watched, _) = run(&mut shell("sleep 20 & echo gone"), &GENEROUS);
    assert_eq!(watched.end, End::Exited { code: 0 });
    assert!(begin.elapsed() < Duration::from_secs(15));
}

#[test]
fn a_command_that_is_not_there_is_an_error() {
    assert!(watch(&mut Command::new("no-such-command-anywhere"), &GENEROUS, &mut |_| {}).is_err());
}
