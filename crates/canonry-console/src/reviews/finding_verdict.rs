//! Why a remark is repeated or not, in three sentences: what holds now, because of what, and what would change it.

use canonry_domain::review::{DismissalKind, Dismisser, FindingStatus, HiddenBy, ShownAs};
use canonry_store::{PostedFinding, ReviewId, StoredDismissal, StoredFinding, StoredPattern, StoredSighting};

use crate::layout::formatting::counted;

/// What a maintainer wants to know of a finding first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FindingVerdict {
    /// `good`, `warn`, `bad` or nothing: how the banner looks.
    pub(crate) class: &'static str,
    pub(crate) headline: String,
    pub(crate) because: String,
    /// What would bring it back, or make it go.
    pub(crate) next: String,
    /// Whether clearing the pattern's reactions is what would bring it back.
    pub(crate) by_pattern: bool,
}

pub(crate) struct FindingVerdictFacts<'a> {
    pub(crate) found: &'a StoredFinding,
    pub(crate) sightings: &'a [StoredSighting],
    pub(crate) dismissals: &'a [StoredDismissal],
    pub(crate) pattern: Option<&'a StoredPattern>,
    pub(crate) posted: &'a [PostedFinding],
    /// `review.minConfidence` as it is configured now.
    pub(crate) min_confidence: u8,
}

pub(crate) fn verdict(facts: &FindingVerdictFacts<'_>) -> FindingVerdict {
    let Some(last) = facts.sightings.last() else {
        return told("", "No review has told of it.", String::new(), "");
    };
    if facts.found.fixed {
        return fixed(facts, last);
    }
    match (last.shown, &last.hidden_by) {
        (ShownAs::Suppressed, Some(HiddenBy::Dismissal)) => dismissed(facts),
        (ShownAs::Suppressed, Some(HiddenBy::Feedback)) => rejected(facts),
        (ShownAs::Suppressed, Some(HiddenBy::Pattern(pattern))) => told(
            "warn",
            "Hidden by the configuration.",
            format!("review.suppressions in .canonry.yml has “{pattern}”, which fits it."),
            "It is told again at the next review once that entry is taken out or narrowed. A critical finding is never suppressed.",
        ),
        (ShownAs::Suppressed, Some(HiddenBy::Area)) => told(
            "warn",
            "Hidden by the configuration.",
            format!(
                "Findings about {} are not wanted here (review.focusAreas, review.ignoredAreas).",
                facts.found.finding.category
            ),
            "It is told again at the next review once its category is wanted.",
        ),
        (ShownAs::Suppressed, Some(HiddenBy::Severity)) => told(
            "warn",
            "Hidden by the configuration.",
            format!("It is {}, which is below review.severity.minLevel.", facts.found.finding.severity),
            "It is told again at the next review once that level is lowered, or when it becomes graver.",
        ),
        (ShownAs::Suppressed, None) => told("warn", "Hidden.", "The last review did not show it.".to_owned(), ""),
        (ShownAs::LowConfidence, _) => told(
            "warn",
            "Folded away as not sure enough.",
            format!("Its confidence was {}; review.minConfidence is {} now.", last.confidence, facts.min_confidence),
            "A second reviewer who reports it, thumbs up for its pattern, or a lower review.minConfidence brings it out.",
        ),
        (ShownAs::Details, _) => in_details(facts, last),
        (ShownAs::Inline, _) => at_its_line(facts, last),
    }
}

fn told(class: &'static str, headline: &str, because: String, next: &str) -> FindingVerdict {
    FindingVerdict { class, headline: headline.to_owned(), because, next: next.to_owned(), by_pattern: false }
}

fn fixed(facts: &FindingVerdictFacts<'_>, last: &StoredSighting) -> FindingVerdict {
    let standing = facts.sightings.iter().rev().find(|one| one.status != FindingStatus::Fixed);
    let because = match standing {
        Some(one) => format!("Review {} still saw it, review {} did not find it any more.", one.review, last.review),
        None => format!("Review {} did not find it any more.", last.review),
    };
    told("good", "Fixed.", because, "If the same code comes back, it is told again as reopened.")
}

fn dismissed(facts: &FindingVerdictFacts<'_>) -> FindingVerdict {
    let holds = |one: &&StoredDismissal| one.withdrawn_at.is_none() && one.dismissal.holds(&facts.found.finding);
    let Some(no) = facts.dismissals.iter().rev().find(holds) else {
        return told(
            "",
            "Not repeated: a person had said no.",
            "What was said was taken back since the last review.".to_owned(),
            "The next review tells it again if the code still has it.",
        );
    };
    let (what, back) = match no.dismissal.kind {
        DismissalKind::WontFix => ("will not fix it", "their answer is deleted"),
        DismissalKind::Resolved => ("resolved its thread", "the thread is opened again"),
        DismissalKind::NotUseful => ("finds it not useful", "the finding becomes graver than it was then"),
    };
    FindingVerdict {
        class: "",
        headline: format!("Not repeated: @{} {what}.", no.login),
        because: format!("They said so as {}, and the flagged code is what it was.", role(no)),
        next: format!("It is told again when the flagged code changes, or when {back}."),
        by_pattern: false,
    }
}

fn role(no: &StoredDismissal) -> &'static str {
    match no.dismissal.by {
        Dismisser::Author => "the author of the pull request",
        Dismisser::Maintainer => "a maintainer",
    }
}

fn rejected(facts: &FindingVerdictFacts<'_>) -> FindingVerdict {
    let because = match facts.pattern {
        Some(pattern) => format!(
            "{} of {} to its pattern are thumbs down, on {}.",
            pattern.feedback.thumbs_down,
            counted(u64::from(pattern.feedback.reactors), "reaction"),
            counted(u64::from(pattern.feedback.pull_requests), "pull request")
        ),
        None => "The reactions that hid it were cleared or taken back since the last review.".to_owned(),
    };
    let next = match facts.pattern {
        Some(_) => {
            "It is told again once a maintainer clears the pattern's reactions, people change their minds, or feedback.autoSuppress is switched off."
        }
        None => "The next review tells it again if the code still has it.",
    };
    FindingVerdict {
        class: "warn",
        headline: "Hidden: people keep rejecting its pattern.".to_owned(),
        because,
        next: next.to_owned(),
        by_pattern: facts.pattern.is_some(),
    }
}

fn in_details(facts: &FindingVerdictFacts<'_>, last: &StoredSighting) -> FindingVerdict {
    let because = if last.grounded {
        "There were more findings than review.maxComments, and graver or surer ones came first."
    } else {
        "Its line is not part of the diff, so that GitHub takes no comment there."
    };
    let next = if facts.found.subject.pull().is_some() {
        "Each summary lists it while it stands; a change of its line puts it there."
    } else {
        "Each report lists it while it stands."
    };
    told("", "Told in the review's details, not at its line.", because.to_owned(), next)
}

fn at_its_line(facts: &FindingVerdictFacts<'_>, last: &StoredSighting) -> FindingVerdict {
    let fresh = "It is judged afresh as soon as the flagged code changes.";
    let comment = facts.posted.last();
    match (comment, said_in(facts.posted, last.review)) {
        (Some(_), true) if facts.posted.len() > 1 => told(
            "bad",
            "Stands, and was said anew.",
            format!("Review {} found the flagged code changed and the remark still true.", last.review),
            fresh,
        ),
        (Some(_), true) => {
            told("bad", "Stands, and was said at its line.", format!("Review {} told of it.", last.review), fresh)
        }
        (Some(comment), false) => {
            let since = facts.sightings.iter().filter(|one| one.review > comment.run).count() as u64;
            told(
                "",
                "Stands, and is not repeated.",
                format!(
                    "Review {} said it; {} since found the same code, and nobody is told the same thing twice about the same code.",
                    comment.run,
                    counted(since, "review")
                ),
                fresh,
            )
        }
        (None, _) => {
            told("bad", "Stands.", "It is shown in the report; no comment of it is known on GitHub.".to_owned(), fresh)
        }
    }
}

pub(crate) fn said_in(posted: &[PostedFinding], review: ReviewId) -> bool {
    posted.iter().any(|one| one.run == review)
}

/// What one review did about a finding, in two words.
pub(crate) fn note(sighting: &StoredSighting, is_said: bool) -> &'static str {
    match (sighting.status, sighting.shown) {
        (FindingStatus::Fixed, _) => "gone",
        (FindingStatus::Dismissed, ShownAs::Suppressed) => "kept quiet",
        (_, ShownAs::Suppressed) => "hidden",
        _ if is_said => "commented",
        (_, ShownAs::LowConfidence) => "folded away",
        (_, ShownAs::Details) => "in the details",
        (_, ShownAs::Inline) if sighting.said_inline => "not repeated",
        (_, ShownAs::Inline) => "shown",
    }
}

#[cfg(test)]
mod tests {
    use canonry_domain::review::{
        Category, CodeHash, Confidence, Dismissal, DismissalKind, Dismisser, Finding, FindingStatus, Fingerprint,
        HiddenBy, LineRange, PatternFeedback, PatternKey, RepoPath, ReviewSubject, ReviewerName, Severity, ShownAs,
        Witness,
    };
    use canonry_domain::{GithubId, ItemNumber};
    use canonry_store::{
        FindingId, PostedFinding, Repo, ReviewId, Store, StoredDismissal, StoredFinding, StoredPattern, StoredSighting,
    };
    use canonry_testkit::database::TestDatabase;
    use jiff::Timestamp;

    use super::{FindingVerdictFacts, note, verdict};

    fn number() -> ItemNumber {
        ItemNumber::new(7).expect("positive")
    }

    fn finding() -> Finding {
        Finding {
            title: "Eval".into(),
            message: String::new(),
            path: RepoPath::new("a.js").expect("a path"),
            lines: LineRange::new(3, 3),
            severity: Severity::Medium,
            category: Category::Style,
            fingerprint: Fingerprint::of_title("Eval"),
            code: Some(CodeHash::of(["eval"])),
            around: None,
            witnesses: vec![Witness {
                reviewer: ReviewerName::builtin(),
                rule: None,
                key: PatternKey::of_title("Eval"),
            }],
            partial: Default::default(),
            tags: Default::default(),
            fix: None,
        }
    }

    fn seen(review: i64, status: FindingStatus, shown: ShownAs, hidden_by: Option<HiddenBy>) -> StoredSighting {
        let confidence: Confidence = serde_json::from_value(55.into()).expect("points");
        StoredSighting {
            review: ReviewId::new(review),
            id: FindingId::new(1),
            finding: finding(),
            status,
            shown,
            hidden_by,
            confidence,
            grounded: true,
            said_inline: status == FindingStatus::Same,
            reported: true,
            code_unchanged: status == FindingStatus::Same,
            at: Timestamp::UNIX_EPOCH,
        }
    }

    fn comment(review: i64, repo: &Repo) -> PostedFinding {
        PostedFinding {
            repo: repo.clone(),
            number: number(),
            run: ReviewId::new(review),
            finding: FindingId::new(1),
            comment: GithubId(71),
            posted_at: Timestamp::UNIX_EPOCH,
            said: finding(),
            settled: None,
            settled_at: None,
        }
    }

    /// What is said of a finding that was seen so and commented by these reviews.
    fn headline(
        sightings: &[StoredSighting],
        dismissals: &[StoredDismissal],
        pattern: Option<&StoredPattern>,
        posted: &[PostedFinding],
    ) -> String {
        let last = sightings.last().expect("one");
        let found = StoredFinding {
            id: FindingId::new(1),
            subject: ReviewSubject::Pull(number()),
            finding: finding(),
            status: last.status,
            shown: last.shown,
            fixed: last.status == FindingStatus::Fixed,
            first_seen: Timestamp::UNIX_EPOCH,
            last_seen: Timestamp::UNIX_EPOCH,
        };
        let facts = FindingVerdictFacts { found: &found, sightings, dismissals, pattern, posted, min_confidence: 60 };
        let verdict = verdict(&facts);
        format!("{} {} {}", verdict.headline, verdict.because, verdict.next)
    }

    /// A repository is only to be had from a store.
    async fn repo() -> Repo {
        let database = TestDatabase::sqlite();
        let store = Store::open(&database.url().parse().expect("valid"), Timestamp::UNIX_EPOCH).await.expect("opens");
        store.repos().ensure(&"tide/pool".parse().expect("valid"), Timestamp::UNIX_EPOCH).await.expect("created")
    }

    #[tokio::test]
    async fn five_seconds_are_enough() {
        let repo = repo().await;
        let (new, same) =
            (seen(1, FindingStatus::New, ShownAs::Inline, None), seen(2, FindingStatus::Same, ShownAs::Inline, None));
        let said = [comment(1, &repo)];
        let both = [new.clone(), same.clone()];
        assert_eq!(
            headline(&both, &[], None, &said),
            "Stands, and is not repeated. Review 1 said it; 1 review since found the same code, and nobody is told the same thing twice about the same code. It is judged afresh as soon as the flagged code changes."
        );
        assert!(headline(&both[..1], &[], None, &said).starts_with("Stands, and was said at its line. Review 1"));
        assert!(headline(&both, &[], None, &[comment(1, &repo), comment(2, &repo)]).contains("said anew"));
        assert!(headline(&both, &[], None, &[]).contains("no comment of it is known"));
        let gone = seen(3, FindingStatus::Fixed, ShownAs::Details, None);
        assert_eq!(
            headline(&[new.clone(), same.clone(), gone], &[], None, &said),
            "Fixed. Review 2 still saw it, review 3 did not find it any more. If the same code comes back, it is told again as reopened."
        );
        assert_eq!((note(&new, true), note(&same, false)), ("commented", "not repeated"));
    }

    #[test]
    fn what_hides_it_and_what_would_bring_it_back() {
        let hidden = |by| [seen(1, FindingStatus::Same, ShownAs::Suppressed, Some(by))];
        let no = StoredDismissal {
            dismissal: Dismissal {
                kind: DismissalKind::Resolved,
                by: Dismisser::Maintainer,
                code: finding().code,
                protected: false,
                at: Timestamp::UNIX_EPOCH,
            },
            login: "mona".parse().expect("a login"),
            withdrawn_at: None,
        };
        let said = headline(&hidden(HiddenBy::Dismissal), std::slice::from_ref(&no), None, &[]);
        assert!(said.contains("@mona resolved its thread") && said.contains("the thread is opened again"), "{said}");
        let taken_back = StoredDismissal { withdrawn_at: Some(Timestamp::UNIX_EPOCH), ..no };
        let said = headline(&hidden(HiddenBy::Dismissal), &[taken_back], None, &[]);
        assert!(said.contains("taken back since") && said.contains("next review tells it again"), "{said}");

        let feedback = PatternFeedback { thumbs_up: 0, thumbs_down: 3, reactors: 3, pull_requests: 2 };
        let pattern = StoredPattern {
            key: PatternKey::of_title("Eval"),
            fingerprint: Fingerprint::of_title("Eval"),
            title: "Eval".into(),
            feedback,
            protected: false,
        };
        let said = headline(&hidden(HiddenBy::Feedback), &[], Some(&pattern), &[]);
        assert!(
            said.contains("3 of 3 reactions to its pattern are thumbs down")
                && said.contains("clears the pattern's reactions"),
            "{said}"
        );
        let said = headline(&hidden(HiddenBy::Feedback), &[], None, &[]);
        assert!(said.contains("were cleared or taken back"), "{said}");
        for (by, expected) in [
            (HiddenBy::Pattern("glob:*.js".into()), "“glob:*.js”"),
            (HiddenBy::Area, "about style are not wanted"),
            (HiddenBy::Severity, "It is medium, which is below"),
        ] {
            let said = headline(&hidden(by), &[], None, &[]);
            assert!(said.contains(expected) && said.contains("told again at the next review"), "{said}");
        }
        let folded = [seen(1, FindingStatus::New, ShownAs::LowConfidence, None)];
        assert!(headline(&folded, &[], None, &[]).contains("55 %; review.minConfidence is 60"));
        let off = StoredSighting { grounded: false, ..seen(1, FindingStatus::New, ShownAs::Details, None) };
        assert!(headline(&[off], &[], None, &[]).contains("not part of the diff"));
    }
}
