//! The system's own words.

/// The build in a text such as `Version 15.6 (Build 24G84)`; the whole text's letters and digits if it has none.
#[cfg_attr(not(target_vendor = "apple"), allow(dead_code, reason = "Core ML's side asks for it"))]
pub(crate) fn build(version: &str) -> String {
    let build = version.split_once("(Build ").map(|(_, rest)| rest.split(')').next().unwrap_or_default().trim());
    match build {
        Some(build) if !build.is_empty() => build.to_owned(),
        _ => version.chars().filter(char::is_ascii_alphanumeric).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::build;

    #[test]
    fn builds_are_found() {
        assert_eq!(build("Version 15.6 (Build 24G84)"), "24G84");
        assert_eq!(build("Version 26.0 (Build 25A354)"), "25A354");
        assert_eq!(build("Version 12"), "Version12");
        assert_eq!(build("(Build )"), "Build");
    }
}
