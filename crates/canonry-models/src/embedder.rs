//! The trait of embedders, and their errors.

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
    /// One vector of length 1 for the whole text; zeros for a text without words.
    pub vector: Vec<f32>,
    /// A small vector for each of the first tokens, if the model makes them.
    pub tokens: Option<TokenVectors>,
}

/// Turns texts into vectors of length 1 whose cosine measures how similar the texts are.
pub trait Embedder: Send + Sync {
    /// The name under which vectors are stored. Vectors of different names are never compared.
    fn model_id(&self) -> &str;

    /// The length of the vectors; for a remote model it is known after the first answer.
    fn dimension(&self) -> Option<usize>;

    /// How this model's cosines become similarity scores.
    fn calibration(&self) -> &Calibration;

    /// The default distances up to which past findings count as similar.
    fn finding_distances(&self) -> FindingDistances {
        FindingDistances::UNMEASURED
    }

    /// One vector per text, in order, or no vector at all; a text without words gets a vector of zeros.
    fn embed<'a>(&'a self, texts: &'a [String], input: InputType) -> BoxFuture<'a, Result<Vec<Vec<f32>>, EmbedError>>;

    /// The same with token vectors, if the model makes them.
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

/// How far (1 − cosine) a past finding may be from what it is compared with. The distance between code and words
/// about it is larger than between two descriptions of one problem, and it depends on the model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FindingDistances {
    /// From the new lines of a file: these findings are shown to a reviewing model.
    pub from_code: f64,
    /// From another finding: these findings count as the same problem again.
    pub from_finding: f64,
}

impl FindingDistances {
    /// For a model that was not measured.
    pub const UNMEASURED: Self = Self { from_code: 0.3, from_finding: 0.3 };
}

#[derive(Debug, thiserror::Error)]
pub enum EmbedError {
    #[error(transparent)]
    Model(#[from] ModelFileError),
    /// The work was cancelled because the program is ending or a worker failed.
    #[error("embed texts: the work was interrupted")]
    Interrupted,
    #[error("set up the {provider} embedder: {problem}")]
    Settings { provider: &'static str, problem: String },
    #[error("embed {} with {provider}: {failure}", named(texts))]
    Remote { provider: &'static str, texts: Range<usize>, failure: RemoteFailure },
}

impl EmbedError {
    /// Which texts of the call the error is about, if known.
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
