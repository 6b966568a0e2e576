//! Bytes in whole cache lines: a tile row that crosses two lines would need two loads.

pub(crate) const LINE: usize = 64;

#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct CacheLine(pub(crate) [u8; LINE]);

pub(crate) const EMPTY: CacheLine = CacheLine([0; LINE]);

/// Grows `lines` to at least `count`. Their old contents do not matter.
pub(crate) fn resize(lines: &mut Vec<CacheLine>, count: usize) {
    if lines.len() < count {
        lines.resize(count, EMPTY);
    }
}
