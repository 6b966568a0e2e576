//! Intent cards: what an item wants, extracted from its text by rules or by a model.

pub(crate) mod card;
pub(crate) mod card_answer;
pub(crate) mod change_evidence;
pub(crate) mod local_extractor;
pub(crate) mod sections;
pub(crate) mod text_evidence;

pub use card::{
    CARD_PROMPT_VERSION, CARD_RENDER_VERSION, CARD_SCHEMA_VERSION, ChangeIntent, EvidenceFact, EvidenceSource,
    Extractor, IntentCard, IntentSource, render as render_intent_card,
};
pub use card_answer::{
    CARD_ENTRY_LIMIT, CARD_LIST_LIMIT, CARD_TEXT_LIMIT, CardError, intent_card_schema, parse_intent_card,
};
pub use local_extractor::extract_locally;
