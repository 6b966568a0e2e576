//! Faults of an answer.

/// What the server does instead of the normal answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Fault {
    /// The last vector is one number too short.
    UnevenDimension,
    Dimension(usize),
    /// A vector contains `null`.
    NullComponent,
    /// A vector contains `NaN`, which is not valid JSON.
    NanComponent,
    /// One vector fewer than texts.
    FewerVectors,
    /// An error answer whose message quotes the received key.
    Status {
        status: u16,
        /// The seconds of a `Retry-After` header.
        retry_after: Option<u32>,
    },
    /// No answer until the server is dropped.
    Hang,
    /// The connection ends without an answer.
    Drop,
    /// Half of the answer, as if that were all.
    TruncatedJson,
    /// A chat is refused explicitly; embeddings are not.
    Refusal,
}

impl Fault {
    pub const fn status(status: u16) -> Self {
        Self::Status { status, retry_after: None }
    }

    /// Adds the seconds to wait; other faults ignore them.
    #[must_use]
    pub fn retry_after(self, seconds: u32) -> Self {
        match self {
            Self::Status { status, .. } => Self::Status { status, retry_after: Some(seconds) },
            other => other,
        }
    }
}
