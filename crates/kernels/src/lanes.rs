//! Sixteen lanes of f32 or 32-bit integers: the vector that all kernels are written over.
//!
//! Every operation is defined to the bit by [`Scalar`]; an instruction set is one more implementation of [`Lanes`].
//! The implementor is the proof of [`crate::isa`] that its instructions may run, so a `Lanes` value in hand is enough to
//! call any of these. All methods are `#[inline(always)]`, see [`crate::isa::Kernel`]. For the same reason no closure may
//! hold lane operations: it would be a function of its own, compiled without the instruction set (and slow).

#[cfg(target_arch = "x86_64")]
pub(crate) mod amx;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;
mod scalar;

pub(crate) use scalar::Scalar;

/// How many lanes a vector has.
pub(crate) const LANES: usize = 16;

/// Operations on sixteen lanes.
pub(crate) trait Lanes: Copy {
    /// Sixteen f32.
    type F: Copy;
    /// Sixteen 32-bit integers.
    type I: Copy;
    /// How many tokens (or query rows) a register tile takes: what the registers hold without spilling.
    const TILE: usize;
    /// Whether [`Self::lookup16`] is one instruction, cheaper than mask, conversion and subtraction.
    const FAST_LOOKUP: bool;

    fn splat(self, v: f32) -> Self::F;
    fn load(self, p: &[f32; 16]) -> Self::F;
    fn store(self, v: Self::F, p: &mut [f32; 16]);
    /// f32, little endian.
    fn load_bytes(self, p: &[u8; 64]) -> Self::F;
    fn load_f16(self, p: &[u16; 16]) -> Self::F;
    /// f16, little endian.
    fn load_f16_bytes(self, p: &[u8; 32]) -> Self::F;
    /// Rounds to nearest even; overflow gives infinity, NaN stays NaN.
    fn store_f16(self, v: Self::F, p: &mut [u16; 16]);

    fn add(self, a: Self::F, b: Self::F) -> Self::F;
    fn sub(self, a: Self::F, b: Self::F) -> Self::F;
    fn mul(self, a: Self::F, b: Self::F) -> Self::F;
    fn div(self, a: Self::F, b: Self::F) -> Self::F;
    fn sqrt(self, a: Self::F) -> Self::F;
    /// `a * b + c`, rounded once.
    fn fma(self, a: Self::F, b: Self::F, c: Self::F) -> Self::F;
    /// `if a > b { a } else { b }`: a NaN on either side gives `b`.
    fn max(self, a: Self::F, b: Self::F) -> Self::F;
    /// `if a < b { a } else { b }`: a NaN on either side gives `b`.
    fn min(self, a: Self::F, b: Self::F) -> Self::F;
    /// To the nearest integer, ties to even.
    fn round(self, a: Self::F) -> Self::F;
    /// `if a > b { x } else { y }`, lane by lane.
    fn select_gt(self, a: Self::F, b: Self::F, x: Self::F, y: Self::F) -> Self::F;
    /// `p * 2^n` for integral `n` in -252..=252, rounded once.
    fn scale2(self, p: Self::F, n: Self::F) -> Self::F;

    fn isplat(self, v: i32) -> Self::I;
    /// 32-bit integers, little endian.
    fn iload(self, p: &[u8; 64]) -> Self::I;
    fn iand(self, a: Self::I, b: Self::I) -> Self::I;
    fn ior(self, a: Self::I, b: Self::I) -> Self::I;
    /// Logical shift right, `n` in 0..32.
    fn shr(self, a: Self::I, n: u32) -> Self::I;
    /// Shift left, `n` in 0..32.
    fn shl(self, a: Self::I, n: u32) -> Self::I;
    /// The bits of `a` where those of `mask` are set, else those of `b`.
    #[inline(always)]
    fn merge(self, mask: i32, a: Self::I, b: Self::I) -> Self::I {
        self.ior(self.iand(a, self.isplat(mask)), self.iand(b, self.isplat(!mask)))
    }
    /// The low four bits of each byte.
    #[inline(always)]
    fn low_nibbles(self, a: Self::I) -> Self::I {
        self.iand(a, self.isplat(0x0f0f_0f0f))
    }
    /// The high four bits of each byte.
    #[inline(always)]
    fn high_nibbles(self, a: Self::I) -> Self::I {
        self.low_nibbles(self.shr(a, 4))
    }
    fn to_f32(self, a: Self::I) -> Self::F;
    /// To the nearest, ties to even; only for values within i32.
    fn to_i32(self, a: Self::F) -> Self::I;
    fn as_bits(self, a: Self::F) -> Self::I;
    fn as_float(self, a: Self::I) -> Self::F;

    /// The low byte of each lane.
    fn store_bytes(self, v: Self::I, p: &mut [u8; 16]);

    /// Whether [`Self::dot_bytes`] takes the bytes of `w` as unsigned. If not, it takes 128 less.
    const UNSIGNED: bool;
    /// `acc[l] + Σ w[4l + i] · a[4l + i]` for `i` in 0..4, with `w` in 0..=15 and `a` signed bytes.
    fn dot_nibbles(self, acc: Self::I, w: Self::I, a: Self::I) -> Self::I;
    /// The same for any byte `w`, see [`Self::UNSIGNED`], with `a` in -127..=127.
    fn dot_bytes(self, acc: Self::I, w: Self::I, a: Self::I) -> Self::I;

    /// Whether the products of eight columns with two bytes of a token are quicker together ([`Self::dot_pair`]).
    const PAIRS: bool = false;
    /// Eight columns of weights, four and four as for [`Self::dot_bytes`], in the order that [`Self::dot_pair`] takes.
    #[inline(always)]
    fn pair_weights(self, w: [Self::I; 2]) -> [Self::I; 2] {
        w
    }
    /// What [`Self::dot_pair`] adds to: all lanes of the first sum `high`, of the second `low`.
    #[inline(always)]
    fn pair_splat(self, high: i32, low: i32) -> [Self::I; 2] {
        [self.isplat(high), self.isplat(low)]
    }
    /// The products, as by [`Self::dot_bytes`], of eight columns with the `high` and with the `low` bytes of a token, added. Which
    /// sum lies where is known to [`Self::pair_split`] alone.
    #[inline(always)]
    fn dot_pair(self, acc: [Self::I; 2], w: [Self::I; 2], high: &[u8; 8], low: &[u8; 8]) -> [Self::I; 2] {
        let mut sums = acc;
        for (sum, x) in sums.iter_mut().zip([high, low]) {
            let [first, second] = x.as_chunks::<4>().0 else { unreachable!("eight bytes are two times four") };
            *sum = self.dot_bytes(*sum, w[0], self.isplat(i32::from_le_bytes(*first)));
            *sum = self.dot_bytes(*sum, w[1], self.isplat(i32::from_le_bytes(*second)));
        }
        sums
    }
    /// The sums with the high and with the low bytes.
    #[inline(always)]
    fn pair_split(self, acc: [Self::I; 2]) -> [Self::I; 2] {
        acc
    }

    /// `table[i & 15]`: only the low four bits of each lane count.
    fn lookup16(self, table: Self::F, i: Self::I) -> Self::F;
    /// The four bits of each lane from bit `shift` on, as f32 in 0..=15.
    #[inline(always)]
    fn nibble(self, a: Self::I, shift: u32) -> Self::F {
        self.to_f32(self.iand(self.shr(a, shift), self.isplat(15)))
    }
    /// Byte by byte, `table[i]` for `i` in 0..=15, each four lanes with sixteen bytes of table of their own.
    fn lookup_bytes(self, table: Self::I, i: Self::I) -> Self::I;
    /// Byte by byte, `table[i & 63]`, the bytes of all lanes of `table` in a row.
    fn lookup_bytes64(self, table: Self::I, i: Self::I) -> Self::I;
    /// `table[i & 63]`, little-endian f32.
    #[inline(always)]
    fn lookup64(self, table: &[[u8; 4]; 64], i: Self::I) -> Self::F {
        self.gather(table, i)
    }
    /// `table[i % table.len()]`: little-endian f32, a power of two of them.
    fn gather(self, table: &[[u8; 4]], i: Self::I) -> Self::F;
    /// Lane `j` of row `i` becomes lane `i` of row `j`.
    fn transpose(self, rows: [Self::F; 16]) -> [Self::F; 16];
    /// Whether [`Self::turn_f16`] takes half as long as [`Self::transpose`] of what [`Self::load_f16`] gives.
    const FAST_TURN_F16: bool = false;
    /// Element `j` of row `i` becomes element `i` of row `j`, in `out`.
    #[inline(always)]
    fn turn_f16(self, rows: [&[u16; 8]; 32], out: &mut [[u16; 32]; 8]) {
        for (j, out) in out.iter_mut().enumerate() {
            for i in 0..32 {
                out[i] = rows[i][j];
            }
        }
    }
    /// Asks for the cache line `ahead` bytes after the start of `p`; it may lie outside.
    fn prefetch<T>(self, p: &[T], ahead: usize);

    #[inline(always)]
    fn abs(self, a: Self::F) -> Self::F {
        self.as_float(self.iand(self.as_bits(a), self.isplat(0x7fff_ffff)))
    }
    #[inline(always)]
    fn neg(self, a: Self::F) -> Self::F {
        self.sub(self.splat(-0.0), a)
    }
    /// The magnitude of `a` with the sign of `sign`.
    #[inline(always)]
    fn copysign(self, a: Self::F, sign: Self::F) -> Self::F {
        let top = self.iand(self.as_bits(sign), self.isplat(i32::MIN));
        self.as_float(self.ior(self.as_bits(self.abs(a)), top))
    }
    /// The sum of the lanes, as a tree: lane `i` with lane `i + 8`, then 4, 2, 1.
    fn sum(self, a: Self::F) -> f32;
    /// The largest lane, for lanes without NaN.
    fn max_lane(self, a: Self::F) -> f32;
    /// The largest lane; lanes that are NaN are passed over (all NaN gives -infinity).
    #[inline(always)]
    fn largest(self, a: Self::F) -> f32 {
        self.max_lane(self.max(a, self.splat(f32::NEG_INFINITY)))
    }
}

/// The first sixteen of `p`, or what there is, the rest filled with `fill`.
#[inline(always)]
pub(crate) fn load_part<S: Lanes>(s: S, p: &[f32], fill: f32) -> S::F {
    match p.first_chunk::<16>() {
        Some(all) => s.load(all),
        None => {
            let mut l = [fill; 16];
            l[..p.len()].copy_from_slice(p);
            s.load(&l)
        }
    }
}

/// As many lanes as `p` has room for, at most sixteen.
#[inline(always)]
pub(crate) fn store_part<S: Lanes>(s: S, v: S::F, p: &mut [f32]) {
    match p.first_chunk_mut::<16>() {
        Some(all) => s.store(v, all),
        None => {
            let mut l = [0.0; 16];
            s.store(v, &mut l);
            p.copy_from_slice(&l[..p.len()]);
        }
    }
}
