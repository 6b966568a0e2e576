//! Vectors with the cosines that a test needs.

/// The length of every vector of the server.
pub const DIMENSION: usize = 256;
/// Scripted vectors use the first dimensions, those of other texts the rest, so the two kinds are orthogonal.
const SCRIPTED: usize = 64;

/// A first vector, and one further vector for each cosine with the first.
///
/// The cosine of two further vectors is the product of their cosines.
///
/// # Panics
///
/// If there are too few dimensions for that many vectors, or a cosine is not between -1 and 1.
pub fn vectors_with_cosines<const N: usize>(cosines: [f64; N]) -> (Vec<f32>, [Vec<f32>; N]) {
    assert!(N < SCRIPTED, "{N} cosines are too many");
    let mut at = 0;
    let others = cosines.map(|cosine| {
        assert!((-1.0..=1.0).contains(&cosine), "{cosine} is no cosine");
        at += 1;
        let mut vector = vec![0.0; at + 1];
        vector[0] = cosine as f32;
        vector[at] = (1.0 - cosine * cosine).sqrt() as f32;
        vector
    });
    (vec![1.0], others)
}

/// `count` vectors with these cosines between them, with zeros in the first `skipped` dimensions: vectors of several
/// calls are orthogonal if each call skips those of the others.
///
/// # Panics
///
/// If there are too few dimensions for that many vectors, or no vectors have such cosines.
pub fn vectors_with_pairs(count: usize, skipped: usize, cosine: impl Fn(usize, usize) -> f64) -> Vec<Vec<f32>> {
    assert!(skipped + count <= SCRIPTED, "{count} vectors behind {skipped} directions are too many");
    // The rows of the Cholesky decomposition are vectors whose products are the cosines.
    let mut rows: Vec<Vec<f64>> = Vec::new();
    for at in 0..count {
        let mut row = Vec::with_capacity(at + 1);
        for (other, before) in rows.iter().enumerate() {
            let known: f64 = row.iter().zip(before).map(|(one, other)| one * other).sum();
            row.push((cosine(other, at) - known) / before[other]);
        }
        let rest = 1.0 - row.iter().map(|part: &f64| part * part).sum::<f64>();
        assert!(rest > 1e-9, "no vector {at} has these cosines with those before it");
        row.push(rest.sqrt());
        rows.push(row);
    }
    let placed = |row: &Vec<f64>| vec![0.0; skipped].into_iter().chain(row.iter().map(|&part| part as f32)).collect();
    rows.iter().map(placed).collect()
}

/// The vector, filled up with zeros to the full length.
pub(super) fn padded(mut vector: Vec<f32>) -> Vec<f32> {
    assert!(vector.len() <= DIMENSION, "a vector has at most {DIMENSION} numbers");
    vector.resize(DIMENSION, 0.0);
    vector
}

/// The vector of a text without a script: always the same, orthogonal to all scripted ones and far from those of
/// other texts.
pub(super) fn vector_of_text(text: &str) -> Vec<f32> {
    // FNV-1a, then one round of SplitMix64 per number: any mixing works that needs no crate.
    let mut state = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    let mut next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 40) as f32 / (1_u32 << 23) as f32 - 1.0
    };
    (0..DIMENSION).map(|at| if at < SCRIPTED { 0.0 } else { next() }).collect()
}

#[cfg(test)]
mod tests {
    use super::{padded, vector_of_text, vectors_with_cosines, vectors_with_pairs};

    fn cosine(one: &[f32], other: &[f32]) -> f32 {
        let product = |one: &[f32], other: &[f32]| one.iter().zip(other).map(|(one, other)| one * other).sum::<f32>();
        product(one, other) / (product(one, one) * product(other, other)).sqrt()
    }

    #[test]
    fn cosines_are_those_asked_for() {
        let (first, [near, far]) = vectors_with_cosines([0.95, -0.2]);
        let (first, near, far) = (padded(first), padded(near), padded(far));
        assert!((cosine(&first, &near) - 0.95).abs() < 1e-6);
        assert!((cosine(&first, &far) + 0.2).abs() < 1e-6);
        assert!((cosine(&near, &far) + 0.19).abs() < 1e-6);
    }

    #[test]
    fn pairs_have_the_cosines_asked_for() {
        let wanted = |one: usize, other: usize| if one + 1 == other { 0.97 } else { 0.95 };
        let vectors: Vec<Vec<f32>> = vectors_with_pairs(5, 0, wanted).into_iter().map(padded).collect();
        let elsewhere: Vec<Vec<f32>> = vectors_with_pairs(50, 5, |_, _| 0.99).into_iter().map(padded).collect();
        for (at, one) in vectors.iter().enumerate() {
            assert!(elsewhere.iter().all(|other| cosine(one, other) == 0.0));
            for (before, other) in vectors[..at].iter().enumerate() {
                assert!((f64::from(cosine(one, other)) - wanted(before, at)).abs() < 1e-6);
            }
        }
        assert!((cosine(&elsewhere[3], &elsewhere[49]) - 0.99).abs() < 1e-6);
    }

    #[test]
    #[should_panic(expected = "no vector 2 has these cosines")]
    fn cosines_that_no_vectors_have_are_refused() {
        vectors_with_pairs(3, 0, |one, other| if (one, other) == (0, 1) { 0.1 } else { 0.99 });
    }

    #[test]
    fn other_texts_are_far_from_everything_and_like_themselves() {
        let texts: Vec<Vec<f32>> = (0..60).map(|at| vector_of_text(&format!("text {at}"))).collect();
        assert_eq!(texts[7], vector_of_text("text 7"));
        for (at, one) in texts.iter().enumerate() {
            assert_eq!(cosine(one, &padded(vec![0.5; 60])), 0.0);
            assert!(texts[..at].iter().all(|other| cosine(one, other).abs() < 0.4));
        }
    }
}
