//! What a machine computes with.

use std::fmt;

use serde::Serialize;

/// A kind of device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeviceKind {
    /// The processor.
    Cpu,
    /// The graphics processor.
    Gpu,
    /// The Neural Engine.
    NeuralEngine,
    /// A kind that is newer than this crate.
    Other,
}

impl DeviceKind {
    /// What it is called in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            DeviceKind::Cpu => "CPU",
            DeviceKind::Gpu => "GPU",
            DeviceKind::NeuralEngine => "Neural Engine",
            DeviceKind::Other => "other",
        }
    }
}

impl fmt::Display for DeviceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A device of this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Device {
    /// Its kind.
    pub kind: DeviceKind,
    /// Cores, where Core ML tells.
    pub cores: Option<usize>,
}
