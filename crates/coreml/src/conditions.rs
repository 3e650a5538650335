//! Heat, power and memory.

use std::fmt;

use serde::Serialize;

/// How hot the device is (`NSProcessInfo.thermalState`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Thermal {
    /// No reason to hold back.
    Nominal,
    /// Slightly raised.
    Fair,
    /// High: the system slows things down.
    Serious,
    /// The device must cool down.
    Critical,
    /// A state that is newer than this crate.
    Unknown,
}

impl Thermal {
    /// The state of a value of Apple's `NSProcessInfoThermalState`.
    #[must_use]
    pub fn from_raw(raw: isize) -> Self {
        match raw {
            0 => Thermal::Nominal,
            1 => Thermal::Fair,
            2 => Thermal::Serious,
            3 => Thermal::Critical,
            _ => Thermal::Unknown,
        }
    }

    /// The name, in lower case.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Thermal::Nominal => "nominal",
            Thermal::Fair => "fair",
            Thermal::Serious => "serious",
            Thermal::Critical => "critical",
            Thermal::Unknown => "unknown",
        }
    }
}

impl fmt::Display for Thermal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// How short of memory the system is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Pressure {
    /// There is enough.
    Normal,
    /// Little is left: the system compresses and asks everybody for some.
    Warning,
    /// None is left: processes are about to be ended.
    Critical,
    /// It is not told.
    Unknown,
}

impl Pressure {
    /// The pressure of a level of Apple's kernel (`DISPATCH_MEMORYPRESSURE_NORMAL` and its siblings).
    #[must_use]
    pub fn from_raw(raw: i32) -> Self {
        match raw {
            1 => Pressure::Normal,
            2 => Pressure::Warning,
            4 => Pressure::Critical,
            _ => Pressure::Unknown,
        }
    }
}

/// What the device allows just now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Conditions {
    /// How hot it is.
    pub thermal: Thermal,
    /// Whether the user saves power, which slows everything down.
    pub low_power: bool,
    /// How short of memory it is.
    pub memory: Pressure,
}

impl Conditions {
    /// A cool device with power and memory.
    pub const GOOD: Self = Self { thermal: Thermal::Nominal, low_power: false, memory: Pressure::Normal };
}

/// A change of conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Notice {
    /// The device became hotter or cooler.
    Thermal {
        /// What it was.
        from: Thermal,
        /// What it is.
        to: Thermal,
    },
    /// Low-power mode was switched on or off.
    LowPower(bool),
    /// Memory became scarcer, or less so.
    Memory {
        /// What it was.
        from: Pressure,
        /// What it is.
        to: Pressure,
    },
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Notice::Thermal { from, to } if to > from => {
                write!(f, "the device is getting hot ({from} → {to}): expect slower answers")
            }
            Notice::Thermal { from, to } => write!(f, "the device is cooling down ({from} → {to})"),
            Notice::LowPower(true) => f.write_str("low-power mode is on: expect slower answers"),
            Notice::LowPower(false) => f.write_str("low-power mode is off"),
            Notice::Memory { to: Pressure::Critical, .. } => {
                f.write_str("the system is out of memory and may end this process: close something")
            }
            Notice::Memory { to: Pressure::Warning, .. } => {
                f.write_str("the system is short of memory: expect slower answers")
            }
            Notice::Memory { .. } => f.write_str("the system has memory again"),
        }
    }
}

/// Tells of changes. Reading conditions is cheap, so whoever wants to know reads them between predictions; nothing is
/// registered with the system.
#[derive(Debug)]
pub struct Watch {
    last: Conditions,
}

impl Watch {
    /// Begins with the conditions as they are.
    #[must_use]
    pub fn new(now: Conditions) -> Self {
        Self { last: now }
    }

    /// What changed since the last time. That something is not told, or is told at last, is no change.
    pub fn changes(&mut self, now: Conditions) -> Vec<Notice> {
        let before = std::mem::replace(&mut self.last, now);
        let (from, to) = (before.thermal, now.thermal);
        let known = from != Thermal::Unknown && to != Thermal::Unknown;
        let thermal = (from != to && known).then_some(Notice::Thermal { from, to });
        let power = (before.low_power != now.low_power).then_some(Notice::LowPower(now.low_power));
        let (from, to) = (before.memory, now.memory);
        let known = from != Pressure::Unknown && to != Pressure::Unknown;
        let memory = (from != to && known).then_some(Notice::Memory { from, to });
        thermal.into_iter().chain(power).chain(memory).collect()
    }

    /// The conditions that were read last.
    #[must_use]
    pub fn last(&self) -> Conditions {
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Framework;
    use crate::fake::Fake;

    #[test]
    fn raw_values_are_apples() {
        let states = [0, 1, 2, 3, 9].map(Thermal::from_raw);
        assert_eq!(states, [Thermal::Nominal, Thermal::Fair, Thermal::Serious, Thermal::Critical, Thermal::Unknown]);
    }

    #[test]
    fn only_changes_are_told() {
        let fake = Fake::new();
        let mut watch = Watch::new(fake.conditions());
        assert_eq!(watch.changes(fake.conditions()), []);
        let bad = Conditions { thermal: Thermal::Serious, low_power: true, memory: Pressure::Warning };
        fake.set_conditions(bad);
        let changes = watch.changes(fake.conditions());
        assert_eq!(
            changes,
            [
                Notice::Thermal { from: Thermal::Nominal, to: Thermal::Serious },
                Notice::LowPower(true),
                Notice::Memory { from: Pressure::Normal, to: Pressure::Warning }
            ]
        );
        assert!(changes[0].to_string().contains("nominal → serious"));
        assert!(changes[2].to_string().contains("short of memory"));
        assert_eq!(watch.changes(fake.conditions()), []);
        fake.set_conditions(Conditions { thermal: Thermal::Fair, low_power: false, ..bad });
        assert!(watch.changes(fake.conditions())[0].to_string().contains("cooling"));
        assert_eq!(watch.last().thermal, Thermal::Fair);
        let unknown = Conditions { thermal: Thermal::Unknown, memory: Pressure::Unknown, low_power: false };
        assert_eq!((watch.changes(unknown), watch.changes(Conditions::GOOD)), (vec![], vec![]));
    }

    #[test]
    fn levels_of_pressure_are_the_kernels() {
        let all = [1, 2, 4, 0].map(Pressure::from_raw);
        assert_eq!(all, [Pressure::Normal, Pressure::Warning, Pressure::Critical, Pressure::Unknown]);
    }
}
