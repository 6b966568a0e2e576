//! Commands to run and operate the service.

pub(crate) mod deliveries;
pub(crate) mod jobs;
pub(crate) mod maintainers;
pub(crate) mod pause;
pub(crate) mod purge;
pub(crate) mod resume;
pub(crate) mod run;
pub(crate) mod serve;
