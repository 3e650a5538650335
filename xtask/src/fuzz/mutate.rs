//! Mutations. The n-th mutation of a list of seeds depends on nothing but the seeds, n and the target's name.

mod protobuf;
mod text;

use super::Shape;

/// Inputs do not grow beyond this many bytes.
const MAX_LENGTH: usize = 1 << 20;

/// A small generator of numbers (splitmix64, public domain).
pub struct Random(u64);

impl Random {
    /// A generator for one round.
    pub fn new(name: &str, round: u64) -> Random {
        // FNV-1a keeps the targets' sequences apart.
        let hash = name
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        Random(hash ^ round.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// The next number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`; 0 if that is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        if bound == 0 { 0 } else { (self.draw() % bound as u64) as usize }
    }

    /// One of these.
    pub fn one_of<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len())]
    }

    /// True once in `n` times.
    pub fn once_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// A number that parsers trip over.
    pub fn number(&mut self) -> u64 {
        const EDGES: [u64; 24] = [
            0,
            1,
            2,
            7,
            8,
            16,
            63,
            64,
            127,
            128,
            255,
            256,
            0x7fff,
            0xffff,
            0x1_0000,
            0x7fff_ffff,
            0x8000_0000,
            0xffff_fffe,
            0xffff_ffff,
            0x1_0000_0000,
            1 << 40,
            i64::MAX as u64,
            1 << 63,
            u64::MAX,
        ];
        match self.below(4) {
            0 => self.draw() >> self.below(64),
            1 => self.one_of(&EDGES).wrapping_add(self.draw() % 3).wrapping_sub(1),
            _ => *self.one_of(&EDGES),
        }
    }
}

/// The input of one round: a seed, changed in one to a few places.
pub fn input(name: &str, shape: Shape, seeds: &[(String, Vec<u8>)], round: u64) -> Vec<u8> {
    let mut random = Random::new(name, round);
    if seeds.is_empty() {
        return (0..random.below(200)).map(|_| random.draw() as u8).collect();
    }
    let (_, seed) = random.one_of(seeds);
    let mut bytes = seed.clone();
    let most = if random.once_in(4) { 12 } else { 2 };
    for _ in 0..=random.below(most) {
        match shape {
            Shape::Protobuf if !random.once_in(4) => protobuf::change(&mut bytes, &mut random),
            Shape::Protobuf => change_head(&mut bytes, &mut random),
            Shape::Text if !random.once_in(4) => text::change(&mut bytes, &mut random),
            Shape::Text | Shape::Binary => change(&mut bytes, &mut random, seeds),
        }
        bytes.truncate(MAX_LENGTH);
    }
    bytes
}

/// Changes bytes of the message before the others, most of the time: that is where the structure is.
fn change_head(bytes: &mut Vec<u8>, random: &mut Random) {
    let head = bytes.first_chunk().map_or(0, |length| u32::from_le_bytes(*length) as usize);
    if bytes.len() > 4 + head && !random.once_in(8) {
        let mut message = bytes[4..4 + head].to_vec();
        change(&mut message, random, &[]);
        protobuf::replace(bytes, &message);
    } else {
        change(bytes, random, &[]);
    }
}

/// One change of bytes that knows nothing of what they mean.
fn change(bytes: &mut Vec<u8>, random: &mut Random, seeds: &[(String, Vec<u8>)]) {
    let length = bytes.len();
    // Files begin with what matters most.
    let at = if random.once_in(2) { random.below(length.min(512)) } else { random.below(length) };
    match random.below(11) {
        0 if length > 0 => bytes[at] ^= 1 << random.below(8),
        1 if length > 0 => bytes[at] = random.draw() as u8,
        2 if length > 0 => bytes[at] = *random.one_of(&[0, 1, 0x7f, 0x80, 0xff, b'"', b'{', b'/', b'\n']),
        3 => write(bytes, at, &(random.number() as u32).to_le_bytes()),
        4 => write(bytes, at, &random.number().to_le_bytes()),
        5 => write(bytes, at & !7, &random.number().to_le_bytes()),
        6 => bytes.truncate(at),
        7 => {
            bytes.drain(at..at + random.below((length - at).min(64) + 1));
        }
        8 => {
            let piece = bytes[at..at + random.below((length - at).min(256) + 1)].to_vec();
            let to = random.below(length + 1);
            bytes.splice(to..to, piece);
        }
        9 => {
            let piece: Vec<u8> = (0..random.below(16)).map(|_| random.draw() as u8).collect();
            bytes.splice(at..at, piece);
        }
        _ if !seeds.is_empty() => {
            let (_, other) = random.one_of(seeds);
            let from = random.below(other.len() + 1);
            bytes.truncate(at);
            bytes.extend_from_slice(&other[from..]);
        }
        _ => bytes.truncate(at),
    }
}

fn write(bytes: &mut [u8], at: usize, new: &[u8]) {
    let end = (at + new.len()).min(bytes.len());
    if at < end {
        bytes[at..end].copy_from_slice(&new[..end - at]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_are_the_same_each_time_and_unlike_each_other() {
        let seeds = [("a".to_owned(), (0..255).collect::<Vec<u8>>()), ("b".to_owned(), b"func main() {}".to_vec())];
        for shape in [Shape::Binary, Shape::Text, Shape::Protobuf] {
            let inputs: Vec<_> = (0..200).map(|round| input("t", shape, &seeds, round)).collect();
            let again: Vec<_> = (0..200).map(|round| input("t", shape, &seeds, round)).collect();
            assert_eq!(inputs, again);
            let mut distinct = inputs.clone();
            distinct.sort();
            distinct.dedup();
            assert!(distinct.len() > 150, "{}", distinct.len());
        }
    }

    #[test]
    fn anything_can_be_mutated() {
        for seed in [vec![], vec![1], vec![255; 4], vec![0; 5], vec![0xff, 0xff, 0xff, 0xff, 1, 2, 3]] {
            for shape in [Shape::Binary, Shape::Text, Shape::Protobuf] {
                (0..2000).for_each(|round| drop(input("t", shape, &[("s".into(), seed.clone())], round)));
            }
        }
    }
}
