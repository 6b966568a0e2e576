//! Late interaction: two texts compared token by token.

use canonry_domain::TokenVectors;
use rten_simd::{Isa, SimdOp};

/// How well the tokens of two texts match each other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LateScores {
    /// The mean, over the first text's tokens, of the best cosine among the second's.
    pub there: f32,
    pub back: f32,
}

/// A text's token vectors, in a layout for comparison with many other texts.
#[derive(Debug, Clone)]
pub struct LateQuery {
    width: usize,
    tokens: usize,
    /// For each block of [`LANES`] tokens, `width` lines: the first number of each token, then the second of each …
    lines: Vec<[i16; LANES]>,
}

/// Tokens that are compared at once. 64 sums of two bytes fill four registers of AVX2, two of AVX-512.
const LANES: usize = 64;
/// The value of 1 in products of codes.
const ONE: f64 = 127.0 * 127.0;

/// Compares two texts; `None` if one has no token, or their vectors differ in width.
pub fn late_interaction(one: &TokenVectors, other: &TokenVectors) -> Option<LateScores> {
    LateQuery::of(one)?.compare(other)
}

impl LateQuery {
    /// Converts a text's tokens to this layout; `None` if there are none.
    pub fn of(tokens: &TokenVectors) -> Option<Self> {
        let (width, count, codes) = (tokens.width(), tokens.len(), tokens.codes());
        let last = count.checked_sub(1)?;
        let mut lines = vec![[0_i16; LANES]; count.div_ceil(LANES) * width];
        for (at, line) in lines.iter_mut().enumerate() {
            let first = at / width * LANES;
            for (lane, number) in line.iter_mut().enumerate() {
                // The last token is repeated to fill the last block: it changes no maximum.
                *number = i16::from(codes[(first + lane).min(last) * width + at % width]);
            }
        }
        Some(Self { width, tokens: count, lines })
    }

    /// Compares it with another text; `None` if that text has no token, or vectors of another width.
    pub fn compare(&self, other: &TokenVectors) -> Option<LateScores> {
        if other.width() != self.width || other.is_empty() {
            return None;
        }
        let mut met = vec![i16::MIN; other.len()];
        let there = Blocks { query: self, codes: other.codes(), met: &mut met }.dispatch();
        let back = met.iter().copied().map(i64::from).sum();
        let mean = |sum: i64, count: usize| (sum as f64 / (count as f64 * ONE)) as f32;
        Some(LateScores { there: mean(there, self.tokens), back: mean(back, met.len()) })
    }
}

/// The blocks of a query, and the tokens with which they are compared.
struct Blocks<'a> {
    query: &'a LateQuery,
    codes: &'a [i8],
    /// The best product of each of those tokens so far.
    met: &'a mut [i16],
}

impl SimdOp for Blocks<'_> {
    /// The sum, over the query's tokens, of the best product of each.
    type Output = i64;

    #[inline(always)]
    fn eval<I: Isa>(self, _: I) -> i64 {
        let mut there = 0;
        for (at, lines) in self.query.lines.chunks_exact(self.query.width).enumerate() {
            let mut best = [i16::MIN; LANES];
            for (codes, met) in self.codes.chunks_exact(self.query.width).zip(&mut *self.met) {
                let products = products(lines, codes);
                for (best, product) in best.iter_mut().zip(products) {
                    *best = (*best).max(product);
                }
                *met = greatest(&products).max(*met);
            }
            let live = (self.query.tokens - at * LANES).min(LANES);
            there += best[..live].iter().copied().map(i64::from).sum::<i64>();
        }
        there
    }
}

/// The products of one token with those of a block. With vectors of length 127, no partial sum overflows two bytes;
/// with other lengths, sums saturate. A hundred candidates of 128 tokens each, 32 numbers wide, take 1.6 ms on one
/// core, and 2.6 ms without AVX2; sums of four bytes take two to three times as long.
#[inline(always)]
fn products(lines: &[[i16; LANES]], codes: &[i8]) -> [i16; LANES] {
    let mut sums = [0_i16; LANES];
    for (line, &code) in lines.iter().zip(codes) {
        let code = i16::from(code);
        for (sum, &number) in sums.iter_mut().zip(line) {
            *sum = sum.saturating_add(number * code);
        }
    }
    sums
}

/// Compares by halves, which compiles to a few instructions; one by one it would take 63.
#[inline(always)]
fn greatest(products: &[i16; LANES]) -> i16 {
    let mut columns = [i16::MIN; 16];
    for row in products.as_chunks::<16>().0 {
        for (column, &product) in columns.iter_mut().zip(row) {
            *column = (*column).max(product);
        }
    }
    columns.into_iter().fold(i16::MIN, i16::max)
}

#[cfg(test)]
mod tests {
    use canonry_domain::TokenVectors;
    use proptest::prelude::{ProptestConfig, Strategy, any, prop, prop_assert, prop_assert_eq, proptest};

    use super::{LateScores, late_interaction};

    fn tokens(width: usize, codes: &[i8]) -> TokenVectors {
        TokenVectors::new(width, codes.to_vec()).expect("whole rows")
    }

    /// Vectors of length 127, like those of a model.
    fn unit(width: usize, numbers: &[f32]) -> TokenVectors {
        let codes = numbers.chunks_exact(width).flat_map(|row| {
            let length = row.iter().map(|number| number * number).sum::<f32>().sqrt().max(1e-6);
            row.iter().map(move |number| (number / length * 127.0).round() as i8)
        });
        TokenVectors::new(width, codes.collect()).expect("whole rows")
    }

    fn plainly(one: &TokenVectors, other: &TokenVectors) -> f32 {
        let product = |one: &[i8], other: &[i8]| {
            one.iter().zip(other).map(|(one, other)| i32::from(*one) * i32::from(*other)).sum::<i32>()
        };
        let best = one.rows().map(|row| other.rows().map(|other| product(row, other)).max().expect("a token"));
        let sum: i64 = best.map(i64::from).sum();
        (sum as f64 / (one.len() as f64 * 127.0 * 127.0)) as f32
    }

    #[test]
    fn each_token_looks_for_its_best_match() {
        let one = tokens(2, &[127, 0, 0, 127]);
        let other = tokens(2, &[127, 0]);
        assert_eq!(late_interaction(&one, &other), Some(LateScores { there: 0.5, back: 1.0 }));
        assert_eq!(late_interaction(&other, &one), Some(LateScores { there: 1.0, back: 0.5 }));
        let opposite = tokens(2, &[-127, 0]);
        assert_eq!(late_interaction(&other, &opposite), Some(LateScores { there: -1.0, back: -1.0 }));
    }

    #[test]
    fn what_cannot_be_compared_says_nothing() {
        let one = tokens(2, &[127, 0]);
        assert_eq!(late_interaction(&one, &tokens(2, &[])), None);
        assert_eq!(late_interaction(&tokens(2, &[]), &one), None);
        assert_eq!(late_interaction(&one, &tokens(1, &[127, 0])), None);
    }

    #[test]
    fn vectors_that_no_model_makes_break_nothing() {
        let (most, least) = (tokens(32, &[127; 64]), tokens(32, &[-128; 64]));
        let late = late_interaction(&most, &least).expect("of one width");
        assert!(late.there < -2.0 && late.back < -2.0, "{late:?}");
        assert!(late_interaction(&least, &least).expect("of one width").there > 2.0);
    }

    fn texts() -> impl Strategy<Value = (TokenVectors, TokenVectors)> {
        let rows = |width: usize| prop::collection::vec(-1.0..1.0_f32, width..=width * 150);
        (1_usize..40).prop_flat_map(move |width| {
            let whole = move |numbers: Vec<f32>| unit(width, &numbers);
            (rows(width).prop_map(whole), rows(width).prop_map(whole))
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

        #[test]
        fn the_same_as_one_product_after_another((one, other) in texts()) {
            let late = late_interaction(&one, &other).expect("tokens of one width");
            prop_assert_eq!(late, LateScores { there: plainly(&one, &other), back: plainly(&other, &one) });
            let itself = late_interaction(&one, &one).expect("tokens");
            prop_assert!((itself.there - 1.0).abs() < 0.1 && itself.there == itself.back, "{:?}", itself);
        }

        #[test]
        fn any_codes_are_compared(
            one in prop::collection::vec(any::<i8>(), 0..500),
            other in prop::collection::vec(any::<i8>(), 0..500),
            width in 1_usize..9,
        ) {
            let cut = |codes: &[i8]| tokens(width, &codes[..codes.len() / width * width]);
            let (one, other) = (cut(&one), cut(&other));
            prop_assert_eq!(late_interaction(&one, &other).is_some(), !one.is_empty() && !other.is_empty());
        }
    }
}
