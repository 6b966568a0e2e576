//! A program as a chat model: it gets the prompt on its standard input and answers on its standard output.

use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use tokio::process::Command;

use crate::chat::chat_error::ChatError;
use crate::chat::chat_model::{ChatAnswer, ChatModel, ChatRequest};
use crate::program::{ProgramError, run_confined_program};
use crate::remote_service::quoted;

/// The maximum number of bytes that are read from a program.
const LARGEST_ANSWER: usize = 4 << 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandSettings {
    pub program: String,
    /// The arguments, passed without a shell.
    pub arguments: Vec<String>,
    pub timeout: Duration,
}

impl CommandSettings {
    /// Splits a line at its spaces; `None` if it is blank.
    pub fn from_line(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace().map(str::to_owned);
        let program = words.next()?;
        Some(Self { program, arguments: words.collect(), timeout: Duration::from_secs(180) })
    }
}

/// A program as a chat model, so that a subscription to a command-line tool can be used.
#[derive(Debug, Clone)]
pub struct CommandChat {
    settings: CommandSettings,
    model_id: String,
}

impl CommandChat {
    /// The program is started for each question, not here.
    pub fn new(settings: CommandSettings) -> Self {
        let words = std::iter::once(&settings.program).chain(&settings.arguments);
        let model_id = words.map(String::as_str).collect::<Vec<_>>().join(" ");
        Self { settings, model_id }
    }

    fn failed(&self, problem: String) -> ChatError {
        ChatError::Command { program: self.settings.program.clone(), problem }
    }

    async fn ask(&self, request: &ChatRequest) -> Result<ChatAnswer, ChatError> {
        let began = Instant::now();
        let text = self.run(&prompt(request)).await?;
        Ok(ChatAnswer { text, input_tokens: None, output_tokens: None, latency: began.elapsed() })
    }

    async fn run(&self, prompt: &str) -> Result<String, ChatError> {
        let mut command = Command::new(&self.settings.program);
        command.args(&self.settings.arguments);
        let time = self.settings.timeout;
        let ended = run_confined_program(&mut command, prompt.as_bytes(), time, LARGEST_ANSWER).await;
        let ended = ended.map_err(|error| {
            self.failed(match error {
                ProgramError::Absent(error) => format!("it does not start: {error}"),
                ProgramError::TooLong => format!("no answer within {} s", time.as_secs()),
                ProgramError::TooMuch => format!("its answer is larger than {LARGEST_ANSWER} bytes"),
                ProgramError::Pipe(error) => format!("its output cannot be read: {error}"),
            })
        })?;
        if !ended.status.success() {
            let said = quoted(&String::from_utf8_lossy(&ended.said));
            let said = if said.is_empty() { String::new() } else { format!(" ({said})") };
            return Err(self.failed(format!("it ended with {}{said}", ended.status)));
        }
        String::from_utf8(ended.out).map_err(|_| self.failed("the program's answer is not UTF-8".to_owned()))
    }
}

impl ChatModel for CommandChat {
    fn model_id(&self) -> &str {
        &self.model_id
    }

    fn complete<'a>(&'a self, request: &'a ChatRequest) -> BoxFuture<'a, Result<ChatAnswer, ChatError>> {
        Box::pin(self.ask(request))
    }
}

/// One text with all parts that other providers receive separately.
fn prompt(request: &ChatRequest) -> String {
    format!("{}\n\n{}\n", with_schema(request), request.question())
}

/// The instructions with the schema of the answer, for a model to which no interface passes a schema.
pub(super) fn with_schema(request: &ChatRequest) -> String {
    let schema = serde_json::to_string_pretty(&request.json_schema).unwrap_or_default();
    format!("{}\n\nThe schema of the answer:\n\n{schema}", request.system.trim_end())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::{CommandChat, CommandSettings};
    use crate::chat::chat_model::{ChatModel as _, ChatRequest};

    async fn answer_of(script: &str) -> Result<String, String> {
        let arguments = vec!["-c".to_owned(), script.to_owned()];
        let timeout = Duration::from_secs(60);
        let chat = CommandChat::new(CommandSettings { program: "sh".to_owned(), arguments, timeout });
        let request = ChatRequest {
            system: "You count.".to_owned(),
            preamble: String::new(),
            user: "How many?".to_owned(),
            schema_name: "count",
            json_schema: json!({"type": "object"}),
            max_tokens: 10,
        };
        chat.complete(&request).await.map(|answer| answer.text).map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn too_long_an_answer_ends_the_program_at_once() {
        let began = std::time::Instant::now();
        let answer = answer_of("head -c 5000000 /dev/zero; exec sleep 600").await;
        assert_eq!(answer, Err("ask the program sh: its answer is larger than 4194304 bytes".to_owned()));
        assert!(began.elapsed() < Duration::from_secs(50), "it waited for its standard error to end");
    }

    #[test]
    fn a_line_is_a_program_and_its_arguments() {
        let settings = CommandSettings::from_line("  ask --model  small ").expect("a program");
        assert_eq!(
            (settings.program.as_str(), settings.arguments.as_slice()),
            ("ask", &["--model".to_owned(), "small".to_owned()][..])
        );
        assert_eq!(CommandSettings::from_line(" "), None);
    }
}
