//! When a person's word on a row of a plan can be taken.

/// What can be said of rows while their plan is being applied, as it is told to whoever says more.
pub const ONLY_EXCLUDE: &str =
    "While the plan is being applied, rows can only be excluded: what is closed is what was confirmed.";

/// Whether a word on a row is taken: yes, no, or none after all.
///
/// What was confirmed when the apply began covers no row that was left out then, so that nothing can come to it. To leave a
/// row out is possible until the last moment.
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
