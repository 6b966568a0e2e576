//! Compares the compiled-in model with the published tokeniser and the fp32 network.
#![expect(clippy::unwrap_used, reason = "a test stops where something is not as it set it up")]

use std::sync::LazyLock;

use canonry_kernels::Kernels;
use canonry_models::{Embedder, InputType, LocalEmbedder};
use serde::Deserialize;

static MODEL: LazyLock<LocalEmbedder> = LazyLock::new(|| LocalEmbedder::load_with_threads(2).unwrap());

#[derive(Deserialize)]
struct Reference {
    text: String,
    ids: Vec<u32>,
    vector: Option<Vec<f32>>,
    #[serde(default)]
    tokens: Vec<Vec<f32>>,
}

fn references() -> Vec<Reference> {
    serde_json::from_str(include_str!("../data/reference.json")).unwrap()
}

fn cosine(left: &[f32], right: &[f32]) -> f32 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
    dot(left, right) / (dot(left, left) * dot(right, right)).sqrt()
}

#[test]
fn reads_texts_as_the_published_tokeniser_does() {
    for Reference { text, ids, .. } in references() {
        assert_eq!(MODEL.token_ids(&text), ids, "{text:?}");
    }
}

#[test]
fn vectors_are_those_of_the_unquantised_network() {
    let known: Vec<Reference> = references().into_iter().filter(|reference| reference.vector.is_some()).collect();
    let texts: Vec<&str> = known.iter().map(|reference| reference.text.as_str()).collect();
    assert_eq!(texts.len(), 10);
    for (embedding, reference) in MODEL.embed_with_tokens_blocking(&texts).unwrap().iter().zip(&known) {
        let vector = &embedding.vector;
        let alike = cosine(vector, reference.vector.as_ref().unwrap());
        assert!(alike > 0.99, "{}: {alike}", reference.text);
        let tokens = embedding.tokens.as_ref().unwrap();
        assert_eq!((tokens.width(), reference.tokens.len()), (32, 6));
        for (row, expected) in tokens.rows().zip(&reference.tokens) {
            let row: Vec<f32> = row.iter().map(|code| f32::from(*code)).collect();
            let alike = cosine(&row, expected);
            assert!(alike > 0.97, "{}: {alike}", reference.text);
        }
        assert!((cosine(vector, vector) - 1.0).abs() < 1e-5);
        assert!((vector.iter().map(|x| x * x).sum::<f32>() - 1.0).abs() < 1e-4);
    }
}

#[test]
fn a_vector_depends_on_nothing_but_its_text() {
    let texts: Vec<String> = references().into_iter().map(|reference| reference.text).collect();
    for kernels in Kernels::available() {
        let one_thread = LocalEmbedder::load_with_kernels(1, kernels).unwrap();
        let two_threads = LocalEmbedder::load_with_kernels(2, kernels).unwrap();
        let together = two_threads.embed_with_tokens_blocking(&texts).unwrap();
        assert_eq!(one_thread.embed_with_tokens_blocking(&texts).unwrap(), together, "{}", kernels.name());
        for (text, embedding) in texts.iter().zip(&together).step_by(7) {
            let alone = two_threads.embed_with_tokens_blocking(&[text]).unwrap();
            assert_eq!(&alone[0], embedding, "{} {text:?}", kernels.name());
        }
    }
}

#[test]
fn blank_texts_get_zeros_and_keep_their_place() {
    let vectors = MODEL.embed_blocking(&["", "crash", " \n", "\0\u{200b}", "🚀"]).unwrap();
    let blank: Vec<bool> = vectors.iter().map(|vector| vector.iter().all(|x| *x == 0.0)).collect();
    assert_eq!(blank, [true, false, true, true, false]);
    assert_eq!(MODEL.embed_blocking::<&str>(&[]).unwrap(), Vec::<Vec<f32>>::new());
}

#[test]
fn only_the_first_tokens_get_vectors_of_their_own() {
    let long = "the build fails with an error ".repeat(100);
    let embeddings = MODEL.embed_with_tokens_blocking(&["", "crash", long.as_str()]).unwrap();
    let tokens: Vec<usize> = embeddings.iter().map(|embedding| embedding.tokens.as_ref().unwrap().len()).collect();
    assert_eq!(tokens, [0, 3, 60]);
}

#[test]
fn a_huge_text_is_read_only_as_far_as_the_model_reads() {
    let huge = "the build fails with an error ".repeat(400_000);
    let vectors = MODEL.embed_blocking(&[huge.as_str(), &huge[..10_000]]).unwrap();
    assert_eq!(vectors[0], vectors[1]);
    assert_eq!(MODEL.token_ids(&huge).len(), 256);
}

#[test]
fn what_means_the_same_is_nearer_than_what_does_not() {
    let vectors = MODEL
        .embed_blocking(&[
            "The program crashes when an empty file is opened",
            "Opening a file without content makes the app crash",
            "Please translate the settings page to French",
        ])
        .unwrap();
    let (same, other) = (cosine(&vectors[0], &vectors[1]), cosine(&vectors[0], &vectors[2]));
    assert!(same > 0.6 && other < 0.3, "{same} {other}");
    let calibration = MODEL.calibration();
    assert!(calibration.is_fitted());
    assert!(calibration.similarity(same) > calibration.similarity(other));
}

#[tokio::test]
async fn is_an_embedder_like_any_other() {
    let embedder: Box<dyn Embedder> = Box::new(MODEL.clone());
    assert_eq!((embedder.model_id(), embedder.dimension()), ("local:canonry-encoder-1", Some(384)));
    let texts = vec!["crash on start".to_owned()];
    let query = embedder.embed(&texts, InputType::Query).await.unwrap();
    assert_eq!(query, embedder.embed(&texts, InputType::Document).await.unwrap());
    assert_eq!(query, MODEL.embed_blocking(&texts).unwrap());
    let with_tokens = embedder.embed_with_tokens(&texts, InputType::Document).await.unwrap();
    assert_eq!(with_tokens, MODEL.embed_with_tokens_blocking(&texts).unwrap());
}
