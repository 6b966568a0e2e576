//! Forecasts how many items an apply will close, and how many the daily limit keeps open.

/// The expected result of an apply, according to the stored plan. Each item is still rechecked on GitHub.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ApplyForecast {
    pub closes: u64,
    /// Items that wait for another day, or for a maintainer's approval.
    pub kept_back: u64,
}

/// Forecasts an apply of approved and unapproved rows. Only unapproved rows count against the daily limit.
pub const fn apply_forecast(approved: u64, unapproved: u64, closed_today: u64, max_per_day: u64) -> ApplyForecast {
    let free = max_per_day.saturating_sub(closed_today);
    let unapproved_now = if unapproved < free { unapproved } else { free };
    ApplyForecast { closes: approved + unapproved_now, kept_back: unapproved - unapproved_now }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

    use super::{ApplyForecast, apply_forecast};

    #[test]
    fn the_limit_keeps_back_what_nobody_approved() {
        assert_eq!(apply_forecast(0, 20, 0, 10), ApplyForecast { closes: 10, kept_back: 10 });
        assert_eq!(apply_forecast(20, 0, 10, 10), ApplyForecast { closes: 20, kept_back: 0 });
        assert_eq!(apply_forecast(3, 5, 8, 10), ApplyForecast { closes: 5, kept_back: 3 });
        assert_eq!(apply_forecast(1, 5, 12, 10), ApplyForecast { closes: 1, kept_back: 5 });
    }

    proptest! {
        #[test]
        fn no_row_is_lost_and_no_limit_is_passed(
            approved in 0u64..100, unapproved in 0u64..100, today in 0u64..50, most in 0u64..50,
        ) {
            let ApplyForecast { closes, kept_back } = apply_forecast(approved, unapproved, today, most);
            prop_assert_eq!(closes + kept_back, approved + unapproved);
            prop_assert!(closes >= approved && closes - approved <= most.saturating_sub(today));
        }
    }
}
