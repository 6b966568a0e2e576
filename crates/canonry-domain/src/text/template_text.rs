//! Extracts what an author wrote into a template, line by line, without the template's own text.

use std::sync::LazyLock;

use regex::Regex;

use crate::intent::sections::{COMMENT, TAG, heading, section_of};
use crate::text::fences::{FenceLine, FenceReader};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TemplateLine {
    /// The author's words, or a blank line.
    Prose,
    Quoted,
    Code,
}

/// The lines of a body without headings and labels that have no text beside them, HTML comments, check-boxes that are
/// unticked or only confirm something, and "no response".
pub(crate) fn written_lines(body: &str) -> Vec<(TemplateLine, String)> {
    // The body is not trimmed: its first line may be indented code.
    let body = body.replace("\r\n", "\n").replace('\r', "\n");
    let body = COMMENT.replace_all(&body, "");
    let mut lines = Vec::new();
    let mut fences = FenceReader::default();
    let mut in_diff = false;
    let mut after_blank = true;
    for line in body.lines() {
        let bare = line.trim();
        match fences.read(line) {
            FenceLine::Outside => {}
            FenceLine::Begins | FenceLine::Ends => continue,
            FenceLine::Code => {
                lines.push((TemplateLine::Code, line.to_owned()));
                continue;
            }
        }
        in_diff = DIFF_BEGINS.is_match(line) || in_diff && DIFF_GOES_ON.is_match(line);
        let is_indented = after_blank && !bare.is_empty() && (line.starts_with("    ") || line.starts_with('\t'));
        if in_diff || is_indented {
            lines.push((TemplateLine::Code, line.to_owned()));
            continue;
        }
        let bare = TAG.replace_all(bare, "");
        let bare = bare.trim();
        after_blank = bare.is_empty();
        if bare.starts_with('>') {
            lines.push((TemplateLine::Quoted, bare.to_owned()));
        } else if !is_template(bare) {
            lines.push((TemplateLine::Prose, bare.to_owned()));
        }
    }
    lines
}

/// Whether a title or a line of a body is only a tag such as `[Bug]:`.
pub(crate) fn is_tag_alone(line: &str) -> bool {
    TAG_ALONE.is_match(line.trim())
}

/// Whether a line is a heading or a label with no text beside it, an unticked check-box, a confirmation or "no
/// response".
pub(crate) fn is_template(line: &str) -> bool {
    let is_heading = heading(line).is_some_and(|(_, _, rest)| rest.is_empty());
    let is_label = LABEL_ALONE.captures(line).is_some_and(|found| {
        let words = found[1].trim();
        words.split_whitespace().count() <= 4 && section_of(words).is_some()
    });
    is_heading
        || is_label
        || is_tag_alone(line)
        || OPEN_BOX.is_match(line)
        || CONFIRMATION.is_match(line)
        || UNANSWERED.is_match(line)
}

fn pattern(pattern: &str) -> Regex {
    Regex::new(pattern).expect("invariant: the pattern is constant")
}

static TAG_ALONE: LazyLock<Regex> = LazyLock::new(|| pattern(r"^[\[【][^\[\]【】]{1,40}[\]】]\s*[:：]?$"));
/// `Version:` is a label of the template; "It stops:" is a sentence of the author.
static LABEL_ALONE: LazyLock<Regex> = LazyLock::new(|| pattern(r"^(?:[-*+]\s+)?([^:：/`]{2,40})[:：]$"));
static OPEN_BOX: LazyLock<Regex> = LazyLock::new(|| pattern(r"^(?:[-*+]|\d{1,3}[.)])\s+\[\s?\](?:\s|$)"));
static CONFIRMATION: LazyLock<Regex> = LazyLock::new(|| pattern(r"^(?:[-*+]|\d{1,3}[.)])\s+\[[xX]\]\s+I(?:\s|['’])"));
static UNANSWERED: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?i)^[\s_*]*(?:no response|n/a)[\s_*.]*$"));
static DIFF_BEGINS: LazyLock<Regex> = LazyLock::new(|| pattern(r"^(?:diff --git |@@ -\d)"));
static DIFF_GOES_ON: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^(?:[-+ \\]|index [0-9a-f]|(?:new|deleted|old) |similarity |rename |copy )"));

#[cfg(test)]
mod tests {
    use super::{TemplateLine, written_lines};

    fn prose(body: &str) -> String {
        let lines = written_lines(body).into_iter().filter(|(kind, _)| *kind == TemplateLine::Prose);
        lines.map(|(_, line)| line).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("|")
    }

    #[test]
    fn templates_leave_nothing_of_their_own() {
        let body = "<!-- Please fill in\nthe form -->\n### Describe the bug\r\nIt goes wrong.\n\n**To Reproduce**\n__Steps:__\n\
            **Expected behavior:** It stays.\nIt says:\n- OS:\nVersion:\n[Bug]:\n_No response_\n- [ ] I read the docs\n- [x] I searched\n\
            - [x] Linux\n> quoted\n# comment\n";
        assert_eq!(prose(body), "It goes wrong.|**Expected behavior:** It stays.|It says:|- [x] Linux");
    }

    #[test]
    fn code_and_diffs_are_told_apart() {
        let body = "Before\n```sh\n# no heading\n```\n\n    indented\n\ndiff --git a/x b/x\nindex 12ab..34cd\n--- a/x\n+++ b/x\n\
            @@ -1 +1 @@\n-old\n+new\nAfter\n- a list";
        assert_eq!(prose(body), "Before|After|- a list");
        let code = written_lines(body).into_iter().filter(|(kind, _)| *kind == TemplateLine::Code).count();
        assert_eq!(code, 9);
    }
}
