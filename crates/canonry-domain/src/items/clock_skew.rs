//! Decides how far two clocks may differ before their times can no longer be compared.

use jiff::SignedDuration;

/// Machines that are synchronised over the network differ by less than a second, and an answer from GitHub takes
/// seconds at most. If the difference is larger, a person must set the clock.
pub const CLOCK_TOLERANCE: SignedDuration = SignedDuration::from_mins(2);

/// Whether a clock that is ahead of another by `skew` (behind if negative) still agrees with it.
pub fn do_clocks_agree(skew: SignedDuration) -> bool {
    skew.abs() <= CLOCK_TOLERANCE
}

/// What is wrong with this machine's clock, in words; `None` if it agrees with GitHub's clock.
pub fn clock_trouble(skew: SignedDuration) -> Option<String> {
    if do_clocks_agree(skew) {
        return None;
    }
    let direction = if skew.is_negative() { "behind" } else { "ahead of" };
    Some(format!("this machine's clock is {} {direction} GitHub's", in_words(skew.abs())))
}

fn in_words(length: SignedDuration) -> String {
    let (size, unit) = match length.as_secs() {
        seconds if seconds >= 48 * 3_600 => (86_400, "days"),
        seconds if seconds >= 2 * 3_600 => (3_600, "hours"),
        _ => (60, "minutes"),
    };
    format!("{} {unit}", (length.as_secs() + size / 2) / size)
}

#[cfg(test)]
mod tests {
    use super::{clock_trouble, do_clocks_agree};
    use jiff::SignedDuration;

    #[test]
    fn two_minutes_are_no_trouble() {
        for seconds in [0, 120, -120] {
            assert!(do_clocks_agree(SignedDuration::from_secs(seconds)), "{seconds}");
            assert_eq!(clock_trouble(SignedDuration::from_secs(seconds)), None);
        }
        let told = |seconds| clock_trouble(SignedDuration::from_secs(seconds)).expect("trouble");
        assert_eq!(told(121), "this machine's clock is 2 minutes ahead of GitHub's");
        assert_eq!(told(-3 * 3_600), "this machine's clock is 3 hours behind GitHub's");
        assert_eq!(told(4 * 86_400 - 1), "this machine's clock is 4 days ahead of GitHub's");
    }
}
