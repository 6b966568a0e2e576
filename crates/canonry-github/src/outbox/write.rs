//! Defines the kinds of writes, as they are stored.

use std::collections::BTreeSet;

use canonry_domain::{GithubId, Login, StateReason, WriteKind, redact_shown, scan_shown_secrets};
use canonry_store::OutboxEntry;
use serde::{Deserialize, Serialize};

use super::progress::Shape;
use crate::api::{CheckRunWrite, IssuePatch, ReactionContent};
use crate::text::marker::{InvalidMarker, Marker, MarkerSigner};

/// The marker kind for comments on a diff.
pub(super) const FINDING: &str = "finding";

/// A write to an issue or a pull request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Write {
    Comment {
        /// A signed marker is added below the text.
        body: String,
    },
    /// Replaces the text of a comment that the outbox wrote.
    EditComment {
        comment_key: String,
        body: String,
    },
    DeleteComment {
        comment_key: String,
    },
    Label {
        name: String,
    },
    Unlabel {
        name: String,
    },
    Close(Close),
    Reopen,
    /// A review of a pull request, which neither approves nor blocks.
    Review(ReviewWrite),
    /// Creates or updates a check run of a commit.
    CheckRun(CheckRunWrite),
    React {
        on: ReactTo,
        content: ReactionContent,
    },
    Reply {
        to: GithubId,
        /// A signed marker is added below the text.
        body: String,
    },
    /// Replaces the text of a comment on a diff that the outbox wrote. Its markers stay.
    EditReviewComment {
        comment: GithubId,
        body: String,
    },
    /// Resolves a conversation on a diff in which nobody else has written.
    ResolveThread {
        comment: GithubId,
    },
}

/// A review and its comments on the diff.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewWrite {
    pub commit: String,
    /// A signed marker is added below the text.
    pub body: String,
    pub comments: Vec<InlineComment>,
    /// The caller's keys for what the body contains; stored for the caller and not sent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub said: Vec<String>,
}

/// A comment on a line of the new side of a diff.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InlineComment {
    /// The comment's key in its marker and in the receipt; unique in its review.
    pub key: String,
    pub path: String,
    /// The last line of its range.
    pub line: u32,
    /// The first line, if the range has several lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_line: Option<u32>,
    /// A signed marker is added below the text.
    pub body: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReactTo {
    IssueComment(GithubId),
    ReviewComment(GithubId),
    Item,
}

/// A close and its comment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Close {
    pub close_as: CloseAs,
    /// The text of the comment, which is sent before the close.
    pub comment: String,
    /// The text that replaces it if the close does not happen.
    pub comment_if_refused: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CloseAs {
    /// An issue, as a duplicate of the issue with this id.
    DuplicateOf(GithubId),
    Reason(StateReason),
    /// A pull request, which GitHub closes without a reason.
    Pull,
}

impl CloseAs {
    pub(super) fn patch(self) -> IssuePatch {
        match self {
            Self::DuplicateOf(target) => IssuePatch::close_as_duplicate_of(target),
            Self::Reason(reason) => IssuePatch::close(Some(reason)),
            Self::Pull => IssuePatch::close(None),
        }
    }
}

impl Write {
    pub const fn kind(&self) -> WriteKind {
        match self {
            Self::Comment { .. } => WriteKind::Comment,
            Self::EditComment { .. } => WriteKind::EditComment,
            Self::DeleteComment { .. } => WriteKind::DeleteComment,
            Self::Label { .. } => WriteKind::Label,
            Self::Unlabel { .. } => WriteKind::Unlabel,
            Self::Close(_) => WriteKind::Close,
            Self::Reopen => WriteKind::Reopen,
            Self::Review(_) => WriteKind::Review,
            Self::CheckRun(_) => WriteKind::CheckRun,
            Self::React { .. } => WriteKind::React,
            Self::Reply { .. } => WriteKind::Reply,
            Self::EditReviewComment { .. } => WriteKind::EditReviewComment,
            Self::ResolveThread { .. } => WriteKind::ResolveThread,
        }
    }

    /// The write of a stored entry; `None` if a newer version stored it.
    pub fn of_entry(entry: &OutboxEntry) -> Option<Self> {
        Self::deserialize(&entry.payload).ok()
    }

    /// The text of the comment that it writes.
    pub fn into_text(self) -> Option<String> {
        match self {
            Self::Comment { body } | Self::EditComment { body, .. } => Some(body),
            Self::Close(close) => Some(close.comment),
            _ => None,
        }
    }

    pub(super) const fn shape(&self) -> Shape {
        match self {
            Self::Comment { .. } | Self::Reply { .. } => Shape::Comment,
            Self::Close(_) => Shape::CommentThenSet,
            Self::Review(_) => Shape::DraftThenSet,
            _ => Shape::Set,
        }
    }

    /// Whether all its keys fit into markers.
    pub(super) fn check_keys(&self, key: &str) -> Result<(), InvalidMarker> {
        Marker::new(self.kind().as_str(), key)?;
        match self {
            Self::EditComment { comment_key, .. } | Self::DeleteComment { comment_key } => {
                Marker::new(self.kind().as_str(), comment_key).map(drop)
            }
            Self::Review(review) => {
                review.comments.iter().try_for_each(|comment| Marker::new(FINDING, &comment.key).map(drop))
            }
            _ => Ok(()),
        }
    }

    /// Why this must not be sent, whatever any check rules: a secret, also one that Markdown disguises, or a marker
    /// that was smuggled into the text.
    pub(super) fn forbidden(&self, signer: &MarkerSigner, own: &Login) -> Option<String> {
        let texts = self.texts();
        let kinds: BTreeSet<_> =
            texts.iter().flat_map(|text| scan_shown_secrets(text)).map(|finding| finding.kind.to_string()).collect();
        if !kinds.is_empty() {
            let kinds: Vec<String> = kinds.into_iter().collect();
            return Some(format!("the text holds a secret ({})", kinds.join(", ")));
        }
        let marked = texts.iter().any(|text| !signer.find(text, own, own).is_empty());
        marked.then(|| "the text holds a marker of Canonry's, which only the outbox may add".to_owned())
    }

    /// The write without secrets, and without characters that a database cannot store.
    pub(super) fn storable(mut self) -> Self {
        for text in self.texts_mut() {
            // PostgreSQL stores no NUL in a text, and GitHub shows none.
            *text = redact_shown(&text.replace('\0', "\u{fffd}"));
        }
        self
    }

    fn texts(&self) -> Vec<&str> {
        match self {
            Self::Comment { body }
            | Self::EditComment { body, .. }
            | Self::Reply { body, .. }
            | Self::EditReviewComment { body, .. } => vec![body],
            Self::Label { name } | Self::Unlabel { name } => vec![name],
            Self::Close(close) => vec![&close.comment, &close.comment_if_refused],
            Self::Review(review) => {
                let mut texts = vec![&*review.body];
                texts.extend(review.comments.iter().map(|comment| &*comment.body));
                texts
            }
            Self::CheckRun(run) => {
                let mut texts = vec![&*run.title, &run.summary];
                texts.extend(run.details_url.as_deref());
                texts
            }
            Self::DeleteComment { .. } | Self::Reopen | Self::React { .. } | Self::ResolveThread { .. } => Vec::new(),
        }
    }

    fn texts_mut(&mut self) -> Vec<&mut String> {
        match self {
            Self::Comment { body }
            | Self::EditComment { body, .. }
            | Self::Reply { body, .. }
            | Self::EditReviewComment { body, .. } => vec![body],
            Self::Label { name } | Self::Unlabel { name } => vec![name],
            Self::Close(close) => vec![&mut close.comment, &mut close.comment_if_refused],
            Self::Review(review) => {
                let mut texts = vec![&mut review.body];
                texts.extend(review.comments.iter_mut().map(|comment| &mut comment.body));
                texts
            }
            Self::CheckRun(run) => {
                let mut texts = vec![&mut run.title, &mut run.summary];
                texts.extend(run.details_url.as_mut());
                texts
            }
            Self::DeleteComment { .. } | Self::Reopen | Self::React { .. } | Self::ResolveThread { .. } => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use canonry_domain::{GithubId, StateReason, scan_shown_secrets};
    use canonry_testkit::secrets::sample_secrets;
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

    use super::{Close, CloseAs, InlineComment, ReviewWrite, Write};
    use crate::api::{CheckRunWrite, CheckState};
    use crate::auth::secret::Secret;
    use crate::text::marker::MarkerSigner;
    use crate::text::quote::{quote_block, quote_line};

    /// Every kind of write with this text in each of its places, and nothing else.
    fn writes(text: &str) -> Vec<Write> {
        let (id, body, plain) = (GithubId(1), || text.to_owned(), || "plain".to_owned());
        let close = |comment: String, comment_if_refused: String| {
            let close_as = CloseAs::Reason(StateReason::Completed);
            Write::Close(Close { close_as, comment, comment_if_refused })
        };
        let inline = |body: String| InlineComment { key: plain(), path: plain(), line: 1, start_line: None, body };
        let review =
            |body: String, comments| Write::Review(ReviewWrite { commit: plain(), body, comments, said: vec![] });
        let check = |title: String, summary: String, details_url: Option<String>| {
            let (head, external_id, state) = (plain(), plain(), CheckState::InProgress);
            Write::CheckRun(CheckRunWrite { head, external_id, state, title, summary, details_url })
        };
        vec![
            Write::Comment { body: body() },
            Write::EditComment { comment_key: plain(), body: body() },
            Write::Label { name: body() },
            Write::Unlabel { name: body() },
            close(body(), plain()),
            close(plain(), body()),
            review(body(), vec![]),
            review(plain(), vec![inline(plain()), inline(body())]),
            check(body(), plain(), None),
            check(plain(), body(), None),
            check(plain(), plain(), Some(body())),
            Write::Reply { to: id, body: body() },
            Write::EditReviewComment { comment: id, body: body() },
        ]
    }

    fn disguised(secret: &str, how: usize) -> String {
        let (before, after) = secret.split_at(secret.len() / 2);
        match how {
            0 => secret.to_owned(),
            1 => format!("{before}\u{200b}{after}"),
            2 => format!("{before}&ZeroWidthSpace;{after}"),
            3 => secret.replace('_', "\\_").replace('-', "\\-"),
            4 => format!("{before}<!-- x -->{after}"),
            5 => format!("`{secret}`"),
            6 => format!("{before}**{after}**"),
            _ => secret.replace('_', "&#95;").replace(':', "&colon;"),
        }
    }

    proptest! {
        #[test]
        fn no_secret_leaves_in_any_text(which in 0usize..14, how in 0usize..8, before in "[a-zA-Z0-9 .]{0,20}") {
            let (signer, own) = (MarkerSigner::new(Secret::new("x")), "canonry".parse().expect("valid"));
            let text = format!("{before} {}\nAfter.", disguised(&sample_secrets()[which], how));
            for write in writes(&text) {
                let refused = write.forbidden(&signer, &own);
                prop_assert!(refused.is_some_and(|why| why.contains("secret")), "{write:?}");
                let stored = write.storable();
                prop_assert_eq!(stored.forbidden(&signer, &own), None, "{:?}", stored);
            }
        }

        /// Quoting removes the secret, so that the rest can be written and nothing is refused.
        #[test]
        fn what_is_quoted_can_be_said(which in 0usize..14, how in 0usize..8, limit in 1usize..400) {
            let text = disguised(&sample_secrets()[which], how);
            for quoted in [quote_line(&text, limit), quote_block(&text, limit)] {
                prop_assert_eq!(scan_shown_secrets(&quoted), [], "{}", quoted);
                let shown = quoted.replace('\\', "");
                prop_assert!(!shown.contains("mVb9TzR4") && !shown.contains("Q2ZLM4") && !shown.contains("kQ9zR2"), "{quoted}");
            }
            for write in writes(&format!("It says: {}", quote_line(&text, limit))) {
                let (signer, own) = (MarkerSigner::new(Secret::new("x")), "canonry".parse().expect("valid"));
                prop_assert_eq!(write.forbidden(&signer, &own), None);
            }
        }
    }
}
