//! Writes the text of a triage comment from a stored record: untrusted texts are quoted, and secrets are removed.

use canonry_domain::{Boilerplate, Item, ItemNumber, RepoName, SuggestionComment, suggestion_text};
use canonry_github::quote_line;
use canonry_retrieval::CommonFacts;
use canonry_store::NewTriageRecord;
use jiff::Timestamp;

use crate::close::row_evidence::facts_of;
use crate::judge::local::answer::LOCAL_JUDGE;

/// The maximum number of characters of a title in a comment.
const TITLE_QUOTED: usize = 80;
/// The maximum number of characters of the judge's reasoning: a few sentences.
const REASONING_QUOTED: usize = 500;
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
    let (target, _) = record.target.zip(record.target_score)?;
    let facts = suggested.target.map(|target| facts_of(repo, boilerplate, common, item, target)).unwrap_or_default();
    let most = suggested.max_items.saturating_sub(1).min(MOST_OTHERS);
    // The reasoning of the built-in judge is the same evidence that is shown.
    let reasoning = match record.model == LOCAL_JUDGE {
        true => String::new(),
        false => without_ticks(&record.reasoning, REASONING_QUOTED),
    };
    Some(suggestion_text(&SuggestionComment {
        item_type: item.item_type,
        verdict: record.verdict,
        target,
        title: &suggested.target.map(|target| quoted_title(&target.title)).unwrap_or_default(),
        facts: &facts,
        reasoning: &reasoning,
        others: &others[..others.len().min(most)],
        closes_at: suggested.closes_at,
    }))
}

pub(crate) fn quoted_title(title: &str) -> String {
    without_ticks(title, TITLE_QUOTED)
}

/// A quoted line without backticks: GitHub would show the escaped ones.
fn without_ticks(text: &str, limit: usize) -> String {
    quote_line(&text.replace('`', ""), limit)
}
