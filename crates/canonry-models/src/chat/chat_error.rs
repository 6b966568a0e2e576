//! How a chat model fails.

use crate::remote_failure::RemoteFailure;

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ChatError {
    #[error("set up the {provider} model: {problem}")]
    Settings { provider: &'static str, problem: String },
    #[error("ask {provider}: {failure}")]
    Remote { provider: &'static str, failure: RemoteFailure },
    #[error("ask {provider}: it refused ({said})")]
    Refused {
        provider: &'static str,
        said: String,
        /// The tokens it read, where the provider tells: they are paid for all the same.
        input_tokens: Option<u64>,
        output_tokens: Option<u64>,
    },
    #[error("ask {provider}: the answer ended at its limit of {max_tokens} tokens")]
    CutOff {
        provider: &'static str,
        max_tokens: u32,
        /// The tokens it read, where the provider tells: they are paid for all the same.
        input_tokens: Option<u64>,
        output_tokens: Option<u64>,
    },
    #[error("ask the program {program}: {problem}")]
    Command { program: String, problem: String },
}

impl ChatError {
    /// Whether every further question would fail as well: a wrong key, no money left, an unknown model. The caller stops
    /// instead of failing item by item. 403 is not among them: some services refuse single texts with it.
    pub fn is_hopeless(&self) -> bool {
        match self {
            Self::Settings { .. } => true,
            Self::Remote { failure: RemoteFailure::Status { status, .. }, .. } => matches!(status, 401 | 402 | 404),
            _ => false,
        }
    }

    /// The tokens read and written of an answer that is of no use, which is paid for all the same; `None` where there was
    /// no answer.
    pub fn paid_tokens(&self) -> Option<(Option<u64>, Option<u64>)> {
        match self {
            Self::Refused { input_tokens, output_tokens, .. } | Self::CutOff { input_tokens, output_tokens, .. } => {
                Some((*input_tokens, *output_tokens))
            }
            _ => None,
        }
    }
}
