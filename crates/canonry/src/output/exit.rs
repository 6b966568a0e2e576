//! What the exit status says to scripts.

use std::process::ExitCode;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    Done = 0,
    Failed = 1,
    Usage = 2,
    /// Done, but some items failed.
    SomeFailed = 3,
    /// A safety rule said no; nothing was done.
    Refused = 4,
    /// Done, and findings stand that the caller wants to fail on.
    Findings = 5,
}

/// A safety rule's no, in words.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Refused(pub(crate) String);

/// Arguments that do not go together, in words.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct WrongUsage(pub(crate) String);

impl Exit {
    /// The status that an error ends with.
    pub(crate) fn of(error: &anyhow::Error) -> Self {
        if error.is::<Refused>() {
            Self::Refused
        } else if error.is::<WrongUsage>() {
            Self::Usage
        } else {
            Self::Failed
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
