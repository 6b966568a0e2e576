//! The exit status of a command.

use std::process::ExitCode;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    Done = 0,
    Failed = 1,
    Usage = 2,
    /// Done, but some items failed.
    SomeFailed = 3,
    /// A safety rule refused; nothing was done.
    Refused = 4,
    /// Done, but there are findings on which the caller wants to fail.
    Findings = 5,
    /// The answers of `check`; a draft that is new is `Done`.
    Reported = 10,
    InProgress = 11,
    Fixed = 12,
    PossibleRegression = 13,
}

/// The message of a safety rule that refused.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Refused(pub(crate) String);

/// The message for arguments that do not fit together.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct WrongUsage(pub(crate) String);

impl Exit {
    /// The exit status for an error.
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
