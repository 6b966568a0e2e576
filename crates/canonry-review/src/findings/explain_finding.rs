//! The history of a finding: which rules report it, what became of it, its confidence, and what hides it.

use canonry_boxed::boxed;
use canonry_domain::counted;
use canonry_domain::printable::one_line;
use canonry_domain::review::{
    Confidence, ConfidenceParts, ConfidenceSigns, DismissalKind, Finding, HiddenBy, PatternFeedback, ShownAs,
    confidence,
};
use canonry_github::quote_line;
use canonry_store::{Store, StoreError, StoredDismissal, StoredFinding, StoredPattern, StoredSighting};
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
}

/// The history of the finding of a thread; `None` if no finding of ours started the thread.
#[boxed]
pub async fn explain_finding(store: &Store, at: FindingThread) -> Result<Option<FindingLife>, StoreError> {
    let Some(posted) = at.posted(store).await? else { return Ok(None) };
    let Some(found) = store.findings().get(at.repo, posted.finding).await? else { return Ok(None) };
    let patterns = store.findings().pattern_feedback(at.repo).await?;
    FindingLife::read(store, found, &patterns).await.map(Some)
}

#[boxed]
impl FindingLife {
    pub async fn read(store: &Store, found: StoredFinding, patterns: &[StoredPattern]) -> Result<Self, StoreError> {
        let pattern = patterns.iter().find(|pattern| pattern.key == *found.finding.key()).cloned();
        let sightings = store.findings().history(found.id).await?;
        let dismissals = store.findings().dismissals_of(found.id).await?;
        Ok(Self { found, sightings, dismissals, pattern })
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
        HiddenBy::SecondReading => "dropped: a second reading could not quote the line or say how it fails".to_owned(),
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
        DismissalKind::WontFix => "won't fix it",
        DismissalKind::Resolved => "resolved its thread",
        DismissalKind::NotUseful => "called it not useful",
    };
    let state = match one.withdrawn_at {
        Some(at) => format!("withdrawn on {}", at.strftime("%-d %b %Y")),
        None if one.dismissal.holds(finding) => "holds while the code stays the same".to_owned(),
        None => "does not hold for the present code".to_owned(),
    };
    let at = one.dismissal.at.strftime("%-d %b %Y");
    format!("{} ({}) {what} on {at}; {state}", one.login, one.dismissal.by)
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
        "{} up, {} down by {}, rejected on {}",
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
