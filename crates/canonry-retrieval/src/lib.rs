#![doc = include_str!("../README.md")]

mod bag;
mod changes;
mod dense;
mod evidence;
mod field_index;
mod fix_index;
mod fuse;
mod heap_bytes;
mod item_index;
mod late;
mod lexical;
mod marked;
mod metrics;
mod postings;
mod ranker;
mod ranker_weights;
mod replay;
mod search_rules;
mod share;
mod slots;
mod snapshot;
mod title_shape;
mod tokens;

pub use bag::Bag;
pub use changes::{diff_bag, path_bag};
pub use dense::{DenseHit, DenseIndex, DenseScan, InvalidVector, Spread};
pub use evidence::{CommonFacts, FactCounter, FactKind, FoundFact, SharedFact, TextFacts, shared_facts};
pub use fix_index::{FIX_FEATURES, FixEvidence, FixIndex, FixQuery, MergedPull, RankedFix};
pub use fuse::{
    Candidate, Hit, Overlap, RetrievalMode, SHORTLIST, ScoreParts, UnknownMode, rank, shortlist, words_score,
};
pub use heap_bytes::{block_bytes, map_bytes, vec_bytes};
pub use item_index::{Ask, CandidatePool, Entry, IndexError, ItemIndex, Query};
pub use late::{LateQuery, LateScores, late_interaction};
pub use lexical::{LexicalIndex, LexicalScores};
pub use marked::{FactSpan, marked};
pub use metrics::{RetrievalMeasures, bootstrap, rank_of_best};
pub use ranker::{RANKER_FEATURES, RankerFeatures, ranked_by, ranker_features};
pub use replay::{CreationOrder, ReplayQuery, duplicate_clusters};
pub use search_rules::{INCLUDE_BOOST, SEARCH_LIMIT, SearchHit, TERM_THRESHOLD, apply_search_rules};
pub use share::wilson;
pub use slots::Slot;
pub use snapshot::{SNAPSHOT_VERSION, SnapshotError, read_snapshot, write_snapshot};
pub use tokens::{TOKEN_LIMIT, for_each_token, tokens};
