//! Tests of remote embedders with small scripted servers on loopback.
#![expect(clippy::unwrap_used, reason = "a test stops where something is not as it set it up")]

use std::sync::Arc;
use std::time::Duration;

use canonry_models::{
    ApiKey, Clock, EmbedError, Embedder, InputType, Provider, RemoteEmbedder, RemoteFailure, RemoteSettings,
};
use serde_json::{Value, json};

use crate::scripted_server::{KEY, Server, Step, Waits};

/// Starts a server, and returns settings that reach it.
async fn start(provider: Provider, script: impl IntoIterator<Item = Step>) -> (Arc<Server>, RemoteSettings) {
    let (server, address) = Server::start(script, good).await;
    let settings = RemoteSettings {
        base_url: format!("{address}/v1"),
        model: "m1".to_owned(),
        key: Some(ApiKey::new(KEY)),
        workers: 2,
        ..RemoteSettings::new(provider)
    };
    (server, settings)
}

/// Answers every text with a vector made from its length.
fn good(request: &Value) -> Value {
    let vector = |text: &Value| json!([text.as_str().unwrap().chars().count(), 1, 0]);
    match request["requests"].as_array() {
        Some(requests) => {
            let values = |one: &Value| json!({"values": vector(&one["content"]["parts"][0]["text"])});
            json!({"embeddings": requests.iter().map(values).collect::<Vec<_>>()})
        }
        None => {
            let texts = request["input"].as_array().unwrap().iter().enumerate().rev();
            let entry = |(index, text)| json!({"index": index, "embedding": vector(text), "object": "embedding"});
            json!({"object": "list", "data": texts.map(entry).collect::<Vec<_>>()})
        }
    }
}

fn texts(lengths: impl IntoIterator<Item = usize>) -> Vec<String> {
    lengths.into_iter().map(|length| "x".repeat(length)).collect()
}

fn expected(length: usize) -> Vec<f32> {
    let norm = ((length * length + 1) as f64).sqrt();
    vec![(length as f64 / norm) as f32, (1.0 / norm) as f32, 0.0]
}

fn close(left: &[Vec<f32>], right: &[Vec<f32>]) -> bool {
    left.len() == right.len()
        && left.concat().iter().zip(right.concat()).all(|(left, right)| (left - right).abs() < 1e-6)
}

/// The failure of one call with its index range, the number of requests, and the waits before it.
async fn fails(provider: Provider, script: Vec<Step>, texts: &[String]) -> (EmbedError, usize, Vec<Duration>) {
    let (server, settings) = start(provider, script).await;
    let waits = Arc::new(Waits::default());
    let embedder = RemoteEmbedder::with_clock(settings, Arc::clone(&waits) as Arc<dyn Clock>).unwrap();
    let error = embedder.embed(texts, InputType::Document).await.expect_err("the script fails");
    assert!(!format!("{error} {error:?}").contains("very-secret"));
    (error, server.count(), waits.waits.lock().unwrap().clone())
}

fn failure(error: &EmbedError) -> &RemoteFailure {
    match error {
        EmbedError::Remote { failure, .. } => failure,
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn texts_come_back_in_order_whatever_the_batches() {
    for provider in [Provider::OpenAi, Provider::Voyage, Provider::Gemini] {
        let (server, settings) = start(provider, []).await;
        let embedder = RemoteEmbedder::new(settings).unwrap();
        assert_eq!((embedder.dimension(), embedder.model_id()), (None, format!("{}:m1", provider.name()).as_str()));
        let lengths: Vec<usize> = (1..=250).collect();
        let vectors = embedder.embed(&texts(lengths.clone()), InputType::Query).await.unwrap();
        let wanted: Vec<_> = lengths.into_iter().map(expected).collect();
        assert!(close(&vectors, &wanted), "{provider:?}");
        assert_eq!((embedder.dimension(), server.count()), (Some(3), 3));
        assert!(!embedder.calibration().is_fitted());
    }
}

#[tokio::test]
async fn each_provider_gets_its_own_path_key_and_input_type() {
    let cases = [
        (Provider::OpenAi, "/v1/embeddings", "authorization", format!("Bearer {KEY}"), "/encoding_format", "float"),
        (Provider::Voyage, "/v1/embeddings", "authorization", format!("Bearer {KEY}"), "/input_type", "query"),
        (
            Provider::Gemini,
            "/v1/models/m1:batchEmbedContents",
            "x-goog-api-key",
            KEY.to_owned(),
            "/requests/0/taskType",
            "RETRIEVAL_QUERY",
        ),
    ];
    for (provider, path, header, key, pointer, value) in cases {
        let (server, settings) = start(provider, []).await;
        RemoteEmbedder::new(settings).unwrap().embed(&texts([3]), InputType::Query).await.unwrap();
        let requests = server.requests.lock().unwrap();
        let (asked, headers, body) = &requests[0];
        assert_eq!((asked.as_str(), headers[header].to_str().unwrap()), (path, key.as_str()));
        assert_eq!(body.pointer(pointer).unwrap(), value);
    }
}

#[tokio::test]
async fn blank_texts_are_not_sent_and_get_zeros() {
    let (server, settings) = start(Provider::OpenAi, []).await;
    let embedder = RemoteEmbedder::new(settings).unwrap();
    let blank = vec![String::new(), "\n\t\0".to_owned()];
    assert_eq!(embedder.embed(&blank, InputType::Document).await.unwrap(), vec![vec![0.0; 3]; 2]);
    let mixed = vec![" ".to_owned(), "xx".to_owned()];
    let vectors = embedder.embed(&mixed, InputType::Document).await.unwrap();
    assert!(close(&vectors, &[vec![0.0; 3], expected(2)]));
    let sent = server.requests.lock().unwrap().iter().map(|(_, _, body)| body["input"].clone()).collect::<Vec<_>>();
    assert_eq!(sent, [json!(["text"]), json!(["xx"])]);
}

#[tokio::test]
async fn server_errors_are_retried_and_then_told() {
    let script =
        (0..5).map(|_| Step::Answer(500, None, r#"{"error":{"message":"out of\norder"}}"#.to_owned())).collect();
    let (error, requests, waits) = fails(Provider::OpenAi, script, &texts([1, 2])).await;
    assert_eq!((requests, waits.len()), (5, 4));
    assert_eq!(error.to_string(), "embed texts 0 to 1 with openai: status 500 (out of order), asked 5 times");
    assert_eq!(error.texts(), Some(0..2));
}

#[tokio::test]
async fn a_refused_key_is_told_once_and_never_shown() {
    let said = format!(r#"{{"error":{{"message":"Incorrect API key provided: {KEY}."}}}}"#);
    let (error, requests, _) = fails(Provider::Gemini, vec![Step::Answer(401, None, said)], &texts([1])).await;
    assert_eq!(requests, 1);
    assert_eq!(
        error.to_string(),
        "embed text 0 with gemini: status 401 (Incorrect API key provided: [key].), asked once"
    );
}

#[tokio::test]
async fn a_text_the_model_refuses_is_found_among_its_neighbours() {
    // All four texts, then the first half (succeeds), the second half, then its first text.
    let refused = || Step::Answer(400, None, "too long".to_owned());
    let (error, requests, _) =
        fails(Provider::OpenAi, vec![refused(), Step::Good, refused(), refused()], &texts([1, 2, 3, 4])).await;
    assert_eq!((requests, error.texts()), (4, Some(2..3)));
}

#[tokio::test]
async fn answers_that_are_not_what_was_asked_for_are_refused_at_once() {
    let answer = |body: &str| vec![Step::Answer(200, None, body.to_owned())];
    let three = texts([1, 2, 3]);
    let two_of_three = r#"{"data":[{"index":0,"embedding":[1,2]},{"index":1,"embedding":[1,2]}]}"#;
    let (error, requests, _) = fails(Provider::OpenAi, answer(two_of_three), &three).await;
    assert_eq!((requests, failure(&error)), (1, &RemoteFailure::WrongCount { asked: 3, got: 2 }));

    let uneven = r#"{"embeddings":[{"values":[1,2]},{"values":[1,2,3]},{"values":[1,2]}]}"#;
    let (error, _, _) = fails(Provider::Gemini, answer(uneven), &three).await;
    assert_eq!(error.to_string(), "embed text 1 with gemini: a vector has 3 dimensions, the others have 2");

    let null =
        r#"{"data":[{"index":0,"embedding":[1,2]},{"index":2,"embedding":[1,null]},{"index":1,"embedding":[1,2]}]}"#;
    let (error, _, _) = fails(Provider::Voyage, answer(null), &three).await;
    assert_eq!(error.to_string(), "embed text 2 with voyage: component 1 of the vector is not a finite number");

    for body in [r#"{"data":[{"index":0,"embedding":[NaN]}]}"#, r#"{"data":[{"index":0,"embedd"#, "<html>", ""] {
        let (error, requests, _) = fails(Provider::OpenAi, answer(body), &texts([1])).await;
        assert!(matches!(failure(&error), RemoteFailure::Malformed(_)) && requests == 1, "{body}: {error}");
    }
}

#[tokio::test]
async fn the_dimension_may_not_change_between_calls() {
    let other = r#"{"data":[{"index":0,"embedding":[1,2,3,4]}]}"#;
    let (_server, settings) = start(Provider::OpenAi, [Step::Good, Step::Answer(200, None, other.to_owned())]).await;
    let embedder = RemoteEmbedder::new(settings).unwrap();
    embedder.embed(&texts([1]), InputType::Document).await.unwrap();
    let error = embedder.embed(&texts([1]), InputType::Document).await.expect_err("four are not three");
    assert_eq!(failure(&error), &RemoteFailure::WrongDimension { expected: 3, got: 4 });
}

#[tokio::test(start_paused = true)]
async fn silence_is_a_timeout_and_then_a_failure() {
    let (server, settings) = start(Provider::OpenAi, [Step::Hang, Step::Hang]).await;
    let settings = RemoteSettings { attempts: 2, timeout: Duration::from_secs(5), ..settings };
    let waits = Arc::new(Waits::default());
    let embedder = RemoteEmbedder::with_clock(settings, Arc::clone(&waits) as Arc<dyn Clock>).unwrap();
    let error = embedder.embed(&texts([1]), InputType::Document).await.expect_err("nobody answers");
    assert_eq!(error.to_string(), "embed text 0 with openai: no answer within 5 s, asked 2 times");
    assert!(server.count() <= 2);
    assert_eq!(waits.waits.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_closed_port_is_unreachable() {
    let port = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let base_url = format!("http://127.0.0.1:{port}/v1?key=s3cret");
    let settings = RemoteSettings { base_url, attempts: 2, ..RemoteSettings::new(Provider::OpenAi) };
    let embedder = RemoteEmbedder::with_clock(settings, Arc::new(Waits::default())).unwrap();
    let error = embedder.embed(&texts([1]), InputType::Document).await.expect_err("nobody is there");
    let url = format!("http://127.0.0.1:{port}/v1/embeddings");
    assert_eq!(failure(&error), &RemoteFailure::Unreachable { url, attempts: 2 });
}
