//! Rows that share a table, on their way to indices.

use half::f16;

use super::kmeans::{Search, nearest};
use crate::calibration::Feedback;

/// Room for one group after the other.
#[derive(Debug, Default)]
pub(super) struct Group {
    values: Vec<f32>,
    indices: Vec<u8>,
    points: Vec<(f32, f32)>,
    centres: Vec<f32>,
    search: Search,
    /// Four rows side by side.
    beside: Vec<[f32; 4]>,
}

/// What a column counts at least, as a share of the mean.
const LEAST: f32 = 0.01;

impl Group {
    /// Room for the weights of a group, with any content.
    pub(super) fn room(&mut self, count: usize) -> &mut [f32] {
        self.values.resize(count, 0.0);
        &mut self.values
    }

    /// Fills `table` with half floats near the weights, rows of `columns`, ascending, and finds the nearest to each, or one that
    /// makes up for the errors of the columns before.
    pub(super) fn encode(&mut self, columns: usize, feedback: Option<&Feedback>, table: &mut [f16]) {
        self.points.clear();
        let importance = feedback.map(|f| &*f.importance);
        let counts = |i: usize| importance.map_or(1.0, |all| LEAST + all[i % columns]);
        self.points.extend(self.values.iter().enumerate().map(|(i, &v)| (v, counts(i))));
        self.centres.resize(table.len(), 0.0);
        self.search.run(&mut self.points, &mut self.centres);
        for (half, centre) in table.iter_mut().zip(&mut self.centres) {
            *half = f16::from_f32(*centre);
            *centre = half.to_f32();
        }
        self.indices.clear();
        let centres = &self.centres;
        let Some(feedback) = feedback else {
            self.indices.extend(self.values.iter().map(|&v| nearest(centres, v) as u8));
            return;
        };
        self.indices.resize(self.values.len(), 0);
        let rows = self.values.chunks_exact(columns).collect::<Vec<_>>();
        for (rows, indices) in rows.chunks(4).zip(self.indices.chunks_mut(4 * columns)) {
            self.beside.clear();
            let weight = |row: usize, column: usize| rows.get(row).map_or(0.0, |row| row[column]);
            self.beside.extend((0..columns).map(|column| std::array::from_fn(|row| weight(row, column))));
            feedback.round(&self.beside, |column, row, wanted| {
                let index = nearest(centres, wanted);
                if let Some(place) = indices.get_mut(row * columns + column) {
                    *place = index as u8;
                }
                centres[index]
            });
        }
    }

    /// Writes the indices, `bits` each, the low bit first.
    pub(super) fn pack(&self, bits: usize, into: &mut [u8]) {
        assert_eq!(into.len() * 8, self.indices.len() * bits, "groups are whole bytes");
        let (mut gathered, mut held) = (0u32, 0);
        let mut bytes = into.iter_mut();
        for &index in &self.indices {
            gathered |= u32::from(index) << held;
            held += bits;
            while held >= 8 {
                if let Some(byte) = bytes.next() {
                    *byte = gathered as u8;
                }
                gathered >>= 8;
                held -= 8;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_indices_lead_to_near_weights() {
        for (bits, share) in [(4, 0.2), (6, 0.05), (8, 0.015)] {
            let mut group = Group::default();
            let values = group.room(4 * 64);
            values.iter_mut().enumerate().for_each(|(i, v)| *v = ((i * 37 % 256) as f32 / 128.0 - 1.0).powi(3));
            let values = values.to_vec();
            let mut table = vec![f16::ZERO; 1 << bits];
            group.encode(64, None, &mut table);
            let mut bytes = vec![0; values.len() * bits / 8];
            group.pack(bits, &mut bytes);
            for (i, &value) in values.iter().enumerate() {
                let bit = |b: usize| usize::from(bytes[(i * bits + b) / 8] >> ((i * bits + b) % 8) & 1) << b;
                let index: usize = (0..bits).map(bit).sum();
                assert!((table[index].to_f32() - value).abs() < share, "{bits} bits, element {i}");
            }
        }
    }
}
