//! Slots: the position of an item in every part of an index.

use std::collections::HashMap;

use canonry_domain::ItemNumber;

use crate::heap_bytes::{map_bytes, vec_bytes};

/// The position of an item. Small, dense numbers allow arrays of scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slot(u32);

impl Slot {
    /// The number of slots: a posting has 24 bits for its slot.
    pub const COUNT: usize = 1 << 24;

    /// The slot with this index. Panics from [`Slot::COUNT`] on.
    pub fn at(index: usize) -> Self {
        assert!(index < Self::COUNT, "invariant: slots are handed out below their count");
        Self(index as u32)
    }

    pub const fn index(self) -> usize {
        self.0 as usize
    }

    pub(crate) const fn get(self) -> u32 {
        self.0
    }
}

#[derive(Debug, Default)]
pub(crate) struct Slots {
    numbers: Vec<Option<ItemNumber>>,
    by_number: HashMap<ItemNumber, Slot>,
    free: Vec<Slot>,
}

impl Slots {
    pub(crate) fn len(&self) -> usize {
        self.by_number.len()
    }

    /// All positions, including empty ones.
    pub(crate) fn places(&self) -> &[Option<ItemNumber>] {
        &self.numbers
    }

    pub(crate) fn number(&self, slot: Slot) -> Option<ItemNumber> {
        self.numbers.get(slot.index()).copied().flatten()
    }

    pub(crate) fn find(&self, number: ItemNumber) -> Option<Slot> {
        self.by_number.get(&number).copied()
    }

    /// The item's slot, existing or new; `None` if all are used.
    pub(crate) fn take(&mut self, number: ItemNumber) -> Option<Slot> {
        if let Some(slot) = self.find(number) {
            return Some(slot);
        }
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None if self.numbers.len() < Slot::COUNT => {
                self.numbers.push(None);
                Slot::at(self.numbers.len() - 1)
            }
            None => return None,
        };
        self.numbers[slot.index()] = Some(number);
        self.by_number.insert(number, slot);
        Some(slot)
    }

    pub(crate) fn give_back(&mut self, number: ItemNumber) -> Option<Slot> {
        let slot = self.by_number.remove(&number)?;
        self.numbers[slot.index()] = None;
        self.free.push(slot);
        Some(slot)
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        vec_bytes(&self.numbers) + map_bytes::<(ItemNumber, Slot)>(self.by_number.capacity()) + vec_bytes(&self.free)
    }

    /// Restores the slots of a snapshot; `None` if a number occurs twice.
    pub(crate) fn from_places(numbers: Vec<Option<ItemNumber>>) -> Option<Self> {
        if numbers.len() > Slot::COUNT {
            return None;
        }
        let mut slots =
            Self { numbers: Vec::new(), by_number: HashMap::with_capacity(numbers.len()), free: Vec::new() };
        for (index, number) in numbers.iter().enumerate() {
            match number {
                Some(number) => {
                    if slots.by_number.insert(*number, Slot::at(index)).is_some() {
                        return None;
                    }
                }
                None => slots.free.push(Slot::at(index)),
            }
        }
        slots.numbers = numbers;
        Some(slots)
    }
}
