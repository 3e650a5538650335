//! What the pooling operations share: windows over the spatial axes of images (n, C, …).

use smallvec::smallvec;

use super::dims::choice;
use super::elementwise::expect_float;
use super::windows::{Axes, Params, extents};
use crate::op::{OpError, Operands, Out, Param, Results};
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
