//! The request to each embedding provider, and the checks of its answer.

use std::sync::OnceLock;

use serde::Deserialize;
use serde_json::{Value, json};
use url::Url;

use crate::embedder::InputType;
use crate::remote_failure::RemoteFailure;
use crate::remote_service::Vendor;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Provider {
    /// OpenAI, and every server with the same API.
    OpenAi,
    Voyage,
    Gemini,
}

impl Provider {
    pub const fn name(self) -> &'static str {
        self.vendor().name
    }

    pub(crate) const fn vendor(self) -> Vendor {
        match self {
            Self::OpenAi => Vendor {
                name: "openai",
                key_variable: "OPENAI_API_KEY",
                key_header: ("authorization", "Bearer "),
                base_url: "https://api.openai.com/v1",
                model: "text-embedding-3-small",
            },
            Self::Voyage => Vendor {
                name: "voyage",
                key_variable: "VOYAGE_API_KEY",
                key_header: ("authorization", "Bearer "),
                base_url: "https://api.voyageai.com/v1",
                model: "voyage-3.5",
            },
            Self::Gemini => Vendor {
                name: "gemini",
                key_variable: "GEMINI_API_KEY",
                key_header: ("x-goog-api-key", ""),
                base_url: "https://generativelanguage.googleapis.com/v1beta",
                model: "gemini-embedding-001",
            },
        }
    }

    /// The URL for the request; `None` if the base URL cannot have a path.
    pub(crate) fn endpoint(self, base: &Url, model: &str) -> Option<Url> {
        let mut url = base.clone();
        let mut path = url.path_segments_mut().ok()?;
        path.pop_if_empty();
        match self {
            Self::OpenAi | Self::Voyage => path.push("embeddings"),
            Self::Gemini => path.push("models").push(&format!("{model}:batchEmbedContents")),
        };
        drop(path);
        Some(url)
    }

    pub(crate) fn request(self, model: &str, texts: &[&str], input: InputType) -> Value {
        match self {
            Self::OpenAi => json!({"model": model, "input": texts, "encoding_format": "float"}),
            Self::Voyage => json!({"model": model, "input": texts, "input_type": match input {
                InputType::Query => "query",
                InputType::Document => "document",
            }}),
            Self::Gemini => {
                let task = match input {
                    InputType::Query => "RETRIEVAL_QUERY",
                    InputType::Document => "RETRIEVAL_DOCUMENT",
                };
                let model = format!("models/{model}");
                let request =
                    |text: &&str| json!({"model": model, "content": {"parts": [{"text": text}]}, "taskType": task});
                json!({"requests": texts.iter().map(request).collect::<Vec<_>>()})
            }
        }
    }

    /// The vectors of an answer in the order of the texts, normalised to length 1.
    ///
    /// A failure that concerns one text contains its position. The first vector sets `dimension` for all that follow.
    pub(crate) fn read_answer(
        self,
        body: &[u8],
        asked: usize,
        dimension: &OnceLock<usize>,
    ) -> Result<Vec<Vec<f32>>, (Option<usize>, RemoteFailure)> {
        let numbered = self.numbered_vectors(body).map_err(|failure| (None, failure))?;
        if numbered.len() != asked {
            return Err((None, RemoteFailure::WrongCount { asked, got: numbered.len() }));
        }
        let mut vectors = vec![Vec::new(); asked];
        for (index, components) in numbered {
            let place = vectors.get_mut(index).filter(|place| place.is_empty());
            let place = place.ok_or((None, RemoteFailure::WrongIndex { index }))?;
            *place = direction(&components, dimension).map_err(|failure| (Some(index), failure))?;
        }
        Ok(vectors)
    }

    fn numbered_vectors(self, body: &[u8]) -> Result<Vec<(usize, Components)>, RemoteFailure> {
        let malformed = |error: serde_json::Error| RemoteFailure::Malformed(error.to_string());
        Ok(match self {
            Self::OpenAi | Self::Voyage => {
                let answer: DataAnswer = serde_json::from_slice(body).map_err(malformed)?;
                let numbered = answer.data.into_iter().enumerate();
                numbered.map(|(at, entry)| (entry.index.unwrap_or(at), entry.embedding)).collect()
            }
            Self::Gemini => {
                let answer: GeminiAnswer = serde_json::from_slice(body).map_err(malformed)?;
                answer.embeddings.into_iter().map(|entry| entry.values).enumerate().collect()
            }
        })
    }
}

/// JSON cannot express NaN; servers write null instead.
type Components = Vec<Option<f64>>;

#[derive(Deserialize)]
struct DataAnswer {
    data: Vec<DataEntry>,
}

#[derive(Deserialize)]
struct DataEntry {
    embedding: Components,
    index: Option<usize>,
}

#[derive(Deserialize)]
struct GeminiAnswer {
    embeddings: Vec<GeminiEntry>,
}

#[derive(Deserialize)]
struct GeminiEntry {
    values: Components,
}

fn direction(components: &[Option<f64>], dimension: &OnceLock<usize>) -> Result<Vec<f32>, RemoteFailure> {
    let finite = |(component, value): (usize, &Option<f64>)| {
        value.filter(|value| value.is_finite()).ok_or(RemoteFailure::NotFinite { component })
    };
    let values: Vec<f64> = components.iter().enumerate().map(finite).collect::<Result<_, _>>()?;
    // Scaling by the largest component first keeps the squares of very large and very small numbers in range.
    let largest = values.iter().fold(0.0f64, |largest, value| largest.max(value.abs()));
    if largest == 0.0 {
        return Err(RemoteFailure::NoDirection);
    }
    let length = values.iter().map(|value| (value / largest).powi(2)).sum::<f64>().sqrt();
    let expected = *dimension.get_or_init(|| values.len());
    if values.len() != expected {
        return Err(RemoteFailure::WrongDimension { expected, got: values.len() });
    }
    Ok(values.iter().map(|value| (value / largest / length) as f32).collect())
}

#[cfg(test)]
mod tests {
    use super::Provider;
    use crate::embedder::InputType;
    use crate::remote_failure::RemoteFailure;
    use std::sync::OnceLock;

    fn read(provider: Provider, body: &str, asked: usize) -> Result<Vec<Vec<f32>>, (Option<usize>, RemoteFailure)> {
        provider.read_answer(body.as_bytes(), asked, &OnceLock::new())
    }

    #[test]
    fn vectors_come_in_the_order_of_the_texts() {
        let shuffled = r#"{"data":[{"index":1,"embedding":[0,2]},{"index":0,"embedding":[3,4]}],"model":"m"}"#;
        assert_eq!(read(Provider::OpenAi, shuffled, 2), Ok(vec![vec![0.6, 0.8], vec![0.0, 1.0]]));
        let unnumbered = r#"{"data":[{"embedding":[1,0]},{"embedding":[0,1]}]}"#;
        assert_eq!(read(Provider::Voyage, unnumbered, 2), Ok(vec![vec![1.0, 0.0], vec![0.0, 1.0]]));
        let gemini = r#"{"embeddings":[{"values":[1e300,0]}]}"#;
        assert_eq!(read(Provider::Gemini, gemini, 1), Ok(vec![vec![1.0, 0.0]]));
    }

    #[test]
    fn what_is_no_vector_is_refused() {
        let cases = [
            (r#"{"data":[{"index":0,"embedding":[1,null]}]}"#, 1, Some(0), RemoteFailure::NotFinite { component: 1 }),
            (r#"{"data":[{"index":0,"embedding":[0,0]}]}"#, 1, Some(0), RemoteFailure::NoDirection),
            (r#"{"data":[{"index":0,"embedding":[]}]}"#, 1, Some(0), RemoteFailure::NoDirection),
            (r#"{"data":[{"index":1,"embedding":[1]}]}"#, 1, None, RemoteFailure::WrongIndex { index: 1 }),
            (r#"{"data":[]}"#, 1, None, RemoteFailure::WrongCount { asked: 1, got: 0 }),
            (
                r#"{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[1]}]}"#,
                2,
                None,
                RemoteFailure::WrongIndex { index: 0 },
            ),
            (
                r#"{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":[1,2]}]}"#,
                2,
                Some(1),
                RemoteFailure::WrongDimension { expected: 1, got: 2 },
            ),
        ];
        for (body, asked, place, failure) in cases {
            assert_eq!(read(Provider::OpenAi, body, asked), Err((place, failure)), "{body}");
        }
        for body in
            [r#"{"data":[{"embedding":[NaN]}]}"#, r#"{"data":[{"embedding":[1e999]}]}"#, r#"{"data":[{"#, "", "{}"]
        {
            assert!(matches!(read(Provider::OpenAi, body, 1), Err((None, RemoteFailure::Malformed(_)))), "{body}");
        }
    }

    #[test]
    fn addresses_keep_the_path_of_their_base() {
        let at = |provider: Provider, base: &str| {
            provider.endpoint(&base.parse().expect("valid"), "a/b").map(String::from).unwrap_or_default()
        };
        assert_eq!(at(Provider::OpenAi, "http://localhost:1/v1/"), "http://localhost:1/v1/embeddings");
        assert_eq!(at(Provider::Voyage, "http://localhost:1"), "http://localhost:1/embeddings");
        assert_eq!(at(Provider::Gemini, "http://h/v1beta"), "http://h/v1beta/models/a%2Fb:batchEmbedContents");
        assert_eq!(at(Provider::OpenAi, "mailto:a@b"), "");
    }

    #[test]
    fn query_and_document_are_told_apart_where_the_model_does() {
        let voyage = |input| Provider::Voyage.request("m", &["a"], input)["input_type"].clone();
        assert_eq!([voyage(InputType::Query), voyage(InputType::Document)], ["query", "document"]);
        let gemini = |input| Provider::Gemini.request("m", &["a"], input)["requests"][0]["taskType"].clone();
        assert_eq!([gemini(InputType::Query), gemini(InputType::Document)], ["RETRIEVAL_QUERY", "RETRIEVAL_DOCUMENT"]);
    }
}
