//! A program as a chat model: it gets the prompt on its standard input and answers on its standard output.

use std::process::Stdio;
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;

use crate::chat::chat_error::{ChatError, quoted};
use crate::chat::chat_model::{ChatAnswer, ChatModel, ChatRequest};

/// What a program may write; the rest is not read.
const LARGEST_ANSWER: u64 = 4 << 20;

/// The variables with this program's own secrets. The other program is given text from strangers and may be talked into
/// telling what it sees.
const WITHHELD: &[&str] = &[
    "GITHUB_TOKEN",
    "CANONRY_DATABASE_URL",
    "CANONRY_WEBHOOK_SECRET",
    "CANONRY_APP_PRIVATE_KEY",
    "CANONRY_APP_PRIVATE_KEY_PATH",
];

/// Which program is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandSettings {
    /// The program.
    pub program: String,
    /// Its arguments, handed over as they are: no shell reads them.
    pub arguments: Vec<String>,
    /// The time allowed for one answer.
    pub timeout: Duration,
}

impl CommandSettings {
    /// Takes a line apart at its spaces; `None` when there is no word in it.
    pub fn from_line(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace().map(str::to_owned);
        let program = words.next()?;
        Some(Self { program, arguments: words.collect(), timeout: Duration::from_secs(180) })
    }
}

/// A chat model that is a program, so that a subscription to a command-line tool can serve.
#[derive(Debug, Clone)]
pub struct CommandChat {
    settings: CommandSettings,
    model_id: String,
}

impl CommandChat {
    /// Takes the settings; the program is started for each question.
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
        let answer = tokio::time::timeout(self.settings.timeout, self.run(&prompt(request))).await;
        let text =
            answer.map_err(|_| self.failed(format!("no answer within {} s", self.settings.timeout.as_secs())))??;
        Ok(ChatAnswer { text, input_tokens: None, output_tokens: None, latency: began.elapsed() })
    }

    async fn run(&self, prompt: &str) -> Result<String, ChatError> {
        let mut command = Command::new(&self.settings.program);
        command.args(&self.settings.arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        WITHHELD.iter().for_each(|variable| {
            command.env_remove(variable);
        });
        // A program that is given up on must not go on behind our back.
        let mut child =
            command.kill_on_drop(true).spawn().map_err(|error| self.failed(format!("it does not start: {error}")))?;
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let write = async {
            if let Some(mut stdin) = stdin {
                // A program that does not read to the end may still answer; its exit status decides.
                let _ = stdin.write_all(prompt.as_bytes()).await;
            }
        };
        // All three at once: a full pipe on one side would stop the other.
        let ((), answer, said) = tokio::join!(write, read_up_to(stdout), read_up_to(stderr));
        let broken = |error: std::io::Error| self.failed(format!("its output cannot be read: {error}"));
        let (answer, said) = (answer.map_err(broken)?, said.map_err(broken)?);
        if answer.len() as u64 > LARGEST_ANSWER {
            return Err(self.failed(format!("its answer is larger than {LARGEST_ANSWER} bytes")));
        }
        let status = child.wait().await.map_err(broken)?;
        if !status.success() {
            let said = quoted(&String::from_utf8_lossy(&said));
            let said = if said.is_empty() { String::new() } else { format!(" ({said})") };
            return Err(self.failed(format!("it ended with {status}{said}")));
        }
        String::from_utf8(answer).map_err(|_| self.failed("its answer is not UTF-8".to_owned()))
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

/// One text with everything that other providers take apart.
fn prompt(request: &ChatRequest) -> String {
    let schema = serde_json::to_string_pretty(&request.json_schema).unwrap_or_default();
    format!("{}\n\nThe schema of the answer:\n\n{schema}\n\n{}\n", request.system.trim_end(), request.user)
}

/// One byte more than an answer may have tells that it has too many.
async fn read_up_to(stream: Option<impl AsyncRead + Unpin>) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(stream) = stream {
        stream.take(LARGEST_ANSWER + 1).read_to_end(&mut bytes).await?;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::CommandSettings;

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
