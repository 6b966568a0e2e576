//! Commands to review changes and to follow findings.

pub(crate) mod feedback;
pub(crate) mod review_change;
pub(crate) mod stats;
pub(crate) mod trends;
pub(crate) mod why;
