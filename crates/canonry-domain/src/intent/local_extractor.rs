//! The `local` extractor: makes an intent card from an item's own text by deterministic rules.

use crate::intent::card_answer::clean;
use crate::intent::change_evidence::{ChangeFacts, change_facts};
use crate::intent::sections::{BodySection, Section, sections};
use crate::intent::text_evidence::{TextEvidence, first_chars};
use crate::{
    ChangeIntent, EvidenceFact, EvidenceSource, IntentCard, IntentSource, ItemType, Probability, normalise_text,
};

/// The maximum number of code points of a text field: three long sentences.
const TEXT_LIMIT: usize = 600;
/// The maximum number of code points of an entry: one line of a log.
const ENTRY_LIMIT: usize = 200;
const LIST_LIMIT: usize = 12;
/// The maximum number of facts of all kinds together.
const FACTS_LIMIT: usize = 30;
/// The maximum number of characters of a text that are read before it is split; a card quotes only its beginning.
const READ_LIMIT: usize = 60_000;

/// Makes a card by rules. It only quotes and counts and infers nothing, so `inference` stays empty.
pub fn extract_locally(source: IntentSource<'_>) -> IntentCard {
    let title = clean(first_chars(&normalise_text(first_chars(source.title, READ_LIMIT)), ENTRY_LIMIT));
    let body = normalise_text(first_chars(source.body, READ_LIMIT));
    let parts = sections(&body);
    let reading = CardBuilder { in_title: evidence_of_title(&title), in_body: evidence_of_body(&parts), title, parts };
    let changes = match source.item_type {
        ItemType::Issue => None,
        ItemType::Pr => Some(source.changes.map(change_facts).unwrap_or_default()),
    };
    reading.card(changes.as_ref())
}

struct CardBuilder {
    title: String,
    parts: Vec<BodySection>,
    in_title: TextEvidence,
    in_body: TextEvidence,
}

impl CardBuilder {
    fn card(&self, changes: Option<&ChangeFacts>) -> IntentCard {
        let problem_statement = self.problem();
        let desired_outcome = self.desired_outcome();
        let important_signals = self.signals();
        let told = weight(&problem_statement) + 20 * important_signals.len();
        let insufficient_context = told < ENOUGH && changes.is_none_or(|changes| changes.summary.is_empty());
        let claims = [Section::Actual, Section::Steps].iter().flat_map(|section| self.entries(*section));
        IntentCard {
            extraction_confidence: self.confidence(insufficient_context, &desired_outcome, &important_signals),
            scope_boundaries: list(self.entries(Section::Scope)),
            evidence_facts: self.facts(changes),
            reported_claims: list(claims),
            inference: Vec::new(),
            unknowns: list(self.parts.iter().filter(|part| part.is_unanswered()).map(|part| part.heading.as_str())),
            missing_info: list(self.missing(changes)),
            insufficient_context,
            change: changes.map(|changes| self.change(changes)),
            problem_statement,
            desired_outcome,
            important_signals,
        }
    }

    fn entries(&self, section: Section) -> impl Iterator<Item = &str> {
        let parts = self.parts.iter().filter(move |part| part.section == section);
        parts.flat_map(|part| part.entries.iter().map(String::as_str))
    }

    fn has(&self, section: Section) -> bool {
        self.parts.iter().any(|part| part.section == section && !part.is_unanswered())
    }

    /// The title, followed by the first section that has content.
    fn problem(&self) -> String {
        let order = [Section::Problem, Section::Intro, Section::Actual, Section::Other, Section::Steps];
        let told = order.iter().find(|section| self.entries(**section).next().is_some());
        let mut text = self.title.clone();
        for entry in told.into_iter().flat_map(|section| self.entries(*section)) {
            if !text.is_empty() {
                text.push_str(if text.ends_with(['.', '!', '?', '。', '！', '？']) { " " } else { ". " });
            }
            text.push_str(first_chars(entry, TEXT_LIMIT));
            if text.chars().count() >= TEXT_LIMIT {
                break;
            }
        }
        cut(&text, TEXT_LIMIT)
    }

    /// The section for the expected result, or the first sentence that expresses a wish.
    fn desired_outcome(&self) -> String {
        let asked: Vec<&str> = self.entries(Section::Expected).take(LIST_LIMIT).collect();
        if !asked.is_empty() {
            return cut(&asked.join(" "), TEXT_LIMIT);
        }
        let prose = [Section::Intro, Section::Problem, Section::Other, Section::Actual];
        let mut sentences = prose.iter().flat_map(|section| self.entries(*section)).flat_map(sentences);
        sentences.find(|sentence| wishes(sentence)).map(|sentence| cut(sentence, TEXT_LIMIT)).unwrap_or_default()
    }

    fn signals(&self) -> Vec<String> {
        let kinds: [fn(&TextEvidence) -> &[String]; 3] =
            [|evidence| &evidence.errors, |evidence| &evidence.frames, |evidence| &evidence.code_spans];
        // A few signals of each kind come before more of the first kind: a log must not hide the frames behind it.
        let of_kind = |kind: &fn(&TextEvidence) -> &[String]| -> Vec<&str> {
            [&self.in_title, &self.in_body].into_iter().flat_map(kind).map(String::as_str).collect()
        };
        let all: Vec<Vec<&str>> = kinds.iter().map(of_kind).collect();
        let first = all.iter().flat_map(|found| found.iter().take(LIST_LIMIT / 3));
        let rest = all.iter().flat_map(|found| found.iter().skip(LIST_LIMIT / 3));
        list(first.chain(rest).copied())
    }

    fn facts(&self, changes: Option<&ChangeFacts>) -> Vec<EvidenceFact> {
        let mut facts: Vec<EvidenceFact> = Vec::new();
        let mut add = |texts: &[String], prefix: &str, limit: usize, source: EvidenceSource| {
            for text in texts.iter().take(limit) {
                let fact = cut(&format!("{prefix}{text}"), ENTRY_LIMIT);
                if !facts.iter().any(|known| known.fact == fact) {
                    facts.push(EvidenceFact { fact, source });
                }
            }
        };
        for (evidence, source) in [(&self.in_title, EvidenceSource::Title), (&self.in_body, EvidenceSource::Body)] {
            add(&evidence.errors, "", 4, source);
            add(&evidence.frames, "", 4, source);
            add(&evidence.versions, "version ", 4, source);
            add(&evidence.links, "refers to ", 4, source);
        }
        let environment: Vec<String> = [Section::Version, Section::Environment]
            .iter()
            .flat_map(|section| self.entries(*section))
            .map(clean)
            .collect();
        add(&environment, "", 4, EvidenceSource::Body);
        if let Some(changes) = changes {
            add(&changes.files, "changes ", 6, EvidenceSource::FileContext);
            add(&changes.identifiers, "names ", 6, EvidenceSource::Diff);
        }
        facts.truncate(FACTS_LIMIT);
        facts
    }

    fn missing(&self, changes: Option<&ChangeFacts>) -> impl Iterator<Item = &'static str> {
        let is_issue = changes.is_none();
        let versions = self.in_title.versions.len() + self.in_body.versions.len();
        [
            (is_issue && !self.has(Section::Steps), "steps to reproduce"),
            (is_issue && versions == 0 && !self.has(Section::Version), "the version"),
            (changes.is_some_and(|changes| changes.files.is_empty()), "the changed files"),
            (changes.is_some_and(|changes| changes.identifiers.is_empty()), "the changed lines"),
        ]
        .into_iter()
        .filter_map(|(missing, what)| missing.then_some(what))
    }

    fn change(&self, changes: &ChangeFacts) -> ChangeIntent {
        let bare = self.title.split_once(": ").filter(|(kind, _)| is_commit_kind(kind)).map(|(_, rest)| rest);
        let mut risks = changes.risks.clone();
        let says_breaking = self.parts.iter().flat_map(|part| &part.entries).any(|entry| {
            let entry = entry.to_lowercase();
            entry.contains("breaking change")
                && !entry.contains("no breaking change")
                && !entry.contains("non-breaking")
        });
        if says_breaking {
            risks.push("says that it is a breaking change".to_owned());
        }
        ChangeIntent {
            key_changed_components: list(changes.components.iter().map(String::as_str)),
            behavioural_intent: bare.unwrap_or(&self.title).to_owned(),
            change_summary: cut(&changes.summary, TEXT_LIMIT),
            risk_notes: list(risks.iter().map(String::as_str)),
        }
    }

    /// The share of the parts of a good report that this report has. It is never high, because nothing was understood.
    fn confidence(&self, insufficient: bool, desired: &str, signals: &[String]) -> Probability {
        let has = [
            self.has(Section::Problem) || self.has(Section::Intro),
            !desired.is_empty(),
            !signals.is_empty(),
            self.has(Section::Steps) || self.has(Section::Actual),
        ];
        let found = has.iter().filter(|has| **has).count() as f64;
        let confidence = if insufficient { 0.1 } else { 0.3 + 0.1 * found };
        Probability::clamped(confidence).expect("invariant: a sum of constants is a number")
    }
}

/// A text below this weight, in which a signal counts as twenty letters, resembles every other short text.
const ENOUGH: usize = 32;

/// The amount of content in a text: its letters and digits. A character of a script that writes a word with one or two
/// characters counts as three.
fn weight(text: &str) -> usize {
    let weigh = |character: char| match character {
        '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{20000}'..='\u{3ffff}' => 3,
        _ => usize::from(character.is_alphanumeric()),
    };
    text.chars().map(weigh).sum()
}

fn evidence_of_title(title: &str) -> TextEvidence {
    let mut evidence = TextEvidence::default();
    evidence.read_prose(title);
    evidence
}

fn evidence_of_body(parts: &[BodySection]) -> TextEvidence {
    let mut evidence = TextEvidence::default();
    for part in parts {
        part.entries.iter().for_each(|entry| evidence.read_prose(entry));
        part.code.iter().for_each(|line| evidence.read_code(line));
    }
    evidence
}

fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let marks = text.split_inclusive(['。', '！', '？', '!', '?']);
    marks.flat_map(|part| part.split_inclusive(". ")).map(str::trim).filter(|sentence| !sentence.is_empty())
}

fn wishes(sentence: &str) -> bool {
    let sentence = sentence.to_lowercase();
    let marks = [
        "should",
        "would like",
        "would be nice",
        "would be great",
        "expected",
        "i want",
        "we want",
        "please",
        "it'd be",
        "feature request",
        "应该",
        "希望",
        "期待",
        "べき",
        "ほしい",
        "欲しい",
    ];
    marks.iter().any(|mark| sentence.contains(mark))
}

/// Whether the part before a title's colon is a commit type: `fix(parser)!`.
fn is_commit_kind(kind: &str) -> bool {
    let word = kind.split(['(', '!']).next().unwrap_or_default();
    ["build", "chore", "ci", "docs", "feat", "feature", "fix", "perf", "refactor", "revert", "style", "test"]
        .contains(&word)
}

fn list<'a>(entries: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut kept: Vec<String> = Vec::new();
    for entry in entries {
        let entry = cut(entry, ENTRY_LIMIT);
        if !entry.is_empty() && !kept.contains(&entry) {
            kept.push(entry);
        }
        if kept.len() == LIST_LIMIT {
            break;
        }
    }
    kept
}

/// A text on one line, with a visible mark if it is cut.
fn cut(text: &str, limit: usize) -> String {
    let text = clean(first_chars(text, 4 * TEXT_LIMIT));
    match text.char_indices().nth(limit) {
        Some(_) => format!("{}…", first_chars(&text, limit - 1).trim_end()),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{Strategy, any, prop, prop_assert, prop_assert_eq, prop_oneof, proptest};

    use super::{ENTRY_LIMIT, FACTS_LIMIT, LIST_LIMIT, TEXT_LIMIT, extract_locally};
    use crate::intent::card::render;
    use crate::{IntentCard, IntentSource, ItemType, PullChanges, parse_intent_card};

    fn issue(title: &str, body: &str) -> IntentCard {
        extract_locally(IntentSource { item_type: ItemType::Issue, title, body, changes: None })
    }

    fn pull(title: &str, body: &str, changes: Option<&PullChanges>) -> IntentCard {
        extract_locally(IntentSource { item_type: ItemType::Pr, title, body, changes })
    }

    #[test]
    fn a_report_in_a_template_becomes_a_card() {
        let body = "### Describe the bug\r\nSaving a note with `write_all` loses it.\r\n\r\n### Steps to reproduce\r\n\
            1. Open a note\r\n2. Rename the folder\r\n\r\n### Expected behavior\r\nThe note is kept.\r\n\r\n\
            ### Actual behavior\r\nIt is gone, see #12.\r\n\r\n```\r\nerror: no such file\r\n   at Note.save (note.js:7:1)\r\n```\r\n\r\n\
            ### Version\r\nquillnote 2.4.1\r\n\r\n### Screenshots\r\n_No response_\r\n";
        insta::assert_json_snapshot!(issue("Note lost after rename", body), @r##"
        {
          "problem_statement": "Note lost after rename. Saving a note with `write_all` loses it.",
          "desired_outcome": "The note is kept.",
          "important_signals": [
            "error: no such file",
            "at Note.save (note.js:7:1)",
            "write_all"
          ],
          "scope_boundaries": [],
          "evidence_facts": [
            {
              "fact": "error: no such file",
              "source": "body"
            },
            {
              "fact": "at Note.save (note.js:7:1)",
              "source": "body"
            },
            {
              "fact": "version quillnote 2.4.1",
              "source": "body"
            },
            {
              "fact": "refers to #12",
              "source": "body"
            },
            {
              "fact": "quillnote 2.4.1",
              "source": "body"
            }
          ],
          "reported_claims": [
            "It is gone, see #12.",
            "Open a note",
            "Rename the folder"
          ],
          "inference": [],
          "unknowns": [
            "Screenshots"
          ],
          "missing_info": [],
          "insufficient_context": false,
          "extraction_confidence": 0.7
        }
        "##);
    }

    #[test]
    fn a_pull_request_tells_what_it_changes() {
        let changes = PullChanges {
            files: vec!["src/store/open.rs".to_owned(), "Cargo.lock".to_owned()],
            diff: "-open_file(path)\n+open_file_again(path)\n".to_owned(),
        };
        let card = pull("fix(store): reopen a file that moved", "Fixes #3. This is a breaking change.", Some(&changes));
        let change = card.change.as_ref().expect("a pull request");
        assert_eq!(change.behavioural_intent, "reopen a file that moved");
        assert_eq!(change.key_changed_components, ["Cargo.lock", "src/store"]);
        assert_eq!(
            change.change_summary,
            "2 files changed; 1 lines added, 1 removed; names open_file, open_file_again"
        );
        assert_eq!(
            change.risk_notes,
            ["changes dependencies", "changes code without tests", "says that it is a breaking change"]
        );
        let sources: Vec<&str> = card.evidence_facts.iter().map(|fact| fact.source.as_str()).collect();
        assert_eq!(sources, ["body", "file_context", "file_context", "diff", "diff"]);
        assert_eq!(pull("t", "", None).missing_info, ["the changed files", "the changed lines"]);
    }

    #[test]
    fn free_text_is_searched_for_a_wish() {
        let card = issue("Dark mode", "The page is white. It should follow the system. Thanks!");
        assert_eq!(card.desired_outcome, "It should follow the system.");
        assert_eq!(card.problem_statement, "Dark mode. The page is white. It should follow the system. Thanks!");
        assert_eq!(card.missing_info, ["steps to reproduce", "the version"]);
    }

    #[test]
    fn what_says_too_little_is_marked() {
        for (title, body) in [("", ""), ("Bug", ""), ("Help", "Not working, pls fix"), ("???", "🔥🔥🔥"), ("登录", "")]
        {
            let card = issue(title, body);
            assert!(card.insufficient_context && card.extraction_confidence.get() == 0.1, "{title}");
        }
        for (title, body) in [
            ("登录后页面崩溃并且显示空白错误提示", ""),
            ("x", "```\nerror: cannot open\n  at a.b(c.js:1)\n```"),
            ("The window closes by itself when I press escape", ""),
        ] {
            assert!(!issue(title, body).insufficient_context, "{title}");
        }
        let changes = PullChanges { files: vec!["a.rs".to_owned()], diff: String::new() };
        assert!(!pull("x", "", Some(&changes)).insufficient_context);
    }

    #[test]
    fn scripts_without_spaces_have_sections_too() {
        let card = issue(
            "保存失败",
            "## 问题描述\n重命名后保存失败。\n\n## 期望行为\n应该保存成功。\n\n## 复现步骤\n1. 打开\n2. 保存\n",
        );
        assert_eq!(card.problem_statement, "保存失败. 重命名后保存失败。");
        assert_eq!(card.desired_outcome, "应该保存成功。");
        assert_eq!(card.reported_claims, ["打开", "保存"]);
    }

    #[test]
    fn only_code_still_gives_signals() {
        let card = issue("", "```\nthread 'main' panicked at src/a.rs:3:1\n   2: core::panicking::panic\n```");
        assert_eq!(card.important_signals, ["thread 'main' panicked at src/a.rs:3:1", "2: core::panicking::panic"]);
        assert_eq!(card.problem_statement, "");
        assert!(render(&card).starts_with("Signals: thread 'main'"));
    }

    #[test]
    fn ten_megabytes_are_as_bounded_as_ten_bytes() {
        for piece in [
            "x",
            "error: y\n",
            "# h\n",
            "```\n",
            "`a b` ",
            "日本語",
            "<!--",
            "**b**\n\n",
            "\u{0}\n",
            "1.2.3 ",
            "- [ ] e\n",
        ] {
            let body = piece.repeat(10_000_000 / piece.len());
            let card = issue(&body[..1_000_000 / piece.len() * piece.len()], &body);
            check_bounds(&card);
        }
    }

    fn check_bounds(card: &IntentCard) {
        let lists = [
            &card.important_signals,
            &card.scope_boundaries,
            &card.reported_claims,
            &card.unknowns,
            &card.missing_info,
        ];
        for entries in lists {
            assert!(entries.len() <= LIST_LIMIT);
            assert!(entries.iter().all(|entry| !entry.is_empty() && entry.chars().count() <= ENTRY_LIMIT));
        }
        assert!(card.evidence_facts.len() <= FACTS_LIMIT);
        assert!(
            card.problem_statement.chars().count() <= TEXT_LIMIT && card.desired_outcome.chars().count() <= TEXT_LIMIT
        );
    }

    fn report() -> impl Strategy<Value = String> {
        let line = prop_oneof![
            any::<String>(),
            "[ -~]{0,80}",
            prop::sample::select(vec![
                "### Expected",
                "**Actual:** gone",
                "Version: 1.2.3",
                "```",
                "~~~",
                "<!--",
                "-->",
                "    error: x",
                "- item",
                "error[E0308]: no",
                "  at f (a.js:1:2)",
                "_No response_",
                "",
                "应该",
                "`code`",
                "https://a.b/c",
                "> quote",
                "\u{0}",
                "\r",
            ])
            .prop_map(str::to_owned),
        ];
        prop::collection::vec(line, 0..30).prop_map(|lines| lines.join("\n"))
    }

    proptest! {
        /// A card that is made by rules passes the strict parser for models' answers, including all limits.
        #[test]
        fn any_text_gives_the_same_valid_card_twice(
            title in any::<String>(), body in report(), files in prop::collection::vec(any::<String>(), 0..5), diff in report(), is_pull in any::<bool>(),
        ) {
            let changes = PullChanges { files, diff };
            let item_type = if is_pull { ItemType::Pr } else { ItemType::Issue };
            let source = IntentSource { item_type, title: &title, body: &body, changes: is_pull.then_some(&changes) };
            let card = extract_locally(source);
            check_bounds(&card);
            prop_assert_eq!(&extract_locally(source), &card);
            let stored = serde_json::to_string(&card).expect("serialises");
            let read = parse_intent_card(&stored, item_type);
            prop_assert_eq!(read.as_ref(), Ok(&card));
            prop_assert!(render(&card).chars().count() <= crate::items::content::TEXT_LIMIT);
        }
    }
}
