//! The geometry of convolution and pooling: up to three spatial axes, and where windows lie on them.

use crate::op::{OpError, Operands};
use crate::types::Shape;

/// One spatial axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axis {
    /// Extent of the image.
    pub image: usize,
    /// Extent of the window.
    pub window: usize,
    /// From one window to the next.
    pub stride: usize,
    /// From one element of a window to the next.
    pub dilation: usize,
    /// Elements that are added before and after the image.
    pub padding: [usize; 2],
    /// The number of windows.
    pub count: usize,
}

/// An axis that is not there.
const NO_AXIS: Axis = Axis { image: 1, window: 1, stride: 1, dilation: 1, padding: [0, 0], count: 1 };

/// Three spatial axes, those that are not there in front.
pub type Axes = [Axis; 3];

/// Indices of the parameters that place windows.
#[derive(Clone, Copy, Debug)]
pub struct Params {
    /// `strides`.
    pub strides: usize,
    /// `pad_type`.
    pub pad_type: usize,
    /// `pad`.
    pub pad: usize,
    /// `dilations`, where the operation has them.
    pub dilations: Option<usize>,
}

/// How much is added around an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Padding<'a> {
    Valid,
    /// So much that there is a window for every stride; an odd one more behind, or before if `lower`.
    Same {
        lower: bool,
    },
    Custom(&'a [i32]),
}

impl Params {
    /// The axes of images of extents `image` and windows of extents `window`, which are all but the first two of an operand.
    ///
    /// # Errors
    /// If a parameter does not fit or a window finds no place.
    pub fn axes(self, x: &dyn Operands, image: &[usize], window: &[usize], ceil: bool) -> Result<Axes, OpError> {
        let padding = self.padding(x, image.len())?;
        self.each(x, image, window, |mut a, i| {
            let reach = reach(a)?;
            a.padding = match padding {
                Padding::Valid => [0, 0],
                Padding::Custom(pad) => [pad[2 * i] as usize, pad[2 * i + 1] as usize],
                Padding::Same { lower } => around(same(a.image, reach, a.stride), lower),
            };
            let room = a.image.checked_add(a.padding[0])?.checked_add(a.padding[1])?.checked_sub(reach)?;
            a.count = room / a.stride + 1;
            if ceil && room % a.stride != 0 {
                a.count += 1;
                // The last window must start on the image or the padding before it.
                let last = (a.count - 1).checked_mul(a.stride)?;
                if a.padding != [0, 0] && last >= a.image + a.padding[0] {
                    a.count -= 1;
                }
            }
            Some(a)
        })
    }

    /// The axes of the transposed convolution: its result is the image, and its operand has one element for each window.
    /// `image` is given where the result's extents are.
    ///
    /// # Errors
    /// If a parameter does not fit.
    pub fn transposed(
        self,
        x: &dyn Operands,
        count: &[usize],
        window: &[usize],
        image: Option<&[usize]>,
    ) -> Result<Axes, OpError> {
        let padding = self.padding(x, count.len())?;
        self.each(x, count, window, |mut a, i| {
            let reach = reach(a)?;
            a.count = a.image;
            let whole = a.count.checked_sub(1).map_or(Some(0), |n| n.checked_mul(a.stride)?.checked_add(reach))?;
            let given = image.map(|g| g[i]);
            (a.padding, a.image) = match padding {
                Padding::Valid => ([0, 0], given.unwrap_or(whole)),
                Padding::Custom(pad) => {
                    let pad = [pad[2 * i] as usize, pad[2 * i + 1] as usize];
                    let left = match given {
                        Some(n) => n,
                        None => whole.checked_sub(pad[0].checked_add(pad[1])?)?,
                    };
                    (pad, left)
                }
                Padding::Same { lower } => {
                    let n = match given {
                        Some(n) => n,
                        None => a.count.checked_mul(a.stride)?,
                    };
                    (around(same(n, reach, a.stride), lower), n)
                }
            };
            Some(a)
        })
    }

    fn each(
        self,
        x: &dyn Operands,
        image: &[usize],
        window: &[usize],
        mut place: impl FnMut(Axis, usize) -> Option<Axis>,
    ) -> Result<Axes, OpError> {
        let n = image.len();
        if !(1..=3).contains(&n) || window.len() != n {
            let found = format!("images of extents {image:?}, windows of {window:?}");
            return Err(OpError::mismatch("1 to 3 spatial axes, as many of images as of windows", found));
        }
        let strides = steps(x, Some(self.strides), n)?;
        let dilations = steps(x, self.dilations, n)?;
        let mut axes = [NO_AXIS; 3];
        for i in 0..n {
            let axis = Axis {
                image: image[i],
                window: window[i],
                stride: strides.map_or(1, |s| s[i] as usize),
                dilation: dilations.map_or(1, |s| s[i] as usize),
                ..NO_AXIS
            };
            axes[3 - n + i] = place(axis, i).ok_or_else(|| {
                let Axis { image, window, dilation, .. } = axis;
                let found = format!("a window of {window}, dilated by {dilation}, on {image} along spatial axis {i}");
                OpError::mismatch("windows that find a place on the padded image", found)
            })?;
        }
        Ok(axes)
    }

    fn padding<'a>(self, x: &'a dyn Operands, n: usize) -> Result<Padding<'a>, OpError> {
        let name = x.text_or(self.pad_type, "valid")?;
        let is = |other: &str| name.eq_ignore_ascii_case(other);
        if is("valid") {
            Ok(Padding::Valid)
        } else if is("same") || is("same_lower") {
            Ok(Padding::Same { lower: is("same_lower") })
        } else if is("custom") {
            let pad = x.i32s(self.pad)?;
            if pad.len() == 2 * n && pad.iter().all(|&p| p >= 0) {
                Ok(Padding::Custom(pad))
            } else {
                Err(x.bad(self.pad, format!("{n} pairs of numbers of 0 or more"), pad))
            }
        } else {
            Err(x.bad(self.pad_type, "valid, same, same_lower or custom", name))
        }
    }
}

/// Strides or dilations, if they were given.
fn steps(x: &dyn Operands, param: Option<usize>, n: usize) -> Result<Option<&[i32]>, OpError> {
    let Some(param) = param.filter(|&p| x.has(p)) else { return Ok(None) };
    let v = x.i32s(param)?;
    if v.len() == n && v.iter().all(|&s| s > 0) {
        Ok(Some(v))
    } else {
        Err(x.bad(param, format!("{n} numbers of 1 or more"), v))
    }
}

/// From the first element of a window to behind its last.
fn reach(a: Axis) -> Option<usize> {
    a.window.checked_sub(1)?.checked_mul(a.dilation)?.checked_add(1)
}

/// How much must be added to an image for `ceil(image / stride)` windows.
fn same(image: usize, reach: usize, stride: usize) -> usize {
    let last = image.saturating_sub(1) / stride * stride;
    last.saturating_add(reach).saturating_sub(image)
}

/// Half before and half behind.
fn around(total: usize, lower: bool) -> [usize; 2] {
    let less = total / 2;
    if lower { [total - less, less] } else { [less, total - less] }
}

/// The extents of `axes` that are there, the last `n`.
#[must_use]
pub fn extents(axes: &Axes, n: usize, extent: impl Fn(&Axis) -> usize) -> Shape {
    axes[3 - n..].iter().map(extent).collect()
}

impl Axis {
    /// The windows whose element `at` lies on the image, and where it does in the first of them.
    #[must_use]
    pub fn meeting(&self, at: usize) -> (std::ops::Range<usize>, usize) {
        let (offset, before) = (at * self.dilation, self.padding[0]);
        let first = before.saturating_sub(offset).div_ceil(self.stride);
        let start = first.saturating_mul(self.stride).saturating_add(offset).saturating_sub(before);
        let behind = first.saturating_add(self.image.saturating_sub(start).div_ceil(self.stride));
        (first..behind.min(self.count).max(first), start)
    }

    /// The elements of the image that window `i` covers, if the dilation is 1, and how many it would cover with the padding.
    #[must_use]
    pub fn covered(&self, i: usize) -> (std::ops::Range<usize>, usize) {
        let start = i * self.stride;
        let end = start.saturating_add(self.window).min(self.image + self.padding[0] + self.padding[1]);
        let on_image = |p: usize| p.saturating_sub(self.padding[0]).min(self.image);
        (on_image(start)..on_image(end), end.saturating_sub(start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_that_meet_the_image_are_those_found_one_by_one() {
        for (image, window, stride, dilation, before) in
            [(5, 3, 1, 1, 1), (5, 3, 2, 1, 0), (7, 2, 3, 2, 4), (1, 4, 1, 1, 3), (4, 2, 5, 3, 2)]
        {
            let axis = Axis { image, window, stride, dilation, padding: [before, 9], count: 6 };
            for at in 0..window {
                let on = |i: usize| (i * stride + at * dilation).checked_sub(before).filter(|&p| p < image);
                let expected: Vec<usize> = (0..6).filter(|&i| on(i).is_some()).collect();
                let (range, start) = axis.meeting(at);
                assert_eq!(range.clone().collect::<Vec<_>>(), expected, "{axis:?} {at}");
                if let Some(first) = range.clone().next() {
                    assert_eq!(Some(start), on(first));
                }
            }
        }
    }

    #[test]
    fn same_padding_is_that_of_tensorflow() {
        assert_eq!(around(same(5, 3, 2), false), [1, 1]);
        assert_eq!(around(same(6, 3, 2), false), [0, 1]);
        assert_eq!(around(same(6, 3, 2), true), [1, 0]);
        assert_eq!(same(6, 1, 2), 0);
        assert_eq!(same(4, 4, 1), 3);
    }
}
