//! Arrays with padded rows.

use half::f16;

use crate::{Port, Result, View, ViewMut};

/// Elements between rows, so that nobody mistakes an array for one block.
const PADDING: usize = 3;

#[derive(Clone, Debug)]
pub(super) struct Array {
    pub(super) port: Port,
    strides: Vec<usize>,
    bytes: Vec<u8>,
}

impl Array {
    /// An array full of rubbish: NaN for floats.
    pub(super) fn new(port: &Port) -> Self {
        let mut strides = vec![1; port.shape.len()];
        for axis in (0..port.shape.len().saturating_sub(1)).rev() {
            let padding = if axis + 2 == port.shape.len() { PADDING } else { 0 };
            strides[axis] = strides[axis + 1] * port.shape[axis + 1] + padding;
        }
        let rows = port.shape.first().copied().unwrap_or(1);
        let elements = strides.first().map_or(1, |&stride| stride * rows);
        let rubbish = f16::NAN.to_ne_bytes();
        let bytes = (0..elements * port.element.bytes()).map(|i| rubbish[i % 2]).collect();
        Self { port: port.clone(), strides, bytes }
    }

    pub(super) fn view(&self) -> Result<View<'_>> {
        View::new(self.port.element, &self.port.shape, &self.strides, &self.bytes)
    }

    pub(super) fn view_mut(&mut self) -> Result<ViewMut<'_>> {
        ViewMut::new(self.port.element, &self.port.shape, &self.strides, &mut self.bytes)
    }
}
