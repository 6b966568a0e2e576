//! Reports people's reactions to the patterns of a repository, and which patterns these reactions hide.

use canonry_boxed::boxed;
use canonry_config::AutoSuppress;
use canonry_domain::review::{FeedbackRule, Fingerprint, rejected_by_people, suppressed_patterns_in_words};
use canonry_domain::{Login, counted};
use canonry_github::quote_line;
use canonry_store::{RepoId, Store, StoreError, StoredPattern, UndoneClear};

/// The patterns that an answer on GitHub lists; the command line lists them all.
const LISTED: usize = 20;
/// The longest title in an answer on GitHub, in characters.
const LONGEST_TITLE: usize = 120;

#[derive(Debug, Clone, PartialEq)]
pub struct FeedbackReport {
    /// The thresholds for hiding a pattern, and whether hiding is enabled.
    pub settings: AutoSuppress,
    pub patterns: Vec<RatedPattern>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct RatedPattern {
    pub pattern: StoredPattern,
    pub hidden: bool,
}

#[boxed]
pub async fn feedback_report(
    store: &Store,
    repo: RepoId,
    settings: &AutoSuppress,
) -> Result<FeedbackReport, StoreError> {
    Ok(FeedbackReport::rated(settings, store.findings().pattern_feedback(repo).await?))
}

impl FeedbackReport {
    /// Decides for each pattern whether reactions hide it, by the repository's settings.
    pub fn rated(settings: &AutoSuppress, patterns: Vec<StoredPattern>) -> Self {
        let rated = patterns.into_iter().map(|pattern| RatedPattern { hidden: is_hidden(settings, &pattern), pattern });
        Self { patterns: rated.collect(), settings: settings.clone() }
    }

    pub fn hidden(&self) -> usize {
        self.patterns.iter().filter(|rated| rated.hidden).count()
    }

    pub fn status_markdown(&self) -> String {
        if self.patterns.is_empty() {
            return NOBODY.to_owned();
        }
        let patterns = counted(self.patterns.len() as u64, "pattern");
        let hidden = suppressed_patterns_in_words(self.hidden()).unwrap_or_else(|| "none is hidden".to_owned());
        format!("People reacted to {patterns}: {hidden}. {}", self.rule_in_words())
    }

    /// A table of the patterns for a comment on GitHub; titles are quoted.
    pub fn list_markdown(&self) -> String {
        if self.patterns.is_empty() {
            return NOBODY.to_owned();
        }
        let mut text = "| Pattern | Title | 👍 | 👎 | Rejected on | State |\n|---|---|--:|--:|---|---|\n".to_owned();
        for rated in self.patterns.iter().take(LISTED) {
            let RatedPattern { pattern, .. } = rated;
            text += &format!(
                "| `{}` | {} | {} | {} | {} | {} |\n",
                pattern.fingerprint,
                quote_line(&pattern.title, LONGEST_TITLE),
                pattern.feedback.thumbs_up,
                pattern.feedback.thumbs_down,
                counted(u64::from(pattern.feedback.pull_requests), "pull request"),
                rated.what(),
            );
        }
        if let Some(more) = self.patterns.len().checked_sub(LISTED).filter(|more| *more > 0) {
            text += &format!("\nand {}.\n", counted(more as u64, "more pattern"));
        }
        format!("{text}\n{}", self.rule_in_words())
    }

    /// The rule that hides a pattern, as a sentence.
    pub fn rule_in_words(&self) -> String {
        if !self.settings.enabled {
            return "Reactions change confidence only; `feedback.autoSuppress.enabled` is false, so they hide nothing here."
                .to_owned();
        }
        let rule = rule(&self.settings);
        // Each person has one vote, so the thumbs down and the reactors are the same people.
        let people = rule.thumbs_down.max(rule.reactors);
        format!(
            "A pattern is hidden once {} reject it on {}. Critical findings and major ones about security or correctness are never hidden.",
            counted(u64::from(people), "person").replace("persons", "people"),
            counted(u64::from(rule.pull_requests), "pull request")
        )
    }
}

impl RatedPattern {
    pub fn what(&self) -> &'static str {
        match (self.pattern.protected, self.hidden) {
            (true, _) => "protected from reactions",
            (false, true) => "hidden",
            (false, false) => "",
        }
    }
}

pub fn cleared_markdown(by: &Login, pattern: Option<&Fingerprint>, cleared: u64) -> String {
    match (pattern, cleared) {
        (Some(pattern), 0) => format!("Nothing to clear: nobody reacted to `{pattern}`."),
        (None, 0) => "Nothing to clear: nobody reacted to a finding here.".to_owned(),
        (_, count) => {
            format!("Cleared by `{by}`: reactions to {}; only new reactions count.", counted(count, "pattern"))
        }
    }
}

pub fn restored_markdown(by: &Login, undone: Option<&UndoneClear>) -> String {
    match undone {
        None => "Nothing to restore: no reactions were cleared here.".to_owned(),
        Some(undone) => {
            format!("Restored by `{by}`: reactions to {} count again.", counted(undone.patterns, "pattern"))
        }
    }
}

const NOBODY: &str = "No reactions to findings count here yet.";

fn is_hidden(settings: &AutoSuppress, pattern: &StoredPattern) -> bool {
    settings.enabled && !pattern.protected && rejected_by_people(rule(settings), pattern.feedback)
}

fn rule(settings: &AutoSuppress) -> FeedbackRule {
    FeedbackRule {
        thumbs_down: settings.thresholds.min_thumbs_down,
        reactors: settings.thresholds.min_distinct_reactors,
        pull_requests: settings.thresholds.min_distinct_prs,
    }
}

#[cfg(test)]
mod tests {
    use canonry_config::AutoSuppress;
    use canonry_domain::Login;
    use canonry_domain::review::{Fingerprint, PatternFeedback, PatternKey};
    use canonry_store::{StoredPattern, UndoneClear};
    use canonry_testkit::public_text::{assert_readable, words_in_sight};

    use super::{FeedbackReport, RatedPattern, cleared_markdown, is_hidden, restored_markdown};

    fn report(enabled: bool, patterns: &[(&str, u32, bool)]) -> FeedbackReport {
        let settings = AutoSuppress { enabled, ..AutoSuppress::default() };
        let rated = patterns.iter().map(|(title, down, protected)| {
            let fingerprint = Fingerprint::of_title(title);
            let feedback =
                PatternFeedback { thumbs_up: 1, thumbs_down: *down, reactors: down + 1, pull_requests: (*down).min(2) };
            let key = PatternKey::stored(fingerprint.to_string());
            let pattern =
                StoredPattern { key, fingerprint, title: (*title).to_owned(), feedback, protected: *protected };
            RatedPattern { hidden: is_hidden(&settings, &pattern), pattern }
        });
        FeedbackReport { patterns: rated.collect(), settings }
    }

    #[test]
    fn a_short_word_on_how_things_stand() {
        assert_eq!(report(true, &[]).status_markdown(), "No reactions to findings count here yet.");
        let patterns = [("Odd name", 3, false), ("Key in the code", 9, true), ("Slow", 1, false)];
        insta::assert_snapshot!(report(true, &patterns).status_markdown(), @"People reacted to 3 patterns: 1 pattern auto-suppressed based on prior feedback. A pattern is hidden once 3 people reject it on 2 pull requests. Critical findings and major ones about security or correctness are never hidden.");
        insta::assert_snapshot!(report(false, &patterns).status_markdown(), @"People reacted to 3 patterns: none is hidden. Reactions change confidence only; `feedback.autoSuppress.enabled` is false, so they hide nothing here.");
    }

    #[test]
    fn a_list_that_no_title_breaks() {
        let patterns = [("Odd | name\n| @mona <b>", 3, false), ("Key in the code", 9, true), ("Slow", 1, false)];
        insta::assert_snapshot!(report(true, &patterns).list_markdown(), @r"
        | Pattern | Title | 👍 | 👎 | Rejected on | State |
        |---|---|--:|--:|---|---|
        | `fp-1e6fdda0` | Odd \| name \| @&ZeroWidthSpace;mona &lt;b&gt; | 1 | 3 | 2 pull requests | hidden |
        | `fp-556b49f5` | Key in the code | 1 | 9 | 2 pull requests | protected from reactions |
        | `fp-6d9542b8` | Slow | 1 | 1 | 1 pull request |  |

        A pattern is hidden once 3 people reject it on 2 pull requests. Critical findings and major ones about security or correctness are never hidden.
        ");
        assert_readable(&report(true, &patterns).list_markdown());
        let many: Vec<(&str, u32, bool)> = std::iter::repeat_n(("Slow", 1, false), 25).collect();
        assert!(report(true, &many).list_markdown().contains("\nand 5 more patterns.\n"));
    }

    #[test]
    fn clearing_tells_what_it_did() {
        let pattern = Fingerprint::of_title("Slow");
        let mona: Login = "mona".parse().expect("a login");
        assert!(cleared_markdown(&mona, Some(&pattern), 0).contains(pattern.as_str()));
        assert_eq!(
            cleared_markdown(&mona, None, 2),
            "Cleared by `mona`: reactions to 2 patterns; only new reactions count."
        );
        let at = "2026-02-01T00:00:00Z".parse().expect("a time");
        let restored = UndoneClear { at, by: mona.clone(), patterns: 2 };
        let answers = [
            cleared_markdown(&mona, Some(&pattern), 0),
            cleared_markdown(&mona, Some(&pattern), 1),
            cleared_markdown(&mona, None, 0),
            cleared_markdown(&mona, None, 2),
            restored_markdown(&mona, None),
            restored_markdown(&mona, Some(&restored)),
            report(true, &[("Slow", 3, false)]).status_markdown(),
            report(false, &[]).status_markdown(),
        ];
        for answer in answers {
            assert_readable(&answer);
            assert!(words_in_sight(&answer) <= 40, "{answer}");
        }
    }
}
