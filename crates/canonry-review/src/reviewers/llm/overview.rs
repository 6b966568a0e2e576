//! Reads the outline of a whole change before its parts: what it is for, and what to look at in each file.

use canonry_domain::{Fence, counted};
use canonry_models::chat::ChatRequest;
use serde::Deserialize;
use serde_json::{Value, json};

use super::answer::read_object;
use super::context_plan::{ContextRank, ContextSection, EntryForm, LeftOut, plan_context};
use super::model_session::{ModelSession, QuestionPurpose};
use super::prompt::{PromptContext, description_sections};
use super::safe_text::{first_chars, harmless};
use super::shown_file::ShownFile;

const SYSTEM: &str = include_str!("overview_prompt.md");
/// The limit in characters of the question: an outline of a thousand files.
const ROOM: usize = 60_000;
const SUMMARY_LIMIT: usize = 1_500;
const HINT_LIMIT: usize = 300;
const MAX_TOKENS: u32 = 4_096;

/// What a first reading of a whole change says. It is a model's answer to what strangers wrote, and as untrusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Overview {
    summary: String,
    /// The positions of files with what to look at there.
    hints: Vec<(usize, String)>,
}

impl Overview {
    /// The text for a part of the change: the summary, and the hints for its files.
    pub(super) fn text_for(&self, asked: impl Fn(usize) -> bool, files: &[ShownFile<'_>]) -> String {
        let hints = self.hints.iter().filter(|(at, _)| asked(*at));
        let hints = hints.map(|(at, hint)| format!("\nIn {}: {hint}", files[*at].name));
        format!("{}{}", self.summary, hints.collect::<String>())
    }
}

/// Asks for an overview; or why there is none. Each part is read all the same.
pub(super) async fn ask_overview(
    session: &ModelSession<'_>,
    files: &[ShownFile<'_>],
    around: &PromptContext<'_>,
) -> (Result<Overview, String>, LeftOut) {
    let (request, left_out) = overview_request(files, around);
    let read = async {
        let answer =
            session.ask(QuestionPurpose::Reading, &request).await.map_err(|failure| failure.why().to_owned())?;
        let written: OverviewJson =
            read_object(&answer.text).map_err(|why| format!("the model's answer {}", why.as_str()))?;
        let summary = one_line(&written.summary, SUMMARY_LIMIT);
        let hints = written.files.iter().filter_map(|hint| {
            let at = files.iter().position(|file| file.name == hint.path.trim())?;
            Some((at, one_line(&hint.look_for, HINT_LIMIT))).filter(|(_, hint)| !hint.is_empty())
        });
        Ok(Overview { summary, hints: hints.collect() })
    };
    (read.await, left_out)
}

fn one_line(text: &str, limit: usize) -> String {
    let line = harmless(text).split_whitespace().collect::<Vec<_>>().join(" ");
    first_chars(&line, limit).0.to_owned()
}

fn overview_request(files: &[ShownFile<'_>], around: &PromptContext<'_>) -> (ChatRequest, LeftOut) {
    let mut sections = description_sections(around.context);
    sections.push(ContextSection {
        heading: "The files of the change, with the lines added and removed and the functions they are in",
        what: "files of the overview",
        rank: ContextRank::PathInstructions,
        form: EntryForm::Item,
        entries: files.iter().map(ShownFile::outline).collect(),
        limit: ROOM,
    });
    let planned = plan_context(&sections, ROOM);
    let texts: Vec<&str> = planned.sections.iter().map(|(_, text)| text.as_str()).collect();
    let fence = Fence::around(&texts);
    let mut user = format!("The change has {}.\n", counted(files.len() as u64, "file"));
    for (heading, text) in &planned.sections {
        user.push_str(&format!("\n{heading}:\n{}", fence.fenced(text)));
    }
    user.push_str("\nWhat does the change do as a whole, and what has to be looked at in which file?\n");
    let request = ChatRequest {
        system: SYSTEM.to_owned(),
        preamble: String::new(),
        user,
        schema_name: "change_overview",
        json_schema: overview_schema(),
        max_tokens: MAX_TOKENS,
    };
    (request, planned.left_out)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OverviewJson {
    summary: String,
    files: Vec<HintJson>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HintJson {
    path: String,
    look_for: String,
}

fn overview_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "summary": {"type": "string", "description": "What the change does as a whole, in at most six sentences"},
            "files": {
                "type": "array",
                "description": "The files that need attention because of others; empty when none do",
                "items": {
                    "type": "object",
                    "properties": {
                        "path": {"type": "string", "description": "The file, exactly as it is listed"},
                        "look_for": {"type": "string", "description": "What to check there, in one sentence"},
                    },
                    "required": ["path", "look_for"],
                    "additionalProperties": false,
                },
            },
        },
        "required": ["summary", "files"],
        "additionalProperties": false,
    })
}
