//! Collects what a model needs beside the changed lines: who wrote what about the change, the project's own guidance, and
//! the code around the change in the rest of the repository.

mod gather;
mod outline;
mod symbols;
mod unread_files;

pub(crate) use gather::{ContextRequest, gather_context};
pub use gather::{GuidanceFile, ReviewContext};
pub(crate) use outline::Outline;
pub use symbols::FoundCode;
