//! The history of a finding: which rules report it, what became of it, its confidence, and what hides it.

use canonry_boxed::boxed;
use canonry_domain::counted;
use canonry_domain::printable::one_line;
use canonry_domain::review::{
    Confidence, ConfidenceParts, ConfidenceSigns, DismissalKind, Finding, HiddenBy, PatternFeedback, ShownAs,
    confidence,
};
use canonry_github::quote_line;
use canonry_store::{
    RepoId, Store, StoreError, StoredDismissal, StoredFinding, StoredPattern, StoredRemark, StoredSighting,
};
use serde_json::{Value, json};

use crate::feedback::thread_dismissals::FindingThread;

/// The reviews that an answer on GitHub lists; the command line lists them all.
const SEEN_IN_MARKDOWN: usize = 10;
/// The longest title, path or pattern in an answer on GitHub, in characters.
const LONGEST: usize = 200;

#[derive(Debug, Clone, PartialEq)]
pub struct FindingLife {
    found: StoredFinding,
    sightings: Vec<StoredSighting>,
    dismissals: Vec<StoredDismissal>,
    pattern: Option<StoredPattern>,
    /// Comments of other reviewers that name the same problem.
    remarks: Vec<StoredRemark>,
}

/// The history of the finding of a thread; `None` if no finding of ours started the thread. `page` is the repository's
/// page on GitHub.
#[boxed]
pub async fn explain_finding(
    store: &Store,
    at: FindingThread,
    page: Option<&str>,
) -> Result<Option<FindingLife>, StoreError> {
    let Some(posted) = at.posted(store).await? else { return Ok(None) };
    let Some(found) = store.findings().get(at.repo, posted.finding).await? else { return Ok(None) };
    let patterns = store.findings().pattern_feedback(at.repo).await?;
    FindingLife::read(store, at.repo, page, found, &patterns).await.map(Some)
}

#[boxed]
impl FindingLife {
    /// Reads the history of a finding. `page` is the repository's page on GitHub, such as `https://github.com/octo/cat`:
    /// only comments there are linked.
    pub async fn read(
        store: &Store,
        repo: RepoId,
        page: Option<&str>,
        found: StoredFinding,
        patterns: &[StoredPattern],
    ) -> Result<Self, StoreError> {
        let pattern = patterns.iter().find(|pattern| pattern.key == *found.finding.key()).cloned();
        let sightings = store.findings().history(found.id).await?;
        let dismissals = store.findings().dismissals_of(found.id).await?;
        let mut remarks = store.findings().remarks_of_finding(repo, found.id).await?;
        for remark in &mut remarks {
            remark.link = remark.link.take().filter(|link| page.is_some_and(|page| is_comment_on(page, link)));
        }
        Ok(Self { found, sightings, dismissals, pattern, remarks })
    }

    pub fn found(&self) -> &StoredFinding {
        &self.found
    }

    pub fn sightings(&self) -> &[StoredSighting] {
        &self.sightings
    }

    pub fn dismissals(&self) -> &[StoredDismissal] {
        &self.dismissals
    }

    pub fn pattern(&self) -> Option<&StoredPattern> {
        self.pattern.as_ref()
    }

    pub fn remarks(&self) -> &[StoredRemark] {
        &self.remarks
    }

    pub fn confidence_parts(&self) -> ConfidenceParts {
        ConfidenceParts::of(self.signs())
    }

    pub fn document(&self) -> Value {
        let finding = &self.found.finding;
        let last = self.sightings.last();
        json!({
            "id": self.found.id.get(),
            "subject": self.found.subject,
            "fingerprint": finding.fingerprint,
            "pattern": finding.key(),
            "title": finding.title,
            "message": finding.message,
            "path": finding.path,
            "line": finding.lines.map(|lines| lines.first),
            "severity": finding.severity,
            "category": finding.category,
            "witnesses": finding.witnesses.iter().map(|witness| {
                json!({ "reviewer": witness.reviewer, "rule": witness.rule })
            }).collect::<Vec<_>>(),
            "status": self.found.status,
            "visibility": self.found.shown,
            "suppressed_by": last.and_then(|last| last.hidden_by.as_ref()).map(HiddenBy::as_text),
            "second_reading": second_reading_reason(finding),
            "confidence": last.map(|last| last.confidence),
            "confidence_parts": {
                "start": ConfidenceParts::START,
                "parts": ConfidenceParts::of(self.signs()),
                "other": self.other_points(),
            },
            "first_seen": self.found.first_seen,
            "last_seen": self.found.last_seen,
            "sightings": self.sightings.iter().map(sighting_document).collect::<Vec<_>>(),
            "dismissals": self.dismissals.iter().map(|one| dismissal_document(one, finding)).collect::<Vec<_>>(),
            "remarks": self.remarks.iter().map(|one| {
                json!({ "author": one.author, "bot": one.is_bot, "link": one.link, "said_at": one.said_at })
            }).collect::<Vec<_>>(),
            "feedback": self.pattern.as_ref().map(|pattern| json!({
                "thumbs_up": pattern.feedback.thumbs_up,
                "thumbs_down": pattern.feedback.thumbs_down,
                "reactors": pattern.feedback.reactors,
                "pull_requests": pattern.feedback.pull_requests,
                "protected": pattern.protected,
            })),
        })
    }

    pub fn in_words(&self) -> String {
        let finding = &self.found.finding;
        let mut text = format!(
            "{}  {}\n  {} {}, {}, {}; {}\n",
            one_line(&place(finding)),
            one_line(&finding.title),
            finding.severity,
            finding.category,
            finding.fingerprint,
            one_line(&self.found.subject.to_string()),
            one_line(&self.now_in_words())
        );
        text += &format!("  reported by {}\n", one_line(&self.witnesses()));
        for remark in &self.remarks {
            let link = remark.link.as_ref().map(|link| format!(": {link}")).unwrap_or_default();
            text += &format!("  also named by {}\n", one_line(&format!("{}{link}", remark_in_words(remark))));
        }
        if let Some(reason) = second_reading_reason(finding) {
            text += &format!("  second reading: {}\n", one_line(reason));
        }
        text += &format!("  confidence {}\n", self.confidence_in_words());
        if let Some(pattern) = &self.pattern {
            text += &format!("  reactions: {}\n", feedback_in_words(pattern));
        }
        for dismissal in &self.dismissals {
            text += &format!("  {}\n", one_line(&dismissal_in_words(dismissal, finding)));
        }
        text += "  history:\n";
        for sighting in &self.sightings {
            text += &format!("    {}\n", one_line(&sighting_in_words(sighting, Some(sighting.confidence))));
        }
        text
    }

    /// The history for a comment on GitHub; text by others is quoted.
    pub fn markdown(&self) -> String {
        let finding = &self.found.finding;
        let quoted = |text: &str| quote_line(text, LONGEST);
        let mut text = format!(
            "**{}** is {}. It is a {} {} finding, reported by {}.\n",
            quoted(&finding.title),
            quoted(&self.now_in_words()),
            finding.severity,
            finding.category,
            quoted(&self.witnesses())
        );
        let mut facts = Vec::new();
        facts.extend(second_reading_reason(finding).map(|reason| format!("Second reading: {}", quoted(reason))));
        if !self.remarks.is_empty() {
            let named = self.remarks.iter().take(SEEN_IN_MARKDOWN).map(|remark| {
                let words = quoted(&remark_in_words(remark));
                remark.link.as_ref().map_or(words.clone(), |link| format!("[{words}]({link})"))
            });
            let mut named = named.collect::<Vec<_>>().join("; ");
            if self.remarks.len() > SEEN_IN_MARKDOWN {
                named += &format!("; and {} more", self.remarks.len() - SEEN_IN_MARKDOWN);
            }
            facts.push(format!("Also named by {named}."));
        }
        facts.extend(
            self.pattern
                .as_ref()
                .map(|pattern| format!("Reactions to `{}`: {}.", finding.fingerprint, feedback_in_words(pattern))),
        );
        facts.extend(self.dismissals.iter().map(|one| format!("{}.", quoted(&dismissal_in_words(one, finding)))));
        for fact in facts {
            text += &format!("\n- {fact}");
        }
        let reviews = counted(self.sightings.len() as u64, "review");
        text += &format!("\n\n<details><summary>Found by {reviews}</summary>\n\n");
        let earlier = self.sightings.len().saturating_sub(SEEN_IN_MARKDOWN);
        if earlier > 0 {
            text += &format!("- {} before\n", counted(earlier as u64, "review"));
        }
        for sighting in &self.sightings[earlier..] {
            text += &format!("- {}\n", quoted(&sighting_in_words(sighting, None)));
        }
        text + "\n</details>\n"
    }

    fn signs(&self) -> ConfidenceSigns {
        ConfidenceSigns {
            severity: self.found.finding.severity,
            category: self.found.finding.category,
            confirmed: has_two_reviewers(&self.found.finding),
            feedback: self.pattern.as_ref().map_or_else(PatternFeedback::default, |pattern| pattern.feedback),
        }
    }

    /// The part of the last review's confidence that the present data do not explain: a similar finding that people
    /// accepted, or reactions that were added or removed since.
    pub fn other_points(&self) -> i64 {
        let explained = confidence(self.signs());
        self.sightings.last().map_or(0, |last| i64::from(last.confidence.get()) - i64::from(explained.get()))
    }

    fn witnesses(&self) -> String {
        let witnesses = self.found.finding.witnesses.iter().map(|witness| match &witness.rule {
            Some(rule) => format!("{} ({rule})", witness.reviewer),
            None => witness.reviewer.to_string(),
        });
        witnesses.collect::<Vec<_>>().join(", ")
    }

    fn now_in_words(&self) -> String {
        if self.found.fixed {
            return "fixed".to_owned();
        }
        match self.sightings.last().and_then(|last| last.hidden_by.as_ref()) {
            Some(hidden) => hidden_in_words(hidden),
            None => shown_in_words(self.found.shown).to_owned(),
        }
    }

    fn confidence_in_words(&self) -> String {
        let Some(last) = self.sightings.last() else { return "unknown".to_owned() };
        let parts = ConfidenceParts::of(self.signs());
        let mut text = format!("{}: starts at {}", last.confidence, ConfidenceParts::START);
        let named = [
            (parts.severity, format!("for {}", self.found.finding.severity)),
            (parts.category, format!("for {}", self.found.finding.category)),
            (parts.confirmed, "for a second reviewer".to_owned()),
            (parts.feedback, "for reactions".to_owned()),
            (self.other_points(), "for what was known at the time, within 0 and 100".to_owned()),
        ];
        for (points, why) in named.into_iter().filter(|(points, _)| *points != 0) {
            text += &format!(", {points:+} {why}");
        }
        text
    }
}

/// What a second reading of a model's finding says against it: the end of the finding's message.
pub fn second_reading_reason(finding: &Finding) -> Option<&str> {
    finding.witnesses.iter().find(|witness| witness.reviewer.is_model())?;
    let (_, said) = finding.message.rsplit("\n\n").next()?.split_once("A second reading ")?;
    said.split_once(" this: ").map(|(_, reason)| reason)
}

/// Whether a link leads to a review comment in a repository: it goes into Markdown and pages as it is.
fn is_comment_on(page: &str, link: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_there = link.get(..page.len()).is_some_and(|start| start.eq_ignore_ascii_case(page));
    let place = || link[page.len()..].strip_prefix("/pull/")?.split_once("#discussion_r");
    is_there && place().is_some_and(|(pull, comment)| is_number(pull) && is_number(comment))
}

fn remark_in_words(remark: &StoredRemark) -> String {
    let author = &remark.author;
    remark.said_at.map_or_else(|| author.to_string(), |at| format!("{author}, {}", at.strftime("%-d %b %Y")))
}

fn has_two_reviewers(finding: &Finding) -> bool {
    finding.witnesses.iter().any(|witness| witness.reviewer != finding.witnesses[0].reviewer)
}

fn place(finding: &Finding) -> String {
    finding.lines.map_or_else(|| finding.path.to_string(), |lines| format!("{}:{}", finding.path, lines.first))
}

fn shown_in_words(shown: ShownAs) -> &'static str {
    match shown {
        ShownAs::Inline => "shown at its line",
        ShownAs::Details => "shown in the details",
        ShownAs::LowConfidence => "folded: confidence below review.minConfidence",
        ShownAs::Suppressed => "hidden",
    }
}

fn hidden_in_words(hidden: &HiddenBy) -> String {
    match hidden {
        HiddenBy::Dismissal => "hidden: a person dismissed it, and its code is unchanged".to_owned(),
        HiddenBy::Feedback => "hidden: people keep rejecting this kind of finding (feedback.autoSuppress)".to_owned(),
        HiddenBy::Pattern(pattern) => format!("hidden by review.suppressions: {pattern}"),
        HiddenBy::Area => "hidden: its category is excluded (review.focusAreas, review.ignoredAreas)".to_owned(),
        HiddenBy::Scope => "not shown: off the changed lines, or older than the change (review.scope)".to_owned(),
        HiddenBy::SecondReading => "dropped: a second reading did not confirm it".to_owned(),
        HiddenBy::Severity => "hidden: below review.severity.minLevel".to_owned(),
    }
}

fn sighting_in_words(sighting: &StoredSighting, confidence: Option<Confidence>) -> String {
    let place = place(&sighting.finding);
    let facts = [
        Some(sighting.at.strftime("%-d %b %Y, %H:%M UTC").to_string()),
        Some(format!("review {}", sighting.review)),
        Some(sighting.status.to_string()),
        Some(place),
        confidence.map(|confidence| confidence.to_string()),
        Some(sighting.hidden_by.as_ref().map_or_else(|| shown_in_words(sighting.shown).to_owned(), hidden_in_words)),
    ];
    let mut text = facts.into_iter().flatten().collect::<Vec<String>>().join("  ");
    if !sighting.grounded {
        text += ", outside the diff";
    }
    if !sighting.reported {
        text += ", not reported this time";
    }
    text
}

fn sighting_document(sighting: &StoredSighting) -> Value {
    json!({
        "review": sighting.review.get(),
        "at": sighting.at,
        "status": sighting.status,
        "path": sighting.finding.path,
        "line": sighting.finding.lines.map(|lines| lines.first),
        "confidence": sighting.confidence,
        "visibility": sighting.shown,
        "suppressed_by": sighting.hidden_by.as_ref().map(HiddenBy::as_text),
        "grounded": sighting.grounded,
        "reported": sighting.reported,
        "code_unchanged": sighting.code_unchanged,
    })
}

fn dismissal_in_words(one: &StoredDismissal, finding: &Finding) -> String {
    let what = match one.dismissal.kind {
        DismissalKind::WontFix => "won't fix",
        DismissalKind::Resolved => "thread resolved",
        DismissalKind::NotUseful => "not useful",
    };
    let state = match one.withdrawn_at {
        Some(at) => format!("withdrawn on {}", at.strftime("%-d %b %Y")),
        None if one.dismissal.holds(finding) => "holds while the code stays the same".to_owned(),
        None => "does not hold for the present code".to_owned(),
    };
    let at = one.dismissal.at.strftime("%-d %b %Y");
    format!("dismissed by {} ({}) on {at}: {what}; {state}", one.login, one.dismissal.by)
}

fn dismissal_document(one: &StoredDismissal, finding: &Finding) -> Value {
    json!({
        "kind": one.dismissal.kind,
        "as": one.dismissal.by,
        "by": one.login,
        "at": one.dismissal.at,
        "withdrawn_at": one.withdrawn_at,
        "holds": one.withdrawn_at.is_none() && one.dismissal.holds(finding),
    })
}

fn feedback_in_words(pattern: &StoredPattern) -> String {
    let mut text = format!(
        "{} 👍, {} 👎 from {}, rejected on {}",
        pattern.feedback.thumbs_up,
        pattern.feedback.thumbs_down,
        counted(u64::from(pattern.feedback.reactors), "person").replace("persons", "people"),
        counted(u64::from(pattern.feedback.pull_requests), "pull request")
    );
    if pattern.protected {
        text += "; protected, so reactions never hide it";
    }
    text
}

#[cfg(test)]
mod tests {
    use super::is_comment_on;

    #[test]
    fn links_lead_to_comments_in_the_repository() {
        let page = "https://github.com/Octo/cat";
        for (link, expected) in [
            ("https://github.com/octo/cat/pull/7#discussion_r12", true),
            ("https://github.com/octo/other/pull/7#discussion_r12", false),
            ("https://github.com/octo/cat-2/pull/7#discussion_r12", false),
            ("https://evil.example/octo/cat/pull/7#discussion_r12", false),
            ("https://github.com/octo/cat/pull/7#discussion_r12)[x](https://evil.example", false),
            ("https://github.com/octo/cat/pull/7/../8#discussion_r12", false),
            ("https://github.com/octo/cat/pull/#discussion_r", false),
            ("ä", false),
        ] {
            assert_eq!(is_comment_on(page, link), expected, "{link}");
        }
    }
}
