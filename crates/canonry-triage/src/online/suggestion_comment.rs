//! Writes the text of a triage comment from a stored record: untrusted texts are quoted, and secrets are removed.

use canonry_domain::{
    Boilerplate, FixSuggestion, Item, ItemNumber, RepoName, SuggestionComment, fix_suggestion_text, suggestion_text,
};
use canonry_github::quote_line;
use canonry_retrieval::CommonFacts;
use canonry_store::NewTriageRecord;
use jiff::Timestamp;

use crate::close::row_evidence::facts_of;

/// The maximum number of characters of a title in a comment.
const TITLE_QUOTED: usize = 80;
/// The maximum number of other possible duplicates that a comment names.
const MOST_OTHERS: usize = 2;

/// The item that a suggestion is about.
#[derive(Clone, Copy)]
pub(crate) struct SuggestedItem<'a> {
    pub(crate) repo: &'a RepoName,
    pub(crate) item: &'a Item,
    pub(crate) target: Option<&'a Item>,
    pub(crate) boilerplate: &'a Boilerplate,
    pub(crate) common: &'a CommonFacts,
    /// Other items that the judge called possible duplicates, best first.
    pub(crate) others: &'a [ItemNumber],
    /// The maximum number of items to name, including the target.
    pub(crate) max_items: usize,
    /// When the item will be closed unless a person objects.
    pub(crate) closes_at: Option<Timestamp>,
}

/// The suggestion for an item; `None` if the record has no target, or one without a score.
pub(crate) fn suggestion_of(suggested: SuggestedItem<'_>, record: &NewTriageRecord) -> Option<String> {
    let SuggestedItem { repo, item, boilerplate, common, others, .. } = suggested;
    let title = suggested.target.map(|target| quoted_title(&target.title)).unwrap_or_default();
    let facts = suggested.target.map(|target| facts_of(repo, boilerplate, common, item, target)).unwrap_or_default();
    if let Some(found) = &record.fix {
        return Some(fix_suggestion_text(&FixSuggestion { found, title: &title, facts: &facts }));
    }
    let (target, _) = record.target.zip(record.target_score)?;
    let most = suggested.max_items.saturating_sub(1).min(MOST_OTHERS);
    Some(suggestion_text(&SuggestionComment {
        item_type: item.item_type,
        verdict: record.verdict,
        target,
        title: &title,
        facts: &facts,
        others: &others[..others.len().min(most)],
        closes_at: suggested.closes_at,
    }))
}

/// A quoted title without backticks: GitHub would show the escaped ones.
pub(crate) fn quoted_title(title: &str) -> String {
    quote_line(&title.replace('`', ""), TITLE_QUOTED)
}
