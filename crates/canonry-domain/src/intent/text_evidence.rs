//! Extracts evidence from a text by patterns: errors, frames, versions, names in code, links.

use std::sync::LazyLock;

use regex::Regex;

use crate::intent::card_answer::clean;

/// The maximum number of entries of one kind: a log of thousands of lines repeats itself.
const KEPT: usize = 12;
/// The maximum number of characters of a line that are read; minified code has lines of a megabyte.
const LINE_LIMIT: usize = 1_000;

/// The evidence in a text. Each kind is in the order of the text, without repetitions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TextEvidence {
    pub(crate) errors: Vec<String>,
    pub(crate) frames: Vec<String>,
    pub(crate) versions: Vec<String>,
    pub(crate) code_spans: Vec<String>,
    pub(crate) links: Vec<String>,
}

impl TextEvidence {
    /// Reads a line of prose, in which "error" may be an ordinary word.
    pub(crate) fn read_prose(&mut self, line: &str) {
        let line = first_chars(line, LINE_LIMIT);
        if PROSE_ERROR.is_match(line) {
            let sentences = line.split_inclusive(['。', '!', '?']).flat_map(|part| part.split_inclusive(". "));
            for sentence in sentences.filter(|sentence| PROSE_ERROR.is_match(sentence)) {
                keep(&mut self.errors, sentence);
            }
        }
        for span in CODE_SPAN.captures_iter(line) {
            keep(&mut self.code_spans, &span[1]);
        }
        for link in LINK.find_iter(line) {
            keep(&mut self.links, link.as_str().trim_end_matches(['.', ',', ';', ':', '!', '?', '*', '_', '\'']));
        }
        for reference in REFERENCE.captures_iter(line) {
            keep(&mut self.links, &reference[1]);
        }
        self.read_versions(line);
    }

    pub(crate) fn read_code(&mut self, line: &str) {
        let line = first_chars(line, LINE_LIMIT);
        if FRAME.is_match(line) {
            keep(&mut self.frames, line);
        } else if CODE_ERROR.is_match(line) {
            keep(&mut self.errors, line);
        }
        self.read_versions(line);
    }

    fn read_versions(&mut self, line: &str) {
        // The numbers in a link name a page.
        let line = LINK.replace_all(line, " ");
        for found in VERSION.captures_iter(&line) {
            if !is_address(&found[2]) {
                keep(&mut self.versions, &found[0]);
            }
        }
    }
}

/// Whether a line of prose contains an error message of a program.
pub(crate) fn is_error_in_prose(line: &str) -> bool {
    PROSE_ERROR.is_match(first_chars(line, LINE_LIMIT))
}

/// Whether a line would be an error if it were in a code block.
pub(crate) fn is_error_in_code(line: &str) -> bool {
    CODE_ERROR.is_match(first_chars(line, LINE_LIMIT))
}

pub(crate) fn is_frame(line: &str) -> bool {
    FRAME.is_match(first_chars(line, LINE_LIMIT))
}

/// Four numbers below 256 are much more often a network address than a version.
fn is_address(number: &str) -> bool {
    let parts: Vec<&str> = number.split('.').collect();
    parts.len() == 4 && parts.iter().all(|part| part.parse::<u8>().is_ok())
}

fn keep(kept: &mut Vec<String>, text: &str) {
    let text = clean(text);
    if kept.len() < KEPT && !text.is_empty() && !kept.contains(&text) {
        kept.push(text);
    }
}

/// The beginning of a text, cut between characters.
pub(crate) fn first_chars(text: &str, limit: usize) -> &str {
    text.char_indices().nth(limit).map_or(text, |(end, _)| &text[..end])
}

fn pattern(pattern: &str) -> Regex {
    Regex::new(pattern).expect("invariant: the pattern is constant")
}

/// Only forms that programs write: in prose "the error page" is a page.
static PROSE_ERROR: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"[A-Za-z](?:Error|Exception)\b|\b(?:[Ee]rror|ERROR|[Ff]atal|FATAL|[Pp]anic)(?:\[\w+\])?:|panicked at|Traceback \(most|[Ss]egmentation fault|\bE[0-9]{4}\b|\bE[A-Z]{4,}\b|\bSIG(?:SEGV|ABRT|KILL|BUS|ILL)\b|\bHTTP [45][0-9]{2}\b",
    )
});
static CODE_ERROR: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)\berrors?\b|error[:\[(]|exception|panick?ed|\bpanic\b|\bfatal\b|\bfailed\b|\bfailure\b|assertion|segfault|segmentation fault|\bcannot\b|undefined|unexpected|\bdenied\b|not found|overflow|deadlock|traceback|\babort",
    )
});
/// A frame in the notations of Java and JavaScript, Python, Rust, gdb, and `file:line`.
static FRAME: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r#"^\s*(?:at\s+\S.*[(:]|File ".*", line \d+|\d+:\s+(?:0x[0-9a-fA-F]+\s+-\s+)?\S+::\S|#\d+:?\s+\S|(?:from\s+)?\S+\.(?:rb|go|py|rs|js|ts|tsx|java|kt|php|ex|pl|c|cc|cpp|h|cs|swift):\d+)"#,
    )
});
/// A version with the name before it, if there is one: `rustc 1.30.0`, `v2.1.0-beta.1`.
static VERSION: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?:([A-Za-z][A-Za-z0-9_.+-]{0,30})[ /:=@]{1,2})?\bv?([0-9]{1,4}(?:\.[0-9]{1,6}){2,3})(?:-[A-Za-z0-9][A-Za-z0-9.]{0,20})?",
    )
});
static CODE_SPAN: LazyLock<Regex> = LazyLock::new(|| pattern(r"`([^`]{2,120})`"));
static LINK: LazyLock<Regex> = LazyLock::new(|| pattern("https?://[^\\s()<>\\[\\]\"`]{3,300}"));
static REFERENCE: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?:^|[\s(,;])((?:[A-Za-z0-9_.-]{1,60}/[A-Za-z0-9_.-]{1,60})?#[0-9]{1,9})\b"));

#[cfg(test)]
mod tests {
    use super::TextEvidence;

    fn prose(line: &str) -> TextEvidence {
        let mut evidence = TextEvidence::default();
        evidence.read_prose(line);
        evidence
    }

    fn code(line: &str) -> TextEvidence {
        let mut evidence = TextEvidence::default();
        evidence.read_code(line);
        evidence
    }

    #[test]
    fn prose_tells_errors_spans_links_and_versions() {
        let line = "Since v2.1.0-beta.1 I get TypeError: x is null. The error page is fine, `foo_bar()` is not; \
            see https://example.com/a/1.2.3, octo/cat#7 and #12 on 10.0.0.1 with node 18.2.0.";
        let found = prose(line);
        assert_eq!(found.errors, ["Since v2.1.0-beta.1 I get TypeError: x is null."]);
        assert_eq!(found.code_spans, ["foo_bar()"]);
        assert_eq!(found.links, ["https://example.com/a/1.2.3", "octo/cat#7", "#12"]);
        assert_eq!(found.versions, ["Since v2.1.0-beta.1", "node 18.2.0"]);
        assert_eq!(prose("The error page should look nicer; it failed me."), TextEvidence::default());
    }

    #[test]
    fn code_tells_errors_and_frames() {
        for frame in [
            "    at org.example.Tide.pull(Tide.java:372)",
            "    at Object.<anonymous> (/app/index.js:3:1)",
            "    at /app/index.js:3:1",
            "  File \"/usr/lib/site.py\", line 12, in main",
            "   4: 0x7f8a - std::panicking::begin_panic",
            "   5: core::ops::function",
            "#3  0x00007f in start () from /lib/x.so",
            "/app/models/user.rb:12:in `save'",
            "src/main.rs:7:3",
        ] {
            let found = code(frame);
            assert_eq!((found.frames.len(), found.errors.len()), (1, 0), "{frame}");
        }
        for error in [
            "thread 'main' panicked at 'index out of bounds'",
            "E: Permission denied",
            "error[E0308]: mismatched types",
        ] {
            assert_eq!(code(error).errors, [error]);
        }
        assert_eq!(code("let x = 1;"), TextEvidence::default());
    }

    #[test]
    fn logs_are_bounded_and_said_once() {
        let mut evidence = TextEvidence::default();
        for line in 0..10_000 {
            evidence.read_code("error: the same");
            evidence.read_code(&format!("error: {line}"));
            evidence.read_prose(&"`x1`".repeat(300));
        }
        assert_eq!((evidence.errors.len(), evidence.code_spans.len()), (12, 1));
        evidence.read_code(&"error ".repeat(1_000_000));
        assert!(evidence.errors.iter().all(|error| error.len() <= super::LINE_LIMIT));
    }
}
