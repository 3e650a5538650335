//! Whole turns are dropped, the oldest first.

use super::Room;
use crate::Result;

/// How many of `turns` earlier turns go so that the rest, with `extra` tokens, fits; none if it never does.
/// `size` tells how long the prompt is without the first so many turns.
///
/// As few as leave half of the room free, or else each turn that follows would drop another and read everything again.
/// But the last of them stays if it can, since the message that comes now most likely means it.
pub(crate) fn turns_to_drop(
    turns: usize,
    room: Room,
    extra: usize,
    mut size: impl FnMut(usize) -> Result<usize>,
) -> Result<Option<usize>> {
    let mut fits = |dropped: usize, most: usize| Ok::<_, crate::Error>(size(dropped)?.saturating_add(extra) <= most);
    if turns == 0 || !fits(turns, room.limit())? {
        return Ok(None);
    }
    // The fewest that suffice, by halving: a prompt gets no longer by leaving out more.
    let (mut low, mut high) = (1, turns);
    while low < high {
        let middle = low.midpoint(high);
        if fits(middle, room.target())? {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    if high == turns && turns > 1 && fits(turns - 1, room.limit())? {
        return Ok(Some(turns - 1));
    }
    Ok(Some(high))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drop(sizes: &[usize], alone: usize, room: Room, extra: usize) -> Option<usize> {
        let size = |dropped: usize| Ok(alone + sizes[dropped..].iter().sum::<usize>());
        turns_to_drop(sizes.len(), room, extra, size).unwrap()
    }

    #[test]
    fn half_of_the_room_is_free_afterwards() {
        let room = Room::new(100, 20);
        assert_eq!(drop(&[10; 8], 10, room, 0), Some(5));
        assert_eq!(drop(&[10; 8], 10, room, 15), Some(7));
        assert_eq!(drop(&[70, 10, 5], 10, room, 0), Some(1));
    }

    #[test]
    fn the_last_turn_stays_if_it_fits_at_all() {
        let room = Room::new(100, 20);
        assert_eq!(drop(&[30, 60], 10, room, 0), Some(1));
        assert_eq!(drop(&[30, 60], 21, room, 0), Some(2));
        assert_eq!(drop(&[95], 10, room, 0), Some(1));
    }

    #[test]
    fn what_never_fits_is_told() {
        let room = Room::new(100, 20);
        assert_eq!(drop(&[10, 10], 81, room, 0), None);
        assert_eq!(drop(&[10, 10], 70, room, 11), None);
        assert_eq!(drop(&[], 10, room, 0), None);
    }
}
