//! Heat, power and memory while somebody talks: what changes is told between answers.

use std::fmt;
use std::path::Path;

use anemone_coreml::{Conditions, Notice, Pressure, Thermal, Watch};

/// Tells what changed since it was asked last.
pub struct Notices {
    watch: Watch,
    look: Box<dyn FnMut() -> Conditions + Send>,
}

impl fmt::Debug for Notices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notices").field("last", &self.watch.last()).finish_non_exhaustive()
    }
}

impl Notices {
    /// Those of whatever `look` sees.
    pub fn new(mut look: impl FnMut() -> Conditions + Send + 'static) -> Self {
        Self { watch: Watch::new(look()), look: Box::new(look) }
    }

    /// Those of this machine.
    #[must_use]
    pub fn of_this_machine() -> Self {
        Self::new(conditions)
    }

    /// What is unusual to begin with, as if it had been otherwise.
    #[must_use]
    pub fn at_first(&self) -> Vec<Notice> {
        let all = Watch::new(Conditions::GOOD).changes(self.watch.last());
        // A little warm is usual.
        all.into_iter().filter(|notice| !matches!(notice, Notice::Thermal { to: Thermal::Fair, .. })).collect()
    }

    /// What changed since the last time.
    pub fn changes(&mut self) -> Vec<Notice> {
        self.watch.changes((self.look)())
    }
}

/// What this machine allows just now.
#[must_use]
pub fn conditions() -> Conditions {
    #[cfg(target_vendor = "apple")]
    {
        anemone_coreml::Framework::conditions(&anemone_coreml::Apple)
    }
    #[cfg(not(target_vendor = "apple"))]
    linux(Path::new("/"))
}

/// What Linux tells in files below `root`; of other systems, nothing.
#[cfg_attr(target_vendor = "apple", allow(dead_code, reason = "Core ML's side tells"))]
fn linux(root: &Path) -> Conditions {
    let meminfo = std::fs::read_to_string(root.join("proc/meminfo")).unwrap_or_default();
    let profile = std::fs::read_to_string(root.join("sys/firmware/acpi/platform_profile")).unwrap_or_default();
    Conditions {
        thermal: thermal(&root.join("sys/class/thermal")),
        low_power: profile.trim() == "low-power",
        memory: pressure(&meminfo),
    }
}

/// How much of the memory can be had without swapping: less than a tenth is little, less than a thirtieth nothing.
fn pressure(meminfo: &str) -> Pressure {
    let line = |name: &str| {
        let line = meminfo.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().strip_suffix(" kB")?.parse::<u64>().ok()
    };
    match (line("MemAvailable:"), line("MemTotal:")) {
        (Some(available), Some(total)) if available < total / 30 => Pressure::Critical,
        (Some(available), Some(total)) if available < total / 10 => Pressure::Warning,
        (Some(_), Some(_)) => Pressure::Normal,
        _ => Pressure::Unknown,
    }
}

/// The worst of the thermal zones by their own trip points: beyond one at which the kernel slows the machine down it is
/// serious, beyond one at which it switches it off critical.
fn thermal(folder: &Path) -> Thermal {
    let zones = std::fs::read_dir(folder).into_iter().flatten().flatten();
    zones.filter_map(|zone| zone_state(&zone.path())).max().unwrap_or(Thermal::Unknown)
}

fn zone_state(zone: &Path) -> Option<Thermal> {
    let number = |name: &str| std::fs::read_to_string(zone.join(name)).ok()?.trim().parse::<i64>().ok();
    let now = number("temp")?;
    let mut state = Thermal::Nominal;
    for i in 0..16 {
        let Ok(kind) = std::fs::read_to_string(zone.join(format!("trip_point_{i}_type"))) else { break };
        let beyond = number(&format!("trip_point_{i}_temp")).is_some_and(|trip| trip > 0 && now >= trip);
        let means = match kind.trim() {
            "active" => Thermal::Fair,
            "passive" => Thermal::Serious,
            "hot" | "critical" => Thermal::Critical,
            _ => continue,
        };
        if beyond {
            state = state.max(means);
        }
    }
    Some(state)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use anemone_coreml::Framework;
    use anemone_coreml::fake::Fake;

    use super::*;

    /// As on an Apple system, whose Core ML is a fake here.
    #[test]
    fn what_changes_between_answers_is_told_once() {
        let fake = Arc::new(Fake::new());
        let mut notices = Notices::new({
            let fake = Arc::clone(&fake);
            move || fake.conditions()
        });
        assert!(notices.at_first().is_empty() && notices.changes().is_empty());
        fake.set_conditions(Conditions { thermal: Thermal::Serious, low_power: true, memory: Pressure::Critical });
        let told: Vec<String> = notices.changes().iter().map(ToString::to_string).collect();
        assert_eq!(told.len(), 3);
        assert!(told[0].contains("getting hot") && told[1].contains("low-power") && told[2].contains("out of memory"));
        assert!(notices.changes().is_empty());
        assert_eq!(notices.at_first().len(), 3, "somebody who begins now is told all of it");
        fake.set_conditions(Conditions::GOOD);
        let told: Vec<String> = notices.changes().iter().map(ToString::to_string).collect();
        assert!(told[0].contains("cooling") && told[1].contains("off") && told[2].contains("again"), "{told:?}");
    }

    #[test]
    fn linux_tells_in_files() {
        let root = tempfile::tempdir().unwrap();
        let unknown = Conditions { thermal: Thermal::Unknown, low_power: false, memory: Pressure::Unknown };
        assert_eq!(linux(root.path()), unknown);
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("proc/meminfo", "MemTotal:       16000000 kB\nMemAvailable:    9000000 kB\n");
        write("sys/firmware/acpi/platform_profile", "balanced\n");
        let zone = "sys/class/thermal/thermal_zone0";
        write(&format!("{zone}/temp"), "45000\n");
        write(&format!("{zone}/trip_point_0_type"), "passive\n");
        write(&format!("{zone}/trip_point_0_temp"), "90000\n");
        write(&format!("{zone}/trip_point_1_type"), "critical\n");
        write(&format!("{zone}/trip_point_1_temp"), "105000\n");
        assert_eq!(linux(root.path()), Conditions::GOOD);
        write("proc/meminfo", "MemTotal:       16000000 kB\nMemAvailable:     900000 kB\n");
        write("sys/firmware/acpi/platform_profile", "low-power\n");
        write(&format!("{zone}/temp"), "93000\n");
        let bad = Conditions { thermal: Thermal::Serious, low_power: true, memory: Pressure::Warning };
        assert_eq!(linux(root.path()), bad);
        write("proc/meminfo", "MemTotal:       16000000 kB\nMemAvailable:     100000 kB\n");
        write(&format!("{zone}/temp"), "106000\n");
        let worse = Conditions { thermal: Thermal::Critical, low_power: true, memory: Pressure::Critical };
        assert_eq!(linux(root.path()), worse);
    }

    #[test]
    fn this_machine_tells_something_without_failing() {
        let mut notices = Notices::of_this_machine();
        assert!(notices.changes().len() <= 3 && notices.at_first().len() <= 3);
    }
}
