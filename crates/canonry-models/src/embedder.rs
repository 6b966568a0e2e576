//! What an embedder is, and how embedding fails.

use std::ops::Range;

use canonry_domain::TokenVectors;
use futures_util::future::BoxFuture;

use crate::calibration::Calibration;
use crate::model_file::ModelFileError;
use crate::remote_failure::RemoteFailure;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputType {
    Query,
    Document,
}

#[derive(Debug, Clone, PartialEq)]
pub struct TextEmbedding {
    /// One vector of length 1 for the whole of it; zeros for a text without words.
    pub vector: Vec<f32>,
    /// A small vector for each of its first tokens, by a model that makes them.
    pub tokens: Option<TokenVectors>,
}

/// Turns texts into vectors of length 1 whose cosine says how alike the texts are.
pub trait Embedder: Send + Sync {
    /// The name vectors are stored under. Vectors of different names are never compared.
    fn model_id(&self) -> &str;

    /// How long its vectors are; a remote model tells with its first answer.
    fn dimension(&self) -> Option<usize>;

    /// How this model's cosines become similarity scores.
    fn calibration(&self) -> &Calibration;

    /// Up to which distances findings of the past are like what is asked about, where nobody configured that.
    fn finding_distances(&self) -> FindingDistances {
        FindingDistances::UNMEASURED
    }

    /// One vector per text, in order, or no vector at all; a text without words gets a vector of zeros.
    fn embed<'a>(&'a self, texts: &'a [String], input: InputType) -> BoxFuture<'a, Result<Vec<Vec<f32>>, EmbedError>>;

    /// The same with the vectors of the texts' tokens, by a model that makes them.
    fn embed_with_tokens<'a>(
        &'a self,
        texts: &'a [String],
        input: InputType,
    ) -> BoxFuture<'a, Result<Vec<TextEmbedding>, EmbedError>> {
        Box::pin(async move {
            let vectors = self.embed(texts, input).await?;
            Ok(vectors.into_iter().map(|vector| TextEmbedding { vector, tokens: None }).collect())
        })
    }
}

/// How far (1 − cosine) a finding of the past may be from what it is compared with. Code and words about it are further
/// apart than two descriptions of one problem, and how far depends on the model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FindingDistances {
    /// From the new lines of a file: what a reviewing model is told of the past.
    pub from_code: f64,
    /// From another finding: what counts as the same problem again.
    pub from_finding: f64,
}

impl FindingDistances {
    /// Of a model that nobody measured.
    pub const UNMEASURED: Self = Self { from_code: 0.3, from_finding: 0.3 };
}

#[derive(Debug, thiserror::Error)]
pub enum EmbedError {
    #[error(transparent)]
    Model(#[from] ModelFileError),
    /// The work was given up because the program is ending or a worker failed.
    #[error("embed texts: the work was interrupted")]
    Interrupted,
    #[error("set up the {provider} embedder: {problem}")]
    Settings { provider: &'static str, problem: String },
    #[error("embed {} with {provider}: {failure}", named(texts))]
    Remote { provider: &'static str, texts: Range<usize>, failure: RemoteFailure },
}

impl EmbedError {
    /// Which texts of the call the error is about, where that is known.
    pub fn texts(&self) -> Option<Range<usize>> {
        match self {
            Self::Remote { texts, .. } => Some(texts.clone()),
            _ => None,
        }
    }
}

fn named(texts: &Range<usize>) -> String {
    match texts.len() {
        0 | 1 => format!("text {}", texts.start),
        _ => format!("texts {} to {}", texts.start, texts.end - 1),
    }
}
