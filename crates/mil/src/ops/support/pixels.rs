//! Channels that become square blocks of an image, and back: `depth_to_space` and its kin. Images are (n, channels, height,
//! width).

use smallvec::smallvec;

use super::dims;
use super::strided::Nest;
use crate::op::{OpError, Operands, Out, Results};

/// In which order the channels of the deep side stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The place in the block outermost, as in TensorFlow.
    BlockFirst,
    /// The channel of the flat side outermost, as in PyTorch.
    ChannelFirst,
}

/// Parameter 0, an image, with blocks whose edge is parameter 1.
///
/// # Errors
/// If it is no image or the edge is not positive.
fn image(x: &dyn Operands) -> Result<([usize; 4], usize), OpError> {
    let Ok(shape) = <[usize; 4]>::try_from(x.shape(0)) else { return Err(x.bad(0, "rank 4", x.shape(0))) };
    let edge = dims::extent(x, 1, x.i32(1)?)?;
    if edge == 0 { Err(x.bad(1, "1 or more", edge)) } else { Ok((shape, edge)) }
}

/// The type of the flat image that a deep one becomes.
///
/// # Errors
/// If the channels are no whole number of blocks.
pub fn infer_flat(x: &dyn Operands) -> Result<Results, OpError> {
    let ([n, c, h, w], edge) = image(x)?;
    let block = dims::product(&[edge, edge])?;
    if c % block != 0 {
        return Err(x.bad(0, format!("channels that {block} divides"), c));
    }
    let mut ty = dims::numbers(x, 0)?;
    ty.shape = smallvec![n, c / block, dims::product(&[h, edge])?, dims::product(&[w, edge])?];
    Ok(smallvec![ty])
}

/// The type of the deep image that a flat one becomes.
///
/// # Errors
/// If height and width are no whole number of blocks.
pub fn infer_deep(x: &dyn Operands) -> Result<Results, OpError> {
    let ([n, c, h, w], edge) = image(x)?;
    if h % edge != 0 || w % edge != 0 {
        return Err(x.bad(0, format!("height and width that {edge} divides"), [h, w]));
    }
    let mut ty = dims::numbers(x, 0)?;
    ty.shape = smallvec![n, dims::product(&[c, edge, edge])?, h / edge, w / edge];
    Ok(smallvec![ty])
}

/// Moves every element between a deep image and a flat one.
///
/// # Errors
/// If the operands do not fit.
pub fn eval(x: &dyn Operands, out: &mut Out<'_>, order: Order, to_flat: bool) -> Result<(), OpError> {
    if out.shape.contains(&0) {
        return Ok(());
    }
    let ([n, ..], b) = image(x)?;
    let [_, c, height, width] = *(if to_flat { out.shape } else { x.shape(0) }) else {
        return Err(x.bad(0, "rank 4", x.shape(0)));
    };
    let (h, w) = (height / b, width / b);
    let channel = h * w;
    let (deep_y, deep_x, deep_c) = match order {
        Order::BlockFirst => (b * c * channel, c * channel, channel),
        Order::ChannelFirst => (b * channel, channel, b * b * channel),
    };
    let mut nest = Nest::at(0, 0);
    for (turns, deep, flat) in [
        (n, c * b * b * channel, c * height * width),
        (c, deep_c, height * width),
        (h, w, b * width),
        (b, deep_y, width),
        (w, 1, b),
        (b, deep_x, 1),
    ] {
        if to_flat { nest.push(turns, deep, flat) } else { nest.push(turns, flat, deep) }
    }
    nest.copy(x.data(0)?, &mut out.data)
}
