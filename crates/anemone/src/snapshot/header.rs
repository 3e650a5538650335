//! The beginning of a snapshot: what it is of, and of which tokens.
//!
//! `docs/sessions.md` describes the format.

use std::fs::File;
use std::io::{BufReader, Read};

use anemone_package::bundle::hex;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{CacheLayout, CacheTensor, SnapshotError};

/// The first bytes of every snapshot.
pub(super) const MAGIC: &[u8; 8] = b"ANEMSNAP";
/// The version of the format.
pub(super) const VERSION: u32 = 1;
/// The longest header that is read, in bytes.
const HEADER_LIMIT: u32 = 1 << 20;
/// Most positions that a snapshot may claim, which bounds its list of tokens.
const POSITION_LIMIT: usize = 1 << 24;
/// A block holds as many rows as fit into this many bytes, and at least one.
const BLOCK: usize = 1 << 20;

/// The header as it stands in the file, in JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Header {
    pub(super) build: String,
    pub(super) package: String,
    pub(super) context: usize,
    pub(super) states: Vec<CacheTensor>,
    pub(super) position: usize,
    pub(super) tokens_sha256: String,
}

/// The version of the program that computes.
pub(super) fn build() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// The digest of tokens.
pub(crate) fn digest(tokens: &[u32]) -> String {
    let mut digest = Sha256::new();
    tokens.iter().for_each(|token| digest.update(token.to_le_bytes()));
    hex(&digest.finalize())
}

/// Rows of one tensor that are checked together.
pub(super) struct Block {
    pub(super) tensor: usize,
    pub(super) rows: std::ops::Range<usize>,
    pub(super) bytes: usize,
}

impl Header {
    pub(super) fn new(layout: &CacheLayout, tokens: &[u32]) -> Self {
        Self {
            build: build().to_owned(),
            package: hex(&layout.package),
            context: layout.context,
            states: layout.tensors.clone(),
            position: tokens.len(),
            tokens_sha256: digest(tokens),
        }
    }

    /// All that comes before the blocks.
    pub(super) fn to_bytes(&self, tokens: &[u32]) -> Vec<u8> {
        let json = serde_json::to_vec(self).expect("a header has nothing that JSON lacks");
        let length = u32::try_from(json.len()).expect("a layout is short");
        let mut bytes = Vec::with_capacity(json.len() + 4 * tokens.len() + 24);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(&json);
        bytes.extend_from_slice(&crc32fast::hash(&bytes).to_le_bytes());
        let start = bytes.len();
        tokens.iter().for_each(|token| bytes.extend_from_slice(&token.to_le_bytes()));
        let sum = crc32fast::hash(&bytes[start..]);
        bytes.extend_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// Reads all that comes before the blocks of a file of `length` bytes. Gives the tokens, and where the blocks begin.
    pub(super) fn read(file: &mut BufReader<File>, length: u64) -> Result<(Self, Vec<u32>, u64), SnapshotError> {
        let short = |expected| SnapshotError::Length { expected, found: length };
        let mut start = [0; 16];
        if length < 16 {
            let mut first = vec![0; length.min(8) as usize];
            file.read_exact(&mut first).map_err(SnapshotError::io("read"))?;
            return Err(if MAGIC.starts_with(&first) { short(16) } else { SnapshotError::NotASnapshot });
        }
        file.read_exact(&mut start).map_err(SnapshotError::io("read"))?;
        let word = |at: usize| u32::from_le_bytes([start[at], start[at + 1], start[at + 2], start[at + 3]]);
        if start[..8] != *MAGIC {
            return Err(SnapshotError::NotASnapshot);
        }
        if word(8) != VERSION {
            return Err(SnapshotError::Version { found: word(8), known: VERSION });
        }
        let header_length = word(12);
        if header_length > HEADER_LIMIT {
            return Err(SnapshotError::Damaged { what: "the length of the header".into(), offset: 12 });
        }
        let tokens_at = 16 + u64::from(header_length) + 4;
        if length < tokens_at {
            return Err(short(tokens_at));
        }
        let json = checked(file, header_length as usize, crc32fast::hash(&start), "the header", 0)?;
        let header: Self =
            serde_json::from_slice(&json).map_err(|e| SnapshotError::Malformed { problem: e.to_string() })?;
        header.check()?;
        let blocks_at = tokens_at + 4 * header.position as u64 + 4;
        let expected = header.end(blocks_at).ok_or_else(|| malformed("its states are too large"))?;
        if length != expected {
            return Err(short(expected));
        }
        let tokens = checked(file, 4 * header.position, 0, "the list of tokens", tokens_at)?;
        let tokens: Vec<u32> = tokens.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
        if digest(&tokens) != header.tokens_sha256 {
            return Err(SnapshotError::Damaged { what: "the digest of the tokens".into(), offset: tokens_at });
        }
        Ok((header, tokens, blocks_at))
    }

    /// That nothing in it leads to arithmetic or memory beyond bounds.
    fn check(&self) -> Result<(), SnapshotError> {
        if self.position > self.context || self.context > POSITION_LIMIT {
            return Err(malformed(&format!("position {} of {}", self.position, self.context)));
        }
        for tensor in &self.states {
            let elements = tensor.shape.iter().try_fold(tensor.element_bytes, |n, &extent| n.checked_mul(extent));
            let fits = tensor.shape.get(tensor.axis) >= Some(&self.context) && (1..=8).contains(&tensor.element_bytes);
            // As many rows as this would take long to count.
            let bounded = elements.is_some_and(|n| n <= isize::MAX as usize) && tensor.shape.iter().all(|&n| n > 0);
            if !fits || !bounded || tensor.rows() > POSITION_LIMIT {
                return Err(malformed(&tensor.to_string()));
            }
        }
        Ok(())
    }

    /// Where the file ends, if the blocks begin at `start`.
    fn end(&self, start: u64) -> Option<u64> {
        self.states.iter().try_fold(start, |sum, state| {
            let (rows, row) = (state.rows(), state.column_bytes().checked_mul(self.position)?);
            let sums = rows.div_ceil(self.rows_of_a_block(state)) as u64 * 4;
            sum.checked_add((rows as u64).checked_mul(row as u64)?)?.checked_add(sums)
        })
    }

    fn rows_of_a_block(&self, state: &CacheTensor) -> usize {
        let row = state.column_bytes() * self.position;
        BLOCK.checked_div(row).unwrap_or(state.rows()).max(1)
    }

    /// The blocks, in order.
    pub(super) fn blocks(&self) -> impl Iterator<Item = Block> + '_ {
        self.states.iter().enumerate().flat_map(move |(tensor, state)| {
            let (rows, row) = (state.rows(), state.column_bytes() * self.position);
            let each = self.rows_of_a_block(state);
            (0..rows).step_by(each).map(move |start| {
                let end = rows.min(start + each);
                Block { tensor, rows: start..end, bytes: row * (end - start) }
            })
        })
    }

    /// That the snapshot is of this runner's package, at this layout.
    pub(super) fn fits(&self, layout: &CacheLayout) -> Result<(), SnapshotError> {
        if self.build != build() {
            return Err(SnapshotError::Build { expected: build().to_owned(), found: self.build.clone() });
        }
        // Said before the package, which is another one then too.
        if self.context != layout.context {
            return Err(SnapshotError::Context { expected: layout.context, found: self.context });
        }
        let package = hex(&layout.package);
        if self.package != package {
            return Err(SnapshotError::Package { expected: package, found: self.package.clone() });
        }
        if self.states != layout.tensors {
            let [expected, found] = [&layout.tensors, &self.states].map(|t| SnapshotError::describe(t));
            return Err(SnapshotError::Layout { expected, found });
        }
        Ok(())
    }
}

fn malformed(problem: &str) -> SnapshotError {
    SnapshotError::Malformed { problem: problem.to_owned() }
}

/// Reads `length` bytes and the checksum that follows them; `before` is the checksum of what it covers besides.
fn checked(
    file: &mut BufReader<File>,
    length: usize,
    before: u32,
    what: &str,
    offset: u64,
) -> Result<Vec<u8>, SnapshotError> {
    let mut bytes = vec![0; length];
    let mut sum = [0; 4];
    file.read_exact(&mut bytes).and_then(|()| file.read_exact(&mut sum)).map_err(SnapshotError::io("read"))?;
    let mut hasher = crc32fast::Hasher::new_with_initial(before);
    hasher.update(&bytes);
    if hasher.finalize().to_le_bytes() != sum {
        return Err(SnapshotError::Damaged { what: what.to_owned(), offset });
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// These bytes are in people's files: another result is another version of the format.
    #[test]
    fn the_format_is_pinned() {
        let tensor = CacheTensor { name: "kv".into(), element_bytes: 2, shape: vec![2, 8, 3], axis: 1 };
        let layout = CacheLayout { package: [7; 32], context: 8, tensors: vec![tensor] };
        let header = Header { build: "0.1.0".into(), ..Header::new(&layout, &[5, 300]) };
        let json = format!(
            r#"{{"build":"0.1.0","package":"{}","context":8,"states":[{{"name":"kv","element_bytes":2,"shape":[2,8,3],"axis":1}}],"position":2,"tokens_sha256":"dd01409e26630cbd9b958a426e600f641cf833b34055fa6d961216d8c4586f32"}}"#,
            "07".repeat(32)
        );
        let mut expected = b"ANEMSNAP\x01\0\0\0".to_vec();
        expected.extend_from_slice(&(json.len() as u32).to_le_bytes());
        expected.extend_from_slice(json.as_bytes());
        expected.extend_from_slice(&0xed7e_f0e4u32.to_le_bytes());
        expected.extend_from_slice(&[5, 0, 0, 0, 0x2c, 1, 0, 0]);
        expected.extend_from_slice(&0xc6e4_abbcu32.to_le_bytes());
        assert_eq!(header.to_bytes(&[5, 300]), expected);
        assert_eq!(super::super::block_sum(3, b"abc"), 0x3800_4f3du32.to_le_bytes());
        // Two rows, each of two columns of six bytes, in one block.
        let blocks: Vec<_> = header.blocks().map(|block| (block.tensor, block.rows, block.bytes)).collect();
        assert_eq!(blocks, [(0, 0..2, 24)]);
        assert_eq!(header.end(0), Some(28));
    }

    #[test]
    fn large_states_are_in_blocks_of_whole_rows() {
        let tensor = CacheTensor { name: "kv".into(), element_bytes: 2, shape: vec![7, 4096, 64], axis: 1 };
        let layout = CacheLayout { package: [7; 32], context: 4096, tensors: vec![tensor] };
        let blocks = |tokens: usize| {
            let header = Header::new(&layout, &vec![0; tokens]);
            let sum: u64 = header.blocks().map(|block| block.bytes as u64 + 4).sum();
            assert_eq!(header.end(0), Some(sum));
            header.blocks().map(|block| block.rows.len()).collect::<Vec<_>>()
        };
        // A row is 128 bytes for each token.
        assert_eq!(blocks(4096), [2, 2, 2, 1]);
        assert_eq!(blocks(1000), [7]);
        assert_eq!(blocks(0), [7]);
    }
}
