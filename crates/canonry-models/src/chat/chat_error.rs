//! The errors of a chat model.

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
        /// The tokens that it read, if the provider reports them: they are paid for all the same.
        input_tokens: Option<u64>,
        output_tokens: Option<u64>,
    },
    #[error("ask {provider}: the answer ended at its limit of {max_tokens} tokens")]
    CutOff {
        provider: &'static str,
        max_tokens: u32,
        /// The tokens that it read, if the provider reports them: they are paid for all the same.
        input_tokens: Option<u64>,
        output_tokens: Option<u64>,
    },
    #[error("ask the program {program}: {problem}")]
    Command { program: String, problem: String },
}

impl ChatError {
    /// Whether every further question would fail as well: a wrong key, no money left, an unknown model. The caller
    /// then stops instead of failing item by item. 403 is not among them: some services reject single texts with it.
    pub fn is_hopeless(&self) -> bool {
        match self {
            Self::Settings { .. } => true,
            Self::Remote { failure: RemoteFailure::Status { status, .. }, .. } => matches!(status, 401 | 402 | 404),
            _ => false,
        }
    }

    /// The tokens read and written for a useless answer, which is paid for all the same; `None` if there was no
    /// answer.
    pub fn paid_tokens(&self) -> Option<(Option<u64>, Option<u64>)> {
        match self {
            Self::Refused { input_tokens, output_tokens, .. } | Self::CutOff { input_tokens, output_tokens, .. } => {
                Some((*input_tokens, *output_tokens))
            }
            _ => None,
        }
    }
}
