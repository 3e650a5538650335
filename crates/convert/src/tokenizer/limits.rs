//! Bounds on what is read of tokenizers, so that a hostile file cannot make us allocate without end.

/// The largest `tokenizer.json`, in bytes.
pub(crate) const MAX_TOKENIZER_JSON: u64 = 256 << 20;
/// The largest `tokenizer_config.json`, `special_tokens_map.json` or chat template, in bytes.
pub(crate) const MAX_TOKENIZER_CONFIG: u64 = 16 << 20;
/// The most tokens of a vocabulary.
pub(crate) const MAX_TOKENS: usize = 1 << 21;
/// The most merges of a byte-pair vocabulary.
pub(crate) const MAX_MERGES: usize = 1 << 22;
/// The longest token, in bytes.
pub(crate) const MAX_TOKEN_BYTES: usize = 1 << 12;
/// The longest SentencePiece token whose ways of being merged are listed, in bytes. (SentencePiece itself makes them
/// at most 16 characters long, if not told otherwise.)
pub(crate) const MAX_PIECE_BYTES: usize = 512;
/// The text of all merges together, in bytes.
pub(crate) const MAX_MERGE_TEXT: usize = 64 << 20;
