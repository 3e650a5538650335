//! Copies between strided storage and tensors without gaps, and between half and single floats.

use anemone_kernels::Isa;
use anemone_kernels::convert::{f16_to_f32, f32_to_f16};
use anemone_mil::layout::Layout;
use anemone_mil::lower::Workers;
use half::f16;
use half::slice::HalfFloatSliceExt;

/// Elements of a piece of work.
const PIECE: usize = 1 << 12;

/// Calls `f(start in row-major order, start in the storage, length)` for each run of neighbours along the last axes.
fn for_runs(layout: &Layout, mut f: impl FnMut(usize, usize, usize)) {
    // The axes at the end that lie without gaps make one run.
    let mut run = 1;
    let mut outer = layout.shape.len();
    while outer > 0 && (layout.strides[outer - 1] == run || layout.shape[outer - 1] == 1) {
        outer -= 1;
        run *= layout.shape[outer];
    }
    if run == 0 {
        return;
    }
    let rest =
        Layout { offset: layout.offset, shape: layout.shape[..outer].into(), strides: layout.strides[..outer].into() };
    rest.for_each(|i, at| f(i * run, at, run));
}

/// Copies a view to a tensor without gaps.
pub(crate) fn gather<T: Copy>(layout: &Layout, from: &[T], to: &mut [T]) {
    for_runs(layout, |i, at, n| match n {
        1 => to[i] = from[at],
        _ => to[i..i + n].copy_from_slice(&from[at..at + n]),
    });
}

/// As [`gather`] of single floats, in pieces that all threads share.
pub(crate) fn gather_with(workers: &dyn Workers, layout: &Layout, from: &[f32], to: &mut [f32]) {
    let outer = layout.shape.iter().position(|&n| n != 1).unwrap_or(0);
    let inner: usize = layout.shape.iter().skip(outer + 1).product();
    let rows = (PIECE / inner.max(1)).max(1);
    if to.len() <= rows * inner {
        return gather(layout, from, to);
    }
    workers.for_chunks(to, rows * inner, &|i, to| {
        let mut part = layout.clone();
        part.offset += i * rows * part.strides[outer];
        part.shape[outer] = to.len() / inner;
        gather(&part, from, to);
    });
}

/// Copies a view of half floats to single floats without gaps.
pub(crate) fn gather_halves(layout: &Layout, from: &[f16], to: &mut [f32]) {
    let isa = Isa::detect();
    for_runs(layout, |i, at, n| match n {
        1 => to[i] = from[at].to_f32(),
        _ => f16_to_f32(isa, from[at..at + n].reinterpret_cast(), &mut to[i..i + n]),
    });
}

/// Copies single floats without gaps to a view of half floats, rounding to the nearest even.
pub(crate) fn scatter_halves(layout: &Layout, from: &[f32], to: &mut [f16]) {
    let isa = Isa::detect();
    for_runs(layout, |i, at, n| match n {
        1 => to[at] = f16::from_f32(from[i]),
        _ => f32_to_f16(isa, &from[i..i + n], to[at..at + n].reinterpret_cast_mut()),
    });
}

/// Copies a view of single floats to a view of half floats of the same shape, rounding to the nearest even.
pub(crate) fn scatter_view(layout: &Layout, source: &Layout, from: &[f32], to: &mut [f16]) {
    assert_eq!(layout.shape, source.shape, "views of one shape");
    let isa = Isa::detect();
    let mut outer = layout.shape.len();
    let mut run = 1;
    if outer > 0 && layout.strides[outer - 1] == 1 && source.strides[outer - 1] == 1 {
        outer -= 1;
        run = layout.shape[outer];
    }
    let rows: usize = layout.shape[..outer].iter().product();
    for row in 0..rows {
        let (mut rest, mut at, mut there) = (row, layout.offset, source.offset);
        for axis in (0..outer).rev() {
            let i = rest % layout.shape[axis];
            rest /= layout.shape[axis];
            at += i * layout.strides[axis];
            there += i * source.strides[axis];
        }
        match run {
            1 => to[at] = f16::from_f32(from[there]),
            _ => f32_to_f16(isa, &from[there..there + run], to[at..at + run].reinterpret_cast_mut()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_are_gathered_and_scattered_in_row_major_order() {
        let base: Vec<f32> = (0..24).map(|i| i as f32).collect();
        for layout in [
            Layout::contiguous(&[2, 3, 4]),
            Layout::contiguous(&[2, 3, 4]).permuted(&[2, 0, 1]),
            Layout { offset: 5, shape: [2, 1, 3][..].into(), strides: [12, 4, 1][..].into() },
            Layout { offset: 7, shape: [][..].into(), strides: [][..].into() },
            Layout { offset: 0, shape: [2, 0][..].into(), strides: [1, 1][..].into() },
        ] {
            let n: usize = layout.shape.iter().product();
            let mut plain = vec![0.0; n];
            layout.for_each(|i, at| plain[i] = base[at]);
            let mut out = vec![-1.0; n];
            gather(&layout, &base, &mut out);
            assert_eq!(out, plain, "{layout:?}");
            let mut halves = vec![f16::from_f32(-1.0); 24];
            scatter_halves(&layout, &plain, &mut halves);
            gather_halves(&layout, &halves, &mut out);
            assert_eq!(out, plain, "{layout:?}");
            assert_eq!(halves.iter().filter(|h| h.to_f32() != -1.0).count(), n);
            // From the same view of another storage: all that is there.
            let mut copied = vec![f16::from_f32(-1.0); 24];
            scatter_view(&layout, &layout, &base, &mut copied);
            assert_eq!(copied, halves, "{layout:?}");
        }
    }
}
