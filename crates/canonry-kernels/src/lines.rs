//! Bytes in whole cache lines: a tile's row that crossed a line would take two loads.

pub(crate) const LINE: usize = 64;

#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct CacheLine(pub(crate) [u8; LINE]);

pub(crate) const EMPTY: CacheLine = CacheLine([0; LINE]);

/// As many lines; what they held before is of no interest.
pub(crate) fn resize(lines: &mut Vec<CacheLine>, count: usize) {
    if lines.len() < count {
        lines.resize(count, EMPTY);
    }
}
