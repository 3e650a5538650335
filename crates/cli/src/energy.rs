//! Energy, where the system tells it without administrator rights: Linux' `powercap` (RAPL, and what behaves like it).
//!
//! Apple's systems have nothing of the kind that counts the Neural Engine: `powermetrics` asks for the administrator, and
//! what a process may read of itself (`proc_pid_rusage`) is that of the CPU's cores alone, by which whatever runs elsewhere
//! would look free.

use std::path::{Path, PathBuf};

/// Counters of energy of the whole machine's processors.
#[derive(Debug)]
pub struct Meter {
    zones: Vec<Zone>,
}

#[derive(Debug)]
struct Zone {
    counter: PathBuf,
    /// Microjoules after which the counter begins anew.
    range: u64,
}

/// A reading of all counters.
#[derive(Clone, Debug)]
pub struct Reading(Vec<u64>);

impl Meter {
    /// The meter of this machine.
    ///
    /// # Errors
    /// Why there is none, in words.
    pub fn find() -> Result<Self, &'static str> {
        if cfg!(target_os = "linux") {
            Self::of(Path::new("/sys/class/powercap"))
        } else if cfg!(target_vendor = "apple") {
            Err("not told to users by this system (powermetrics asks for the administrator)")
        } else {
            Err("not told by this system")
        }
    }

    /// The meter of zones below a folder of Linux' powercap: whole packages, not their parts.
    fn of(folder: &Path) -> Result<Self, &'static str> {
        let entries = std::fs::read_dir(folder).map_err(|_| "not told by this system (it has no powercap)")?;
        let mut zones = Vec::new();
        let mut refused = false;
        for entry in entries.flatten() {
            let path = entry.path();
            let name = std::fs::read_to_string(path.join("name")).unwrap_or_default();
            if !name.trim().starts_with("package") {
                continue;
            }
            let counter = path.join("energy_uj");
            match number(&counter) {
                Some(_) => zones.push(Zone { counter, range: number(&path.join("max_energy_range_uj")).unwrap_or(0) }),
                None => refused = true,
            }
        }
        match (zones.is_empty(), refused) {
            (false, _) => Ok(Self { zones }),
            (true, true) => Err("told to the administrator only (powercap's energy_uj)"),
            (true, false) => Err("not told by this system (powercap has no package)"),
        }
    }

    /// The counters just now; none if one cannot be read any more.
    #[must_use]
    pub fn read(&self) -> Option<Reading> {
        self.zones.iter().map(|zone| number(&zone.counter)).collect::<Option<Vec<_>>>().map(Reading)
    }

    /// Joules between two readings. A counter that went back has begun anew once.
    #[must_use]
    pub fn joules(&self, from: &Reading, to: &Reading) -> f64 {
        let spent = |((zone, from), to): ((&Zone, &u64), &u64)| match to.checked_sub(*from) {
            Some(spent) => spent,
            None => to.saturating_add(zone.range).saturating_sub(*from),
        };
        let all: u64 = self.zones.iter().zip(&from.0).zip(&to.0).map(spent).fold(0, u64::saturating_add);
        all as f64 / 1e6
    }
}

fn number(file: &Path) -> Option<u64> {
    std::fs::read_to_string(file).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone(folder: &Path, zone: &str, name: &str, counter: Option<&str>) {
        let folder = folder.join(zone);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("name"), format!("{name}\n")).unwrap();
        std::fs::write(folder.join("max_energy_range_uj"), "1000000000\n").unwrap();
        if let Some(counter) = counter {
            std::fs::write(folder.join("energy_uj"), counter).unwrap();
        }
    }

    #[test]
    fn packages_are_added_up_and_counters_begin_anew() {
        let folder = tempfile::tempdir().unwrap();
        zone(folder.path(), "intel-rapl:0", "package-0", Some("999000000\n"));
        zone(folder.path(), "intel-rapl:0:0", "core", Some("77\n"));
        zone(folder.path(), "intel-rapl:1", "package-1", Some("5000000\n"));
        let meter = Meter::of(folder.path()).unwrap();
        let from = meter.read().unwrap();
        assert_eq!(meter.joules(&from, &from), 0.0);
        zone(folder.path(), "intel-rapl:0", "package-0", Some("500000\n"));
        zone(folder.path(), "intel-rapl:1", "package-1", Some("7000000\n"));
        let to = meter.read().unwrap();
        assert_eq!(meter.joules(&from, &to), 1.5 + 2.0);
    }

    #[test]
    fn what_is_not_told_is_said_with_its_reason() {
        let folder = tempfile::tempdir().unwrap();
        assert!(Meter::of(&folder.path().join("nothing")).unwrap_err().contains("no powercap"));
        assert!(Meter::of(folder.path()).unwrap_err().contains("no package"));
        zone(folder.path(), "intel-rapl:0", "package-0", None);
        assert!(Meter::of(folder.path()).unwrap_err().contains("administrator"));
    }
}
