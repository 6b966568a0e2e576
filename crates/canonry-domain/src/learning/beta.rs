//! The Beta distribution: how certain a share is, given the counts of right and wrong outcomes.

/// The probability that a share is at least `share`, if `right` of `right + wrong` were right and nothing was known
/// before: the upper tail of Beta(1 + right, 1 + wrong).
pub(crate) fn at_least(share: f64, right: u64, wrong: u64) -> f64 {
    // The tail is computed directly, not as one minus the other tail: a small probability keeps its digits.
    regularised_incomplete_beta(1.0 + wrong as f64, 1.0 + right as f64, 1.0 - share)
}

pub(crate) fn variance(alpha: f64, beta: f64) -> f64 {
    let sum = alpha + beta;
    alpha * beta / (sum * sum * (sum + 1.0))
}

/// The value that a Beta(alpha, beta) variable stays below with this probability. Bisection is slow but reliable:
/// after 50 steps the error is below the last digit of a share that is shown.
pub(crate) fn quantile(probability: f64, alpha: f64, beta: f64) -> f64 {
    let (mut low, mut high) = (0.0_f64, 1.0_f64);
    for _ in 0..50 {
        let middle = f64::midpoint(low, high);
        if regularised_incomplete_beta(alpha, beta, middle) < probability {
            low = middle;
        } else {
            high = middle;
        }
    }
    f64::midpoint(low, high)
}

/// The probability that a Beta(a, b) variable is at most `x`; `a` and `b` are positive.
///
/// The error is below 1e-9 while a + b is below a million: the factor is a difference of logarithms of gamma
/// functions, which lose digits as they grow.
fn regularised_incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    // The fraction converges fast only on this side of the mean; the other side is its mirror image.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - lower_tail(b, a, 1.0 - x);
    }
    lower_tail(a, b, x)
}

fn lower_tail(a: f64, b: f64, x: f64) -> f64 {
    let log_factor = ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (-x).ln_1p();
    (log_factor.exp() / (a * continued_fraction(a, b, x))).clamp(0.0, 1.0)
}

/// The continued fraction 1 + d1/(1 + d2/(1 + …)) of the incomplete beta function (Abramowitz and Stegun 26.5.8),
/// evaluated from the front by the modified Lentz method, for which the number of terms need not be known.
fn continued_fraction(a: f64, b: f64, x: f64) -> f64 {
    /// Replaces a zero divisor.
    const TINY: f64 = 1e-300;
    /// The number of terms needed is about the square root of the greater parameter: this is enough for a billion
    /// outcomes.
    const MOST_TERMS: u32 = 100_000;
    let apart_from_zero = |value: f64| if value.abs() < TINY { TINY } else { value };
    let (mut value, mut above, mut below) = (1.0, 1.0, 0.0);
    for term in 1..=MOST_TERMS {
        let m = f64::from(term / 2);
        let numerator = if term % 2 == 0 {
            m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m))
        } else {
            -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0))
        };
        below = 1.0 / apart_from_zero(1.0 + numerator * below);
        above = apart_from_zero(1.0 + numerator / above);
        let change = above * below;
        value *= change;
        if (change - 1.0).abs() < 1e-15 {
            break;
        }
    }
    value
}

/// The logarithm of the gamma function for positive numbers, by Stirling's series.
fn ln_gamma(z: f64) -> f64 {
    /// From here on the terms below are exact to the last digit.
    const LARGE: f64 = 15.0;
    let (mut z, mut product) = (z, 1.0);
    while z < LARGE {
        product *= z;
        z += 1.0;
    }
    let square = z * z;
    let series = (1.0 / 12.0 - (1.0 / 360.0 - (1.0 / 1260.0 - 1.0 / (1680.0 * square)) / square) / square) / z;
    (z - 0.5) * z.ln() - z + 0.5 * std::f64::consts::TAU.ln() + series - f64::ln(product)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop_assert, proptest};

    use super::{at_least, ln_gamma, quantile, regularised_incomplete_beta, variance};

    #[test]
    fn known_values() {
        for (a, b, x, expected) in [
            // By hand: x, x², 1 − (1 − x)³, and the polynomials of small whole parameters.
            (1.0, 1.0, 0.3, 0.3),
            (2.0, 1.0, 0.8, 0.64),
            (1.0, 3.0, 0.2, 0.488),
            (2.0, 2.0, 0.25, 0.156_25),
            (2.0, 4.0, 0.8, 0.993_28),
            (3.0, 3.0, 0.5, 0.5),
            (5.0, 3.0, 0.6, 0.419_904),
            // The arcsine law: 2/π · asin(√x).
            (0.5, 0.5, 0.25, 1.0 / 3.0),
            (0.5, 0.5, 0.75, 2.0 / 3.0),
            (10.0, 10.0, 0.5, 0.5),
            (1e5, 1e5, 0.5, 0.5),
        ] {
            let found = regularised_incomplete_beta(a, b, x);
            assert!((found - expected).abs() < 1e-9, "I_{x}({a}, {b}) = {found}, not {expected}");
        }
        assert_eq!(regularised_incomplete_beta(2.0, 3.0, 0.0), 0.0);
        assert_eq!(regularised_incomplete_beta(2.0, 3.0, 1.0), 1.0);
    }

    #[test]
    fn gamma_of_whole_numbers_is_a_factorial() {
        let mut factorial = 1.0_f64;
        for n in 1..=170_u32 {
            let (found, expected) = (ln_gamma(f64::from(n)), factorial.ln());
            assert!((found - expected).abs() <= 1e-13 * expected.max(1.0), "{n}: {found}, not {expected}");
            factorial *= f64::from(n);
        }
        assert!((ln_gamma(0.5) - std::f64::consts::PI.sqrt().ln()).abs() < 1e-13);
    }

    /// P(Beta(1 + r, 1 + w) ≥ s) = P(at most r of r + w + 1 coins of bias s fall heads), summed term by term.
    fn by_summing(share: f64, right: u64, wrong: u64) -> f64 {
        let coins = right + wrong + 1;
        let mut log_chance = coins as f64 * (1.0 - share).ln();
        let mut sum = 0.0;
        for heads in 0..=right {
            sum += log_chance.exp();
            let step = (coins - heads) as f64 / (heads + 1) as f64 * share / (1.0 - share);
            log_chance += step.ln();
        }
        sum
    }

    #[test]
    fn a_few_outcomes_say_little() {
        assert!((at_least(0.8, 0, 0) - 0.2).abs() < 1e-12);
        assert!((at_least(0.8, 2, 0) - 0.488).abs() < 1e-12);
        assert!((at_least(0.8, 3, 0) - 0.5904).abs() < 1e-12);
        assert!((at_least(0.8, 0, 3) - 0.0016).abs() < 1e-12);
    }

    #[test]
    fn the_variance_shrinks_with_evidence() {
        assert!((variance(1.0, 1.0) - 1.0 / 12.0).abs() < 1e-15);
        assert!((variance(2.0, 8.0) - 16.0 / 1100.0).abs() < 1e-15);
    }

    #[test]
    fn quantiles_by_hand() {
        // The inverse of x, x² and 1 − (1 − x)³, and the middle of a symmetric distribution.
        for (probability, alpha, beta, expected) in
            [(0.3, 1.0, 1.0, 0.3), (0.64, 2.0, 1.0, 0.8), (0.488, 1.0, 3.0, 0.2), (0.5, 700.0, 700.0, 0.5)]
        {
            let found = quantile(probability, alpha, beta);
            assert!((found - expected).abs() < 1e-9, "{found}, not {expected}");
        }
    }

    proptest! {
        #[test]
        fn a_quantile_is_where_the_tail_is(probability in 0.001..0.999_f64, alpha in 0.5..400.0_f64, beta in 0.5..400.0_f64) {
            let found = quantile(probability, alpha, beta);
            prop_assert!((0.0..=1.0).contains(&found));
            prop_assert!((regularised_incomplete_beta(alpha, beta, found) - probability).abs() < 1e-6);
        }

        #[test]
        fn tails_equal_the_sum_of_their_terms(share in 0.01..0.99_f64, right in 0_u64..600, wrong in 0_u64..600) {
            let (found, expected) = (at_least(share, right, wrong), by_summing(share, right, wrong));
            prop_assert!((found - expected).abs() < 1e-9, "{found} not {expected}");
        }

        #[test]
        fn a_right_one_raises_the_tail_and_a_wrong_one_lowers_it(
            share in 0.5..0.99_f64, right in 0_u64..20_000, wrong in 0_u64..20_000,
        ) {
            let here = at_least(share, right, wrong);
            prop_assert!(at_least(share, right + 1, wrong) >= here - 1e-12);
            prop_assert!(at_least(share, right, wrong + 1) <= here + 1e-12);
        }
    }
}
