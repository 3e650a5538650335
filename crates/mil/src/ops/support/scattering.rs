//! What the scattering operations do where an update meets what is there.

use crate::op::{OpError, Operands, Out};
use crate::tensor::{Data, DataMut};

use super::dims;

/// How an update and what is there become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The update takes the place.
    Update,
    /// The sum.
    Add,
    /// What is there less the update.
    Sub,
    /// The product.
    Mul,
    /// What is there divided by the update; of integers cut off towards zero, 0 where the update is 0.
    Div,
    /// The larger one.
    Max,
    /// The smaller one.
    Min,
}

impl Mode {
    /// What parameter `param` says; `add` if it was left out.
    ///
    /// # Errors
    /// If it names no mode.
    pub fn new(x: &dyn Operands, param: usize) -> Result<Self, OpError> {
        Ok(match x.text_or(param, "add")? {
            "update" => Mode::Update,
            "add" => Mode::Add,
            "sub" => Mode::Sub,
            "mul" => Mode::Mul,
            "div" => Mode::Div,
            "max" => Mode::Max,
            "min" => Mode::Min,
            other => return Err(x.bad(param, "update, add, sub, mul, div, max or min", other)),
        })
    }

    fn floats(self) -> fn(f32, f32) -> f32 {
        match self {
            Mode::Update => |_, u| u,
            Mode::Add => |v, u| v + u,
            Mode::Sub => |v, u| v - u,
            Mode::Mul => |v, u| v * u,
            Mode::Div => |v, u| v / u,
            Mode::Max => f32::max,
            Mode::Min => f32::min,
        }
    }

    fn ints(self) -> fn(i32, i32) -> i32 {
        match self {
            Mode::Update => |_, u| u,
            Mode::Add => i32::wrapping_add,
            Mode::Sub => i32::wrapping_sub,
            Mode::Mul => i32::wrapping_mul,
            Mode::Div => |v, u| if u == 0 { 0 } else { v.wrapping_div(u) },
            Mode::Max => i32::max,
            Mode::Min => i32::min,
        }
    }
}

/// Checks that `updates` (parameter 2) is of the type of `data` (parameter 0) and of shape `shape`.
///
/// # Errors
/// If it is not, or they are no numbers.
pub fn expect_updates(x: &dyn Operands, shape: &[usize]) -> Result<(), OpError> {
    if !x.dtype(0).is_float() && !x.dtype(0).is_int() {
        return Err(x.bad(0, "numbers", x.dtype(0)));
    }
    if x.ty_at(2, 0) != (x.dtype(0), shape) {
        return Err(x.bad(2, format!("{} of shape {shape:?}", x.dtype(0)), x.ty(2)));
    }
    Ok(())
}

/// The result of scattering: `data` (parameter 0), then for each pair of places that `places` calls back with, a stretch of
/// `len` elements of `updates` (parameter 2, second place) meets one of the result (first place).
///
/// # Errors
/// As `places`, or if the operands differ in class.
pub fn scatter(
    x: &dyn Operands,
    out: &mut Out<'_>,
    mode: Mode,
    len: usize,
    places: impl FnOnce(&mut dyn FnMut(usize, usize)) -> Result<(), OpError>,
) -> Result<(), OpError> {
    dims::copy(x, 0, out)?;
    match (x.data(2)?, &mut out.data) {
        (Data::F32(u), DataMut::F32(r)) => {
            places(&mut |to, from| meet(mode.floats(), &mut r[to..to + len], &u[from..from + len]))
        }
        (Data::I32(u), DataMut::I32(r)) => {
            places(&mut |to, from| meet(mode.ints(), &mut r[to..to + len], &u[from..from + len]))
        }
        _ => Err(dims::class_mismatch()),
    }
}

fn meet<T: Copy>(f: fn(T, T) -> T, r: &mut [T], u: &[T]) {
    r.iter_mut().zip(u).for_each(|(r, &u)| *r = f(*r, u));
}
