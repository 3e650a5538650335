//! Convolutions over one or two axes, in groups too, on kernels that read runs of windows from padded planes.

use std::sync::Arc;

use anemone_kernels::Isa;
use anemone_kernels::buffer::Buffer;
use anemone_kernels::columns::Columns;
use anemone_kernels::convolve::{self, Geometry, TOGETHER, weight_at};
use smallvec::SmallVec;

use super::convolving::{Convolution, Layout, bias};
use super::windows::Axis;
use crate::lower::{Context, Kernel, LowerOperands, Workers};
use crate::op::{OpError, Operands, Out};

/// A convolution with a packed weight.
#[derive(Debug)]
pub struct Planes {
    isa: Isa,
    weights: Arc<Buffer>,
    layout: Layout,
    /// Floats of one image's planes with their padding, where they are not read as they lie.
    scratch: usize,
}

/// Windows of more elements are rows of patches.
const TAPS: usize = 64;
/// Elements that a plane may have beyond four times those of image and result.
const BESIDE: usize = 1 << 12;
/// Windows that one piece of work has at least, where there are as many. Fixed, so that results do not depend on the number of
/// threads.
const WINDOWS: usize = 256;
/// Results that a piece of work has at least, where each channel has one of its own.
const RESULTS: usize = 1 << 12;
/// Pieces of work that there are at least, where channels can be cut.
const PIECES: usize = 8;
/// Channels of results of one piece of work, and the most pieces that there are of them.
const CHANNELS: usize = 64;
const PARTS: usize = 16;

/// How planes are laid out for a convolution.
#[derive(Clone, Copy)]
struct Plan {
    convolution: Convolution,
    /// Along each of the last two axes: extent, and phases of it, of a plane with its padding.
    extents: [usize; 2],
    phases: [usize; 2],
    /// Whether the image is read as it lies.
    direct: bool,
}

impl Plan {
    fn new(convolution: Convolution) -> Option<Self> {
        let [depth, h, w] = convolution.axes;
        let phases = [h, w].map(|a| a.stride.min((a.window - 1) * a.dilation + 1));
        let extents = [h, w].map(|a| (a.window - 1) * a.dilation / a.stride + a.count);
        let direct = [h, w].iter().all(|a| a.stride == 1 && a.padding == [0, 0]);
        let taps = h.window.checked_mul(w.window).filter(|&n| n <= TAPS);
        let flat = depth.image == 1 && depth.window == 1 && depth.count == 1 && depth.padding == [0, 0];
        taps.filter(|_| flat && !convolution.transposed)?;
        // Far strides and wide padding could ask for more memory than image and result have.
        let plane = phases.iter().chain(&extents).try_fold(1_usize, |n, &m| n.checked_mul(m))?;
        let bound = 4 * (h.image * w.image + h.count * w.count) + BESIDE;
        (plane <= bound).then_some(Self { convolution, extents, phases, direct })
    }

    /// Elements of a plane as it is laid out.
    fn plane(&self) -> usize {
        let [_, h, w] = self.convolution.axes;
        if self.direct { h.image * w.image } else { self.phases.iter().chain(&self.extents).product() }
    }

    fn channels(&self) -> usize {
        self.convolution.groups * self.convolution.from
    }

    fn scratch(&self) -> usize {
        if self.direct { 0 } else { self.channels() * self.plane() }
    }

    fn pitch(&self) -> usize {
        if self.direct { self.convolution.axes[2].image } else { self.extents[1] }
    }

    /// Where each tap of the first window lies in its plane.
    fn taps(&self) -> SmallVec<[usize; TAPS]> {
        let [_, h, w] = self.convolution.axes;
        let along = |a: &Axis, tap: usize| (tap * a.dilation % a.stride, tap * a.dilation / a.stride);
        let each = (0..h.window).flat_map(|y| (0..w.window).map(move |x| (y, x)));
        each.map(|(y, x)| {
            let ((phase_y, y), (phase_x, x)) = (along(&h, y), along(&w, x));
            (phase_y * self.phases[1] + phase_x) * self.extents[0] * self.extents[1] + y * self.pitch() + x
        })
        .collect()
    }

    /// Lays a plane out: its phases one after the other, zero beside the image.
    fn lay(&self, image: &[f32], plane: &mut [f32]) {
        let [_, h, w] = self.convolution.axes;
        let on = |a: &Axis, phase: usize, i: usize| {
            (i * a.stride + phase).checked_sub(a.padding[0]).filter(|&p| p < a.image)
        };
        for (phase, plane) in plane.chunks_exact_mut(self.extents[0] * self.extents[1]).enumerate() {
            let (phase_y, phase_x) = (phase / self.phases[1], phase % self.phases[1]);
            // The columns that lie on the image follow each other.
            let before = (0..self.extents[1]).take_while(|&x| on(&w, phase_x, x).is_none()).count();
            let n = (before..self.extents[1]).take_while(|&x| on(&w, phase_x, x).is_some()).count();
            let first = on(&w, phase_x, before).unwrap_or(0);
            for (y, line) in plane.chunks_exact_mut(self.extents[1]).enumerate() {
                let Some(row) = on(&h, phase_y, y).filter(|_| n > 0) else {
                    line.fill(0.0);
                    continue;
                };
                let row = &image[row * w.image + first..(row + 1) * w.image];
                line[..before].fill(0.0);
                line[before + n..].fill(0.0);
                let line = &mut line[before..before + n];
                match w.stride {
                    1 => line.copy_from_slice(&row[..n]),
                    step => line.iter_mut().zip(row.iter().step_by(step)).for_each(|(to, &from)| *to = from),
                }
            }
        }
    }
}

impl Planes {
    /// The kernel of a convolution with a constant weight, over at most two axes with windows of few elements.
    pub fn new(x: &dyn LowerOperands, layout: Layout) -> Option<Self> {
        let convolution = Convolution::new(x, layout).ok()?;
        let plan = Plan::new(convolution)?;
        let packed = x.packed_at(layout.weight, 0)?;
        let shape = &packed.ty().shape;
        let (rows, k) = (*shape.first()?, shape.iter().skip(1).product::<usize>());
        if rows == 0 || k == 0 || !packed.ty().dtype.is_float() {
            return None;
        }
        let make = || {
            let mut values = vec![0.0; rows * k];
            packed.decode(0..rows * k, &mut values);
            if convolution.alone() {
                return Buffer::filled(4 * values.len(), |bytes| {
                    bytes.chunks_exact_mut(4).zip(&values).for_each(|(to, v)| to.copy_from_slice(&v.to_le_bytes()));
                });
            }
            convolve::pack(convolution.groups, convolution.to, k, &values)
        };
        let weights = super::matrix::kept(&packed, convolution.groups as u64, x.pack_cache(), make);
        Some(Self { isa: Isa::detect(), weights, layout, scratch: plan.scratch() })
    }

    /// The weight's element `i`, row-major.
    fn weight(&self, c: &Convolution, k: usize, i: usize) -> f32 {
        let (row, i) = (i / k, i % k);
        let at = match c.alone() {
            true => row * k + i,
            false => row / c.to * c.to.next_multiple_of(TOGETHER) * k + weight_at(k, row % c.to, i),
        };
        self.weights.as_chunks().0.get(at).map_or(0.0, |&b| f32::from_le_bytes(b))
    }
}

impl Kernel for Planes {
    fn run(&self, x: &dyn Operands, out: &mut [Out<'_>], cx: &mut Context<'_>) -> Result<(), OpError> {
        let convolution = Convolution::new(x, self.layout)?;
        let (images, out) = (x.f32s(self.layout.x)?, out[0].f32s()?);
        let [_, h, w] = convolution.axes;
        let (size, windows) = (x.shape(self.layout.x)[1..].iter().product::<usize>(), h.count * w.count);
        if out.is_empty() {
            return Ok(());
        }
        let taps = h.window * w.window;
        let k = convolution.from * taps;
        // Another shape of the same plan may not have the room.
        let Some(plan) = Plan::new(convolution).filter(|p| p.scratch() <= cx.scratch.len() && size > 0) else {
            convolution.run(images, |i| self.weight(&convolution, k, i), bias(x, self.layout.bias)?, out);
            return Ok(());
        };
        let bias = if x.has(self.layout.bias) { Some(x.f32s(self.layout.bias)?) } else { None };
        let taps = plan.taps();
        let geometry = Geometry { plane: plan.plane(), pitch: plan.pitch(), width: w.count, taps: &taps };
        let (channels, rows) = (plan.channels(), convolution.groups * convolution.to);
        for (image, out) in images.chunks_exact(size).zip(out.chunks_exact_mut(rows * windows)) {
            let laid = &mut cx.scratch[..plan.scratch()];
            if !plan.direct {
                let together = RESULTS.div_ceil(geometry.plane).min(channels);
                let source = h.image * w.image;
                cx.workers.for_chunks(laid, together * geometry.plane, &|piece, planes| {
                    for (i, plane) in planes.chunks_exact_mut(geometry.plane).enumerate() {
                        plan.lay(&image[(piece * together + i) * source..][..source], plane);
                    }
                });
            }
            let image = if plan.direct { image } else { &*laid };
            if convolution.alone() {
                self.alone(image, &convolution, geometry, bias, out, cx.workers);
            } else {
                self.together(image, &convolution, geometry, bias, out, cx.workers);
            }
        }
        Ok(())
    }

    fn scratch(&self) -> usize {
        self.scratch
    }

    fn holds(&self, param: usize) -> bool {
        param == self.layout.weight
    }
}

impl Planes {
    /// Groups of one channel.
    fn alone(
        &self,
        image: &[f32],
        c: &Convolution,
        geometry: Geometry<'_>,
        bias: Option<&[f32]>,
        out: &mut [f32],
        workers: &dyn Workers,
    ) {
        let windows = out.len() / (c.groups * c.to);
        let (together, k) = (RESULTS.div_ceil(windows).min(c.groups * c.to), 4 * geometry.taps.len());
        workers.for_chunks(out, together * windows, &|piece, planes| {
            for (i, out) in planes.chunks_exact_mut(windows).enumerate() {
                let channel = piece * together + i;
                let plane = &image[channel / c.to * geometry.plane..][..geometry.plane];
                let bias = bias.map_or(0.0, |b| b[channel]);
                convolve::convolve_plane(self.isa, plane, geometry, &self.weights[channel * k..][..k], bias, out);
            }
        });
    }

    /// Groups of several channels.
    fn together(
        &self,
        image: &[f32],
        c: &Convolution,
        geometry: Geometry<'_>,
        bias: Option<&[f32]>,
        out: &mut [f32],
        workers: &dyn Workers,
    ) {
        let windows = out.len() / (c.groups * c.to);
        let k = c.from * geometry.taps.len();
        let rows = if geometry.pitch == geometry.width { 1 } else { geometry.width };
        let piece = WINDOWS.next_multiple_of(rows);
        let pieces = windows.div_ceil(piece);
        let part = c.to.div_ceil(PIECES.div_ceil(pieces)).min(CHANNELS);
        let part = part.max(c.to.div_ceil(PARTS)).next_multiple_of(TOGETHER);
        for (group, out) in out.chunks_exact_mut(c.to * windows).enumerate() {
            let image = &image[group * c.from * geometry.plane..][..c.from * geometry.plane];
            let weights = c.to.next_multiple_of(TOGETHER) * k * 4;
            let weights = &self.weights[group * weights..][..weights];
            let bias = bias.map(|b| &b[group * c.to..][..c.to]);
            let mut outs: SmallVec<[Columns<'_>; PARTS]> =
                out.chunks_mut(part * windows).map(|out| Columns::new(out, windows)).collect();
            workers.for_columns(&mut outs, piece, &|i, first, out| {
                let range = i * part..i * part + out.rows();
                let weights = &weights[range.start * k * 4..];
                let bias = bias.map(|b| &b[range.clone()]);
                convolve::convolve(self.isa, (image, c.from), geometry, weights, bias, first, out);
            });
        }
    }
}
