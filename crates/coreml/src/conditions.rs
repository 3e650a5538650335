//! Heat and power.

use std::fmt;

use serde::Serialize;

use crate::Framework;

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

/// What the device allows just now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Conditions {
    /// How hot it is.
    pub thermal: Thermal,
    /// Whether the user saves power, which slows everything down.
    pub low_power: bool,
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
        }
    }
}

/// Tells of changes. Reading is cheap, so it is asked between predictions; nothing is registered with the system.
#[derive(Debug)]
pub struct Watch {
    last: Conditions,
}

impl Watch {
    /// Begins with the conditions as they are.
    #[must_use]
    pub fn new(framework: &impl Framework) -> Self {
        Self { last: framework.conditions() }
    }

    /// What changed since the last time.
    pub fn changes(&mut self, framework: &impl Framework) -> Vec<Notice> {
        let now = framework.conditions();
        let before = std::mem::replace(&mut self.last, now);
        let thermal =
            (before.thermal != now.thermal).then_some(Notice::Thermal { from: before.thermal, to: now.thermal });
        let power = (before.low_power != now.low_power).then_some(Notice::LowPower(now.low_power));
        thermal.into_iter().chain(power).collect()
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
    use crate::fake::Fake;

    #[test]
    fn raw_values_are_apples() {
        let states = [0, 1, 2, 3, 9].map(Thermal::from_raw);
        assert_eq!(states, [Thermal::Nominal, Thermal::Fair, Thermal::Serious, Thermal::Critical, Thermal::Unknown]);
    }

    #[test]
    fn only_changes_are_told() {
        let fake = Fake::new();
        let mut watch = Watch::new(&fake);
        assert_eq!(watch.changes(&fake), []);
        fake.set_conditions(Conditions { thermal: Thermal::Serious, low_power: true });
        let changes = watch.changes(&fake);
        assert_eq!(changes, [Notice::Thermal { from: Thermal::Nominal, to: Thermal::Serious }, Notice::LowPower(true)]);
        assert!(changes[0].to_string().contains("nominal → serious"));
        assert_eq!(watch.changes(&fake), []);
        fake.set_conditions(Conditions { thermal: Thermal::Fair, low_power: false });
        assert!(watch.changes(&fake)[0].to_string().contains("cooling"));
        assert_eq!(watch.last().thermal, Thermal::Fair);
    }
}
