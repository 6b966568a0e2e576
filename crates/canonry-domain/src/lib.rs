#![doc = include_str!("../README.md")]

mod content;
mod duplicate_text;
mod import_line;
mod intent_answer;
mod intent_card;
mod intent_changes;
mod intent_evidence;
mod intent_local;
mod intent_sections;
mod item;
mod item_record;
mod login;
mod moment;
mod outcome_event;
mod pull_changes;
mod repo_name;
mod score;
mod since;
mod words;

pub use content::{BODY_LIMIT, ContentHash, TEXT_LIMIT, TITLE_LIMIT, content_hash, normalise_text, raw_text};
pub use duplicate_text::named_duplicate;
pub use import_line::{ImportError, ImportLine, parse_import_value};
pub use intent_answer::{
    CARD_ENTRY_LIMIT, CARD_LIST_LIMIT, CARD_TEXT_LIMIT, CardError, intent_card_schema, parse_intent_card,
};
pub use intent_card::{
    CARD_PROMPT_VERSION, CARD_RENDER_VERSION, CARD_SCHEMA_VERSION, ChangeIntent, EvidenceFact, EvidenceSource,
    Extractor, IntentCard, IntentSource, render as render_intent_card,
};
pub use intent_local::extract_locally;
pub use item::{ContentVersion, GithubId, Gone, InvalidNumber, Item, ItemNumber, ItemState, ItemType, StateReason};
pub use item_record::{Change, ItemRecord, Merged, merge_record};
pub use login::{InvalidLogin, Login};
pub use moment::{InvalidMoment, parse_moment, whole_micros};
pub use outcome_event::{OutcomeEvent, OutcomeKind, closed_as_duplicate, discovered_event, explains_closing};
pub use pull_changes::PullChanges;
pub use repo_name::{InvalidRepoName, RepoName};
pub use score::{InvalidScore, Probability, Similarity};
pub use since::{InvalidSince, Since};
pub use words::UnknownWord;
