//! What is known of this machine.

use std::path::Path;
use std::process::Command;

use anemone_coreml::{Device, DeviceKind};
use anemone_kernels::Isa;
use serde::Serialize;

/// What is known of this machine; what the system does not tell is none.
#[derive(Clone, Debug, Serialize)]
pub struct Host {
    /// The system with its version, and its build on Apple's.
    pub system: String,
    /// The processor.
    pub processor: String,
    /// Threads that run at once.
    pub threads: usize,
    /// The instructions that the kernels use.
    pub instructions: &'static str,
    /// All memory, in bytes.
    pub memory: Option<u64>,
    /// Free room on the disk of the cache, in bytes.
    pub free_disk: Option<u64>,
    /// The devices that Core ML may use; none without Core ML.
    pub devices: Vec<Device>,
    /// How hot it is.
    pub heat: Heat,
}

/// How hot a machine is, in whichever words its system has.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Heat {
    /// Apple's thermal state: `nominal`, `fair`, `serious`, `critical`.
    pub state: Option<&'static str>,
    /// The hottest sensor, in degrees Celsius.
    pub celsius: Option<f64>,
    /// Whether the user saves power.
    pub low_power: Option<bool>,
}

impl Host {
    /// Looks at this machine. `cache` is the folder whose disk is asked about.
    #[must_use]
    pub fn look(cache: &Path) -> Self {
        Self {
            system: system(),
            processor: processor(),
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            instructions: Isa::detect().name(),
            memory: memory(),
            free_disk: free_disk(cache),
            devices: devices(),
            heat: Heat::now(),
        }
    }

    /// Whether it has a Neural Engine that Core ML may use.
    #[must_use]
    pub fn neural_engine(&self) -> bool {
        self.devices.iter().any(|device| device.kind == DeviceKind::NeuralEngine)
    }
}

impl Heat {
    /// How hot it is just now.
    #[must_use]
    pub fn now() -> Self {
        #[cfg(target_vendor = "apple")]
        {
            let conditions = anemone_coreml::Framework::conditions(&anemone_coreml::Apple);
            Self { state: Some(conditions.thermal.name()), celsius: None, low_power: Some(conditions.low_power) }
        }
        #[cfg(not(target_vendor = "apple"))]
        Self { state: None, celsius: hottest_zone(Path::new("/sys/class/thermal")), low_power: None }
    }

    /// Whether the system tells.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.state.is_some() || self.celsius.is_some()
    }

    /// In words.
    #[must_use]
    pub fn words(&self) -> String {
        let saving = if self.low_power == Some(true) { ", low-power mode" } else { "" };
        match (self.state, self.celsius) {
            (Some(state), _) => format!("{state}{saving}"),
            (None, Some(celsius)) => format!("{celsius:.0} °C{saving}"),
            (None, None) => "not told by this system".to_owned(),
        }
    }
}

/// The hottest of Linux' thermal zones.
#[cfg_attr(target_vendor = "apple", allow(dead_code, reason = "Core ML's side tells"))]
fn hottest_zone(folder: &Path) -> Option<f64> {
    let zones = std::fs::read_dir(folder).ok()?.flatten();
    let degrees = zones.filter_map(|zone| {
        let text = std::fs::read_to_string(zone.path().join("temp")).ok()?;
        text.trim().parse::<f64>().ok().map(|thousandths| thousandths / 1000.0)
    });
    degrees.filter(|celsius| (-50.0..200.0).contains(celsius)).reduce(f64::max)
}

fn devices() -> Vec<Device> {
    #[cfg(target_vendor = "apple")]
    {
        anemone_coreml::Framework::devices(&anemone_coreml::Apple)
    }
    #[cfg(not(target_vendor = "apple"))]
    Vec::new()
}

/// The first line of what a command prints, if it runs and prints.
fn said(command: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(command).args(arguments).output().ok().filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?;
    let line = text.lines().next()?.trim().to_owned();
    (!line.is_empty()).then_some(line)
}

fn system() -> String {
    if cfg!(target_os = "macos") {
        let version = said("sw_vers", &["-productVersion"]).unwrap_or_default();
        let build = said("sw_vers", &["-buildVersion"]).unwrap_or_default();
        return format!("macOS {version} ({build})");
    }
    let release = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    let kernel = said("uname", &["-sr"]);
    let name = release_name(&release).or_else(|| kernel.clone()).unwrap_or_else(|| std::env::consts::OS.to_owned());
    match kernel {
        Some(kernel) if kernel != name => format!("{name} ({kernel})"),
        _ => name,
    }
}

/// The name in Linux' description of a system.
fn release_name(release: &str) -> Option<String> {
    let line = release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(line.trim_matches('"').to_owned()).filter(|name| !name.is_empty())
}

fn processor() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let named =
        info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':').map(|(_, name)| name.trim()));
    let named = named.map(str::to_owned).or_else(|| said("sysctl", &["-n", "machdep.cpu.brand_string"]));
    named.unwrap_or_else(|| std::env::consts::ARCH.to_owned())
}

fn memory() -> Option<u64> {
    let info = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = info.lines().find_map(|line| line.strip_prefix("MemTotal:")?.trim().strip_suffix(" kB"));
    match total {
        Some(kilobytes) => kilobytes.parse::<u64>().ok()?.checked_mul(1024),
        None => said("sysctl", &["-n", "hw.memsize"])?.parse().ok(),
    }
}

fn free_disk(folder: &Path) -> Option<u64> {
    // The cache may not be there yet; its disk is.
    let there = folder.ancestors().find(|folder| folder.exists())?;
    let output = Command::new("df").arg("-Pk").arg(there).output().ok().filter(|output| output.status.success())?;
    available(&String::from_utf8(output.stdout).ok()?)
}

/// The fourth column of the second line of `df -Pk`.
fn available(df: &str) -> Option<u64> {
    df.lines().nth(1)?.split_whitespace().nth(3)?.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_described() {
        let host = Host::look(&std::env::temp_dir().join("not/there/yet"));
        assert!(!host.system.is_empty() && !host.processor.is_empty() && host.threads > 0);
        #[cfg(unix)]
        assert!(host.memory.unwrap() > 1 << 28 && host.free_disk.is_some());
        #[cfg(not(target_vendor = "apple"))]
        assert!(!host.neural_engine());
        assert!(!host.heat.words().is_empty());
    }

    #[test]
    fn what_systems_say_is_understood() {
        let df = "Filesystem 1024-blocks Used Available Capacity Mounted on\n/dev/disk1 100 60 40 60% /\n";
        assert_eq!((available(df), available("nothing")), (Some(40 << 10), None));
        assert_eq!(
            release_name("ID=debian\nPRETTY_NAME=\"Debian GNU/Linux 12\"\n"),
            Some("Debian GNU/Linux 12".into())
        );
        assert_eq!(release_name("ID=x"), None);
        let folder = tempfile::tempdir().unwrap();
        for (zone, degrees) in [("zone0", "41000\n"), ("zone1", "52500\n"), ("zone2", "nonsense")] {
            std::fs::create_dir(folder.path().join(zone)).unwrap();
            std::fs::write(folder.path().join(zone).join("temp"), degrees).unwrap();
        }
        assert_eq!(hottest_zone(folder.path()), Some(52.5));
    }

    #[test]
    fn heat_has_words() {
        let heat = Heat { state: Some("fair"), celsius: None, low_power: Some(true) };
        assert_eq!(heat.words(), "fair, low-power mode");
        assert_eq!(Heat { state: None, celsius: Some(51.6), low_power: None }.words(), "52 °C");
    }
}
