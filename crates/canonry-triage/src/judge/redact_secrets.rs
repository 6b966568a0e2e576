//! Redacts texts before they go into prompts, and into cards, which become part of prompts.

use canonry_domain::{IntentSource, Item, ItemType, PullChanges, redact};

/// An item's text with every secret removed.
pub(crate) struct WithoutSecrets {
    pub(crate) item_type: ItemType,
    pub(crate) title: String,
    pub(crate) body: String,
    pub(crate) changes: Option<PullChanges>,
}

/// How many characters of a title and a body are read: more than any extractor reads, so that no secret is cut in two
/// at the end of what it does read.
const TEXT_READ: usize = 70_000;
/// The same for a diff; the rules count its lines.
const DIFF_READ: usize = 1_000_000;

impl WithoutSecrets {
    pub(crate) fn of(item: &Item) -> Self {
        let changes = item.changes.as_ref().map(|changes| PullChanges {
            files: changes.files.iter().map(|path| redact(path)).collect(),
            diff: redact(first_chars(&changes.diff, DIFF_READ)),
        });
        Self {
            item_type: item.item_type,
            title: redact(first_chars(&item.title, TEXT_READ)),
            body: redact(first_chars(&item.body, TEXT_READ)),
            changes,
        }
    }

    pub(crate) fn source(&self) -> IntentSource<'_> {
        IntentSource { item_type: self.item_type, title: &self.title, body: &self.body, changes: self.changes.as_ref() }
    }
}

fn first_chars(text: &str, limit: usize) -> &str {
    text.char_indices().nth(limit).map_or(text, |(end, _)| &text[..end])
}
