//! Counts what became of earlier findings of a pattern.

use std::collections::BTreeMap;

use canonry_domain::review::PatternKey;
use canonry_store::LedgerFinding;

use crate::run::report::PatternHistory;

/// The fewest earlier findings for a history that is shown: "fixed 0 of 1" says nothing.
const LEAST: u64 = 2;

/// The histories of patterns, without the findings that are still open under review.
#[derive(Debug, Default)]
pub(crate) struct EarlierOutcomes(BTreeMap<PatternKey, PatternHistory>);

impl EarlierOutcomes {
    /// Subtracts the open findings, given by their patterns, from the stored histories: they have no outcome yet.
    pub(crate) fn new<'a>(
        mut stored: BTreeMap<PatternKey, PatternHistory>,
        standing: impl IntoIterator<Item = &'a PatternKey>,
    ) -> Self {
        for key in standing {
            if let Some(history) = stored.get_mut(key) {
                history.total = history.total.saturating_sub(1).max(history.fixed);
            }
        }
        Self(stored)
    }

    /// The patterns of the open findings that the histories count; findings that were never shown are not counted.
    pub(crate) fn counted(ledger: &[LedgerFinding]) -> impl Iterator<Item = &PatternKey> {
        ledger.iter().filter(|one| !one.earlier.fixed && one.first_shown).map(|one| one.earlier.finding.key())
    }

    /// The history of a pattern, if it has enough findings to show.
    pub(crate) fn of(&self, key: &PatternKey) -> Option<PatternHistory> {
        self.0.get(key).copied().filter(|history| history.total >= LEAST)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use canonry_domain::review::PatternKey;

    use super::EarlierOutcomes;
    use crate::run::report::PatternHistory;

    #[test]
    fn a_finding_is_not_its_own_history() {
        let key = PatternKey::of_rule("lint", "no-eval");
        let stored = |fixed, total| BTreeMap::from([(key.clone(), PatternHistory { fixed, total })]);
        assert_eq!(EarlierOutcomes::new(stored(0, 1), [&key]).of(&key), None);
        assert_eq!(EarlierOutcomes::new(stored(1, 1), []).of(&key), None);
        let left = EarlierOutcomes::new(stored(2, 5), [&key, &key]).of(&key);
        assert_eq!(left, Some(PatternHistory { fixed: 2, total: 3 }));
        assert_eq!(EarlierOutcomes::default().of(&key), None);
    }
}
