//! Copies between strided storage and tensors without gaps, and between half and single floats.

use anemone_mil::layout::Layout;
use half::f16;
use half::slice::HalfFloatSliceExt;

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

/// Copies a view of half floats to single floats without gaps.
pub(crate) fn gather_halves(layout: &Layout, from: &[f16], to: &mut [f32]) {
    for_runs(layout, |i, at, n| match n {
        1 => to[i] = from[at].to_f32(),
        _ => from[at..at + n].convert_to_f32_slice(&mut to[i..i + n]),
    });
}

/// Copies single floats without gaps to a view of half floats, rounding to the nearest even.
pub(crate) fn scatter_halves(layout: &Layout, from: &[f32], to: &mut [f16]) {
    for_runs(layout, |i, at, n| match n {
        1 => to[at] = f16::from_f32(from[i]),
        _ => to[at..at + n].convert_from_f32_slice(&from[i..i + n]),
    });
}

/// Copies a view of single floats to a view of half floats of the same shape, rounding to the nearest even.
pub(crate) fn scatter_view(layout: &Layout, source: &Layout, from: &[f32], to: &mut [f16]) {
    assert_eq!(layout.shape, source.shape, "views of one shape");
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
            _ => to[at..at + run].convert_from_f32_slice(&from[there..there + run]),
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
