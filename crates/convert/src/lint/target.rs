//! What a package is meant for: the profile and the system.

use anemone_mil::types::Opset;
use serde::Serialize;

/// The hardware that a package is meant for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// Whatever there is.
    Portable,
    /// The GPU.
    Gpu,
    /// The Neural Engine, with the CPU beside it.
    Ane,
}

impl Profile {
    /// All profiles.
    pub const ALL: [Profile; 3] = [Profile::Portable, Profile::Gpu, Profile::Ane];

    /// The name on the command line and in packages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Profile::Portable => "portable",
            Profile::Gpu => "gpu",
            Profile::Ane => "ane",
        }
    }

    /// The profile named so.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|p| p.name() == name)
    }
}

impl std::fmt::Display for Profile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// The system that a package is meant for, by the release of iOS; that of macOS and the others of the same year is meant too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Os {
    /// iOS 15, macOS 12.
    Ios15,
    /// iOS 16, macOS 13.
    Ios16,
    /// iOS 17, macOS 14.
    Ios17,
    /// iOS 18, macOS 15: the first with states.
    Ios18,
    /// iOS 26, macOS 26.
    Ios26,
}

impl Os {
    /// All systems, the oldest first.
    pub const ALL: [Os; 5] = [Os::Ios15, Os::Ios16, Os::Ios17, Os::Ios18, Os::Ios26];

    /// Its name: that of iOS, and that of macOS.
    #[must_use]
    pub fn names(self) -> (&'static str, &'static str) {
        match self {
            Os::Ios15 => ("ios15", "macos12"),
            Os::Ios16 => ("ios16", "macos13"),
            Os::Ios17 => ("ios17", "macos14"),
            Os::Ios18 => ("ios18", "macos15"),
            Os::Ios26 => ("ios26", "macos26"),
        }
    }

    /// The system named so.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|os| os.names().0 == name || os.names().1 == name)
    }

    /// The newest operation set that it has.
    #[must_use]
    pub fn opset(self) -> Opset {
        match self {
            Os::Ios15 => Opset::CoreML5,
            Os::Ios16 => Opset::CoreML6,
            Os::Ios17 => Opset::CoreML7,
            Os::Ios18 => Opset::CoreML8,
            Os::Ios26 => Opset::CoreML9,
        }
    }

    /// The newest version of the model specification that it reads.
    #[must_use]
    pub fn specification(self) -> i32 {
        match self {
            Os::Ios15 => 6,
            Os::Ios16 => 7,
            Os::Ios17 => 8,
            Os::Ios18 => 9,
            Os::Ios26 => 10,
        }
    }

    /// The oldest system that has an operation set.
    #[must_use]
    pub fn with(opset: Opset) -> Self {
        Self::ALL.into_iter().find(|os| os.opset() >= opset).unwrap_or(Os::Ios26)
    }
}

impl std::fmt::Display for Os {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Os::Ios15 => "iOS 15 and macOS 12",
            Os::Ios16 => "iOS 16 and macOS 13",
            Os::Ios17 => "iOS 17 and macOS 14",
            Os::Ios18 => "iOS 18 and macOS 15",
            Os::Ios26 => "iOS 26 and macOS 26",
        })
    }
}
