//! What a triage comment says, made of a stored record: texts of strangers are quoted, and secrets stay out.

use canonry_domain::{Boilerplate, Item, ItemNumber, RepoName, SuggestionComment, suggestion_text};
use canonry_github::quote_line;
use canonry_retrieval::CommonFacts;
use canonry_store::NewTriageRecord;
use jiff::Timestamp;

use crate::close::row_evidence::facts_of;
use crate::judge::local::answer::LOCAL_JUDGE;

/// Characters of a title in a comment.
const TITLE_QUOTED: usize = 80;
/// Characters of the judge's reasoning: a few sentences.
const REASONING_QUOTED: usize = 500;
/// Other possible duplicates that a comment names at most.
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
    /// How many items are named at most, the target among them.
    pub(crate) max_items: usize,
    /// When it will be closed unless somebody objects.
    pub(crate) closes_at: Option<Timestamp>,
}

/// What would be said about an item; `None` when the record names no target, or one without a score.
pub(crate) fn suggestion_of(suggested: SuggestedItem<'_>, record: &NewTriageRecord) -> Option<String> {
    let SuggestedItem { repo, item, boilerplate, common, others, .. } = suggested;
    let (target, _) = record.target.zip(record.target_score)?;
    let facts = suggested.target.map(|target| facts_of(repo, boilerplate, common, item, target)).unwrap_or_default();
    let most = suggested.max_items.saturating_sub(1).min(MOST_OTHERS);
    // The built-in judge reasons by the very evidence that is shown.
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

/// A quoted line in which nobody sees backticks: escaped ones are shown as they are.
fn without_ticks(text: &str, limit: usize) -> String {
    quote_line(&text.replace('`', ""), limit)
}
