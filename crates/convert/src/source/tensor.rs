//! A weight tensor of a checkpoint, decoded row by row on demand.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::lora::LowRank;
use crate::dequantize::Kind;

/// A tensor under its Hugging Face name, in Hugging Face's order of rows. Its bytes stay in the memory map.
#[derive(Debug, Clone)]
pub struct Tensor {
    name: String,
    shape: Vec<usize>,
    kind: &'static Kind,
    bytes: Bytes,
    /// If set, the rows of each head of this many are stored with the two halves interleaved.
    interleaved: Option<usize>,
    /// Added to each element.
    added: f32,
    /// What each element, with what is added, is multiplied by.
    scale: f32,
    /// What an adapter adds, and the row there of the first one here.
    adapter: Option<(Arc<LowRank>, usize)>,
}

impl Tensor {
    /// `bytes` are whole blocks of `kind` for `shape`; the readers of the files have checked it.
    pub(crate) fn new(name: String, shape: Vec<usize>, kind: &'static Kind, bytes: Bytes) -> Self {
        let elements: usize = shape.iter().product();
        assert_eq!(kind.bytes_for(elements), Some(bytes.len()), "{name}: the bytes are as long as the shape says");
        Self { name, shape, kind, bytes, interleaved: None, added: 0.0, scale: 1.0, adapter: None }
    }

    /// The same bytes, understood as rows that the llama.cpp converter has permuted for interleaved rotary embedding,
    /// in heads of `head_dim` rows. Its row `2j + p` of a head is Hugging Face's row `p · head_dim/2 + j`
    /// (`LlamaModel.permute` in llama.cpp's `convert_hf_to_gguf.py`).
    pub(crate) fn with_interleaved_heads(mut self, head_dim: usize) -> Self {
        assert!(head_dim.is_multiple_of(2) && self.shape.first().is_some_and(|rows| rows.is_multiple_of(head_dim)));
        self.interleaved = Some(head_dim);
        self
    }

    /// The same under another name.
    pub(crate) fn with_name(self, name: &str) -> Self {
        Self { name: name.to_owned(), ..self }
    }

    /// The same with `added` added to each element: norms that are stored as their distance from one.
    pub(crate) fn with_added(self, added: f32) -> Self {
        Self { added, ..self }
    }

    /// The same with each element multiplied by `scale`.
    pub(crate) fn with_scale(self, scale: f32) -> Self {
        Self { scale, ..self }
    }

    /// The same with an adapter's rows added to it.
    pub(crate) fn with_adapter(self, adapter: Arc<LowRank>) -> Self {
        Self { adapter: Some((adapter, 0)), ..self }
    }

    /// Whether elements are what the file has.
    fn as_stored(&self) -> bool {
        self.added == 0.0 && self.scale == 1.0 && self.adapter.is_none()
    }

    /// The part `rows` of its first dimension, if it has them and they are whole bytes in their order.
    pub(crate) fn of_rows(mut self, rows: Range<usize>) -> Option<Self> {
        let all = *self.shape.first().filter(|all| rows.start <= rows.end && rows.end <= **all)?;
        if self.interleaved.is_some() || all == 0 || !self.bytes.len().is_multiple_of(all) {
            return None;
        }
        let length = self.bytes.len() / all;
        self.shape[0] = rows.len();
        self.bytes = self.bytes.slice(rows.start * length..rows.end * length);
        self.adapter.iter_mut().for_each(|(_, first)| *first += rows.start);
        Some(self)
    }

    /// The Hugging Face name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The shape, row-major: a linear layer has `[outputs, inputs]`.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// How the weights are stored.
    pub fn kind(&self) -> &'static Kind {
        self.kind
    }

    /// Elements of one row: the last dimension.
    pub fn row_len(&self) -> usize {
        self.shape.last().copied().unwrap_or(1)
    }

    /// Rows: all dimensions but the last, multiplied; one for a vector.
    pub fn rows(&self) -> usize {
        self.shape.split_last().map_or(1, |(_, others)| others.iter().product())
    }

    /// Elements.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Decodes the rows `rows` to `out`, which holds `rows.len() * row_len()` values.
    ///
    /// # Panics
    /// If `out` has another length or the range is not within the tensor.
    pub fn decode_rows(&self, rows: Range<usize>, out: &mut [f32]) {
        let columns = self.row_len();
        assert!(rows.start <= rows.end && rows.end <= self.rows(), "rows {rows:?} of {}", self.rows());
        assert_eq!(out.len(), rows.len() * columns, "the output holds the rows");
        if columns == 0 {
            return;
        }
        match self.interleaved {
            None => self.kind.decode(&self.bytes, rows.start * columns..rows.end * columns, out),
            Some(head_dim) if self.shape.len() == 1 => {
                for (i, value) in out.iter_mut().enumerate() {
                    let at = stored_row(i, head_dim);
                    self.kind.decode(&self.bytes, at..at + 1, std::slice::from_mut(value));
                }
            }
            Some(head_dim) => {
                for (row, out) in rows.clone().zip(out.chunks_exact_mut(columns)) {
                    let at = stored_row(row, head_dim) * columns;
                    self.kind.decode(&self.bytes, at..at + columns, out);
                }
            }
        }
        if let Some((adapter, first)) = &self.adapter {
            rows.zip(out.chunks_exact_mut(columns)).for_each(|(row, out)| adapter.add(first + row, out));
        }
        if self.added != 0.0 || self.scale != 1.0 {
            out.iter_mut().for_each(|value| *value = (*value + self.added) * self.scale);
        }
    }

    /// All elements. Meant for vectors and tests: a matrix is better decoded in parts.
    pub fn decode(&self) -> Vec<f32> {
        let mut out = vec![0.0; self.len()];
        self.decode_rows(0..self.rows(), &mut out);
        out
    }

    /// The bytes of the whole tensor in the memory map, if they are the values that [`Tensor::decode_rows`] gives, in its
    /// order of rows.
    pub fn bytes(&self) -> Option<&Bytes> {
        (self.interleaved.is_none() && self.as_stored()).then_some(&self.bytes)
    }

    /// The stored blocks of one row, for carrying them over as they are. `None` if rows are not contiguous blocks, as
    /// in a permuted vector, or something is done to them.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn row_bytes(&self, row: usize) -> Option<&[u8]> {
        assert!(row < self.rows(), "row {row} of {}", self.rows());
        let stored = match self.interleaved {
            _ if !self.as_stored() => return None,
            None => row,
            Some(_) if self.shape.len() == 1 => return None,
            Some(head_dim) => stored_row(row, head_dim),
        };
        let length = self.bytes.len() / self.rows();
        Some(&self.bytes[stored * length..(stored + 1) * length])
    }
}

/// Where llama.cpp's permutation put row `row`.
fn stored_row(row: usize, head_dim: usize) -> usize {
    let (head, within) = (row / head_dim, row % head_dim);
    let (half, j) = (within / (head_dim / 2), within % (head_dim / 2));
    head * head_dim + 2 * j + half
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dequantize::F32;

    fn counting(shape: &[usize]) -> Tensor {
        let n: usize = shape.iter().product();
        let bytes: Vec<u8> = (0..n).flat_map(|i| (i as f32).to_le_bytes()).collect();
        Tensor::new("t".into(), shape.to_vec(), &F32, bytes.into())
    }

    #[test]
    fn rows_in_order() {
        let t = counting(&[4, 3]);
        assert_eq!((t.rows(), t.row_len(), t.len()), (4, 3, 12));
        let mut out = [0.0; 6];
        t.decode_rows(1..3, &mut out);
        assert_eq!(out, [3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
        assert_eq!(t.row_bytes(2).unwrap(), &t.bytes().unwrap()[24..36]);
    }

    #[test]
    fn parts_and_what_is_added() {
        let t = counting(&[4, 3]).of_rows(1..3).unwrap();
        assert_eq!((t.shape(), t.decode()), (&[2, 3][..], vec![3.0, 4.0, 5.0, 6.0, 7.0, 8.0]));
        assert_eq!(t.row_bytes(1).unwrap()[..4], 6f32.to_le_bytes());
        assert_eq!(counting(&[4]).of_rows(2..4).unwrap().decode(), [2.0, 3.0]);
        assert!(counting(&[4, 3]).of_rows(3..5).is_none());
        let norm = counting(&[2]).with_added(1.0);
        assert_eq!(norm.decode(), [1.0, 2.0]);
        assert_eq!(norm.clone().with_scale(0.5).decode(), [0.5, 1.0]);
        assert!(counting(&[2]).with_scale(0.5).bytes().is_none());
        assert!(norm.bytes().is_none() && norm.row_bytes(0).is_none());
    }

    #[test]
    fn interleaved_heads_are_put_back() {
        // Two heads of four rows. Hugging Face's rows 0 1 2 3 were stored as 0 2 1 3.
        let t = counting(&[8, 1]).with_interleaved_heads(4);
        assert_eq!(t.decode(), [0.0, 2.0, 1.0, 3.0, 4.0, 6.0, 5.0, 7.0]);
        assert!(t.bytes().is_none());
        assert_eq!(t.row_bytes(1).unwrap(), 2f32.to_le_bytes());
        let mut part = [0.0; 2];
        t.decode_rows(5..7, &mut part);
        assert_eq!(part, [6.0, 5.0]);

        // Six rows: 0 1 2 | 3 4 5 were stored as 0 3 1 4 2 5.
        let bias = counting(&[6]).with_interleaved_heads(6);
        assert_eq!(bias.decode(), [0.0, 2.0, 4.0, 1.0, 3.0, 5.0]);
        assert!(bias.row_bytes(0).is_none());
    }
}
