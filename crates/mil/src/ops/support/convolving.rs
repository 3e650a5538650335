//! Convolution and its transposition over up to three spatial axes.

use super::number::{add_scaled, dot};
use super::windows::{Axes, Axis, Params, extents};
use crate::op::{OpError, Operands};
use crate::types::{Shape, StaticType};

/// Indices of the parameters of a convolution.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// The image.
    pub x: usize,
    /// The weight.
    pub weight: usize,
    /// The bias.
    pub bias: usize,
    /// How windows are placed.
    pub windows: Params,
    /// The number of groups.
    pub groups: usize,
    /// The shape of the result of a transposed convolution.
    pub output_shape: Option<usize>,
}

/// A convolution: which extents meet.
#[derive(Clone, Copy, Debug)]
pub struct Convolution {
    pub(super) groups: usize,
    /// Channels of `x` in one group.
    pub(super) from: usize,
    /// Channels of the result in one group.
    pub(super) to: usize,
    pub(super) axes: Axes,
    spatial: usize,
    pub(super) transposed: bool,
}

impl Convolution {
    /// What the operands say.
    ///
    /// # Errors
    /// If they do not fit each other.
    pub fn new(x: &dyn Operands, layout: Layout) -> Result<Self, OpError> {
        let transposed = layout.output_shape.is_some();
        let (image, weight) = (x.shape(layout.x), x.shape(layout.weight));
        let ([n, c, image @ ..], [a, b, window @ ..]) = (image, weight) else {
            return Err(x.bad(layout.weight, "a weight of the rank of x, 3 to 5", weight));
        };
        let groups = x.i32_or(layout.groups, 1)?;
        let groups = usize::try_from(groups)
            .ok()
            .filter(|&g| g > 0 && c % g == 0)
            .ok_or_else(|| x.bad(layout.groups, format!("a divisor of the {c} channels of x"), groups))?;
        let from = c / groups;
        let to =
            if transposed { (*a == *c).then_some(*b) } else { (*b == from && a % groups == 0).then_some(a / groups) };
        let to =
            to.ok_or_else(|| x.bad(layout.weight, format!("a weight for {c} channels in {groups} groups"), weight))?;
        let channels = super::dims::product(&[to, groups])?;
        if x.has(layout.bias) && *x.shape(layout.bias) != [channels] {
            return Err(x.bad(layout.bias, format!("{channels} elements"), x.shape(layout.bias)));
        }
        let axes = match layout.output_shape {
            None => layout.windows.axes(x, image, window, false)?,
            Some(param) if x.has(param) => {
                let wanted = x.i32s(param)?;
                let given: Shape = wanted.iter().map_while(|&v| usize::try_from(v).ok()).collect();
                if given.len() != image.len() + 2 || wanted.len() != given.len() || given[..2] != [*n, channels] {
                    return Err(x.bad(param, format!("{n}, {channels}, and {} extents", image.len()), wanted));
                }
                layout.windows.transposed(x, image, window, Some(&given[2..]))?
            }
            Some(_) => layout.windows.transposed(x, image, window, None)?,
        };
        Ok(Self { groups, from, to, axes, spatial: image.len(), transposed })
    }

    /// The type of the result for `x` of type `ty`.
    ///
    /// # Errors
    /// If the channels overflow.
    pub fn result(&self, mut ty: StaticType) -> Result<StaticType, OpError> {
        ty.shape.truncate(1);
        ty.shape.push(super::dims::product(&[self.to, self.groups])?);
        ty.shape.extend(extents(&self.axes, self.spatial, |a| if self.transposed { a.image } else { a.count }));
        Ok(ty)
    }

    /// Computes the result. `weight(i)` is element `i` of the weight, `bias(c)` is what channel `c` starts with.
    pub fn run(&self, x: &[f32], weight: impl Fn(usize) -> f32, bias: impl Fn(usize) -> f32, out: &mut [f32]) {
        let size = |f: fn(&Axis) -> usize| self.axes.iter().map(f).product::<usize>();
        let (images, windows, taps) = (size(|a| a.image), size(|a| a.count), size(|a| a.window));
        let (out_size, x_size) = if self.transposed { (images, windows) } else { (windows, images) };
        for (i, plane) in out.chunks_exact_mut(out_size).enumerate() {
            let channel = i % (self.to * self.groups);
            let (n, group, j) = (i / (self.to * self.groups), channel / self.to, channel % self.to);
            plane.fill(bias(channel));
            for k in 0..self.from {
                let from = ((n * self.groups + group) * self.from + k) * x_size;
                let tap = if self.transposed { (group * self.from + k) * self.to + j } else { channel * self.from + k };
                self.add_plane(&x[from..from + x_size], |t| weight(tap * taps + t), plane);
            }
        }
    }

    /// Adds what one plane of `x` gives to one plane of the result.
    fn add_plane(&self, x: &[f32], weight: impl Fn(usize) -> f32, out: &mut [f32]) {
        let [d, h, w] = &self.axes;
        let mut tap = 0;
        for z in 0..d.window {
            for y in 0..h.window {
                for t in 0..w.window {
                    let factor = weight(tap);
                    tap += 1;
                    let ((ds, z0), (hs, y0), (ws, x0)) = (d.meeting(z), h.meeting(y), w.meeting(t));
                    if ws.is_empty() {
                        continue;
                    }
                    for (iz, dz) in ds.clone().enumerate() {
                        for (iy, hy) in hs.clone().enumerate() {
                            let line = ((z0 + iz * d.stride) * h.image + y0 + iy * h.stride) * w.image + x0;
                            let row = (dz * h.count + hy) * w.count + ws.start;
                            self.add_line(x, out, factor, (line, row, ws.len()));
                        }
                    }
                }
            }
        }
    }

    /// Adds along the last axis: `len` elements of the image from `line` on, `stride` apart, and of the windows from `row` on.
    fn add_line(&self, x: &[f32], out: &mut [f32], factor: f32, (line, row, len): (usize, usize, usize)) {
        let stride = self.axes[2].stride;
        match (self.transposed, stride) {
            (false, 1) => add_scaled(&mut out[row..row + len], factor, &x[line..line + len]),
            (true, 1) => add_scaled(&mut out[line..line + len], factor, &x[row..row + len]),
            (false, _) => {
                for (o, v) in out[row..row + len].iter_mut().zip(x[line..].iter().step_by(stride)) {
                    *o += factor * v;
                }
            }
            (true, _) => {
                for (o, v) in out[line..].iter_mut().step_by(stride).zip(&x[row..row + len]) {
                    *o += factor * v;
                }
            }
        }
    }

    /// The number of windows, and the elements of the image that each covers, if there is one group and nothing is transposed.
    #[must_use]
    pub fn patches(&self) -> Option<(usize, usize)> {
        let size = |f: fn(&Axis) -> usize| self.axes.iter().map(f).product::<usize>();
        (self.groups == 1 && !self.transposed).then(|| (size(|a| a.count), self.from * size(|a| a.window)))
    }

    /// Whether each group has one channel of the image, and few of results.
    #[must_use]
    pub fn alone(&self) -> bool {
        self.from == 1 && self.to <= 2
    }

    /// What window `at` covers of one image with all its channels, as a row of (channel, element of the window); zero beside
    /// the image.
    pub fn patch(&self, image: &[f32], at: usize, row: &mut [f32]) {
        let [d, h, w] = &self.axes;
        let (x, y, z) = (at % w.count, at / w.count % h.count, at / w.count / h.count);
        let on = |a: &Axis, window: usize, tap: usize| {
            (window * a.stride + tap * a.dilation).checked_sub(a.padding[0]).filter(|&i| i < a.image)
        };
        let mut runs = row.chunks_exact_mut(w.window);
        for plane in image.chunks_exact(d.image * h.image * w.image) {
            for (tap_z, tap_y) in (0..d.window).flat_map(|z| (0..h.window).map(move |y| (z, y))) {
                let Some(run) = runs.next() else { return };
                let line = on(d, z, tap_z).zip(on(h, y, tap_y)).map(|(z, y)| &plane[(z * h.image + y) * w.image..]);
                for (tap, to) in run.iter_mut().enumerate() {
                    *to = line.and_then(|line| on(w, x, tap).map(|i| line[i])).unwrap_or(0.0);
                }
            }
        }
    }

    /// Whether each result is the product of one row of the weight and all of one image's group: one window, which covers the
    /// image and nothing else.
    #[must_use]
    pub fn is_product(&self) -> bool {
        !self.transposed && self.axes.iter().all(|a| a.count == 1 && a.image == a.window && a.padding == [0, 0])
    }

    /// As [`Self::run`], where [`Self::is_product`].
    pub fn run_product(&self, x: &[f32], weight: &[f32], bias: impl Fn(usize) -> f32, out: &mut [f32]) {
        let len = self.from * self.axes.iter().map(|a| a.window).product::<usize>();
        for (i, o) in out.iter_mut().enumerate() {
            let channel = i % (self.to * self.groups);
            let from = (i / (self.to * self.groups) * self.groups + channel / self.to) * len;
            *o = bias(channel) + dot(&x[from..from + len], &weight[channel * len..(channel + 1) * len]);
        }
    }
}

/// The bias of each channel.
///
/// # Errors
/// If it is no floating tensor.
pub fn bias(x: &dyn Operands, param: usize) -> Result<impl Fn(usize) -> f32, OpError> {
    let bias = if x.has(param) { Some(x.f32s(param)?) } else { None };
    Ok(move |c: usize| bias.map_or(0.0, |b| b[c]))
}
