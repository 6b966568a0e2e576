//! Chat models against small scripted servers on loopback, and programs as chat models.
#![expect(clippy::unwrap_used, reason = "a test stops where something is not as it set it up")]

use std::sync::Arc;
use std::time::Duration;

use canonry_models::chat::{
    ChatError, ChatModel, ChatProvider, ChatRequest, ChatSettings, CommandChat, CommandSettings, RemoteChat,
};
use canonry_models::{ApiKey, Clock, RemoteFailure};
use serde_json::{Value, json};

use crate::scripted_server::{KEY, Server, Step, Waits};

const ALL: [ChatProvider; 3] = [ChatProvider::OpenAi, ChatProvider::Anthropic, ChatProvider::Gemini];

fn answers(body: &Value) -> Step {
    Step::Answer(200, None, body.to_string())
}

async fn start(provider: ChatProvider, script: impl IntoIterator<Item = Step>) -> (Arc<Server>, ChatSettings) {
    let (server, address) = Server::start(script, |_| panic!("the script has a step for each request")).await;
    let (base_url, model, key) = (format!("{address}/base/"), "m1".to_owned(), Some(ApiKey::new(KEY)));
    (server, ChatSettings { base_url, model, key, ..ChatSettings::new(provider) })
}

/// A server that decides by the request.
async fn start_with(
    provider: ChatProvider,
    decide: impl Fn(&Value) -> Step + Send + Sync + 'static,
) -> (Arc<Server>, ChatSettings) {
    let (server, address) = Server::start_deciding(decide).await;
    let (base_url, model, key) = (format!("{address}/base/"), "m1".to_owned(), Some(ApiKey::new(KEY)));
    (server, ChatSettings { base_url, model, key, ..ChatSettings::new(provider) })
}

fn request() -> ChatRequest {
    ChatRequest {
        system: "You count.".to_owned(),
        preamble: String::new(),
        user: "How many?".to_owned(),
        schema_name: "count",
        json_schema: json!({"type": "object", "properties": {"n": {"type": "number"}}, "required": ["n"], "additionalProperties": false}),
        max_tokens: 77,
    }
}

fn good(provider: ChatProvider) -> Value {
    match provider {
        ChatProvider::OpenAi => json!({
            "choices": [{"message": {"role": "assistant", "content": "{\"n\":3}", "refusal": null}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 11, "completion_tokens": 5},
        }),
        ChatProvider::Anthropic => json!({
            "content": [{"type": "text", "text": "Let me see."}, {"type": "tool_use", "id": "t", "name": "count", "input": {"n": 3}}],
            "stop_reason": "tool_use", "usage": {"input_tokens": 11, "output_tokens": 5},
        }),
        ChatProvider::Gemini => json!({
            "candidates": [{"content": {"parts": [{"text": "hm", "thought": true}, {"text": "{\"n\""}, {"text": ":3}"}]}, "finishReason": "STOP"}],
            "usageMetadata": {"promptTokenCount": 11, "candidatesTokenCount": 2, "thoughtsTokenCount": 3},
        }),
    }
}

async fn fails(provider: ChatProvider, script: Vec<Step>) -> (ChatError, usize, Vec<Duration>) {
    let (server, settings) = start(provider, script).await;
    let waits = Arc::new(Waits::default());
    let model = RemoteChat::with_clock(settings, Arc::clone(&waits) as Arc<dyn Clock>).unwrap();
    let error = model.complete(&request()).await.expect_err("the script fails");
    assert!(!format!("{error} {error:?} {model:?}").contains("very-secret"));
    let waits = waits.waits.lock().unwrap().clone();
    (error, server.count(), waits)
}

#[tokio::test]
async fn every_provider_answers_in_one_form() {
    for provider in ALL {
        let (_server, settings) = start(provider, [answers(&good(provider))]).await;
        let model: Box<dyn ChatModel> = Box::new(RemoteChat::new(settings).unwrap());
        let answer = model.complete(&request()).await.unwrap();
        assert_eq!(answer.text, "{\"n\":3}", "{provider:?}");
        assert_eq!((answer.input_tokens, answer.output_tokens), (Some(11), Some(5)), "{provider:?}");
        assert_eq!(model.model_id(), "m1");
    }
}

#[tokio::test]
async fn every_provider_is_asked_in_its_own_form() {
    let mut asked = Vec::new();
    for provider in ALL {
        let (server, settings) = start(provider, [answers(&good(provider))]).await;
        RemoteChat::new(settings).unwrap().complete(&request()).await.unwrap();
        let (path, headers, body) = server.requests.lock().unwrap().pop().unwrap();
        let names = ["authorization", "x-api-key", "x-goog-api-key", "anthropic-version"];
        let headers: Vec<String> =
            names.iter().filter_map(|name| Some(format!("{name}: {}", headers.get(*name)?.to_str().ok()?))).collect();
        asked.push(json!({"path": path, "headers": headers, "body": body}));
    }
    // Whether objects keep their order depends on a feature that other crates of the build enable.
    insta::with_settings!({sort_maps => true}, { insta::assert_json_snapshot!("asked", asked) });
}

#[tokio::test]
async fn waits_as_long_as_it_is_told_and_counts_the_waiting() {
    let refusal = |status, retry_after| Step::Answer(status, retry_after, "slow down".to_owned());
    for provider in ALL {
        let script = [refusal(429, Some("7")), refusal(529, Some("Thu, 01 Jan 2026 00:00:09 GMT")), refusal(408, None)];
        let (server, settings) = start(provider, script.into_iter().chain([answers(&good(provider))])).await;
        let waits = Arc::new(Waits::default());
        let model = RemoteChat::with_clock(settings, Arc::clone(&waits) as Arc<dyn Clock>).unwrap();
        let answer = model.complete(&request()).await.unwrap();
        let waits = waits.waits.lock().unwrap();
        assert_eq!((server.count(), &waits[..2]), (4, &[Duration::from_secs(7), Duration::from_secs(2)][..]));
        assert!((Duration::from_secs(2)..=Duration::from_secs(4)).contains(&waits[2]), "{waits:?}");
        assert_eq!(answer.latency.as_secs(), waits.iter().sum::<Duration>().as_secs());
    }
}

#[tokio::test]
async fn what_would_fail_again_is_not_sent_again() {
    for (status, hopeless) in [(400, false), (401, true), (403, false), (404, true), (422, false), (301, false)] {
        let said = format!("{{\"error\":{{\"message\":\"the key {KEY}\\nis wrong\"}}}}");
        let (error, requests, waits) =
            fails(ChatProvider::Anthropic, vec![Step::Answer(status, Some("1"), said)]).await;
        assert_eq!((requests, waits.len(), error.is_hopeless()), (1, 0, hopeless), "{status}");
        assert_eq!(error.to_string(), format!("ask anthropic: status {status} (the key [key] is wrong), asked once"));
    }
    let (error, requests, _) = fails(ChatProvider::Gemini, vec![Step::Answer(429, Some("3600"), String::new())]).await;
    assert_eq!((requests, error.is_hopeless()), (1, false), "nobody waits an hour");
}

#[tokio::test]
async fn server_errors_are_retried_and_then_told() {
    let script = (0..5).map(|_| Step::Answer(503, None, "<h1>Busy</h1>".to_owned())).collect();
    let (error, requests, waits) = fails(ChatProvider::OpenAi, script).await;
    assert_eq!((requests, waits.len()), (5, 4));
    assert_eq!(error.to_string(), "ask openai: status 503 (<h1>Busy</h1>), asked 5 times");
}

#[tokio::test]
async fn refusals_and_cut_answers_are_told_as_such() {
    let with = |provider, pointer: &str, value: Value| {
        let mut body = good(provider);
        *body.pointer_mut(pointer).unwrap() = value;
        vec![answers(&body)]
    };
    for (provider, pointer, value, expected) in [
        (ChatProvider::OpenAi, "/choices/0/message/refusal", json!("I will not"), "it refused (I will not)"),
        (ChatProvider::OpenAi, "/choices/0/finish_reason", json!("content_filter"), "it refused (content_filter)"),
        (
            ChatProvider::OpenAi,
            "/choices/0/finish_reason",
            json!("length"),
            "the answer ended at its limit of 77 tokens",
        ),
        (ChatProvider::Anthropic, "/stop_reason", json!("refusal"), "it refused (Let me see.)"),
        (ChatProvider::Anthropic, "/stop_reason", json!("max_tokens"), "the answer ended at its limit of 77 tokens"),
        (ChatProvider::Gemini, "/candidates/0/finishReason", json!("SAFETY"), "it refused (SAFETY)"),
        (
            ChatProvider::Gemini,
            "/candidates/0/finishReason",
            json!("MAX_TOKENS"),
            "the answer ended at its limit of 77 tokens",
        ),
    ] {
        let (error, requests, _) = fails(provider, with(provider, pointer, value)).await;
        assert_eq!((requests, error.to_string()), (1, format!("ask {}: {expected}", provider.name())));
        // The answer is paid for all the same.
        let (ChatError::Refused { input_tokens, output_tokens, .. }
        | ChatError::CutOff { input_tokens, output_tokens, .. }) = error
        else {
            panic!("{error}")
        };
        assert_eq!((input_tokens, output_tokens), (Some(11), Some(5)), "{provider:?}");
    }
    let blocked = json!({"promptFeedback": {"blockReason": "OTHER"}});
    let (error, _, _) = fails(ChatProvider::Gemini, vec![answers(&blocked)]).await;
    assert_eq!(error.to_string(), "ask gemini: it refused (OTHER)");
}

#[tokio::test]
async fn answers_in_no_known_form_are_refused_at_once() {
    for provider in ALL {
        for body in ["", "<html>", "[]", "{\"choices\":7,\"content\":7,\"candidates\":7}"] {
            let (error, requests, _) = fails(provider, vec![Step::Answer(200, None, body.to_owned())]).await;
            let malformed = matches!(&error, ChatError::Remote { failure: RemoteFailure::Malformed(_), .. });
            assert!(malformed && requests == 1, "{body}: {error}");
        }
    }
    let large = Step::Answer(200, None, " ".repeat(5 << 20));
    let (error, _, _) = fails(ChatProvider::OpenAi, vec![large]).await;
    assert!(matches!(&error, ChatError::Remote { failure: RemoteFailure::TooLarge { .. }, .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn silence_is_a_timeout_and_then_a_failure() {
    let (server, settings) = start(ChatProvider::OpenAi, [Step::Hang, Step::Hang]).await;
    let settings = ChatSettings { attempts: 2, timeout: Duration::from_secs(5), ..settings };
    let waits = Arc::new(Waits::default());
    let model = RemoteChat::with_clock(settings, Arc::clone(&waits) as Arc<dyn Clock>).unwrap();
    let error = model.complete(&request()).await.expect_err("nobody answers");
    assert_eq!(error.to_string(), "ask openai: no answer within 5 s, asked 2 times");
    assert!(server.count() <= 2);
    assert_eq!(waits.waits.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_closed_port_is_told_at_once() {
    let port = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let base_url = format!("http://127.0.0.1:{port}?key=s3cret");
    let model = RemoteChat::new(ChatSettings { base_url, ..ChatSettings::new(ChatProvider::Anthropic) }).unwrap();
    let error = model.complete(&request()).await.expect_err("nobody is there").to_string();
    let told = format!("the connection to http://127.0.0.1:{port}/v1/messages failed, tried once");
    assert_eq!(error, format!("ask anthropic: {told}"));
}

#[test]
fn settings_that_cannot_work_are_refused_before_anything_is_sent() {
    let message = |settings| RemoteChat::new(settings).expect_err("refused").to_string();
    assert_eq!(message(ChatSettings::new(ChatProvider::Gemini)), "set up the gemini model: no key in GEMINI_API_KEY");
    let at = |base_url: &str| ChatSettings { base_url: base_url.to_owned(), ..ChatSettings::new(ChatProvider::OpenAi) };
    assert!(message(at("file:///etc")).contains("neither http nor https"));
    assert!(message(at("nowhere")).contains("the base URL"));
    let told = message(at("http://me:hunter2@127.0.0.1/v1"));
    assert!(told.contains("belongs in OPENAI_API_KEY") && !told.contains("hunter2"), "{told}");
    let unnamed = ChatSettings { model: " ".to_owned(), ..at("http://127.0.0.1/v1") };
    assert_eq!(message(unnamed), "set up the openai model: the model has no name");
    let broken = ChatSettings { key: Some(ApiKey::new("a\nb")), ..ChatSettings::new(ChatProvider::OpenAi) };
    assert_eq!(message(broken), "set up the openai model: the key contains characters that are not allowed in a key");
}

/// A whole answer as the events of its stream.
fn streamed(provider: ChatProvider) -> Vec<Value> {
    match provider {
        ChatProvider::OpenAi => vec![
            json!({"choices": [{"delta": {"role": "assistant", "content": ""}, "finish_reason": null}], "usage": null}),
            json!({"choices": [{"delta": {"content": "{\"n\""}, "finish_reason": null}]}),
            json!({"choices": [{"delta": {"content": ":3}"}, "finish_reason": null}]}),
            json!({"choices": [{"delta": {}, "finish_reason": "stop"}]}),
            json!({"choices": [], "usage": {"prompt_tokens": 11, "completion_tokens": 5}}),
        ],
        ChatProvider::Anthropic => vec![
            json!({"type": "message_start", "message": {"usage": {"input_tokens": 4, "cache_read_input_tokens": 7, "output_tokens": 1}}}),
            json!({"type": "ping"}),
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Let me see."}}),
            json!({"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": "{\"n\""}}),
            json!({"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": ":3}"}}),
            json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 5}}),
            json!({"type": "message_stop"}),
        ],
        ChatProvider::Gemini => vec![
            json!({"candidates": [{"content": {"parts": [{"text": "hm", "thought": true}, {"text": "{\"n\""}]}}]}),
            json!({"candidates": [{"content": {"parts": [{"text": ":3}"}]}, "finishReason": "STOP"}],
                "usageMetadata": {"promptTokenCount": 11, "candidatesTokenCount": 2, "thoughtsTokenCount": 3}}),
        ],
    }
}

fn in_parts(events: &[Value]) -> Vec<String> {
    events.iter().map(|event| format!("event: x\ndata: {event}\n\n")).collect()
}

#[tokio::test(start_paused = true)]
async fn a_slow_stream_is_read_to_its_end() {
    for provider in ALL {
        let parts = in_parts(&streamed(provider));
        let (_server, settings) = start(provider, [Step::Stream(Duration::from_secs(4), parts.clone())]).await;
        // All parts together take longer than the limit, which is about silence.
        let settings = ChatSettings { timeout: Duration::from_secs(5), attempts: 1, ..settings };
        let answer = RemoteChat::new(settings).unwrap().complete(&request()).await.unwrap();
        assert_eq!(answer.text, "{\"n\":3}", "{provider:?}");
        assert_eq!((answer.input_tokens, answer.output_tokens), (Some(11), Some(5)), "{provider:?}");
        // Silence for longer than that is none.
        let (_server, settings) = start(provider, [Step::Stream(Duration::from_secs(6), parts)]).await;
        let settings = ChatSettings { timeout: Duration::from_secs(5), attempts: 1, ..settings };
        let error = RemoteChat::new(settings).unwrap().complete(&request()).await.expect_err("it is silent");
        assert_eq!(error.to_string(), format!("ask {}: no answer within 5 s, asked once", provider.name()));
    }
}

#[tokio::test]
async fn half_a_stream_is_no_answer_and_is_asked_for_again() {
    for provider in ALL {
        let events = streamed(provider);
        let half = in_parts(&events[..1]);
        let failed = in_parts(&[json!({"type": "error", "error": {"message": format!("Overloaded, {KEY}")}})]);
        let script = [half, failed, in_parts(&events)].map(|parts| Step::Stream(Duration::ZERO, parts));
        let (server, settings) = start(provider, script).await;
        let waits = Arc::new(Waits::default());
        let model = RemoteChat::with_clock(settings, Arc::clone(&waits) as Arc<dyn Clock>).unwrap();
        assert_eq!(model.complete(&request()).await.unwrap().text, "{\"n\":3}", "{provider:?}");
        assert_eq!((server.count(), waits.waits.lock().unwrap().len()), (3, 2));
    }
    let failed = in_parts(&[json!({"error": {"message": format!("Overloaded, {KEY}")}})]);
    let script = (0..5).map(|_| Step::Stream(Duration::ZERO, failed.clone())).collect();
    let (error, requests, _) = fails(ChatProvider::OpenAi, script).await;
    assert_eq!((requests, error.to_string().as_str()), (5, "ask openai: the answer broke off (Overloaded, [key])"));
}

/// Refuses what the parameter `refused` names, as such services do, until it is gone.
fn refuses(provider: ChatProvider, refused: &'static [(&'static str, &'static str)]) -> impl Fn(&Value) -> Step {
    move |body| {
        let refusal = refused.iter().find(|(place, _)| body.pointer(place).is_some());
        refusal.map_or_else(
            || answers(&good(provider)),
            |(_, said)| Step::Answer(400, None, json!({"error": {"message": said}}).to_string()),
        )
    }
}

#[tokio::test]
async fn what_a_model_refuses_is_left_out_from_then_on() {
    let openai: &[(&str, &str)] = &[
        (
            "/max_tokens",
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        ),
        ("/temperature", "Unsupported value: 'temperature' does not support 0 with this model."),
        (
            "/response_format/json_schema",
            "Invalid parameter: 'response_format' of type 'json_schema' is not supported.",
        ),
        ("/stream_options", "Unknown parameter: 'stream_options'."),
        // The sixth form, the last one that is tried, is remembered too.
        ("/stream", "Streaming is not supported."),
    ];
    let anthropic: &[(&str, &str)] = &[
        ("/temperature", "temperature: this model does not take it"),
        ("/system/0/cache_control", "system.0.cache_control: Extra inputs are not permitted"),
    ];
    let gemini: &[(&str, &str)] = &[
        ("/generationConfig/responseJsonSchema", "Unknown name \"responseJsonSchema\" at 'generation_config'"),
        ("/generationConfig/responseMimeType", "JSON mode is not enabled for this model"),
    ];
    for (provider, refused) in
        [(ChatProvider::OpenAi, openai), (ChatProvider::Anthropic, anthropic), (ChatProvider::Gemini, gemini)]
    {
        let (server, settings) = start_with(provider, refuses(provider, refused)).await;
        let model = RemoteChat::new(settings.clone()).unwrap();
        assert_eq!(model.complete(&request()).await.unwrap().text, "{\"n\":3}", "{provider:?}");
        assert_eq!(server.count(), refused.len() + 1, "{provider:?}");
        let accepted = server.requests.lock().unwrap().last().unwrap().2.clone();
        // Another client of the same model knows it.
        RemoteChat::new(settings).unwrap().complete(&request()).await.unwrap();
        assert_eq!(server.count(), refused.len() + 2, "{provider:?}");
        assert_eq!(server.requests.lock().unwrap().last().unwrap().2, accepted);
        if provider == ChatProvider::OpenAi {
            assert_eq!(
                (&accepted["max_completion_tokens"], &accepted["response_format"]["type"]),
                (&json!(77), &json!("json_object"))
            );
        }
        if provider != ChatProvider::Anthropic {
            // A schema that the service does not enforce is part of the instructions.
            assert!(accepted.to_string().contains("The schema of the answer:"), "{accepted}");
        }
    }
}

#[tokio::test]
async fn a_refusal_that_teaches_nothing_ends_with_its_words() {
    let (error, requests, _) = fails(
        ChatProvider::OpenAi,
        vec![Step::Answer(400, None, r#"{"error":{"message":"no such horse"}}"#.to_owned())],
    )
    .await;
    assert_eq!((requests, error.to_string().as_str()), (1, "ask openai: status 400 (no such horse), asked once"));
    // A service that refuses everything is asked a limited number of times.
    let everything =
        "max_tokens, max_completion_tokens, temperature, stream_options, json_schema, thinking, tool_choice";
    let script = (0..9).map(|_| Step::Answer(400, None, everything.to_owned())).collect();
    let (error, requests, _) = fails(ChatProvider::OpenAi, script).await;
    assert_eq!((requests, error.to_string()), (6, format!("ask openai: status 400 ({everything}), asked once")));
}

#[tokio::test]
async fn what_questions_have_in_common_comes_first() {
    for provider in ALL {
        let (server, settings) = start(provider, [answers(&good(provider))]).await;
        let asked = ChatRequest { preamble: "We count sheep. ".to_owned(), ..request() };
        RemoteChat::new(settings).unwrap().complete(&asked).await.unwrap();
        let body = server.requests.lock().unwrap().pop().unwrap().2;
        match provider {
            ChatProvider::OpenAi => assert_eq!(body["messages"][1]["content"], "We count sheep. How many?"),
            ChatProvider::Gemini => assert_eq!(body["contents"][0]["parts"][0]["text"], "We count sheep. How many?"),
            ChatProvider::Anthropic => {
                let mark = json!({"type": "ephemeral"});
                assert_eq!(
                    body["messages"][0]["content"],
                    json!([{"type": "text", "text": "We count sheep. ", "cache_control": mark}, {"type": "text", "text": "How many?"}])
                );
                assert_eq!(body["system"], json!([{"type": "text", "text": "You count."}]));
            }
        }
    }
}

fn program(program: &str, arguments: &[&str]) -> CommandChat {
    let arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect();
    CommandChat::new(CommandSettings { program: program.to_owned(), arguments, timeout: Duration::from_secs(20) })
}

#[tokio::test]
async fn a_program_gets_the_whole_prompt_and_its_output_is_the_answer() {
    let echo = program("cat", &[]);
    let answer = echo.complete(&request()).await.unwrap();
    assert!(answer.text.starts_with("You count.\n\nThe schema of the answer:\n\n{"), "{}", answer.text);
    assert!(answer.text.contains("\"additionalProperties\": false") && answer.text.ends_with("How many?\n"));
    assert_eq!((answer.input_tokens, echo.model_id()), (None, "cat"));
    // No shell interprets the arguments, and input larger than a pipe buffer gets through.
    let long = ChatRequest { user: "x".repeat(1 << 20), ..request() };
    let counted = program("wc", &["-c", "--", "-"]).complete(&long).await.unwrap();
    assert!(counted.text.trim_start().starts_with("1048"), "{}", counted.text);
    let literal = program("echo", &["$HOME; `id`"]).complete(&long).await.unwrap();
    assert_eq!(literal.text, "$HOME; `id`\n");
}

#[tokio::test]
async fn a_program_that_fails_says_why() {
    let failure = |arguments: &'static [&'static str]| async move {
        program(arguments[0], &arguments[1..]).complete(&request()).await.expect_err("it fails").to_string()
    };
    assert!(failure(&["/no/such/program"]).await.starts_with("ask the program /no/such/program: it does not start: "));
    assert_eq!(
        failure(&["sh", "-c", "echo not logged in >&2; exit 3"]).await,
        "ask the program sh: it ended with exit status: 3 (not logged in)"
    );
    assert_eq!(failure(&["printf", "\\377"]).await, "ask the program printf: the program's answer is not UTF-8");
    assert!(
        failure(&["head", "-c", "5000000", "/dev/zero"]).await.ends_with("its answer is larger than 4194304 bytes")
    );
}

#[tokio::test]
async fn a_program_that_does_not_end_is_ended() {
    let settings = CommandSettings {
        program: "sleep".to_owned(),
        arguments: vec!["600".to_owned()],
        timeout: Duration::from_millis(50),
    };
    let error = CommandChat::new(settings).complete(&request()).await.expect_err("it never ends");
    assert_eq!(error.to_string(), "ask the program sleep: no answer within 0 s");
}

#[tokio::test]
async fn thinking_is_asked_for_in_each_providers_words() {
    for (provider, place, wanted) in [
        (ChatProvider::OpenAi, "/reasoning_effort", json!("high")),
        (ChatProvider::Anthropic, "/thinking", json!({"type": "enabled", "budget_tokens": 16_384})),
        (ChatProvider::Gemini, "/generationConfig/thinkingConfig", json!({"thinkingBudget": 16_384})),
    ] {
        let (server, settings) = start(provider, [answers(&json!({}))]).await;
        let settings = ChatSettings { thinking: Some("high".parse().unwrap()), ..settings };
        let model = RemoteChat::new(settings).unwrap();
        assert_eq!(model.model_id(), "m1 thinking high");
        // The content of the answer does not matter here.
        let _ = model.complete(&request()).await;
        let requests = server.requests.lock().unwrap();
        assert_eq!(requests[0].2.pointer(place), Some(&wanted), "{provider:?}");
    }
    assert!("much".parse::<canonry_models::chat::Thinking>().is_err());
}
