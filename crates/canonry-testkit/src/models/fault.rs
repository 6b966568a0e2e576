//! What can go wrong with an answer.

/// What the server does instead of answering as asked.
#[derive(Debug, Clone, PartialEq)]
pub enum Fault {
    /// The last vector lacks a number.
    UnevenDimension,
    Dimension(usize),
    /// A vector holds `null`.
    NullComponent,
    /// A vector holds `NaN`, which is no JSON.
    NanComponent,
    /// One vector fewer than texts.
    FewerVectors,
    /// An error answer, whose message quotes the key that came.
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
    /// A chat is refused in so many words; embeddings are not.
    Refusal,
}

impl Fault {
    pub const fn status(status: u16) -> Self {
        Self::Status { status, retry_after: None }
    }

    /// The same with the seconds to wait; nothing else takes them.
    #[must_use]
    pub fn retry_after(self, seconds: u32) -> Self {
        match self {
            Self::Status { status, .. } => Self::Status { status, retry_after: Some(seconds) },
            other => other,
        }
    }
}
