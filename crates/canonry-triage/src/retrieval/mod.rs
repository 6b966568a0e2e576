//! Vectors, the index, and the search for neighbours.

pub(crate) mod boilerplate;
pub(crate) mod calibrate;
pub(crate) mod candidates;
pub(crate) mod compare_shortlist;
pub(crate) mod embed;
pub(crate) mod index_cache;
pub(crate) mod index_upkeep;
pub(crate) mod loaded_index;
pub(crate) mod neighbourhood;
pub(crate) mod read_templates;
pub(crate) mod search;
pub(crate) mod token_cache;

pub use boilerplate::stored_boilerplate;
pub use calibrate::{CalibrateError, CalibrateReport, calibrate};
pub use candidates::{CandidateOptions, CandidatesReport, WrittenSet, candidates};
pub use embed::{EmbedFailure, EmbedOptions, EmbedReport, EmbedRunError, EmbedSource, embed};
pub use index_cache::{DEFAULT_INDEX_MEMORY, IndexCache};
pub use index_upkeep::remove_indexes;
pub use neighbourhood::{NeighbourQuery, Neighbourhood, RetrievalError};
pub use read_templates::read_templates;
pub use search::{FoundItem, SearchError, SearchFor, SearchOptions, search};
