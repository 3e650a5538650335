//! `chat` at a terminal.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use super::support::{Folder, ended};

/// What the editor shows once it has the terminal. What is typed earlier goes through the terminal's own editing, which
/// takes Ctrl-C and Ctrl-D for itself.
const EDITOR: &str = "\x1b[?2004h";

/// A terminal with the binary at it.
struct Terminal {
    keyboard: File,
    screen: Receiver<Vec<u8>>,
    /// All that was shown.
    shown: String,
    child: Child,
}

impl Terminal {
    fn with(arguments: &[&str]) -> Self {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        let name = ptsname(&ours, Vec::new()).unwrap();
        let theirs = rustix::fs::open(&name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
        let end = || Stdio::from(theirs.try_clone().unwrap());
        let child = Command::new(env!("CARGO_BIN_EXE_anemone"))
            .args(arguments)
            .env("TERM", "xterm")
            .env("NO_COLOR", "1")
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn()
            .unwrap();
        drop::<OwnedFd>(theirs);
        let keyboard = File::from(ours);
        let (mut reader, (sender, screen)) = (keyboard.try_clone().unwrap(), channel());
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            // The end of the program ends this with an error.
            while let Ok(n @ 1..) = reader.read(&mut piece) {
                drop(sender.send(piece[..n].to_vec()));
            }
        });
        Self { keyboard, screen, shown: String::new(), child }
    }

    fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    /// Ctrl-C while the terminal is not ours.
    fn interrupt(&self) {
        assert!(Command::new("kill").args(["-INT", &self.child.id().to_string()]).status().unwrap().success());
    }

    /// Waits until the screen satisfies `enough`, which is given what came after the first `from` bytes.
    fn wait(&mut self, from: usize, what: &str, enough: impl Fn(&str) -> bool) {
        let end = Instant::now() + Duration::from_secs(60);
        while !enough(self.shown.get(from..).unwrap_or_default()) {
            let left = end.saturating_duration_since(Instant::now());
            let piece = self.screen.recv_timeout(left).unwrap_or_else(|_| panic!("no {what} after: {:?}", self.shown));
            self.shown.push_str(&String::from_utf8_lossy(&piece));
        }
    }

    /// Enters a line, and waits for `word` among what is shown then, and for the next prompt.
    fn enter_for(&mut self, line: &str, word: &str) {
        let from = self.shown.len();
        self.press(&format!("{line}\r"));
        self.wait(from, word, |s| s.split_once(word).is_some_and(|(_, rest)| prompts(rest)));
    }

    /// Presses keys, and waits for `word` among what is shown then.
    fn press_for(&mut self, keys: &str, word: &str) {
        let from = self.shown.len();
        self.press(keys);
        self.wait(from, word, |shown| shown.contains(word));
    }

    /// Says something, and stops the answer once it has begun.
    fn say_and_stop(&mut self, line: &str) {
        // The editor gives the terminal back before the answer.
        const GIVEN_BACK: &str = "\x1b[?2004l\r\n";
        let from = self.shown.len();
        self.press(&format!("{line}\r"));
        self.wait(from, "answer", |s| s.split_once(GIVEN_BACK).is_some_and(|(_, answer)| answer.len() > 20));
        let from = self.shown.len();
        self.interrupt();
        self.wait(from, "prompt", |s| s.split_once("(stopped)").is_some_and(|(_, rest)| prompts(rest)));
    }
}

/// Whether the editor waits for a line.
fn prompts(shown: &str) -> bool {
    shown.split_once(EDITOR).is_some_and(|(_, rest)| rest.contains("> "))
}

impl Drop for Terminal {
    fn drop(&mut self) {
        drop(self.child.kill());
    }
}

#[test]
fn ctrl_c_stops_an_answer_and_keeps_the_conversation() {
    let folder = Folder::with_context("8192");
    let mut terminal = Terminal::with(&["chat", &folder.model(), "--temperature", "0", "--max-tokens", "8000"]);
    terminal.wait(0, "prompt", |s| s.contains("context 8192 tokens") && s.contains("/help") && prompts(s));
    terminal.say_and_stop("Hello");
    terminal.enter_for("/stats", "ended by cancelled");
    terminal.say_and_stop("And now?");
    let from = terminal.shown.len();
    terminal.enter_for("/stats", "2 turns");
    let stats = &terminal.shown[from..];
    assert!(stats.contains("tokens reused") && !stats.contains("last turn     0 tokens reused"), "{stats}");
    // The line before last, from the history.
    terminal.press_for("\x1b[A\x1b[A", "And now?");
    let from = terminal.shown.len();
    terminal.press("\x03");
    terminal.wait(from, "hint", |s| s.split_once("(Ctrl-D or /quit ends)").is_some_and(|(_, rest)| prompts(rest)));
    terminal.enter_for("/undo", "Taken back: And now?");
    terminal.enter_for("/unknown", "there is no command /unknown");
    terminal.press("\x04");
    assert_eq!(ended(&mut terminal.child), Some(0), "{:?}", terminal.shown);
    assert!(!terminal.shown.contains("\x1b[2m"), "colours in spite of NO_COLOR");
}
