//! Issues and pull requests: their names, text, records and the order of records.

pub(crate) mod clock_skew;
pub(crate) mod component;
pub(crate) mod content;
pub(crate) mod import_line;
pub(crate) mod item;
pub(crate) mod item_record;
pub(crate) mod linked_issues;
pub(crate) mod login;
pub(crate) mod maintainers;
pub(crate) mod moment;
pub(crate) mod named_duplicate;
pub(crate) mod outcome_event;
pub(crate) mod pull_changes;
pub(crate) mod record_order;
pub(crate) mod release_version;
pub(crate) mod repo_name;
pub(crate) mod since;

pub use clock_skew::{CLOCK_TOLERANCE, clock_trouble, do_clocks_agree};
pub use component::Component;
pub use content::{BODY_LIMIT, ContentHash, TEXT_LIMIT, TITLE_LIMIT, content_hash, normalise_text, raw_text};
pub use import_line::{ImportError, ImportLine, parse_import_value};
pub use item::{
    ContentVersion, GithubId, GoneReason, InvalidNumber, Item, ItemNumber, ItemState, ItemType, StateReason,
};
pub use item_record::{ItemRecord, MergedItem, RecordChange, merge_answer, merge_record, merge_webhook};
pub use linked_issues::{fixed_issues, issues_fixed_by_commit, reverted_pulls};
pub use login::{InvalidLogin, Login};
pub use maintainers::Maintainers;
pub use moment::{InvalidMoment, month_of, parse_moment, whole_micros};
pub use named_duplicate::named_duplicate;
pub use outcome_event::{
    EventBy, EventOrigin, HUMAN_LABEL, OutcomeEvent, OutcomeKind, closed_as_duplicate, discovered_event,
    explains_closing, reason_given_at,
};
pub use pull_changes::{PullChanges, SentAgain};
pub use release_version::ReleaseVersion;
pub use repo_name::{InvalidRepoName, RepoName};
pub use since::{InvalidSince, Since};
