//! Decides when a maintainer's approval of a plan row may change.

/// The message to a maintainer who tries to do more than exclude rows while the plan is being applied.
pub const ONLY_EXCLUDE: &str =
    "While the plan is being applied, rows can only be excluded: what is closed is what was confirmed.";

/// Whether a row's approval may change to `word`: approved, excluded, or neither.
///
/// The confirmation at the start of the apply does not cover rows that were excluded then, so no row can be added. A
/// row can be excluded until the last moment.
pub const fn may_row_approval_change(word: Option<bool>, is_being_applied: bool) -> bool {
    matches!(word, Some(false)) || !is_being_applied
}

#[cfg(test)]
mod tests {
    use super::may_row_approval_change;

    #[test]
    fn an_apply_grows_by_nothing_and_can_always_lose_a_row() {
        for word in [Some(true), Some(false), None] {
            assert!(may_row_approval_change(word, false), "{word:?}");
            assert_eq!(may_row_approval_change(word, true), word == Some(false), "{word:?}");
        }
    }
}
