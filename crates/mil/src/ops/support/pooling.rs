//! What the pooling operations share: windows over the spatial axes of images (n, C, …).

use std::fmt;

use smallvec::smallvec;

use super::dims::choice;
use super::elementwise::expect_float;
use super::windows::{Axes, Axis, Params, extents};
use crate::lower::{Context, Kernel, LowerOperands};
use crate::op::{OpError, Operands, Out, Param, Results};
use crate::ops::support::spread::PIECE;
use crate::types::Shape;

const X: usize = 0;
const KERNEL_SIZES: usize = 1;
const WINDOWS: Params = Params { strides: 2, pad_type: 3, pad: 4, dilations: None };
const CEIL_MODE: usize = 5;

/// The parameters that every pooling operation has.
pub const PARAMS: [Param; 6] = [
    Param::required("x"),
    Param::required("kernel_sizes"),
    Param::optional("strides"),
    Param::required("pad_type"),
    Param::optional("pad"),
    Param::optional("ceil_mode"),
];

fn axes(x: &dyn Operands) -> Result<(Axes, usize), OpError> {
    let [_, _, image @ ..] = x.shape(X) else { return Err(x.bad(X, "rank 3 to 5", x.shape(X))) };
    let sizes = x.i32s(KERNEL_SIZES)?;
    let window: Shape = sizes.iter().map_while(|&k| usize::try_from(k).ok()).collect();
    if window.len() != sizes.len() {
        return Err(x.bad(KERNEL_SIZES, "sizes of 1 or more", sizes));
    }
    let ceil = x.bool_or(CEIL_MODE, false)?;
    let axes = WINDOWS.axes(x, image, &window, ceil)?;
    let one_sided = axes.iter().any(|a| a.padding[0] != a.padding[1]);
    if ceil && (one_sided || choice(x, WINDOWS.pad_type, &["valid", "custom", "same", "same_lower"])? > 1) {
        return Err(x.bad(CEIL_MODE, "false where padding is `same` or differs before and behind", ceil));
    }
    Ok((axes, image.len()))
}

/// The type of the result.
///
/// # Errors
/// If the operands do not fit.
pub fn infer(x: &dyn Operands) -> Result<Results, OpError> {
    expect_float(x, X)?;
    let (axes, n) = axes(x)?;
    let mut ty = x.ty(X);
    ty.shape.truncate(2);
    ty.shape.extend(extents(&axes, n, |a| a.count));
    Ok(smallvec![ty])
}

/// For each window folds the elements of the image that it covers with `f`, from `start` on, and then gives the sum to
/// `finish` with how many elements it covers, of the image and of image and padding together.
///
/// # Errors
/// If the operands do not fit.
pub fn eval(
    x: &dyn Operands,
    out: &mut Out<'_>,
    start: f32,
    f: impl Fn(f32, f32) -> f32,
    finish: impl Fn(f32, usize, usize) -> f32,
) -> Result<(), OpError> {
    if out.shape.contains(&0) {
        return Ok(());
    }
    let ([d, h, w], _) = axes(x)?;
    let images = x.f32s(X)?;
    let (plane, windows) = (d.image * h.image * w.image, d.count * h.count * w.count);
    for (i, out) in out.f32s()?.chunks_exact_mut(windows).enumerate() {
        let image = &images[i * plane..(i + 1) * plane];
        for (j, o) in out.iter_mut().enumerate() {
            let (zs, z_all) = d.covered(j / (h.count * w.count));
            let (ys, y_all) = h.covered(j / w.count % h.count);
            let (xs, x_all) = w.covered(j % w.count);
            let mut sum = start;
            for z in zs.clone() {
                for y in ys.clone() {
                    let row = (z * h.image + y) * w.image;
                    sum = image[row + xs.start..row + xs.end].iter().fold(sum, |s, &v| f(s, v));
                }
            }
            *o = finish(sum, zs.len() * ys.len() * xs.len(), z_all * y_all * x_all);
        }
    }
    Ok(())
}

/// The kernel of [`eval`] with the same functions: row by row instead of window by window, on all threads. Elements of a window
/// are folded in the same order.
pub fn lower(
    x: &dyn LowerOperands,
    start: f32,
    f: impl Fn(f32, f32) -> f32 + Send + Sync + 'static,
    finish: impl Fn(f32, usize, usize) -> f32 + Send + Sync + 'static,
) -> Option<Box<dyn Kernel>> {
    axes(x).ok()?;
    Some(Box::new(Lowered { start, f, finish }))
}

struct Lowered<F, G> {
    start: f32,
    f: F,
    finish: G,
}

impl<F, G> fmt::Debug for Lowered<F, G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pooling")
    }
}

impl<F, G> Kernel for Lowered<F, G>
where
    F: Fn(f32, f32) -> f32 + Send + Sync,
    G: Fn(f32, usize, usize) -> f32 + Send + Sync,
{
    fn run(&self, x: &dyn Operands, out: &mut [Out<'_>], cx: &mut Context<'_>) -> Result<(), OpError> {
        let (axes, _) = axes(x)?;
        let size = |of: fn(&Axis) -> usize| axes.iter().map(of).product::<usize>();
        let (plane, windows, images) = (size(|a| a.image), size(|a| a.count).max(1), x.f32s(X)?);
        let together = PIECE.div_ceil(plane.max(windows));
        cx.workers.for_chunks(out[0].f32s()?, together * windows, &|piece, out| {
            for (i, out) in out.chunks_exact_mut(windows).enumerate() {
                self.plane(&axes, &images[(piece * together + i) * plane..][..plane], out);
            }
        });
        Ok(())
    }
}

impl<F: Fn(f32, f32) -> f32, G: Fn(f32, usize, usize) -> f32> Lowered<F, G> {
    fn plane(&self, [d, h, w]: &Axes, image: &[f32], out: &mut [f32]) {
        out.fill(self.start);
        for (z, y, x) in
            (0..d.window).flat_map(|z| (0..h.window).flat_map(move |y| (0..w.window).map(move |x| (z, y, x))))
        {
            let ((ds, z0), (hs, y0), (ws, x0)) = (d.meeting(z), h.meeting(y), w.meeting(x));
            for (iz, iy) in (0..ds.len()).flat_map(|iz| (0..hs.len()).map(move |iy| (iz, iy))) {
                let line = &image[((z0 + iz * d.stride) * h.image + y0 + iy * h.stride) * w.image..][..w.image];
                let row = &mut out[((ds.start + iz) * h.count + hs.start + iy) * w.count..][..w.count];
                let row = row[ws.clone()].iter_mut();
                match w.stride {
                    1 => row.zip(line.get(x0..).unwrap_or(&[])).for_each(|(o, &v)| *o = (self.f)(*o, v)),
                    _ => row.zip(line.iter().skip(x0).step_by(w.stride)).for_each(|(o, &v)| *o = (self.f)(*o, v)),
                }
            }
        }
        for (i, row) in out.chunks_exact_mut(w.count.max(1)).enumerate() {
            let ((zs, z_all), (ys, y_all)) = (d.covered(i / h.count), h.covered(i % h.count));
            for (x, o) in row.iter_mut().enumerate() {
                let (xs, x_all) = w.covered(x);
                *o = (self.finish)(*o, zs.len() * ys.len() * xs.len(), z_all * y_all * x_all);
            }
        }
    }
}
