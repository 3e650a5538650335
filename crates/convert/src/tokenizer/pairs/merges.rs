//! Which pairs of tokens become one, in little memory: for each token on the left, those that may be on its right.

use std::fmt;

/// What a pair becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Merged {
    /// Lower ranks come first.
    pub(super) rank: u32,
    pub(super) id: u32,
}

pub(super) struct Merges {
    /// Where the pairs of each token on the left begin, and where the last ones end.
    starts: Box<[u32]>,
    /// The tokens on the right, in order for each on the left.
    rights: Box<[u32]>,
    merged: Box<[Merged]>,
}

impl Merges {
    /// Of pairs, each with what it becomes, in order of rank; a later one of the same tokens counts. Ids are below `ids`.
    pub(super) fn new(ids: u32, pairs: impl Iterator<Item = ([u32; 2], u32)>) -> Option<Self> {
        let ranked =
            pairs.enumerate().map(|(rank, (pair, id))| Some((pair, Merged { rank: u32::try_from(rank).ok()?, id })));
        let mut all = ranked.collect::<Option<Vec<_>>>()?;
        all.sort_unstable_by_key(|&(pair, merged)| (pair, std::cmp::Reverse(merged.rank)));
        all.dedup_by_key(|&mut (pair, _)| pair);
        let mut starts = vec![0; ids as usize + 1];
        all.iter().for_each(|([left, _], _)| starts[*left as usize + 1] += 1);
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        Some(Self {
            starts: starts.into(),
            rights: all.iter().map(|([_, right], _)| *right).collect(),
            merged: all.iter().map(|&(_, merged)| merged).collect(),
        })
    }

    pub(super) fn get(&self, left: u32, right: u32) -> Option<Merged> {
        let (start, end) = (self.starts[left as usize] as usize, self.starts[left as usize + 1] as usize);
        let at = self.rights[start..end].binary_search(&right).ok()?;
        Some(self.merged[start + at])
    }
}

impl fmt::Debug for Merges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} merges", self.rights.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_found_and_the_last_of_two_counts() {
        let pairs = [([4, 1], 7), ([0, 3], 5), ([4, 0], 6), ([4, 1], 8), ([4, 9], 9)];
        let merges = Merges::new(10, pairs.into_iter()).unwrap();
        let get = |left, right| merges.get(left, right).map(|merged| (merged.rank, merged.id));
        assert_eq!(
            [get(4, 1), get(0, 3), get(4, 0), get(4, 9)],
            [Some((3, 8)), Some((1, 5)), Some((2, 6)), Some((4, 9))]
        );
        assert_eq!([get(4, 2), get(3, 0), get(9, 9), get(0, 1)], [None; 4]);
    }
}
