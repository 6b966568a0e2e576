//! Vectors in memory: a scan over one-byte codes, then exact scores for every item that can be among the best.

use std::sync::{Mutex, PoisonError};

use rten_simd::{Isa, SimdOp};

use crate::heap_bytes::vec_bytes;
use crate::slots::Slot;

/// Multiplications that justify starting a thread: about a third of a millisecond.
const MULTIPLICATIONS_PER_THREAD: usize = 4_000_000;
/// The scan is bound by memory: more than two threads gain little and are missing elsewhere.
const THREADS: usize = 2;
/// Vectors that a thread processes at a time: a thread that starts late or is interrupted then delays the others
/// little.
const PORTION: usize = 64 * BLOCK;
/// Vectors that are skipped together if none of them can be among the best, which is nearly always the case.
const BLOCK: usize = 64;
/// Tolerance for the rounding of 32-bit sums in the bounds below.
const ROUNDING: f32 = 1e-5;

/// The vectors of one model, each as bytes for the scan and as floats for the exact scores.
#[derive(Debug, Default)]
pub struct DenseIndex {
    dimension: usize,
    codes: Rows<i8>,
    coded: Vec<VectorCoding>,
    vectors: Rows<f32>,
    live: usize,
}

/// Rows of equal length in blocks of [`PORTION`]: adding a row neither moves the others nor doubles their memory, as
/// a single vector of 150 MB would do while a service runs.
#[derive(Debug, Default)]
struct Rows<T> {
    blocks: Vec<Vec<T>>,
}

impl<T: Copy + Default> Rows<T> {
    fn ensure_rows(&mut self, count: usize, width: usize) {
        self.blocks.resize_with(count.div_ceil(PORTION), Vec::new);
        for (at, block) in self.blocks.iter_mut().enumerate() {
            let wanted = width * (count - at * PORTION).min(PORTION);
            if block.len() < wanted {
                let room = wanted.max(2 * block.len()).min(PORTION * width);
                block.reserve_exact(room - block.len());
                block.resize(wanted, T::default());
            }
        }
    }

    fn row(&self, at: usize, width: usize) -> Option<&[T]> {
        self.blocks.get(at / PORTION)?.get(at % PORTION * width..(at % PORTION + 1) * width)
    }

    fn row_mut(&mut self, at: usize, width: usize) -> &mut [T] {
        &mut self.blocks[at / PORTION][at % PORTION * width..(at % PORTION + 1) * width]
    }

    fn heap_bytes(&self) -> usize {
        vec_bytes(&self.blocks) + self.blocks.iter().map(vec_bytes).sum::<usize>()
    }
}

/// How a vector's codes relate to the vector. A scale of zero marks an empty slot.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct VectorCoding {
    scale: f32,
    /// The length of the difference between the vector and its codes.
    lost: f32,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidVector {
    /// The dimension differs from that of the other vectors.
    #[error("the vector has {found} numbers, the index holds vectors of {expected}")]
    Dimension { expected: usize, found: usize },
    /// A component is not a finite number.
    #[error("the vector holds a number that is not finite")]
    NotFinite,
    #[error("the vector is zero")]
    Zero,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DenseHit {
    pub slot: Slot,
    pub cosine: f32,
}

/// The best hits of a scan, and the distribution of the scores of all items.
#[derive(Debug, Clone, PartialEq)]
pub struct DenseScan {
    /// Best first.
    pub hits: Vec<DenseHit>,
    pub spread: Spread,
}

/// Mean and standard deviation of cosines.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    pub mean: f64,
    pub deviation: f64,
}

impl Spread {
    pub fn of(cosines: impl IntoIterator<Item = f32>) -> Self {
        let mut sums = DenseSums::default();
        for cosine in cosines {
            sums.add(cosine);
        }
        sums.spread()
    }
}

impl DenseIndex {
    /// An empty index; the first vector sets the dimension.
    pub fn new() -> Self {
        Self::default()
    }

    pub fn len(&self) -> usize {
        self.live
    }

    pub fn is_empty(&self) -> bool {
        self.live == 0
    }

    /// The dimension of the vectors; 0 before the first.
    pub fn dimension(&self) -> usize {
        self.dimension
    }

    /// An empty index for vectors of this dimension.
    pub(crate) fn of_dimension(dimension: usize) -> Self {
        Self { dimension, ..Self::default() }
    }

    /// Stores a vector in its slot and replaces an earlier one. Its length does not matter.
    pub fn put(&mut self, slot: Slot, vector: &[f32]) -> Result<(), InvalidVector> {
        let unit = self.unit(vector)?;
        self.put_unit(slot, &unit)
    }

    /// Stores a vector that [`DenseIndex::unit`] made, without any change.
    pub(crate) fn put_unit(&mut self, slot: Slot, unit: &[f32]) -> Result<(), InvalidVector> {
        self.check(unit)?;
        self.dimension = unit.len();
        self.remove(slot);
        if self.coded.len() <= slot.index() {
            self.coded.resize(slot.index() + 1, VectorCoding::default());
            self.codes.ensure_rows(slot.index() + 1, self.dimension);
            self.vectors.ensure_rows(slot.index() + 1, self.dimension);
        }
        self.coded[slot.index()] = code(unit, self.codes.row_mut(slot.index(), self.dimension));
        self.vectors.row_mut(slot.index(), self.dimension).copy_from_slice(unit);
        self.live += 1;
        Ok(())
    }

    /// Removes a vector; returns whether there was one.
    pub fn remove(&mut self, slot: Slot) -> bool {
        let Some(coded) = self.coded.get_mut(slot.index()).filter(|coded| coded.scale > 0.0) else {
            return false;
        };
        *coded = VectorCoding::default();
        self.live -= 1;
        true
    }

    pub fn vector(&self, slot: Slot) -> Option<&[f32]> {
        self.coded.get(slot.index()).filter(|coded| coded.scale > 0.0)?;
        self.vectors.row(slot.index(), self.dimension)
    }

    /// The cosine of a slot's vector with a query that [`DenseIndex::unit`] made.
    pub fn cosine(&self, slot: Slot, unit: &[f32]) -> Option<f32> {
        self.vector(slot).map(|vector| dot(vector, unit))
    }

    pub fn unit(&self, vector: &[f32]) -> Result<Vec<f32>, InvalidVector> {
        self.check(vector)?;
        // In 64 bits, so that extreme numbers neither underflow nor overflow.
        let length = vector.iter().map(|&number| f64::from(number).powi(2)).sum::<f64>().sqrt();
        Ok(vector.iter().map(|&number| (f64::from(number) / length) as f32).collect())
    }

    /// The nearest items that have a key, exactly as a scan over the floats would find them. Equal items are ordered
    /// by key.
    ///
    /// The distance between a vector and its codes is known, so by the Cauchy–Schwarz inequality a cosine from codes
    /// is wrong by at most that distance. Every item that could still be among the best is scored with floats.
    pub fn nearest<K: Ord>(
        &self,
        vector: &[f32],
        limit: usize,
        key: impl Fn(Slot) -> Option<K>,
    ) -> Result<DenseScan, InvalidVector> {
        let unit = self.unit(vector)?;
        let query = CodedQuery::of(&unit);
        let mut cosines = vec![0.0_f32; self.coded.len()];
        let blocks = self.scan(&query, &mut cosines);

        let mut floor = Floor::new(limit);
        let mut possible: Vec<(Slot, f32, K)> = Vec::with_capacity(4 * limit);
        let vectors = self.coded.chunks(BLOCK).zip(cosines.chunks(BLOCK));
        for (at, (block, (coded, cosines))) in blocks.iter().zip(vectors).enumerate() {
            if block.most < floor.value {
                continue;
            }
            for (index, (coded, &cosine)) in (at * BLOCK..).zip(coded.iter().zip(cosines)) {
                let (least, most) = query.bounds(cosine, coded);
                if most < floor.value {
                    continue;
                }
                let slot = Slot::at(index);
                if let Some(key) = key(slot) {
                    possible.push((slot, most, key));
                    floor.push(least);
                }
            }
        }
        let mut hits: Vec<(DenseHit, K)> = possible
            .into_iter()
            .filter(|(_, most, _)| *most >= floor.value)
            .filter_map(|(slot, _, key)| Some((DenseHit { slot, cosine: self.cosine(slot, &unit)? }, key)))
            .collect();
        hits.sort_unstable_by(|(one, one_key), (other, other_key)| {
            other.cosine.total_cmp(&one.cosine).then_with(|| one_key.cmp(other_key))
        });
        hits.truncate(limit);
        // In the order of the blocks, whichever thread scanned them: the last bits of a sum depend on the order.
        let sums = blocks.iter().fold(DenseSums::default(), |sums, block| sums.and(block.sums));
        Ok(DenseScan { hits: hits.into_iter().map(|(hit, _)| hit).collect(), spread: sums.spread() })
    }

    fn check(&self, vector: &[f32]) -> Result<(), InvalidVector> {
        if self.dimension != 0 && vector.len() != self.dimension {
            return Err(InvalidVector::Dimension { expected: self.dimension, found: vector.len() });
        }
        if !vector.iter().all(|number| number.is_finite()) {
            return Err(InvalidVector::NotFinite);
        }
        if vector.iter().all(|&number| number == 0.0) {
            return Err(InvalidVector::Zero);
        }
        Ok(())
    }

    /// The cosine of every vector with the query, computed from codes. That of an empty slot is below all others.
    fn scan(&self, query: &CodedQuery, cosines: &mut [f32]) -> Vec<DenseBlock> {
        let mut blocks = vec![DenseBlock::default(); cosines.len().div_ceil(BLOCK)];
        let dimension = query.codes.len();
        let threads = (cosines.len() * dimension / MULTIPLICATIONS_PER_THREAD).clamp(1, THREADS);
        let vectors = self.codes.blocks.iter().zip(self.coded.chunks(PORTION));
        let results = cosines.chunks_mut(PORTION).zip(blocks.chunks_mut(PORTION / BLOCK));
        let portions = Mutex::new(vectors.zip(results));
        let next = || portions.lock().unwrap_or_else(PoisonError::into_inner).next();
        let work = || {
            while let Some(((codes, coded), (cosines, blocks))) = next() {
                DensePortion { query, codes, coded, cosines, blocks }.dispatch();
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..threads {
                scope.spawn(work);
            }
            work();
        });
        blocks
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.codes.heap_bytes() + vec_bytes(&self.coded) + self.vectors.heap_bytes()
    }

    /// The vectors by slot, for a snapshot.
    pub(crate) fn slots(&self) -> impl ExactSizeIterator<Item = Option<&[f32]>> + '_ {
        (0..self.coded.len()).map(|index| self.vector(Slot::at(index)))
    }
}

/// The lower bounds of the best items so far; `value` is the smallest of them once there are enough.
struct Floor {
    limit: usize,
    best: Vec<f32>,
    value: f32,
}

impl Floor {
    fn new(limit: usize) -> Self {
        Self { limit, best: Vec::with_capacity(2 * limit + 1), value: f32::NEG_INFINITY }
    }

    fn push(&mut self, bound: f32) {
        if bound <= self.value {
            return;
        }
        self.best.push(bound);
        // Sorting once for every `limit` additions keeps this linear.
        if self.best.len() > 2 * self.limit || self.best.len() == self.limit {
            self.best.sort_unstable_by(|one, other| other.total_cmp(one));
            self.best.truncate(self.limit);
            self.value = self.best.last().copied().unwrap_or(f32::INFINITY);
        }
    }
}

/// A query in the form that the scan needs.
struct CodedQuery {
    /// Two bytes each, because products of bytes need them.
    codes: Vec<i16>,
    coded: VectorCoding,
}

impl CodedQuery {
    fn of(unit: &[f32]) -> Self {
        let mut codes = vec![0_i8; unit.len()];
        let coded = code(unit, &mut codes);
        Self { codes: codes.into_iter().map(i16::from).collect(), coded }
    }

    #[inline(always)]
    fn bounds(&self, cosine: f32, other: &VectorCoding) -> (f32, f32) {
        let error = self.coded.lost + (1.0 + self.coded.lost) * other.lost + ROUNDING;
        (cosine - error, cosine + error)
    }
}

/// The result of a scan over some adjacent vectors.
#[derive(Debug, Clone)]
struct DenseBlock {
    most: f32,
    sums: DenseSums,
}

impl Default for DenseBlock {
    fn default() -> Self {
        Self { most: f32::NEG_INFINITY, sums: DenseSums::default() }
    }
}

fn code(unit: &[f32], codes: &mut [i8]) -> VectorCoding {
    let largest = unit.iter().fold(0.0_f32, |largest, number| largest.max(number.abs()));
    let scale = largest / 127.0;
    let mut lost = 0.0_f64;
    for (&number, code) in unit.iter().zip(codes) {
        // The cast truncates, which needs no call, and saturates.
        let steps = number / scale;
        *code = (steps + 0.5_f32.copysign(steps)) as i8;
        lost += f64::from(number - f32::from(*code) * scale).powi(2);
    }
    VectorCoding { scale, lost: lost.sqrt() as f32 }
}

/// Sixteen items that every repository has in addition, so that a few do not decide what is usual. Their mean of .2 and
/// deviation of .1 are those of the public sets (.09 to .26, .10 to .12). Without them two items with the same text,
/// alone in a repository, have no deviation at all, and what they differ from the mean by is rounding.
const TYPICAL: DenseSums = DenseSums { count: 16.0, sum: 3.2, squares: 0.8 };

/// The sums from which a spread is computed.
#[derive(Debug, Clone, Copy, Default)]
struct DenseSums {
    count: f64,
    sum: f64,
    squares: f64,
}

impl DenseSums {
    fn add(&mut self, cosine: f32) {
        let cosine = f64::from(cosine);
        self.count += 1.0;
        self.sum += cosine;
        self.squares += cosine * cosine;
    }

    fn and(self, other: Self) -> Self {
        Self { count: self.count + other.count, sum: self.sum + other.sum, squares: self.squares + other.squares }
    }

    fn spread(self) -> Spread {
        let Self { count, sum, squares } = self.and(TYPICAL);
        let mean = sum / count;
        Spread { mean, deviation: (squares / count - mean * mean).max(0.0).sqrt() }
    }
}

/// Some vectors to scan, and the buffers for the results.
struct DensePortion<'a> {
    query: &'a CodedQuery,
    codes: &'a [i8],
    coded: &'a [VectorCoding],
    cosines: &'a mut [f32],
    blocks: &'a mut [DenseBlock],
}

impl SimdOp for DensePortion<'_> {
    type Output = ();

    // This is inlined into the dispatch, where the compiler may use what the processor has beyond the baseline. A
    // closure is not always inlined, and the scan then takes nearly three times as long.
    #[inline(always)]
    fn eval<I: Isa>(self, _: I) {
        let query = self.query.codes.as_slice();
        let vectors = self.codes.chunks(BLOCK * query.len()).zip(self.coded.chunks(BLOCK));
        for (block, (cosines, (codes, coded))) in
            self.blocks.iter_mut().zip(self.cosines.chunks_mut(BLOCK).zip(vectors))
        {
            for (cosine, (coded, dot)) in cosines.iter_mut().zip(coded.iter().zip(dot_block(query, codes))) {
                if coded.scale > 0.0 {
                    *cosine = self.query.coded.scale * coded.scale * dot as f32;
                    block.sums.add(*cosine);
                    let (_, most) = self.query.bounds(*cosine, coded);
                    block.most = if most > block.most { most } else { block.most };
                } else {
                    *cosine = f32::NEG_INFINITY;
                }
            }
        }
    }
}

/// The products of a block with the query. Its two halves alternate, because two streams from memory are faster than
/// one (by a twelfth of the scan's time).
#[inline(always)]
fn dot_block(query: &[i16], codes: &[i8]) -> [i32; BLOCK] {
    let mut dots = [0; BLOCK];
    let (early, late) = dots.split_at_mut(BLOCK / 2);
    let (early_codes, late_codes) = codes.split_at(codes.len().min(BLOCK / 2 * query.len()));
    let mut late = late.iter_mut().zip(late_codes.chunks_exact(query.len()));
    for (dot, codes) in early.iter_mut().zip(early_codes.chunks_exact(query.len())) {
        *dot = dot_codes(query, codes);
        if let Some((dot, codes)) = late.next() {
            *dot = dot_codes(query, codes);
        }
    }
    dots
}

/// The compiler turns this form into packed multiply-and-add.
#[inline(always)]
fn dot_codes(query: &[i16], codes: &[i8]) -> i32 {
    query.iter().zip(codes).map(|(&query, &code)| i32::from(query) * i32::from(code)).sum()
}

fn dot(one: &[f32], other: &[f32]) -> f32 {
    let (one_lanes, one_rest) = one.as_chunks::<16>();
    let (other_lanes, other_rest) = other.as_chunks::<16>();
    let mut sums = [0.0_f32; 16];
    for (one, other) in one_lanes.iter().zip(other_lanes) {
        for lane in 0..16 {
            sums[lane] += one[lane] * other[lane];
        }
    }
    let rest: f32 = one_rest.iter().zip(other_rest).map(|(one, other)| one * other).sum();
    (sums.iter().sum::<f32>() + rest).clamp(-1.0, 1.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{ProptestConfig, prop_assert_eq, proptest};

    use super::{DenseIndex, InvalidVector, MULTIPLICATIONS_PER_THREAD, PORTION, Spread, THREADS, dot};
    use crate::slots::Slot;

    #[test]
    fn vectors_that_cannot_be_compared_are_refused() {
        let mut index = DenseIndex::new();
        index.put(Slot::at(0), &[1.0, 2.0]).expect("a vector");
        for (vector, expected) in [
            (&[1.0][..], InvalidVector::Dimension { expected: 2, found: 1 }),
            (&[1.0, f32::NAN], InvalidVector::NotFinite),
            (&[f32::INFINITY, 0.0], InvalidVector::NotFinite),
            (&[0.0, 0.0], InvalidVector::Zero),
        ] {
            assert_eq!(index.put(Slot::at(1), vector), Err(expected.clone()));
            assert_eq!(index.nearest(vector, 3, Some), Err(expected));
        }
        assert_eq!(index.len(), 1);
    }

    #[test]
    fn replaced_and_removed_vectors_are_gone() {
        let mut index = DenseIndex::new();
        index.put(Slot::at(0), &[1.0, 0.0, 0.0]).expect("a vector");
        index.put(Slot::at(1), &[0.0, 3.0, 0.0]).expect("a vector");
        index.put(Slot::at(0), &[0.0, 1.0, 1.0]).expect("a vector");
        let scan = index.nearest(&[0.0, 1.0, 0.0], 5, Some).expect("a query");
        assert_eq!(scan.hits.iter().map(|hit| hit.slot.index()).collect::<Vec<_>>(), [1, 0]);
        assert!((scan.hits[0].cosine - 1.0).abs() < 1e-6);
        assert!((scan.hits[1].cosine - 0.707_106_77).abs() < 1e-6);
        assert!(index.remove(Slot::at(1)));
        assert!(!index.remove(Slot::at(1)));
        let scan = index.nearest(&[0.0, 1.0, 0.0], 5, Some).expect("a query");
        assert_eq!(scan.hits.len(), 1);
        assert_eq!(index.vector(Slot::at(1)), None);
    }

    #[test]
    fn tiny_and_huge_numbers_keep_their_direction() {
        let mut index = DenseIndex::new();
        index.put(Slot::at(0), &[1e-38, 0.0]).expect("a vector");
        index.put(Slot::at(1), &[0.0, 3e38]).expect("a vector");
        let scan = index.nearest(&[3e38, 1e-38], 1, Some).expect("a query");
        assert_eq!(scan.hits[0].slot, Slot::at(0));
    }

    #[test]
    fn several_threads_find_the_same_as_one() {
        // Enough for two threads, three portions, and a last block that is not full. Every fifth slot is empty.
        let (dimension, count) = (1_000, 2 * PORTION + 37);
        assert!(dimension * count > THREADS * MULTIPLICATIONS_PER_THREAD);
        let number = |slot: usize, at: usize| ((slot * 31 + at * 7 + slot * at) % 1_009) as f32 - 504.0;
        let vector = |slot| (0..dimension).map(|at| number(slot, at)).collect::<Vec<f32>>();
        let mut index = DenseIndex::new();
        for slot in (0..count).filter(|slot| slot % 5 != 0) {
            index.put(Slot::at(slot), &vector(slot)).expect("a vector");
        }
        let query = vector(count - 1);
        let scan = index.nearest(&query, 10, Some).expect("a query");
        let unit = index.unit(&query).expect("a query");
        let mut exact: Vec<(f32, usize)> =
            (0..count).filter_map(|slot| Some((index.cosine(Slot::at(slot), &unit)?, slot))).collect();
        let spread = Spread::of(exact.iter().map(|(cosine, _)| *cosine));
        exact.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(&other.1)));
        exact.truncate(10);
        let found: Vec<(f32, usize)> = scan.hits.iter().map(|hit| (hit.cosine, hit.slot.index())).collect();
        assert_eq!(found, exact);
        assert!((scan.spread.mean - spread.mean).abs() < 1e-4, "{:?} {spread:?}", scan.spread);
        assert!((scan.spread.deviation - spread.deviation).abs() < 1e-4, "{:?} {spread:?}", scan.spread);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

        #[test]
        fn the_nearest_are_those_of_an_exact_scan(
            seed in 0_u64..u64::MAX,
            dimension in 1_usize..70,
            count in 1_usize..300,
            limit in 1_usize..30,
            close in 0_u8..3,
        ) {
            let mut state = seed | 1;
            let mut next = move || {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                (state >> 40) as f32 / (1_u32 << 24) as f32 - 0.5
            };
            // Crowded vectors are the hard case: codes cannot distinguish them.
            let spread = [1.0, 0.01, 0.000_1][usize::from(close)];
            let centre: Vec<f32> = (0..dimension).map(|_| next() + 0.6).collect();
            let mut vector = || centre.iter().map(|number| number + spread * next()).collect::<Vec<f32>>();
            let mut index = DenseIndex::new();
            for slot in 0..count {
                index.put(Slot::at(slot), &vector()).expect("a vector");
            }
            let query = vector();
            let found = index.nearest(&query, limit, |slot| (slot.index() % 3 != 1).then_some(slot)).expect("a query");
            let unit = index.unit(&query).expect("a query");
            let mut exact: Vec<(f32, usize)> = (0..count)
                .filter(|slot| slot % 3 != 1)
                .map(|slot| (dot(index.vector(Slot::at(slot)).expect("present"), &unit), slot))
                .collect();
            exact.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(&other.1)));
            exact.truncate(limit);
            let found: Vec<(f32, usize)> = found.hits.iter().map(|hit| (hit.cosine, hit.slot.index())).collect();
            prop_assert_eq!(found, exact);
        }
    }
}
