//! The packed list of items that contain a term.

use std::hash::Hasher;

use crate::bag::Count;
use crate::heap_bytes::vec_bytes;
use crate::slots::Slot;

/// Most terms occur in one item only; that case needs no allocation.
#[derive(Debug)]
pub(crate) enum Postings {
    One(u32),
    Many(Vec<u32>),
}

impl Postings {
    pub(crate) fn all(&self) -> &[u32] {
        match self {
            Self::One(posting) => std::slice::from_ref(posting),
            Self::Many(postings) => postings,
        }
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        match self {
            Self::One(_) => 0,
            Self::Many(postings) => vec_bytes(postings),
        }
    }

    pub(crate) fn insert(&mut self, posting: u32) {
        match self {
            Self::One(other) => *self = Self::Many(vec![posting.min(*other), posting.max(*other)]),
            Self::Many(postings) => {
                // Grows by a quarter instead of doubling: postings are most of the index's memory.
                if postings.len() == postings.capacity() {
                    postings.reserve_exact(postings.len() / 4 + 2);
                }
                let at = postings.partition_point(|&other| other < posting);
                postings.insert(at, posting);
            }
        }
    }

    /// Removes a slot's posting; returns whether none is left.
    pub(crate) fn remove(&mut self, slot: Slot) -> bool {
        match self {
            Self::One(_) => true,
            Self::Many(postings) => {
                if let Ok(at) = postings.binary_search_by_key(&slot.index(), |&posting| unpack(posting).0) {
                    postings.remove(at);
                }
                if let [last] = postings.as_slice() {
                    *self = Self::One(*last);
                }
                false
            }
        }
    }
}

pub(crate) fn posting(slot: Slot, count: Count) -> u32 {
    (slot.get() << 8) | u32::from(count.0)
}

pub(crate) fn unpack(posting: u32) -> (usize, Count) {
    ((posting >> 8) as usize, Count((posting & 0xff) as u8))
}

pub(crate) fn pack_ascending(ids: &[u32]) -> Box<[u8]> {
    let mut packed = Vec::with_capacity(2 * ids.len());
    let mut last = 0;
    for &id in ids {
        pack(id - last, &mut packed);
        last = id;
    }
    packed.into_boxed_slice()
}

pub(crate) fn pack(mut number: u32, packed: &mut Vec<u8>) {
    while number >= 0x80 {
        packed.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    packed.push(number as u8);
}

pub(crate) fn unpack_ascending(packed: &[u8]) -> impl Iterator<Item = u32> + '_ {
    let (mut bytes, mut last) = (packed.iter(), 0_u32);
    std::iter::from_fn(move || {
        let (mut difference, mut shift) = (0_u32, 0);
        loop {
            let &byte = bytes.next()?;
            difference |= u32::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                last += difference;
                return Some(last);
            }
            shift += 7;
        }
    })
}

#[derive(Debug, Default)]
pub(crate) struct TermHasher(u64);

impl Hasher for TermHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(byte);
        }
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

#[cfg(test)]
mod tests {
    use super::{pack_ascending, unpack_ascending};

    #[test]
    fn ascending_numbers_survive_packing() {
        let ids = [0, 1, 127, 128, 20_000, u32::MAX - 1, u32::MAX];
        assert_eq!(unpack_ascending(&pack_ascending(&ids)).collect::<Vec<_>>(), ids);
    }
}
