//! The heap memory of collections, as the allocator counts it.

use std::mem::size_of;

/// The size of an allocated block: allocators round up to steps of 16 bytes, and to steps of an eighth from 128 bytes
/// on.
pub fn block_bytes(bytes: usize) -> usize {
    match bytes {
        0 => 0,
        1..=128 => bytes.next_multiple_of(16),
        // Large blocks consist of whole pages.
        _ if bytes > 1 << 20 => bytes.next_multiple_of(1 << 12),
        _ => bytes.next_multiple_of(bytes.next_power_of_two() / 16),
    }
}

pub fn vec_bytes<T>(vec: &Vec<T>) -> usize {
    block_bytes(vec.capacity() * size_of::<T>())
}

/// The heap memory of a hash map: its number of places is a power of two, at most seven in eight are used, and each
/// has one extra byte.
pub fn map_bytes<Entry>(capacity: usize) -> usize {
    match capacity {
        0 => 0,
        _ => block_bytes((capacity * 8).div_ceil(7).next_power_of_two() * (size_of::<Entry>() + 1) + 16),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::{block_bytes, map_bytes};

    #[test]
    fn a_block_is_never_smaller_than_asked_for_nor_much_larger() {
        for bytes in (0..5_000).chain([1 << 20, (1 << 20) + 1, 10_000_000]) {
            let taken = block_bytes(bytes);
            assert!(taken >= bytes && taken <= bytes + 16 + bytes / 7, "{bytes} take {taken}");
        }
    }

    #[test]
    fn a_map_is_counted_with_its_empty_places() {
        let map: HashMap<u64, u64> = (0..100_000).map(|number| (number, number)).collect();
        assert_eq!(map_bytes::<(u64, u64)>(map.capacity()), (131_072 * 17 + 16_usize).next_multiple_of(4_096));
        assert_eq!(map_bytes::<(u64, u64)>(HashMap::<u64, u64>::new().capacity()), 0);
    }
}
