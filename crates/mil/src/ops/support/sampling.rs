//! Single points of an image, between and outside its pixels.

use super::dims::choice;
use crate::op::{OpError, Operands};

/// What stands outside an image.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Outside {
    /// One value.
    Constant(f32),
    /// The nearest pixel of the border.
    Border,
    /// The image mirrored at the middle of its border pixels.
    Reflection,
    /// The image mirrored at the outer edge of its border pixels.
    Symmetric,
}

impl Outside {
    /// What parameter `mode` says, with the value in parameter `value`.
    ///
    /// # Errors
    /// If it names no way.
    pub fn new(x: &dyn Operands, mode: usize, value: usize) -> Result<Self, OpError> {
        let all = [Outside::Constant(x.f32_or(value, 0.0)?), Outside::Border, Outside::Reflection, Outside::Symmetric];
        Ok(all[choice(x, mode, &["constant", "border", "reflection", "symmetric"])?])
    }

    /// A coordinate brought inside an axis of `n` pixels.
    fn inside(self, at: f32, n: usize) -> f32 {
        let last = n as f32 - 1.0;
        match self {
            Outside::Constant(_) => at,
            Outside::Border => at.clamp(0.0, last),
            Outside::Reflection => mirrored(at, 0.0, last),
            Outside::Symmetric => mirrored(at, -0.5, last + 0.5).clamp(0.0, last),
        }
    }
}

/// A coordinate mirrored at both ends of `low..=high`, as often as it takes.
fn mirrored(at: f32, low: f32, high: f32) -> f32 {
    let span = high - low;
    if span <= 0.0 {
        return low;
    }
    let past = (at - low).abs() % (2.0 * span);
    low + if past > span { 2.0 * span - past } else { past }
}

/// A plane of pixels.
#[derive(Clone, Copy, Debug)]
pub struct Plane<'a> {
    /// The pixels, row by row.
    pub pixels: &'a [f32],
    /// Rows.
    pub height: usize,
    /// Columns.
    pub width: usize,
    /// What stands outside.
    pub outside: Outside,
}

impl Plane<'_> {
    /// The pixel nearest to (`y`, `x`); halfway, the one of even index.
    #[must_use]
    pub fn nearest(&self, y: f32, x: f32) -> f32 {
        let (y, x) = (self.outside.inside(y, self.height), self.outside.inside(x, self.width));
        self.pixel(y.round_ties_even() as i64, x.round_ties_even() as i64)
    }

    /// The four pixels around (`y`, `x`), mixed by nearness.
    #[must_use]
    pub fn bilinear(&self, y: f32, x: f32) -> f32 {
        let (y, x) = (self.outside.inside(y, self.height), self.outside.inside(x, self.width));
        let (top, left) = (y.floor(), x.floor());
        let (down, right) = (y - top, x - left);
        let (top, left) = (top as i64, left as i64);
        let row = |y: i64| {
            let first = self.pixel(y, left);
            if right == 0.0 { first } else { first * (1.0 - right) + self.pixel(y, left.saturating_add(1)) * right }
        };
        let first = row(top);
        if down == 0.0 { first } else { first * (1.0 - down) + row(top.saturating_add(1)) * down }
    }

    fn pixel(&self, y: i64, x: i64) -> f32 {
        let place = |i: i64, n: usize| usize::try_from(i).ok().filter(|&i| i < n);
        match (place(y, self.height), place(x, self.width), self.outside) {
            (Some(y), Some(x), _) => self.pixels[y * self.width + x],
            (_, _, Outside::Constant(value)) => value,
            // What is brought inside leaves by the one pixel that `bilinear` looks further.
            (y, x, _) => {
                let (y, x) = (y.unwrap_or(self.height - 1), x.unwrap_or(self.width - 1));
                self.pixels[y * self.width + x]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outsides_continue_an_axis_as_documented() {
        let row = |outside: Outside| -> Vec<f32> {
            let plane = Plane { pixels: &[1.0, 2.0, 3.0], height: 1, width: 3, outside };
            (-3..6).map(|x| plane.nearest(0.0, x as f32)).collect()
        };
        assert_eq!(row(Outside::Constant(0.0)), [0.0, 0.0, 0.0, 1.0, 2.0, 3.0, 0.0, 0.0, 0.0]);
        assert_eq!(row(Outside::Border), [1.0, 1.0, 1.0, 1.0, 2.0, 3.0, 3.0, 3.0, 3.0]);
        assert_eq!(row(Outside::Reflection), [2.0, 3.0, 2.0, 1.0, 2.0, 3.0, 2.0, 1.0, 2.0]);
        assert_eq!(row(Outside::Symmetric), [3.0, 2.0, 1.0, 1.0, 2.0, 3.0, 3.0, 2.0, 1.0]);
    }

    #[test]
    fn points_that_are_no_numbers_do_not_panic() {
        for outside in [Outside::Constant(7.0), Outside::Border, Outside::Reflection, Outside::Symmetric] {
            let plane = Plane { pixels: &[1.0, 2.0], height: 1, width: 2, outside };
            for at in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX] {
                let _ = (plane.nearest(at, 0.0), plane.bilinear(0.0, at));
            }
        }
    }
}
