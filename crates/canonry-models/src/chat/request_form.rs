//! Which optional parts of a request a model accepts: guessed from its name, corrected by its refusals.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use crate::chat::remote_chat::ChatProvider;

/// Limits below this are no limits of a model's answers but numbers that happen to be in its words.
const LEAST_LIMIT: u32 = 256;

/// How the schema of the answer is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SchemaForm {
    /// The service enforces it.
    Enforced,
    /// The service enforces JSON; the schema is part of the instructions.
    AnyJson,
    /// The schema is part of the instructions.
    Described,
}

/// The name of the limit in OpenAI's interface: newer models reject the older name, and other servers know only that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LimitName {
    MaxTokens,
    MaxCompletionTokens,
}

impl LimitName {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::MaxTokens => "max_tokens",
            Self::MaxCompletionTokens => "max_completion_tokens",
        }
    }

    const fn other(self) -> Self {
        match self {
            Self::MaxTokens => Self::MaxCompletionTokens,
            Self::MaxCompletionTokens => Self::MaxTokens,
        }
    }
}

/// The form of the requests to one model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RequestForm {
    pub(super) has_temperature: bool,
    pub(super) limit_name: LimitName,
    has_other_limit_name: bool,
    /// The most tokens that the model writes, if it said so.
    pub(super) largest_limit: Option<u32>,
    pub(super) schema: SchemaForm,
    pub(super) is_thinking_set: bool,
    /// Whether Anthropic's models are forced to answer through the tool.
    pub(super) is_tool_forced: bool,
    pub(super) is_streamed: bool,
    /// Whether a stream is to report its tokens; OpenAI does so only on request.
    pub(super) has_stream_usage: bool,
    pub(super) is_cached: bool,
}

impl RequestForm {
    /// The form to begin with.
    pub(super) fn usual(model: &str, is_own_service: bool) -> Self {
        let limit_name = if is_own_service { LimitName::MaxCompletionTokens } else { LimitName::MaxTokens };
        Self {
            has_temperature: !is_reasoning(model),
            limit_name: if is_reasoning(model) { LimitName::MaxCompletionTokens } else { limit_name },
            has_other_limit_name: true,
            largest_limit: None,
            schema: SchemaForm::Enforced,
            is_thinking_set: true,
            is_tool_forced: true,
            is_streamed: true,
            has_stream_usage: true,
            is_cached: true,
        }
    }

    /// The form without the part that a refusal names; `None` if it names nothing that can be left out. Each step
    /// removes something for good, so that there are few.
    pub(super) fn after_refusal(&self, said: &str, sent_limit: u32) -> Option<Self> {
        let said = said.to_lowercase();
        let names = |words: &[&str]| words.iter().any(|word| said.contains(word));
        let mut form = self.clone();
        if names(&["max_tokens", "max_completion_tokens", "max_output_tokens", "maxoutputtokens"]) {
            if let Some(limit) = smaller_limit(&said, sent_limit) {
                form.largest_limit = Some(limit);
                return Some(form);
            }
            if form.has_other_limit_name && said.contains(form.limit_name.as_str()) {
                form.limit_name = form.limit_name.other();
                form.has_other_limit_name = false;
                return Some(form);
            }
        }
        if form.has_temperature && said.contains("temperature") {
            form.has_temperature = false;
        } else if form.has_stream_usage && names(&["stream_options", "include_usage"]) {
            form.has_stream_usage = false;
        } else if form.is_streamed && has_word(&said, &["stream", "streaming"]) {
            form.is_streamed = false;
        } else if form.is_cached && said.contains("cache_control") {
            form.is_cached = false;
        } else if form.is_thinking_set && names(&["reasoning_effort", "reasoning effort", "thinking", "budget_tokens"])
        {
            form.is_thinking_set = false;
        } else if form.is_tool_forced && said.contains("tool_choice") {
            form.is_tool_forced = false;
        } else if form.schema != SchemaForm::Described && names(&SCHEMA_WORDS) {
            form.schema = match form.schema {
                SchemaForm::Enforced => SchemaForm::AnyJson,
                SchemaForm::AnyJson | SchemaForm::Described => SchemaForm::Described,
            };
        } else {
            return None;
        }
        Some(form)
    }
}

/// Whether a text contains one of these words, and not as part of another one such as `upstream`.
fn has_word(said: &str, words: &[&str]) -> bool {
    said.split(|character: char| !character.is_alphanumeric() && character != '_').any(|word| words.contains(&word))
}

/// What services call the forms of an answer.
const SCHEMA_WORDS: [&str; 9] = [
    "response_format",
    "json_schema",
    "json schema",
    "json_object",
    "json mode",
    "structured output",
    "responsejsonschema",
    "response_json_schema",
    "responsemimetype",
];

/// A limit that the service names as its own: the largest number below the one that was sent.
fn smaller_limit(said: &str, sent: u32) -> Option<u32> {
    let is_about_size =
        ["at most", "maximum", "too large", "exceed", "less than", ">"].iter().any(|word| said.contains(word));
    let numbers = said.split(|character: char| !character.is_ascii_digit()).filter_map(|number| number.parse().ok());
    numbers.filter(|number| is_about_size && (LEAST_LIMIT..sent).contains(number)).max()
}

/// Models of OpenAI that always reason: they accept no temperature and only the newer name of the limit.
fn is_reasoning(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    let is_o_series = name.strip_prefix('o').is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()));
    is_o_series || name.starts_with("gpt-5")
}

/// One model at one service, with or without a wish for thinking.
type ModelKey = (ChatProvider, String, String, bool);

/// What models were found to accept, for the rest of the process.
static LEARNT: LazyLock<Mutex<HashMap<ModelKey, RequestForm>>> = LazyLock::new(Mutex::default);

pub(super) fn learnt_form(key: &ModelKey) -> Option<RequestForm> {
    LEARNT.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
}

/// Remembers a form that led to an answer.
pub(super) fn remember_form(key: ModelKey, form: RequestForm) {
    LEARNT.lock().unwrap_or_else(PoisonError::into_inner).insert(key, form);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert, proptest};

    use super::{LimitName, RequestForm, SchemaForm};

    /// Refusals as services word them, and what is different afterwards.
    #[test]
    fn a_refusal_removes_what_it_names() {
        let usual = RequestForm::usual("m1", false);
        let renamed = RequestForm { limit_name: LimitName::MaxCompletionTokens, has_other_limit_name: false, ..usual };
        for (said, expected) in [
            (
                "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
                renamed,
            ),
            (
                "max_tokens is too large: 8192. This model supports at most 4096 completion tokens.",
                RequestForm { largest_limit: Some(4_096), ..usual.clone() },
            ),
            (
                "max_tokens: 8192 > 4096, which is the maximum allowed number of output tokens for claude-3-haiku",
                RequestForm { largest_limit: Some(4_096), ..usual.clone() },
            ),
            (
                "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) value is supported.",
                RequestForm { has_temperature: false, ..usual.clone() },
            ),
            (
                "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model.",
                RequestForm { schema: SchemaForm::AnyJson, ..usual.clone() },
            ),
            (
                r#"[{"type":"extra_forbidden","loc":["body","stream_options"],"msg":"Extra inputs are not permitted"}]"#,
                RequestForm { has_stream_usage: false, ..usual.clone() },
            ),
            ("stream is not supported", RequestForm { is_streamed: false, ..usual.clone() }),
            (
                "Unrecognized request argument supplied: reasoning_effort",
                RequestForm { is_thinking_set: false, ..usual.clone() },
            ),
            (
                "messages.0.content.0.cache_control: Extra inputs are not permitted",
                RequestForm { is_cached: false, ..usual },
            ),
        ] {
            assert_eq!(usual.after_refusal(said, 8_192), Some(expected), "{said}");
        }
        for said in [
            "Your credit balance is too low",
            "upstream request failed",
            "This model's maximum context length is 8192 tokens.",
            "",
        ] {
            assert_eq!(usual.after_refusal(said, 8_192), None, "{said}");
        }
    }

    #[test]
    fn models_that_always_reason_are_known_by_name() {
        for (model, has_temperature, limit) in [
            ("o3-mini", false, LimitName::MaxCompletionTokens),
            ("openai/gpt-5-nano", false, LimitName::MaxCompletionTokens),
            ("gpt-4.1-mini", true, LimitName::MaxTokens),
            ("olmo-2", true, LimitName::MaxTokens),
        ] {
            let form = RequestForm::usual(model, false);
            assert_eq!((form.has_temperature, form.limit_name), (has_temperature, limit), "{model}");
        }
        assert_eq!(RequestForm::usual("gpt-4.1-mini", true).limit_name, LimitName::MaxCompletionTokens);
    }

    proptest! {
        /// Whatever a service says, the steps end.
        #[test]
        fn learning_ends(said in any::<String>(), sent in 1_u32..100_000) {
            let everything = "max_tokens max_completion_tokens temperature stream_options cache_control thinking tool_choice json_schema";
            for said in [said.clone(), everything.to_owned(), format!("{everything} {said}"), "stream".to_owned()] {
                let (mut form, mut steps) = (RequestForm::usual("m", false), 0);
                let mut limit = sent;
                while let Some(next) = form.after_refusal(&said, limit) {
                    limit = next.largest_limit.unwrap_or(limit);
                    (form, steps) = (next, steps + 1);
                    prop_assert!(steps < 40, "{}", said);
                }
            }
        }
    }
}
