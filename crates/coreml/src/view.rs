//! Arrays that Core ML owns: read and written by their strides, never as one block.
//!
//! Rows may be padded (arrays of the GPU and the Neural Engine are), so an element's place is what the strides say. An
//! array is seen for the length of a closure only; it may lie elsewhere the next time.

use std::ops::Range;

use half::f16;

use crate::{CoreMlError, ElementType, Result};

/// More axes than this are refused. Core ML takes five.
pub(crate) const MAX_RANK: usize = 8;

/// An array that can be read.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    form: Form<'a>,
    bytes: &'a [u8],
}

/// An array that can be written.
#[derive(Debug)]
pub struct ViewMut<'a> {
    form: Form<'a>,
    bytes: &'a mut [u8],
}

/// Element type, shape, and distances between neighbours of each axis, in elements.
#[derive(Clone, Copy, Debug)]
struct Form<'a> {
    element: ElementType,
    shape: &'a [usize],
    strides: &'a [usize],
}

impl Form<'_> {
    /// Refuses what would reach beyond the memory.
    fn check(self, bytes: usize) -> Result<()> {
        let wrong = |problem| {
            let Form { element, shape, strides } = self;
            Err(CoreMlError::Array { element, shape: shape.to_vec(), strides: strides.to_vec(), bytes, problem })
        };
        if self.shape.len() != self.strides.len() {
            return wrong("it needs a stride for each axis");
        }
        if self.shape.len() > MAX_RANK {
            return wrong("it has more axes than are taken");
        }
        if self.shape.contains(&0) {
            return Ok(());
        }
        let last = self.shape.iter().zip(self.strides).try_fold(0usize, |sum, (&n, &stride)| {
            (n - 1).checked_mul(stride).and_then(|offset| sum.checked_add(offset))
        });
        match last.and_then(|last| last.checked_add(1)?.checked_mul(self.element.bytes())) {
            Some(end) if end <= bytes => Ok(()),
            _ => wrong("it reaches beyond its memory"),
        }
    }

    fn elements(self) -> usize {
        self.shape.iter().product()
    }

    /// Calls `visit` for every row (run along the last axis) with its number and the offset of its first element.
    fn rows(self, mut visit: impl FnMut(usize, usize)) {
        if self.elements() == 0 {
            return;
        }
        let outer = self.shape.len().saturating_sub(1);
        let mut index = [0usize; MAX_RANK];
        for row in 0.. {
            let offset = index[..outer].iter().zip(self.strides).map(|(i, stride)| i * stride).sum();
            visit(row, offset);
            let Some(axis) = (0..outer).rev().find(|&axis| index[axis] + 1 < self.shape[axis]) else { return };
            index[axis] += 1;
            index[axis + 1..outer].fill(0);
        }
    }

    /// Elements of a row, and the distance between them.
    fn row(self) -> (usize, usize) {
        match (self.shape.last(), self.strides.last()) {
            (Some(&n), Some(&stride)) => (n, stride),
            _ => (1, 1),
        }
    }

    /// Elements of `columns` of `rows` of an array (…, positions, row); rows are counted over the axes before positions.
    fn in_columns(self, rows: &Range<usize>, columns: &Range<usize>) -> Option<usize> {
        let axis = self.shape.len().checked_sub(2)?;
        let outer: usize = self.shape[..axis].iter().product();
        let within = columns.start <= columns.end && columns.end <= self.shape[axis];
        let within = within && rows.start <= rows.end && rows.end <= outer;
        within.then(|| rows.len() * columns.len() * self.shape[axis + 1])
    }

    fn refused(self, bytes: usize, problem: &'static str) -> CoreMlError {
        let Form { element, shape, strides } = self;
        CoreMlError::Array { element, shape: shape.to_vec(), strides: strides.to_vec(), bytes, problem }
    }

    /// Calls `visit` with the offset of the first element of every column of `rows`, in order.
    fn column_rows(self, rows: Range<usize>, columns: &Range<usize>, mut visit: impl FnMut(usize)) {
        let axis = self.shape.len() - 2;
        for row in rows {
            let mut rest = row;
            let mut offset = 0;
            for (&n, &stride) in self.shape[..axis].iter().zip(self.strides).rev() {
                offset += (rest % n) * stride;
                rest /= n;
            }
            columns.clone().for_each(|column| visit(offset + column * self.strides[axis]));
        }
    }
}

const COLUMNS: &str = "the rows, the columns or the room for them do not fit";
const HALVES: &str = "its elements are not half floats";
const COUNT: &str = "it has another number of elements than were given";
const KIND: &str = "its elements are of another kind than were given";

/// The place of element `i` of a row, in bytes.
fn place(offset: usize, i: usize, stride: usize, size: usize) -> Range<usize> {
    let start = (offset + i * stride) * size;
    start..start + size
}

fn bits<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.try_into().expect("a slice of that length")
}

impl<'a> View<'a> {
    /// An array of so many bytes; `strides` in elements.
    ///
    /// # Errors
    /// [`CoreMlError::Array`] if an element would lie outside, or the rank is not taken.
    pub fn new(element: ElementType, shape: &'a [usize], strides: &'a [usize], bytes: &'a [u8]) -> Result<Self> {
        let form = Form { element, shape, strides };
        form.check(bytes.len())?;
        Ok(Self { form, bytes })
    }

    /// The element type.
    #[must_use]
    pub fn element(&self) -> ElementType {
        self.form.element
    }

    /// The shape.
    #[must_use]
    pub fn shape(&self) -> &'a [usize] {
        self.form.shape
    }

    /// Reads `to.len()` elements as floats, from the element `from` on in row-major order.
    ///
    /// # Errors
    /// If there are not so many.
    pub fn read_f32(&self, from: usize, to: &mut [f32]) -> Result<()> {
        let form = self.form;
        if from.checked_add(to.len()).is_none_or(|end| end > form.elements()) {
            return Err(form.refused(self.bytes.len(), COUNT));
        }
        let (n, stride) = form.row();
        let (size, end) = (form.element.bytes(), from + to.len());
        form.rows(|row, offset| {
            let (first, last) = ((row * n).max(from), ((row + 1) * n).min(end));
            if first >= last {
                return;
            }
            let at = |i: usize| &self.bytes[place(offset, i - row * n, stride, size)];
            let to = to[first - from..last - from].iter_mut().zip(first..last);
            match form.element {
                ElementType::F32 => to.for_each(|(to, i)| *to = f32::from_ne_bytes(bits(at(i)))),
                ElementType::F16 => to.for_each(|(to, i)| *to = f16::from_ne_bytes(bits(at(i))).to_f32()),
                ElementType::F64 => to.for_each(|(to, i)| *to = f64::from_ne_bytes(bits(at(i))) as f32),
                ElementType::I32 => to.for_each(|(to, i)| *to = i32::from_ne_bytes(bits(at(i))) as f32),
                ElementType::I8 => to.for_each(|(to, i)| *to = f32::from(i8::from_ne_bytes(bits(at(i))))),
            }
        });
        Ok(())
    }

    /// Reads all elements as integers.
    ///
    /// # Errors
    /// If their number differs, or they are not integers.
    pub fn read_i32(&self, to: &mut [i32]) -> Result<()> {
        let form = self.form;
        if to.len() != form.elements() {
            return Err(form.refused(self.bytes.len(), COUNT));
        }
        if !matches!(form.element, ElementType::I32 | ElementType::I8) {
            return Err(form.refused(self.bytes.len(), KIND));
        }
        let ((n, stride), size) = (form.row(), form.element.bytes());
        form.rows(|row, offset| {
            for (i, to) in to[row * n..(row + 1) * n].iter_mut().enumerate() {
                let at = &self.bytes[place(offset, i, stride, size)];
                *to = if size == 1 { i32::from(at[0] as i8) } else { i32::from_ne_bytes(bits(at)) };
            }
        });
        Ok(())
    }

    /// Reads columns of rows of a state (…, positions, row), packed in row-major order. Rows are counted over the axes before
    /// positions.
    ///
    /// # Errors
    /// If it is not of half floats, or has other rows or columns.
    pub fn read_columns(&self, rows: Range<usize>, columns: Range<usize>, to: &mut [f16]) -> Result<()> {
        let form = self.form;
        if form.element != ElementType::F16 {
            return Err(form.refused(self.bytes.len(), HALVES));
        }
        if form.in_columns(&rows, &columns) != Some(to.len()) {
            return Err(form.refused(self.bytes.len(), COLUMNS));
        }
        let (n, stride) = form.row();
        let mut packed = to.chunks_exact_mut(n.max(1));
        form.column_rows(rows, &columns, |offset| {
            let Some(to) = packed.next() else { return };
            to.iter_mut()
                .enumerate()
                .for_each(|(i, to)| *to = f16::from_ne_bytes(bits(&self.bytes[place(offset, i, stride, 2)])));
        });
        Ok(())
    }
}

impl<'a> ViewMut<'a> {
    /// An array of so many bytes; `strides` in elements.
    ///
    /// # Errors
    /// [`CoreMlError::Array`] if an element would lie outside, or the rank is not taken.
    pub fn new(element: ElementType, shape: &'a [usize], strides: &'a [usize], bytes: &'a mut [u8]) -> Result<Self> {
        let form = Form { element, shape, strides };
        form.check(bytes.len())?;
        Ok(Self { form, bytes })
    }

    /// The element type.
    #[must_use]
    pub fn element(&self) -> ElementType {
        self.form.element
    }

    /// The shape.
    #[must_use]
    pub fn shape(&self) -> &'a [usize] {
        self.form.shape
    }

    /// The same, to be read.
    #[must_use]
    pub fn as_view(&self) -> View<'_> {
        View { form: self.form, bytes: self.bytes }
    }

    /// Makes all elements zero, and what lies between rows.
    pub fn zero(&mut self) {
        self.bytes.fill(0);
    }

    /// Writes all elements from integers.
    ///
    /// # Errors
    /// If their number differs, or an element is of a type that does not hold such integers.
    pub fn write_i32(&mut self, values: &[i32]) -> Result<()> {
        match self.form.element {
            ElementType::I32 => self.write(values, |value, to| to.copy_from_slice(&value.to_ne_bytes())),
            ElementType::F32 => self.write(values, |value, to| to.copy_from_slice(&(value as f32).to_ne_bytes())),
            _ => Err(self.form.refused(self.bytes.len(), KIND)),
        }
    }

    /// Writes all elements from floats.
    ///
    /// # Errors
    /// If their number differs, or the array is of integers.
    pub fn write_f32(&mut self, values: &[f32]) -> Result<()> {
        match self.form.element {
            ElementType::F32 => self.write(values, |value, to| to.copy_from_slice(&value.to_ne_bytes())),
            ElementType::F64 => self.write(values, |value, to| to.copy_from_slice(&f64::from(value).to_ne_bytes())),
            ElementType::F16 => self.write(values, |value, to| to.copy_from_slice(&f16::from_f32(value).to_ne_bytes())),
            _ => Err(self.form.refused(self.bytes.len(), KIND)),
        }
    }

    fn write<T: Copy>(&mut self, values: &[T], store: impl Fn(T, &mut [u8])) -> Result<()> {
        let form = self.form;
        if values.len() != form.elements() {
            return Err(form.refused(self.bytes.len(), COUNT));
        }
        let ((n, stride), size) = (form.row(), form.element.bytes());
        let bytes = &mut *self.bytes;
        form.rows(|row, offset| {
            let row = values[row * n..(row + 1) * n].iter().enumerate();
            row.for_each(|(i, &value)| store(value, &mut bytes[place(offset, i, stride, size)]));
        });
        Ok(())
    }

    /// Writes columns of rows of a state (…, positions, row) from packed ones, and leaves the others as they are.
    ///
    /// # Errors
    /// If it is not of half floats, or has other rows or columns.
    pub fn write_columns(&mut self, rows: Range<usize>, columns: Range<usize>, from: &[f16]) -> Result<()> {
        let form = self.form;
        if form.element != ElementType::F16 {
            return Err(form.refused(self.bytes.len(), HALVES));
        }
        if form.in_columns(&rows, &columns) != Some(from.len()) {
            return Err(form.refused(self.bytes.len(), COLUMNS));
        }
        let (n, stride) = form.row();
        let bytes = &mut *self.bytes;
        let mut packed = from.chunks_exact(n.max(1));
        form.column_rows(rows, &columns, |offset| {
            let Some(from) = packed.next() else { return };
            from.iter().enumerate().for_each(|(i, from)| {
                bytes[place(offset, i, stride, 2)].copy_from_slice(&from.to_ne_bytes());
            });
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests;
