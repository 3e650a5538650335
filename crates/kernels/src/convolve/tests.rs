use super::*;
use crate::linear::noise::{floats, same};

/// Taps of a window of `h` by `w` on rows of `pitch`.
fn taps(h: usize, w: usize, pitch: usize) -> Vec<usize> {
    (0..h * w).map(|i| i / w * pitch + i % w).collect()
}

/// Each result one by one, in the documented order.
fn plain(image: &[f32], channels: usize, g: Geometry<'_>, w: &[f32], bias: f32, windows: usize) -> Vec<f32> {
    let one = |i: usize| {
        let at = i / g.width * g.pitch + i % g.width;
        let pairs = (0..channels).flat_map(|c| g.taps.iter().map(move |&t| c * g.plane + t + at));
        pairs.zip(w).fold(bias, |sum, (x, w)| w.mul_add(image[x], sum))
    };
    (0..windows).map(one).collect()
}

/// Channels, channels of results, rows and width of windows, extents of the window.
const SIZES: [(usize, usize, usize, usize, [usize; 2]); 8] = [
    (1, 1, 1, 1, [1, 1]),
    (3, 7, 5, 9, [3, 3]),
    (5, 8, 7, 7, [3, 3]),
    (4, 17, 1, 49, [1, 1]),
    (2, 9, 16, 16, [2, 3]),
    (1, 12, 3, 33, [5, 5]),
    (9, 4, 6, 31, [1, 3]),
    (1, 1, 11, 40, [3, 3]),
];

#[test]
fn every_instruction_set_gives_the_same_bits_and_sentinels_stay() {
    for (channels, rows, height, width, [h, w]) in SIZES {
        let pitch = width + w - 1;
        let plane = (height + h - 1) * pitch;
        let (taps, windows, k) = (taps(h, w, pitch), height * width, channels * h * w);
        let g = Geometry { plane, pitch, width, taps: &taps };
        let (mut image, weights, bias) = (floats(1, channels * plane), floats(2, rows * k), floats(3, rows));
        // Hostile ones reach the windows that cover them, and no others.
        for (i, value) in [(0, f32::NAN), (3, f32::INFINITY), (7, 1e-40), (11, -0.0), (plane - 1, f32::NEG_INFINITY)] {
            image[i % (channels * plane)] = value;
        }
        let packed = pack(1, rows, k, &weights);
        let rows_of_windows = if pitch == width { 1 } else { width };
        for isa in Isa::available() {
            let what = format!("{} {channels} to {rows}, {height} x {width}, {h} x {w}", isa.name());
            let mut out = vec![7.0; rows * windows + 2];
            let (first, rest) = out.split_at_mut(1);
            let (body, last) = rest.split_at_mut(rows * windows);
            // In two parts, the second one first.
            let middle = windows / 2 / rows_of_windows * rows_of_windows;
            for part in [middle..windows, 0..middle] {
                let from = part.start;
                let columns = Columns::new(body, windows).part(part).width();
                let mut all = Columns::new(body, windows);
                convolve(isa, (&image, channels), g, &packed, Some(&bias), from, all.part(from..from + columns));
            }
            for r in 0..rows {
                let want = plain(&image, channels, g, &weights[r * k..][..k], bias[r], windows);
                same(&want, &body[r * windows..][..windows], &what);
                if channels == 1 {
                    let bytes: Vec<u8> = weights[r * k..][..k].iter().flat_map(|w| w.to_le_bytes()).collect();
                    let mut out = vec![7.0; windows + 2];
                    convolve_plane(isa, &image, g, &bytes, bias[r], &mut out[1..=windows]);
                    same(&want, &out[1..=windows], &what);
                    assert_eq!((out[0], out[windows + 1]), (7.0, 7.0), "{what}");
                }
            }
            assert_eq!((first[0], last[0]), (7.0, 7.0), "{what}");
        }
    }
}

#[test]
#[should_panic(expected = "a window ends at")]
fn windows_beyond_the_plane_are_refused() {
    let g = Geometry { plane: 4, pitch: 2, width: 2, taps: &[0, 3] };
    convolve_plane(Isa::Scalar, &[0.0; 8], g, &[0; 8], 0.0, &mut [0.0; 2]);
}

#[test]
#[should_panic(expected = "bytes of weights")]
fn short_weights_are_refused() {
    let g = Geometry { plane: 2, pitch: 2, width: 2, taps: &[0] };
    let mut out = [0.0; 2];
    convolve(Isa::Scalar, (&[0.0; 2], 1), g, &[0; 28], None, 0, Columns::new(&mut out, 2));
}
