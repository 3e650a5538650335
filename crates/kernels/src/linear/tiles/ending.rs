//! What becomes of the products of a token with two panels.

use super::super::PANEL;
use super::Then;
use crate::columns::Columns;
use crate::isa::Avx512;
use crate::lanes::{Lanes, load_part, store_part};
use crate::math::silu;
use std::arch::x86_64::__m512;

pub(super) trait Ending {
    /// Takes the products of a token with the rows of panel `index` and of the other of its pair.
    fn write(&mut self, s: Avx512, index: usize, token: usize, values: [__m512; 2]);
}

/// Two panels side by side, from row `start` of the matrix on: columns side by side.
pub(super) struct Plain<'a> {
    pub(super) start: usize,
    pub(super) then: Then<'a>,
    pub(super) out: Columns<'a>,
}

impl Ending for Plain<'_> {
    #[inline(always)]
    fn write(&mut self, s: Avx512, index: usize, token: usize, values: [__m512; 2]) {
        let out = self.out.row(token);
        for panel in 0..2 {
            let row = (index + panel) * PANEL - self.start;
            let Some(out) = out.get_mut(row..).filter(|out| !out.is_empty()) else { continue };
            let mut value = values[panel];
            if let Some(bias) = self.then.bias {
                value = s.add(value, load_part(s, &bias[row..], 0.0));
            }
            if let Some((added, stride)) = self.then.added {
                value = s.add(value, load_part(s, &added[token * stride + row..][..out.len()], 0.0));
            }
            store_part(s, value, out);
        }
    }
}

/// A panel of each of two matrices: the product of the second times the activation of that of the first.
pub(super) struct Gated<'a> {
    pub(super) start: usize,
    pub(super) biases: [Option<&'a [f32]>; 2],
    pub(super) out: Columns<'a>,
}

impl Ending for Gated<'_> {
    #[inline(always)]
    fn write(&mut self, s: Avx512, index: usize, token: usize, [mut gate, mut up]: [__m512; 2]) {
        let row = index * PANEL - self.start;
        if let Some(bias) = self.biases[0] {
            gate = s.add(gate, load_part(s, &bias[row..], 0.0));
        }
        if let Some(bias) = self.biases[1] {
            up = s.add(up, load_part(s, &bias[row..], 0.0));
        }
        store_part(s, s.mul(silu(s, gate), up), &mut self.out.row(token)[row..]);
    }
}
