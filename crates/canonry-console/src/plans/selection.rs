//! Which rows of a plan a page shows, where it begins, and how it compares texts. Links and forms keep it.

use canonry_domain::{ItemNumber, ItemType, SkipReason};
use canonry_store::{PlanRowFilter, PlanTotals};

use crate::layout::paging::link;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum RowFilter {
    All,
    #[default]
    Closes,
    Undecided,
    Approved,
    Excluded,
    Ended,
    Skips,
}

impl RowFilter {
    pub(crate) const EACH: [Self; 7] =
        [Self::Closes, Self::Undecided, Self::Approved, Self::Excluded, Self::Ended, Self::Skips, Self::All];

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Closes => "closes",
            Self::Undecided => "undecided",
            Self::Approved => "approved",
            Self::Excluded => "excluded",
            Self::Ended => "ended",
            Self::Skips => "skips",
        }
    }

    pub(crate) const fn in_words(self) -> &'static str {
        match self {
            Self::All => "All",
            Self::Closes => "To close",
            Self::Undecided => "Undecided",
            Self::Approved => "Approved",
            Self::Excluded => "Excluded",
            Self::Ended => "Done",
            Self::Skips => "Left open",
        }
    }

    pub(crate) fn count(self, totals: &PlanTotals) -> u64 {
        match self {
            Self::All => totals.closes + totals.skips(),
            Self::Closes => totals.closes,
            Self::Undecided => totals.undecided(),
            Self::Approved => totals.approved,
            Self::Excluded => totals.excluded_ever(),
            Self::Ended => totals.ended(),
            Self::Skips => totals.skips(),
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PlanSelection {
    pub(crate) show: RowFilter,
    /// Of rows that do not close, only those with this reason.
    pub(crate) reason: Option<SkipReason>,
    /// The last row of the page before.
    pub(crate) after: Option<(ItemType, ItemNumber)>,
    /// Line by line instead of side by side.
    pub(crate) by_line: bool,
}

impl PlanSelection {
    /// From the fields of a link or a form. Values that cannot be parsed are ignored.
    pub(crate) fn of<'a>(field: impl Fn(&str) -> Option<&'a str>) -> Self {
        let show = field("show").and_then(|word| RowFilter::EACH.into_iter().find(|show| show.as_str() == word));
        Self {
            show: show.unwrap_or_default(),
            reason: field("reason").and_then(|word| word.parse().ok()),
            after: field("after").and_then(read_item),
            by_line: field("view") == Some("lines"),
        }
    }

    pub(crate) const fn filter(&self) -> PlanRowFilter {
        match (self.show, self.reason) {
            (RowFilter::All, _) => PlanRowFilter::All,
            (RowFilter::Closes, _) => PlanRowFilter::Closes,
            (RowFilter::Undecided, _) => PlanRowFilter::Undecided,
            (RowFilter::Approved, _) => PlanRowFilter::Approved,
            (RowFilter::Excluded, _) => PlanRowFilter::Excluded,
            (RowFilter::Ended, _) => PlanRowFilter::Ended,
            (RowFilter::Skips, None) => PlanRowFilter::Skips,
            (RowFilter::Skips, Some(reason)) => PlanRowFilter::SkippedFor(reason),
        }
    }

    pub(crate) fn fields(&self) -> Vec<(&'static str, String)> {
        let show = if self.show == RowFilter::default() { "" } else { self.show.as_str() };
        let fields = [
            ("show", show.to_owned()),
            ("reason", self.reason.map(|reason| reason.as_str().to_owned()).unwrap_or_default()),
            ("after", self.after.map(|(item_type, number)| write_item(item_type, number)).unwrap_or_default()),
            ("view", if self.by_line { "lines".to_owned() } else { String::new() }),
        ];
        fields.into_iter().filter(|(_, value)| !value.is_empty()).collect()
    }

    pub(crate) fn link(&self, path: &str) -> String {
        let fields = self.fields();
        let pairs: Vec<(&str, &str)> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
        link(path, &pairs)
    }
}

/// `issue/12`.
pub(crate) fn write_item(item_type: ItemType, number: ItemNumber) -> String {
    format!("{item_type}/{number}")
}

/// The item behind `issue/12`.
pub(crate) fn read_item(text: &str) -> Option<(ItemType, ItemNumber)> {
    let (item_type, number) = text.split_once('/')?;
    Some((item_type.parse().ok()?, ItemNumber::new(number.parse().ok()?).ok()?))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use canonry_domain::{ItemNumber, ItemType, SkipReason};

    use super::{PlanSelection, RowFilter, read_item};

    #[test]
    fn links_keep_what_is_looked_at() {
        let number = ItemNumber::new(12).expect("valid");
        for show in RowFilter::EACH {
            let selection = PlanSelection {
                show,
                reason: Some(SkipReason::Pinned),
                after: Some((ItemType::Pr, number)),
                by_line: true,
            };
            let fields: BTreeMap<&str, String> = selection.fields().into_iter().collect();
            assert_eq!(PlanSelection::of(|name| fields.get(name).map(String::as_str)), selection);
        }
        assert_eq!(PlanSelection::default().link("/p"), "/p");
        assert_eq!(PlanSelection::of(|_| Some("nonsense")), PlanSelection::default());
    }

    #[test]
    fn items_are_read_strictly() {
        assert_eq!(read_item("issue/12"), Some((ItemType::Issue, ItemNumber::new(12).expect("valid"))));
        for text in ["issue/0", "issue", "bug/1", "issue/1/2", "issue/x", ""] {
            assert_eq!(read_item(text), None, "{text:?}");
        }
    }
}
