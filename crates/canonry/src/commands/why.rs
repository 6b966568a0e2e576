//! `why`: the story of each finding near a line.

use std::path::Path;
use std::str::FromStr;

use anyhow::Result;
use canonry_domain::ItemNumber;
use canonry_domain::review::{
    ConfidenceParts, ConfidenceSigns, DismissalKind, Finding, HiddenBy, LineRange, PatternFeedback, RepoPath,
    ReviewSubject, ShownAs, confidence,
};
use canonry_store::{Store, StoredDismissal, StoredFinding, StoredPattern, StoredSighting};
use serde_json::{Value, json};

use crate::context::Context;
use crate::database::DatabaseOption;
use crate::local_clone::LocalClone;
use crate::printable::one_line;
use crate::report::Report;
use crate::reviewed_repo::ReviewedRepoOption;
use crate::tables::counted;

/// Explain each finding near a line: who said it, what became of it, how sure Canonry is, what hides it.
#[derive(Debug, clap::Args)]
#[command(
    long_about = "Explain each finding near a line: who said it, what became of it, how sure Canonry is, what hides it.\n\n\
        Findings of all reviews count that are, as far as the last review of their branch or pull request knows, at most \
        three lines away, and those about the file as a whole; without a line, every finding of the file.",
    after_help = "Example:\n  canonry why src/main.rs:41\n  canonry why src/main.rs --repo octo/cat --pr 12 --json"
)]
pub(crate) struct Args {
    /// The file, from the top of the repository or from here, and the line
    #[arg(value_name = "PATH:LINE")]
    place: Place,
    #[command(flatten)]
    repo: ReviewedRepoOption,
    /// Only findings of this pull request
    #[arg(long, value_name = "NUMBER", conflicts_with = "branch")]
    pr: Option<ItemNumber>,
    /// Only findings of this branch
    #[arg(long, value_name = "NAME")]
    branch: Option<String>,
    #[command(flatten)]
    database: DatabaseOption,
}

#[derive(Debug, Clone)]
struct Place {
    path: RepoPath,
    line: Option<u32>,
}

impl FromStr for Place {
    type Err = String;

    /// `PATH`, `PATH:LINE`, or `PATH:LINE:COLUMN` as compilers write it.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = |text: &str| text.parse::<u32>().ok().filter(|line| *line > 0);
        let (mut path, mut line) = (text, None);
        for _ in 0..2 {
            let Some((before, after)) = path.rsplit_once(':') else { break };
            let Some(found) = number(after) else { break };
            (path, line) = (before, Some(found));
        }
        let path = RepoPath::new(path).map_err(|error| error.to_string())?;
        Ok(Self { path, line })
    }
}

/// So many findings of a file are looked at, and so many lines away counts as near.
const MOST: u32 = 1000;
const NEAR: u32 = 3;

pub(crate) async fn run(args: Args, _context: &Context) -> Result<Report> {
    let store = args.database.open_existing().await?;
    let repo = args.repo.find(&store).await?;
    let subject = args.pr.map(ReviewSubject::Pull).or(args.branch.map(ReviewSubject::Branch));
    let mut found = store.findings_in_file(repo.id, &args.place.path, MOST).await?;
    if found.is_empty()
        && let Some(path) = path_from_the_top(&args.place.path).await
    {
        found = store.findings_in_file(repo.id, &path, MOST).await?;
    }
    let near = found
        .into_iter()
        .filter(|one| is_near(&one.finding, args.place.line))
        .filter(|one| subject.as_ref().is_none_or(|subject| one.subject == *subject));
    let patterns = store.pattern_feedback(repo.id).await?;
    let mut stories = Vec::new();
    for finding in near {
        stories.push(Story::read(&store, finding, &patterns).await?);
    }
    store.close().await;
    let text = if stories.is_empty() {
        nothing(&args.place, &repo.name.to_string())
    } else {
        stories.iter().map(Story::in_words).collect::<Vec<_>>().join("\n")
    };
    Ok(Report::new(json!({ "findings": stories.len() }), text)
        .of(&repo.name)
        .with("findings", stories.iter().map(Story::document).collect::<Vec<_>>()))
}

/// What a path means to who stands in a folder of a clone.
async fn path_from_the_top(path: &RepoPath) -> Option<RepoPath> {
    let folder = LocalClone::find(Path::new(".")).await.ok()?.folder_in_it()?;
    RepoPath::new(&format!("{folder}/{path}")).ok()
}

fn nothing(place: &Place, repo: &str) -> String {
    let path = one_line(place.path.as_str());
    match place.line {
        Some(line) => {
            format!("No review of {repo} found anything near line {line} of {path}.\n\nNext: canonry why {path}\n")
        }
        None => format!(
            "No review of {repo} found anything in {path}; the path is the one from the top of the repository.\n"
        ),
    }
}

fn is_near(finding: &Finding, line: Option<u32>) -> bool {
    let (Some(lines), Some(line)) = (finding.lines, line) else { return true };
    lines.overlaps(LineRange { first: line.saturating_sub(NEAR).max(1), last: line.saturating_add(NEAR) })
}

/// Everything known about one finding.
struct Story<'a> {
    found: StoredFinding,
    sightings: Vec<StoredSighting>,
    dismissals: Vec<StoredDismissal>,
    pattern: Option<&'a StoredPattern>,
}

impl<'a> Story<'a> {
    async fn read(store: &Store, found: StoredFinding, patterns: &'a [StoredPattern]) -> Result<Self> {
        let pattern = patterns.iter().find(|pattern| pattern.key == *found.finding.key());
        let sightings = store.finding_story(found.id).await?;
        let dismissals = store.dismissals_of(found.id).await?;
        Ok(Self { found, sightings, dismissals, pattern })
    }

    fn signs(&self) -> ConfidenceSigns {
        ConfidenceSigns {
            severity: self.found.finding.severity,
            category: self.found.finding.category,
            confirmed: has_two_reviewers(&self.found.finding),
            feedback: self.pattern.map_or_else(PatternFeedback::default, |pattern| pattern.feedback),
        }
    }

    /// What the last review's confidence has beyond what is known now: a similar finding that people accepted, or reactions
    /// that came or went since.
    fn other_points(&self) -> i64 {
        let explained = confidence(self.signs());
        self.sightings.last().map_or(0, |last| i64::from(last.confidence.get()) - i64::from(explained.get()))
    }

    fn document(&self) -> Value {
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
            "feedback": self.pattern.map(|pattern| json!({
                "thumbs_up": pattern.feedback.thumbs_up,
                "thumbs_down": pattern.feedback.thumbs_down,
                "reactors": pattern.feedback.reactors,
                "pull_requests": pattern.feedback.pull_requests,
                "protected": pattern.protected,
            })),
        })
    }

    fn in_words(&self) -> String {
        let finding = &self.found.finding;
        let mut text = format!(
            "{}  {}\n  {} {}, {}, {}; {}\n",
            place_in_words(finding),
            one_line(&finding.title),
            finding.severity,
            finding.category,
            finding.fingerprint,
            one_line(&self.found.subject.to_string()),
            self.now_in_words()
        );
        let witnesses: Vec<String> = finding
            .witnesses
            .iter()
            .map(|witness| match &witness.rule {
                Some(rule) => format!("{} ({rule})", witness.reviewer),
                None => witness.reviewer.to_string(),
            })
            .collect();
        text += &format!("  said by {}\n", one_line(&witnesses.join(", ")));
        text += &format!("  confidence {}\n", self.confidence_in_words());
        if let Some(pattern) = self.pattern {
            text += &format!("  reactions: {}\n", feedback_in_words(pattern));
        }
        for dismissal in &self.dismissals {
            text += &format!("  {}\n", dismissal_in_words(dismissal, finding));
        }
        text += "  seen:\n";
        for sighting in &self.sightings {
            text += &format!("    {}\n", sighting_in_words(sighting));
        }
        text
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
        let mut text = format!("{}: {} to begin with", last.confidence, ConfidenceParts::START);
        let named = [
            (parts.severity, format!("as it is {}", self.found.finding.severity)),
            (parts.category, format!("as it is about {}", self.found.finding.category)),
            (parts.confirmed, "as a second reviewer says it".to_owned()),
            (parts.feedback, "by reactions to its pattern".to_owned()),
            (self.other_points(), "by what was known at the time, within 0 and 100".to_owned()),
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

fn place_in_words(finding: &Finding) -> String {
    let path = one_line(finding.path.as_str());
    finding.lines.map_or_else(|| path.clone(), |lines| format!("{path}:{}", lines.first))
}

fn shown_in_words(shown: ShownAs) -> &'static str {
    match shown {
        ShownAs::Inline => "shown at its line",
        ShownAs::Details => "shown in the details",
        ShownAs::LowConfidence => "folded away: confidence below review.minConfidence",
        ShownAs::Suppressed => "hidden",
    }
}

fn hidden_in_words(hidden: &HiddenBy) -> String {
    match hidden {
        HiddenBy::Dismissal => "hidden: a person said no to it, and its code is what it was".to_owned(),
        HiddenBy::Feedback => "hidden: people keep rejecting its pattern (feedback.autoSuppress)".to_owned(),
        HiddenBy::Pattern(pattern) => format!("hidden by review.suppressions: {}", one_line(pattern)),
        HiddenBy::Area => "hidden: its category is not wanted (review.focusAreas, review.ignoredAreas)".to_owned(),
        HiddenBy::Severity => "hidden: below review.severity.minLevel".to_owned(),
    }
}

fn sighting_in_words(sighting: &StoredSighting) -> String {
    let mut text = format!(
        "{}  review {}  {}  {}  {}  {}",
        sighting.at,
        sighting.review,
        sighting.status,
        place_in_words(&sighting.finding),
        sighting.confidence,
        sighting.hidden_by.as_ref().map_or_else(|| shown_in_words(sighting.shown).to_owned(), hidden_in_words)
    );
    if !sighting.grounded {
        text += ", off the diff";
    }
    if !sighting.reported {
        text += ", not reported that time";
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
        DismissalKind::WontFix => "will not fix it",
        DismissalKind::Resolved => "resolved its thread",
        DismissalKind::NotUseful => "finds it not useful",
    };
    let state = match one.withdrawn_at {
        Some(at) => format!("taken back {at}"),
        None if one.dismissal.holds(finding) => "holds while the flagged code stays as it is".to_owned(),
        None => "does not hold for the finding as it is now".to_owned(),
    };
    format!("{} ({}) {what}, {}; {state}", one_line(one.login.as_str()), one.dismissal.by, one.dismissal.at)
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
        text += "; the pattern is protected, reactions never hide it";
    }
    text
}

#[cfg(test)]
mod tests {
    use super::Place;

    #[test]
    fn places_as_people_and_compilers_write_them() {
        for (text, path, line) in [
            ("src/a.rs:41", "src/a.rs", Some(41)),
            ("./src/a.rs:41:7", "src/a.rs", Some(41)),
            ("src/a.rs", "src/a.rs", None),
            ("odd:name.rs", "odd:name.rs", None),
            ("odd:name.rs:3", "odd:name.rs", Some(3)),
        ] {
            let place: Place = text.parse().expect(text);
            assert_eq!((place.path.as_str(), place.line), (path, line), "{text}");
        }
        for text in ["", ":3", "../up.rs:3"] {
            assert!(text.parse::<Place>().is_err(), "{text:?}");
        }
    }
}
