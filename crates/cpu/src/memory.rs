//! Which buffers share memory: tensors whose lives do not overlap.

use anemone_mil::types::Class;

use crate::schedule::{At, Schedule, Source};

/// Memory of a plan: slots, and the slot of each buffer.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// Class and elements of each slot.
    pub slots: Vec<(Class, usize)>,
    /// The slot of each buffer.
    pub slot_of: Vec<u32>,
}

/// Lays out the buffers of a schedule, which need `sizes` elements each.
pub(crate) fn lay_out(schedule: &Schedule, sizes: &[usize]) -> Memory {
    let n = schedule.buffers.len();
    let mut last_use = vec![0; n];
    let mut first = vec![usize::MAX; n];
    for (i, step) in schedule.steps.iter().enumerate() {
        step.args.iter().flatten().filter_map(buffer_of).for_each(|b| last_use[b] = i);
        step.outs.iter().for_each(|t| {
            first[t.buffer as usize] = i;
            last_use[t.buffer as usize] = last_use[t.buffer as usize].max(i);
        });
    }
    // Inputs belong to the caller between runs, outputs after the last step.
    let mut pinned = vec![false; n];
    schedule.inputs.iter().for_each(|&b| pinned[b as usize] = true);
    schedule.outputs.iter().filter_map(buffer_of).for_each(|b| last_use[b] = usize::MAX);

    let mut memory = Memory { slots: Vec::new(), slot_of: vec![0; n] };
    let mut free: Vec<u32> = Vec::new();
    let mut dying: Vec<Vec<u32>> = vec![Vec::new(); schedule.steps.len() + 1];
    for b in (0..n).filter(|&b| pinned[b]) {
        memory.slot_of[b] = memory.add(schedule.buffers[b].class, sizes[b]);
    }
    for (i, step) in schedule.steps.iter().enumerate() {
        for t in &step.outs {
            let b = t.buffer as usize;
            if first[b] != i || pinned[b] {
                continue;
            }
            let slot = memory.take(&mut free, schedule.buffers[b].class, sizes[b]);
            memory.slot_of[b] = slot;
            if last_use[b] != usize::MAX {
                dying[last_use[b]].push(slot);
            }
        }
        free.append(&mut dying[i]);
    }
    memory
}

impl Memory {
    fn add(&mut self, class: Class, size: usize) -> u32 {
        self.slots.push((class, size));
        u32::try_from(self.slots.len() - 1).expect("fewer than 2^32 slots")
    }

    /// The free slot that fits best, grown if none is large enough; a new one if none is free.
    fn take(&mut self, free: &mut Vec<u32>, class: Class, size: usize) -> u32 {
        let candidates = free.iter().enumerate().filter(|&(_, &s)| self.slots[s as usize].0 == class);
        let waste = |s: u32| {
            let have = self.slots[s as usize].1;
            // Enough room first, the least waste among those; else the largest.
            if have >= size { (0, have - size) } else { (1, size - have) }
        };
        match candidates.min_by_key(|&(_, &s)| waste(s)).map(|(i, _)| i) {
            Some(i) => {
                let slot = free.swap_remove(i);
                let have = &mut self.slots[slot as usize].1;
                *have = (*have).max(size);
                slot
            }
            None => self.add(class, size),
        }
    }
}

fn buffer_of(source: &Source) -> Option<usize> {
    match source.at {
        At::Whole(b) | At::Part(b, _) | At::View(b, _) => Some(b as usize),
        At::State(..) | At::Constant(_) | At::Text(_) | At::Held => None,
    }
}
