//! The shape of a title: its words without numbers, in eight bytes.

use canonry_domain::TITLE_LIMIT;

use crate::bag::{first_chars, term_hash};
use crate::tokens::for_each_token;

/// A title as two hashes: of its words without the numbers, and of the whole title.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct TitleShape {
    bare: u32,
    whole: u32,
}

impl TitleShape {
    pub(crate) fn of(title: &str) -> Self {
        let (mut bare, mut whole) = (String::new(), String::new());
        for_each_token(first_chars(title, TITLE_LIMIT), |token| {
            let add = |text: &mut String| {
                text.push_str(token);
                text.push(' ');
            };
            add(&mut whole);
            if !token.bytes().any(|byte| byte.is_ascii_digit()) {
                add(&mut bare);
            }
        });
        // Single digits are not tokens, but they number a series.
        whole.extend(title.chars().filter(char::is_ascii_digit));
        // A title of numbers alone has no words that a series could share.
        if bare.is_empty() {
            return Self::default();
        }
        Self { bare: short(&bare), whole: short(&whole) }
    }

    /// Whether two titles differ only in their numbers.
    pub(crate) fn is_series_with(self, other: Self) -> bool {
        self.bare != 0 && self.bare == other.bare && self.whole != other.whole
    }

    pub(crate) fn to_bits(self) -> u64 {
        (u64::from(self.bare) << 32) | u64::from(self.whole)
    }

    pub(crate) fn from_bits(bits: u64) -> Self {
        Self { bare: (bits >> 32) as u32, whole: bits as u32 }
    }
}

fn short(text: &str) -> u32 {
    (term_hash(text) >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::TitleShape;

    #[test]
    fn a_series_differs_by_its_numbers_alone() {
        let series = |one: &str, other: &str| TitleShape::of(one).is_series_with(TitleShape::of(other));
        assert!(series("Release schedule for 12", "Release schedule for 13"));
        assert!(series("Crash, part 1", "crash, part 2"));
        assert!(series("Update to v1.2.3", "update to 1.2.4"));
        assert!(!series("Release schedule for 12", "release schedule for 12"));
        assert!(!series("Release schedule for 12", "Schedule for the release of 13"));
        assert!(!series("12", "13"));
        assert!(!series("", ""));
    }

    #[test]
    fn shapes_survive_a_snapshot() {
        let shape = TitleShape::of("Release schedule for 12");
        assert_eq!(TitleShape::from_bits(shape.to_bits()), shape);
    }
}
