//! Commands to get started: demo, set-up, import and export.

pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod export;
pub(crate) mod import;
pub(crate) mod init;
pub(crate) mod man;
pub(crate) mod reference;
pub(crate) mod refresh;
pub(crate) mod sync;
