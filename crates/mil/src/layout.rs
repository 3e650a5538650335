//! Strided layouts: how a view lies in the storage of another tensor.

use crate::types::Shape;

/// Where the elements of a tensor lie in a storage of contiguous elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Index of the first element.
    pub offset: usize,
    /// Extents.
    pub shape: Shape,
    /// Distance, in elements, between neighbours along each axis. 0 repeats.
    pub strides: Shape,
}

impl Layout {
    /// Row-major without gaps.
    #[must_use]
    pub fn contiguous(shape: &[usize]) -> Self {
        let mut strides = Shape::from_elem(1, shape.len());
        for i in (1..shape.len()).rev() {
            strides[i - 1] = strides[i] * shape[i];
        }
        Self { offset: 0, shape: shape.into(), strides }
    }

    /// Whether the elements lie row-major without gaps from the offset on.
    #[must_use]
    pub fn is_contiguous(&self) -> bool {
        let mut expected = 1;
        for (&n, &s) in self.shape.iter().zip(&self.strides).rev() {
            if n != 1 && s != expected {
                return false;
            }
            expected *= n;
        }
        true
    }

    /// The axes in another order.
    #[must_use]
    pub fn permuted(&self, perm: &[usize]) -> Self {
        Self {
            offset: self.offset,
            shape: perm.iter().map(|&a| self.shape[a]).collect(),
            strides: perm.iter().map(|&a| self.strides[a]).collect(),
        }
    }

    /// Another shape over the same elements in row-major order, if strides can express it.
    #[must_use]
    pub fn reshaped(&self, shape: &[usize]) -> Option<Self> {
        if shape.iter().product::<usize>() != self.shape.iter().product::<usize>() {
            return None;
        }
        if shape.contains(&0) {
            return Some(Self { offset: self.offset, ..Self::contiguous(shape) });
        }
        // Runs of old axes that together make a run of new axes must be without gaps within themselves.
        let old: Vec<(usize, usize)> =
            self.shape.iter().copied().zip(self.strides.iter().copied()).filter(|&(n, _)| n != 1).collect();
        let mut strides = Shape::from_elem(1, shape.len());
        let (mut i, mut j) = (0, 0);
        while i < old.len() {
            let (first, start) = (i, j);
            let (mut have, mut want) = (old[i].0, shape[j]);
            (i, j) = (i + 1, j + 1);
            while have != want {
                if want < have {
                    want *= shape[j];
                    j += 1;
                } else {
                    have *= old[i].0;
                    i += 1;
                }
            }
            if old[first..i].windows(2).any(|w| w[0].1 != w[1].0 * w[1].1) {
                return None;
            }
            let mut stride = old[i - 1].1;
            for axis in (start..j).rev() {
                strides[axis] = stride;
                stride *= shape[axis];
            }
        }
        Some(Self { offset: self.offset, shape: shape.into(), strides })
    }

    /// Calls `f(index in row-major order, index in the storage)` for each element.
    pub fn for_each(&self, mut f: impl FnMut(usize, usize)) {
        let total: usize = self.shape.iter().product();
        let Some(last) = self.shape.len().checked_sub(1) else {
            f(0, self.offset);
            return;
        };
        let (run, step) = (self.shape[last], self.strides[last]);
        let mut index: Shape = Shape::from_elem(0, last);
        let (mut at, mut done) = (self.offset, 0);
        while done < total {
            for k in 0..run {
                f(done + k, at + k * step);
            }
            done += run;
            for axis in (0..last).rev() {
                index[axis] += 1;
                at += self.strides[axis];
                if index[axis] < self.shape[axis] {
                    break;
                }
                at -= self.strides[axis] * self.shape[axis];
                index[axis] = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn elements(l: &Layout) -> Vec<usize> {
        let mut all = vec![0; l.shape.iter().product()];
        l.for_each(|i, at| all[i] = at);
        all
    }

    #[test]
    fn reshaping_keeps_the_order_of_elements_or_refuses() {
        let base = Layout::contiguous(&[2, 3, 4]);
        let views = [
            base.clone(),
            base.permuted(&[1, 0, 2]),
            base.permuted(&[2, 1, 0]),
            Layout { offset: 4, shape: [2, 1, 4][..].into(), strides: [12, 4, 1][..].into() },
        ];
        let mut kept = 0;
        for v in &views {
            let n: usize = v.shape.iter().product();
            for shape in [
                &[n][..],
                &[1, n],
                &[n, 1],
                &[2, n / 2],
                &[n / 2, 2],
                &[n / 4, 1, 4],
                &[2, 1, n / 4, 2],
                &[n / 4, 2, 2],
            ] {
                if let Some(r) = v.reshaped(shape) {
                    assert_eq!(elements(&r), elements(v), "{v:?} as {shape:?}");
                    kept += 1;
                }
            }
        }
        assert_eq!(kept, 12, "reshapes expressed by strides");
        let r = base.permuted(&[1, 0, 2]).reshaped(&[3, 1, 2, 2, 2, 1]).unwrap();
        assert_eq!(elements(&r), elements(&base.permuted(&[1, 0, 2])));
    }

    #[test]
    fn reshaping_a_contiguous_layout_always_succeeds() {
        for (from, to) in
            [(&[6][..], &[2, 3][..]), (&[2, 3, 4], &[6, 4]), (&[2, 3, 4], &[4, 3, 2]), (&[1, 1], &[]), (&[], &[1, 1])]
        {
            let r = Layout::contiguous(from).reshaped(to).unwrap();
            assert!(r.is_contiguous(), "{from:?} → {to:?}: {r:?}");
        }
    }
}
