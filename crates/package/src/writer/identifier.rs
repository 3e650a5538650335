//! Identifiers of items, derived from their content.

use std::fmt::Write;

use sha2::{Digest, Sha256};

/// An identifier in the form of a UUID (version 8: made by a rule of one's own) for `content`.
pub(super) fn of(kind: &str, content: &[u8]) -> String {
    let digest = Sha256::new().chain_update(kind).chain_update([0]).chain_update(content).finalize();
    let mut bytes: [u8; 16] = digest[..16].try_into().expect("a digest has 32 bytes");
    bytes[6] = bytes[6] & 0x0f | 0x80;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let mut text = String::with_capacity(36);
    for (index, byte) in bytes.into_iter().enumerate() {
        if [4, 6, 8, 10].contains(&index) {
            text.push('-');
        }
        write!(text, "{byte:02x}").expect("strings take anything");
    }
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn identifiers_look_like_uuids_and_depend_on_everything() {
        let all = [super::of("model", b"a"), super::of("model", b"b"), super::of("weights", b"a")];
        for id in &all {
            let groups: Vec<usize> = id.split('-').map(str::len).collect();
            assert_eq!(groups, [8, 4, 4, 4, 12], "{id}");
            assert_eq!(&id[14..15], "8", "{id}");
            assert!("89ab".contains(&id[19..20]), "{id}");
        }
        assert!(all[0] != all[1] && all[0] != all[2]);
    }
}
