//! The errors of a remote embedder.

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum RemoteFailure {
    #[error("no answer within {seconds} s, asked {}", times(*attempts))]
    TimedOut { seconds: u64, attempts: u32 },
    /// The connection could not be made or was lost.
    #[error("the connection to {url} failed, tried {}", times(*attempts))]
    Unreachable {
        /// The URL of the model, without parts that may be a key.
        url: String,
        attempts: u32,
    },
    #[error("status {status}{}, asked {}", with(said), times(*attempts))]
    Status {
        status: u16,
        /// The first words of the provider's own explanation.
        said: String,
        attempts: u32,
    },
    /// The answer is larger than any valid one.
    #[error("the answer is larger than {limit} bytes")]
    TooLarge { limit: usize },
    #[error("the answer cannot be read: {0}")]
    Malformed(String),
    /// A streamed answer ended before its end.
    #[error("the answer broke off ({said})")]
    BrokenOff {
        /// The first words of the provider's own explanation, or ours.
        said: String,
    },
    #[error("{got} vectors came back for {asked} texts")]
    WrongCount { asked: usize, got: usize },
    /// Two vectors for one text, or a vector for a text that was never sent.
    #[error("the vectors are numbered wrongly: {index} is out of range or occurs twice")]
    WrongIndex { index: usize },
    /// The length of a vector differs from that of the model's others.
    #[error("a vector has {got} dimensions, the others have {expected}")]
    WrongDimension {
        /// The dimension of the earlier vectors.
        expected: usize,
        got: usize,
    },
    /// A vector with a component that is null, not a number, infinite or out of range.
    #[error("component {component} of the vector is not a finite number")]
    NotFinite { component: usize },
    #[error("the vector is empty or all zeros")]
    NoDirection,
}

fn times(attempts: u32) -> String {
    if attempts == 1 { "once".to_owned() } else { format!("{attempts} times") }
}

fn with(said: &str) -> String {
    if said.is_empty() { String::new() } else { format!(" ({said})") }
}
