//! Columns of a state tensor out of it and into it.

use std::ops::Range;

use half::f16;

use crate::CacheTensor;

/// Where the first `columns` columns of each of `rows` lie.
fn runs(tensor: &CacheTensor, rows: Range<usize>, columns: usize) -> impl Iterator<Item = Range<usize>> {
    let column = tensor.column_bytes() / tensor.element_bytes;
    let row = tensor.shape[tensor.axis] * column;
    rows.map(move |index| index * row..index * row + columns * column)
}

/// As little-endian bytes.
pub(crate) fn read(tensor: &CacheTensor, from: &[f16], rows: Range<usize>, columns: usize, to: &mut [u8]) {
    assert_eq!(to.len(), rows.len() * columns * tensor.column_bytes());
    let mut to = to.chunks_exact_mut(2);
    for run in runs(tensor, rows, columns) {
        from[run].iter().zip(&mut to).for_each(|(from, to)| to.copy_from_slice(&from.to_bits().to_le_bytes()));
    }
}

/// From little-endian bytes.
pub(crate) fn write(tensor: &CacheTensor, to: &mut [f16], rows: Range<usize>, columns: usize, from: &[u8]) {
    assert_eq!(from.len(), rows.len() * columns * tensor.column_bytes());
    let mut from = from.chunks_exact(2);
    for run in runs(tensor, rows, columns) {
        to[run].iter_mut().zip(&mut from).for_each(|(to, from)| *to = f16::from_le_bytes([from[0], from[1]]));
    }
}

/// From one state to another of the same shape.
pub(crate) fn copy(tensor: &CacheTensor, from: &[f16], to: &mut [f16], columns: usize) {
    for run in runs(tensor, 0..tensor.rows(), columns.min(tensor.shape[tensor.axis])) {
        to[run.clone()].copy_from_slice(&from[run]);
    }
}

/// New columns, those of `at` (of `width` in each row of `from`), into a state.
pub(crate) fn put(tensor: &CacheTensor, from: &[f32], to: &mut [f16], width: usize, at: Range<usize>) {
    let column = tensor.column_bytes() / tensor.element_bytes;
    let row = tensor.shape[tensor.axis] * column;
    for (from, to) in from.chunks_exact(width * column).zip(to.chunks_exact_mut(row)) {
        let to = to[at.start * column..at.end * column].iter_mut();
        to.zip(from).for_each(|(to, &from)| *to = f16::from_f32(from));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_columns_go_where_they_belong_and_no_further() {
        let tensor = CacheTensor::of_halves("kv", &[2, 4, 1], 4).unwrap();
        let mut state = vec![f16::ZERO; 8];
        put(&tensor, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &mut state, 3, 1..3);
        assert_eq!(state.iter().map(|v| v.to_f32()).collect::<Vec<_>>(), [0.0, 1.0, 2.0, 0.0, 0.0, 4.0, 5.0, 0.0]);
    }

    #[test]
    fn columns_go_out_and_in_along_any_axis() {
        let halves: Vec<f16> = (0..24u16).map(f16::from_bits).collect();
        for (shape, picked) in [
            (vec![2, 4, 3], vec![12, 13, 14, 15, 16, 17]),
            (vec![2, 3, 4], vec![4, 5, 8, 9]),
            (vec![4, 6], vec![0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]),
        ] {
            let tensor = CacheTensor::of_halves("kv", &shape, 4).unwrap();
            let rows = if tensor.rows() == 1 { 0..1 } else { 1..tensor.rows().min(3) };
            let mut bytes = vec![0; rows.len() * 2 * tensor.column_bytes()];
            read(&tensor, &halves, rows.clone(), 2, &mut bytes);
            let found: Vec<u16> = bytes.chunks(2).map(|b| u16::from_le_bytes([b[0], b[1]])).collect();
            assert_eq!(found, picked, "{shape:?}");
            let mut back = vec![f16::NAN; 24];
            write(&tensor, &mut back, rows, 2, &bytes);
            for (index, half) in back.iter().enumerate() {
                let expected = if picked.contains(&(index as u16)) { halves[index] } else { f16::NAN };
                assert_eq!(half.to_bits(), expected.to_bits(), "{shape:?} {index}");
            }
        }
    }
}
