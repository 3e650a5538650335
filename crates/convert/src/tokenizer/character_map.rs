//! Checks of SentencePiece's compiled character map, whose reader in the `tokenizers` crate trusts it.
//!
//! The map is a length in bytes (`u32`), a double-array trie of `u32` units that long, and replacement texts, each ended
//! by a zero byte. A walk that starts anywhere in the trie, with any byte, must stay in it, and what it finds must be the
//! beginning of a text. (Format: `sentencepiece/src/normalizer.cc` and the Darts-clone trie that it holds.)

/// The largest map, in bytes. (That of NFKC, the usual one, has about 240 000.)
const MAX_BYTES: usize = 16 << 20;

/// Refuses a map on which a look-up could leave the trie or the texts.
pub(super) fn check(map: &[u8]) -> Result<(), String> {
    if map.len() > MAX_BYTES {
        return Err(format!("{} bytes; at most {MAX_BYTES} are read", map.len()));
    }
    let (length, rest) = map.split_first_chunk::<4>().ok_or("shorter than its own length field")?;
    let length = u32::from_le_bytes(*length) as usize;
    if !length.is_multiple_of(4) || length == 0 || length > rest.len() {
        return Err(format!("a trie of {length} bytes in a map of {}", map.len()));
    }
    let (trie, texts) = rest.split_at(length);
    let texts = std::str::from_utf8(texts).map_err(|e| format!("its texts are not UTF-8: {e}"))?;
    let units: Vec<usize> = trie.as_chunks::<4>().0.iter().map(|unit| u32::from_le_bytes(*unit) as usize).collect();
    // Bytes of a key change the lowest eight bits of a place only, so whole pages of 256 are needed.
    if !units.len().is_multiple_of(256) {
        return Err(format!("a trie of {} units, which are not whole pages of 256", units.len()));
    }
    let mut seen = vec![false; units.len()];
    let mut open = vec![offset(units[0])];
    while let Some(base) = open.pop() {
        match seen.get_mut(base) {
            None => return Err(format!("the trie leads to unit {base} of {}", units.len())),
            Some(seen) if *seen => continue,
            Some(seen) => *seen = true,
        }
        for byte in 1..=255 {
            let place = base ^ byte;
            let unit = units[place];
            // The upper bit marks a value; such a unit has no label.
            if unit & (1 << 31 | 0xff) != byte {
                continue;
            }
            let next = place ^ offset(unit);
            if unit >> 8 & 1 == 1 {
                let value = units.get(next).map(|leaf| leaf & ((1 << 31) - 1));
                if !value.is_some_and(|value| texts.is_char_boundary(value)) {
                    return Err(format!("unit {place} of the trie leads to no text"));
                }
            }
            open.push(next);
        }
    }
    Ok(())
}

fn offset(unit: usize) -> usize {
    (unit >> 10) << ((unit & (1 << 9)) >> 6)
}
