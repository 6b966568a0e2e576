//! The output of a command, and its exit status.

pub(crate) mod error_message;
pub(crate) mod exit;
pub(crate) mod file;
pub(crate) mod json;
pub(crate) mod logging;
pub(crate) mod moments;
pub(crate) mod numbers;
pub(crate) mod printable;
pub(crate) mod reasons;
pub(crate) mod report;
pub(crate) mod tables;
pub(crate) mod terminal;
