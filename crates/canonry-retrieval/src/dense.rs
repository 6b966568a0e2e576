//! Vectors in memory: a scan over one-byte codes, then exact scores for whatever can be among the best.

use crate::slots::Slot;

/// Multiplications that are worth the start of a thread: about a third of a millisecond.
const MULTIPLICATIONS_PER_THREAD: usize = 4_000_000;
/// The scan is bound by memory: more threads than two bring little and take them from others.
const THREADS: usize = 2;
/// Room for the rounding of 32-bit sums in the bounds below.
const ROUNDING: f32 = 1e-5;

/// The vectors of one model, each as bytes for the scan and as floats for the scores.
#[derive(Debug, Default)]
pub struct DenseIndex {
    dimension: usize,
    codes: Vec<i8>,
    coded: Vec<Coded>,
    vectors: Vec<f32>,
    live: usize,
}

/// How a vector's codes relate to it. A scale of zero marks an empty slot.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Coded {
    scale: f32,
    /// The length of what the codes leave out.
    lost: f32,
}

/// Why a vector cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidVector {
    /// It has another dimension than the others.
    #[error("the vector has {found} numbers, the index holds vectors of {expected}")]
    Dimension {
        /// What the index holds.
        expected: usize,
        /// What came.
        found: usize,
    },
    /// A number in it is none.
    #[error("the vector holds a number that is not finite")]
    NotFinite,
    /// It has no direction.
    #[error("the vector is zero")]
    Zero,
}

/// An item found by its vector.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DenseHit {
    /// Where it lies.
    pub slot: Slot,
    /// The cosine with the query.
    pub cosine: f32,
}

/// The best hits of a scan, and how the scores of all items are spread.
#[derive(Debug, Clone, PartialEq)]
pub struct DenseScan {
    /// Best first.
    pub hits: Vec<DenseHit>,
    /// Mean and deviation over all vectors.
    pub spread: Spread,
}

/// Mean and standard deviation of cosines.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// The mean.
    pub mean: f64,
    /// The standard deviation.
    pub deviation: f64,
}

impl Spread {
    /// The spread of some cosines.
    pub fn of(cosines: impl IntoIterator<Item = f32>) -> Self {
        let mut sums = Sums::default();
        for cosine in cosines {
            sums.add(cosine);
        }
        sums.spread()
    }
}

impl DenseIndex {
    /// An index of nothing; the first vector settles the dimension.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many vectors are in it.
    pub fn len(&self) -> usize {
        self.live
    }

    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.live == 0
    }

    /// The dimension of its vectors; 0 before the first.
    pub fn dimension(&self) -> usize {
        self.dimension
    }

    /// An empty index for so many vectors.
    pub(crate) fn with_room(dimension: usize, vectors: usize) -> Self {
        Self {
            dimension,
            codes: Vec::with_capacity(dimension * vectors),
            coded: Vec::with_capacity(vectors),
            vectors: Vec::with_capacity(dimension * vectors),
            live: 0,
        }
    }

    /// Puts a vector in its slot, in place of what was there. Its length does not matter.
    pub fn put(&mut self, slot: Slot, vector: &[f32]) -> Result<(), InvalidVector> {
        let unit = self.unit(vector)?;
        self.put_unit(slot, &unit)
    }

    /// Puts a vector that [`DenseIndex::unit`] made before, bit by bit as it is.
    pub(crate) fn put_unit(&mut self, slot: Slot, unit: &[f32]) -> Result<(), InvalidVector> {
        self.check(unit)?;
        self.dimension = unit.len();
        self.remove(slot);
        if self.coded.len() <= slot.index() {
            self.coded.resize(slot.index() + 1, Coded::default());
            self.codes.resize((slot.index() + 1) * self.dimension, 0);
            self.vectors.resize((slot.index() + 1) * self.dimension, 0.0);
        }
        let place = slot.index() * self.dimension..(slot.index() + 1) * self.dimension;
        self.coded[slot.index()] = code(unit, &mut self.codes[place.clone()]);
        self.vectors[place].copy_from_slice(unit);
        self.live += 1;
        Ok(())
    }

    /// Takes a vector out; whether there was one.
    pub fn remove(&mut self, slot: Slot) -> bool {
        let Some(coded) = self.coded.get_mut(slot.index()).filter(|coded| coded.scale > 0.0) else {
            return false;
        };
        *coded = Coded::default();
        self.live -= 1;
        true
    }

    /// The unit vector in a slot.
    pub fn vector(&self, slot: Slot) -> Option<&[f32]> {
        self.coded.get(slot.index()).filter(|coded| coded.scale > 0.0)?;
        self.vectors.get(slot.index() * self.dimension..(slot.index() + 1) * self.dimension)
    }

    /// The cosine of a slot's vector with a query that [`DenseIndex::unit`] made.
    pub fn cosine(&self, slot: Slot, unit: &[f32]) -> Option<f32> {
        self.vector(slot).map(|vector| dot(vector, unit))
    }

    /// A vector of length one, checked.
    pub fn unit(&self, vector: &[f32]) -> Result<Vec<f32>, InvalidVector> {
        self.check(vector)?;
        // In 64 bits, so that numbers near the ends of the range neither vanish nor overflow.
        let length = vector.iter().map(|&number| f64::from(number).powi(2)).sum::<f64>().sqrt();
        Ok(vector.iter().map(|&number| (f64::from(number) / length) as f32).collect())
    }

    /// The nearest items that have a key, exactly as a scan over the floats would find them; equals are
    /// ordered by key.
    ///
    /// A code differs from its vector by a length that is known, so by Cauchy and Schwarz a cosine from
    /// codes is off by at most that much: every item that could still be among the best is scored with
    /// floats.
    pub fn nearest<K: Ord>(
        &self,
        vector: &[f32],
        limit: usize,
        key: impl Fn(Slot) -> Option<K>,
    ) -> Result<DenseScan, InvalidVector> {
        let unit = self.unit(vector)?;
        let mut codes = vec![0_i8; unit.len()];
        let query = code(&unit, &mut codes);
        let codes: Vec<i16> = codes.into_iter().map(i16::from).collect();
        let mut cosines = vec![0.0_f32; self.coded.len()];
        let spread = self.scan(&codes, query.scale, &mut cosines);

        let error = |coded: &Coded| query.lost + (1.0 + query.lost) * coded.lost + ROUNDING;
        let mut floor = Floor::new(limit);
        for (index, (coded, &cosine)) in self.coded.iter().zip(&cosines).enumerate() {
            let bound = cosine - error(coded);
            if bound > floor.value && key(Slot::at(index)).is_some() {
                floor.push(bound);
            }
        }
        let mut hits: Vec<(DenseHit, K)> = Vec::with_capacity(2 * limit);
        for (index, (coded, &cosine)) in self.coded.iter().zip(&cosines).enumerate() {
            if cosine + error(coded) < floor.value {
                continue;
            }
            let slot = Slot::at(index);
            if let (Some(cosine), Some(key)) = (self.cosine(slot, &unit), key(slot)) {
                hits.push((DenseHit { slot, cosine }, key));
            }
        }
        hits.sort_unstable_by(|(one, one_key), (other, other_key)| {
            other.cosine.total_cmp(&one.cosine).then_with(|| one_key.cmp(other_key))
        });
        hits.truncate(limit);
        Ok(DenseScan { hits: hits.into_iter().map(|(hit, _)| hit).collect(), spread })
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

    /// The cosine of every vector with the query, from codes; an empty slot's is below all.
    fn scan(&self, query: &[i16], scale: f32, cosines: &mut [f32]) -> Spread {
        if query.is_empty() || cosines.is_empty() {
            return Spread { mean: 0.0, deviation: 0.0 };
        }
        let work = cosines.len() * query.len();
        let threads = (work / MULTIPLICATIONS_PER_THREAD).clamp(1, THREADS);
        let share = cosines.len().div_ceil(threads);
        let simd = pulp::Arch::new();
        let sums = std::thread::scope(|scope| {
            let mut parts = cosines
                .chunks_mut(share)
                .zip(self.codes.chunks(share * query.len()).zip(self.coded.chunks(share)))
                .map(|(cosines, (codes, coded))| {
                    move || simd.dispatch(|| scan_codes(query, scale, codes, coded, cosines))
                });
            let first = parts.next();
            let others: Vec<_> = parts.map(|part| scope.spawn(part)).collect();
            let first = first.map_or(Sums::default(), |mut part| part());
            others
                .into_iter()
                .fold(first, |sums, other| sums.and(other.join().expect("invariant: a scan does not panic")))
        });
        sums.spread()
    }

    /// The vectors by slot, for a snapshot.
    pub(crate) fn slots(&self) -> impl ExactSizeIterator<Item = Option<&[f32]>> + '_ {
        (0..self.coded.len()).map(|index| self.vector(Slot::at(index)))
    }
}

/// The lower bounds of the best items so far; `value` is the least of them once there are enough.
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
        self.best.push(bound);
        // Sorting once for every `limit` additions keeps this linear.
        if self.best.len() > 2 * self.limit || self.best.len() == self.limit {
            self.best.sort_unstable_by(|one, other| other.total_cmp(one));
            self.best.truncate(self.limit);
            self.value = self.best.last().copied().unwrap_or(f32::INFINITY);
        }
    }
}

/// Writes a unit vector as bytes.
fn code(unit: &[f32], codes: &mut [i8]) -> Coded {
    let largest = unit.iter().fold(0.0_f32, |largest, number| largest.max(number.abs()));
    let scale = largest / 127.0;
    let mut lost = 0.0_f64;
    for (&number, code) in unit.iter().zip(codes) {
        // Rounds by cutting off, which needs no call; the cast saturates.
        let steps = number / scale;
        *code = (steps + 0.5_f32.copysign(steps)) as i8;
        lost += f64::from(number - f32::from(*code) * scale).powi(2);
    }
    Coded { scale, lost: lost.sqrt() as f32 }
}

/// What a spread is made of.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    count: f64,
    sum: f64,
    squares: f64,
}

impl Sums {
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
        if self.count == 0.0 {
            return Spread { mean: 0.0, deviation: 0.0 };
        }
        let mean = self.sum / self.count;
        Spread { mean, deviation: (self.squares / self.count - mean * mean).max(0.0).sqrt() }
    }
}

// Inlined into the dispatch, where the compiler may use what the processor has beyond the baseline.
#[inline(always)]
fn scan_codes(query: &[i16], scale: f32, codes: &[i8], coded: &[Coded], cosines: &mut [f32]) -> Sums {
    let mut sums = Sums::default();
    for ((cosine, coded), codes) in cosines.iter_mut().zip(coded).zip(codes.chunks_exact(query.len())) {
        if coded.scale > 0.0 {
            *cosine = scale * coded.scale * dot_codes(query, codes) as f32;
            sums.add(*cosine);
        } else {
            *cosine = f32::NEG_INFINITY;
        }
    }
    sums
}

/// A shape that compiles to packed multiply-and-add.
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

    use super::{DenseIndex, InvalidVector, dot};
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
            // Crowded vectors are the hard case: codes cannot tell them apart.
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
