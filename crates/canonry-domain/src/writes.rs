//! Kinds and origins of writes to GitHub, and the key that makes a write happen only once however often it is
//! requested.
//!
//! Keys are compared and never parsed: the details of a write are stored beside its key. The texts of keys must not
//! change, because a write that an earlier version stored and did not send is found by its key.

use std::fmt::Display;

use crate::items::item::{GithubId, ItemNumber, ItemType};
use crate::text_enum;

text_enum! {
    pub enum WriteKind: "a kind of write" {
        Comment = "comment",
        EditComment = "edit_comment",
        DeleteComment = "delete_comment",
        Label = "label",
        Unlabel = "unlabel",
        Close = "close",
        Reopen = "reopen",
        Review = "review",
        CheckRun = "check_run",
        React = "react",
        Reply = "reply",
        EditReviewComment = "edit_review_comment",
        ResolveThread = "resolve_thread",
    }
}

text_enum! {
    pub enum WriteOrigin: "an origin of a write" {
        /// A suggestion. Its record is the number of comments that the item has had, including this one.
        TriageComment = "triage_comment",
        TriageEdit = "triage_edit",
        TriageLabel = "triage_label",
        TriageUnlabel = "triage_unlabel",
        /// The comment edit that says that an announced close is cancelled.
        GraceCancelled = "grace_cancelled",
        /// The comment edit that says who ruled that the item is not a duplicate.
        RulingEdit = "ruling_edit",
        RulingUnlabel = "ruling_unlabel",
        Close = "close",
        CloseLabel = "close_label",
        UndoComment = "undo_comment",
        UndoUnlabel = "undo_unlabel",
        Reopen = "reopen",
        /// The comment on a canonical that lists its duplicates, and the edits of that comment.
        BackLink = "back_link",
        /// The edit of a closing comment that changes the canonical it names.
        Repoint = "repoint",
        ReviewPost = "review_post",
        ReviewSummary = "review_summary",
        ReviewSummaryEdit = "review_summary_edit",
        ReviewCheck = "review_check",
        /// The check run of a commit whose result is no longer needed.
        ReviewCheckLeft = "review_check_left",
        ReviewResolve = "review_resolve",
        ReviewSettle = "review_settle",
        MentionAnswer = "mention_answer",
        DismissalAnswer = "dismissal_answer",
        /// The reply to a maintainer whose ruling did not lead to a close.
        RulingAnswer = "ruling_answer",
        BreakerNotice = "breaker_notice",
        /// An origin that this version does not know.
        Other = "other",
    }
}

/// The part of Canonry that decides whether a write still makes sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WriteArea {
    Triage,
    /// Closes, undone closes, and the comments about both.
    Closing,
    Review,
    Mention,
    Breaker,
    Other,
}

impl WriteOrigin {
    pub const fn area(self) -> WriteArea {
        match self {
            Self::TriageComment
            | Self::TriageEdit
            | Self::TriageLabel
            | Self::TriageUnlabel
            | Self::GraceCancelled
            | Self::RulingEdit
            | Self::RulingUnlabel => WriteArea::Triage,
            Self::Close
            | Self::CloseLabel
            | Self::UndoComment
            | Self::UndoUnlabel
            | Self::Reopen
            | Self::BackLink
            | Self::Repoint => WriteArea::Closing,
            Self::ReviewPost
            | Self::ReviewSummary
            | Self::ReviewSummaryEdit
            | Self::ReviewCheck
            | Self::ReviewCheckLeft
            | Self::ReviewResolve
            | Self::ReviewSettle => WriteArea::Review,
            Self::MentionAnswer | Self::DismissalAnswer | Self::RulingAnswer => WriteArea::Mention,
            Self::BreakerNotice => WriteArea::Breaker,
            Self::Other => WriteArea::Other,
        }
    }

    /// The prefix of all keys of this origin.
    const fn key_word(self) -> &'static str {
        match self {
            Self::TriageComment => "triage",
            Self::TriageEdit => "triage-edit",
            Self::TriageLabel => "triage-label",
            Self::TriageUnlabel => "triage-unlabel",
            Self::GraceCancelled => "triage-grace",
            Self::RulingEdit => "triage-ruled",
            Self::RulingUnlabel => "triage-ruled-label",
            Self::Close => "close",
            Self::CloseLabel => "label",
            Self::UndoComment => "undo",
            Self::UndoUnlabel => "unlabel",
            Self::Reopen => "reopen",
            Self::BackLink => "backlink",
            Self::Repoint => "repoint",
            Self::ReviewPost
            | Self::ReviewSummary
            | Self::ReviewSummaryEdit
            | Self::ReviewCheck
            | Self::ReviewCheckLeft
            | Self::ReviewResolve
            | Self::ReviewSettle => "review",
            Self::MentionAnswer | Self::DismissalAnswer | Self::RulingAnswer => "mention",
            Self::BreakerNotice => "brake",
            Self::Other => "other",
        }
    }

    /// The part that follows the item in keys of this origin that contain the repository's id on GitHub.
    const fn key_part(self) -> &'static str {
        match self {
            Self::ReviewPost => "post/",
            Self::ReviewSummary => "summary/",
            Self::ReviewSummaryEdit => "summary-edit/",
            Self::ReviewCheck | Self::ReviewCheckLeft => "check/",
            Self::ReviewResolve => "resolve/",
            Self::ReviewSettle => "settle/",
            Self::DismissalAnswer => "dismissal/",
            Self::RulingAnswer => "grace/",
            _ => "",
        }
    }
}

/// The origin of a write, as it is stored beside the write's key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteSource {
    pub origin: WriteOrigin,
    /// The type of the item that the write changes, if the origin implies it.
    pub item_type: Option<ItemType>,
    /// The id of the triage, plan, review, grace, ruling, comment or breaker that the write is about.
    pub record: Option<i64>,
    /// The commit that the write is about, if there is no review of that commit.
    pub commit: Option<String>,
}

/// The unique key of a write, and the write's source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteKey {
    pub text: String,
    pub source: WriteSource,
}

impl WriteKey {
    /// The key of a write whose origin is unknown.
    pub fn other(text: &str) -> Self {
        Self::new(WriteOrigin::Other, text.to_owned())
    }

    /// `triage:1:issue:7`. The number before the item type is the repository, plan or run, depending on the origin.
    pub fn of_item(origin: WriteOrigin, scope: i64, item_type: ItemType, number: ItemNumber) -> Self {
        let mut key = Self::new(origin, format!("{}:{scope}:{item_type}:{number}", origin.key_word()));
        key.source.item_type = Some(item_type);
        key
    }

    /// `mention/9#7/issue/5`. The first number is the repository's id on GitHub.
    pub fn on_github(origin: WriteOrigin, repo: GithubId, number: ItemNumber, rest: impl Display) -> Self {
        Self::new(origin, format!("{}/{}#{number}/{}{rest}", origin.key_word(), repo.0, origin.key_part()))
    }

    fn new(origin: WriteOrigin, text: String) -> Self {
        Self { text, source: WriteSource { origin, item_type: None, record: None, commit: None } }
    }

    #[must_use]
    pub fn with_record(mut self, record: i64) -> Self {
        self.source.record = Some(record);
        self
    }

    #[must_use]
    pub fn with_commit(mut self, commit: &str) -> Self {
        self.source.commit = Some(commit.to_owned());
        self
    }

    /// Appends one more part to the key.
    #[must_use]
    pub fn and(mut self, part: impl Display) -> Self {
        self.text = format!("{}:{part}", self.text);
        self
    }

    /// The key of attempt number `count`; `self` is the prefix.
    #[must_use]
    pub fn numbered(&self, count: impl Display) -> Self {
        Self { text: format!("{}{count}", self.text), source: self.source.clone() }
    }
}
