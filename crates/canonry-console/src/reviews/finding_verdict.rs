//! Why a finding is repeated or not, in three sentences: its status, the reason, and what would change it.

use canonry_domain::review::{DismissalKind, Dismisser, FindingStatus, HiddenBy, ShownAs};
use canonry_review::second_reading_reason;
use canonry_store::{PostedFinding, ReviewId, StoredDismissal, StoredFinding, StoredPattern, StoredSighting};

use crate::layout::formatting::counted;

/// What a maintainer wants to know first about a finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FindingVerdict {
    /// `good`, `warn`, `bad` or empty: the style of the banner.
    pub(crate) class: &'static str,
    pub(crate) headline: String,
    pub(crate) because: String,
    /// What would show the finding again, or settle it.
    pub(crate) next: String,
    /// Whether clearing the pattern's reactions would show the finding again.
    pub(crate) by_pattern: bool,
}

pub(crate) struct FindingVerdictFacts<'a> {
    pub(crate) found: &'a StoredFinding,
    pub(crate) sightings: &'a [StoredSighting],
    pub(crate) dismissals: &'a [StoredDismissal],
    pub(crate) pattern: Option<&'a StoredPattern>,
    pub(crate) posted: &'a [PostedFinding],
    /// `review.minConfidence` as currently configured.
    pub(crate) min_confidence: u8,
}

pub(crate) fn verdict(facts: &FindingVerdictFacts<'_>) -> FindingVerdict {
    let Some(last) = facts.sightings.last() else {
        return verdict_of("", "No review has reported it.", String::new(), "");
    };
    if facts.found.fixed {
        return fixed(facts, last);
    }
    match (last.shown, &last.hidden_by) {
        (ShownAs::Suppressed, Some(HiddenBy::Dismissal)) => dismissed(facts),
        (ShownAs::Suppressed, Some(HiddenBy::Feedback)) => rejected(facts),
        (ShownAs::Suppressed, Some(HiddenBy::Pattern(pattern))) => verdict_of(
            "warn",
            "Hidden by the configuration.",
            format!("It matches “{pattern}” in review.suppressions of .canonry.yml."),
            "The next review shows it again once that entry is removed or narrowed. A critical finding is never hidden.",
        ),
        (ShownAs::Suppressed, Some(HiddenBy::Area)) => verdict_of(
            "warn",
            "Hidden by the configuration.",
            format!(
                "Findings about {} are hidden by review.focusAreas or review.ignoredAreas.",
                facts.found.finding.category
            ),
            "The next review shows it again once its category is switched on.",
        ),
        (ShownAs::Suppressed, Some(HiddenBy::Severity)) => verdict_of(
            "warn",
            "Hidden by the configuration.",
            format!("It is {}, which is below review.severity.minLevel.", facts.found.finding.severity),
            "The next review shows it again once that level is lowered, or when its severity rises.",
        ),
        (ShownAs::Suppressed, Some(HiddenBy::Scope)) => verdict_of(
            "",
            "Counted, not shown.",
            "It is off the lines that the change touches, or the base has it too.".to_owned(),
            "A change that touches its line shows it; review.scope: all in .canonry.yml shows every finding.",
        ),
        (ShownAs::Suppressed, Some(HiddenBy::SecondReading)) => verdict_of(
            "",
            "Dropped by a second reading.",
            match second_reading_reason(&facts.found.finding) {
                Some(reason) => format!("A second reading by the model did not confirm this finding: {reason}"),
                None => "A second reading by the model did not confirm this finding.".to_owned(),
            },
            "If a later review reports it, the model checks it again.",
        ),
        (ShownAs::Suppressed, None) => verdict_of("warn", "Hidden.", "The last review did not show it.".to_owned(), ""),
        (ShownAs::LowConfidence, _) => verdict_of(
            "warn",
            "Folded: low confidence.",
            format!("Its confidence was {}; review.minConfidence is {} now.", last.confidence, facts.min_confidence),
            "A second reviewer who reports it, 👍 for its pattern, or a lower review.minConfidence shows it.",
        ),
        (ShownAs::Details, _) => in_details(facts, last),
        (ShownAs::Inline, _) => at_its_line(facts, last),
    }
}

fn verdict_of(class: &'static str, headline: &str, because: String, next: &str) -> FindingVerdict {
    FindingVerdict { class, headline: headline.to_owned(), because, next: next.to_owned(), by_pattern: false }
}

fn fixed(facts: &FindingVerdictFacts<'_>, last: &StoredSighting) -> FindingVerdict {
    let standing = facts.sightings.iter().rev().find(|one| one.status != FindingStatus::Fixed);
    let because = match standing {
        Some(one) => format!("Review {} still found it, review {} did not.", one.review, last.review),
        None => format!("Review {} no longer found it.", last.review),
    };
    verdict_of("good", "Fixed.", because, "If the same code comes back, the finding is reopened.")
}

fn dismissed(facts: &FindingVerdictFacts<'_>) -> FindingVerdict {
    let holds = |one: &&StoredDismissal| one.withdrawn_at.is_none() && one.dismissal.holds(&facts.found.finding);
    let Some(no) = facts.dismissals.iter().rev().find(holds) else {
        return verdict_of(
            "",
            "Dismissed by a person at the last review.",
            "The dismissal was withdrawn since.".to_owned(),
            "The next review shows it again if the code still has it.",
        );
    };
    let (what, back) = match no.dismissal.kind {
        DismissalKind::WontFix => ("won’t fix it", "their answer is deleted"),
        DismissalKind::Resolved => ("resolved its thread", "the thread is reopened"),
        DismissalKind::NotUseful => ("called it not useful", "its severity rises"),
    };
    FindingVerdict {
        class: "",
        headline: format!("Dismissed: @{} {what}.", no.login),
        because: format!("They are {}, and the flagged code is unchanged.", role(no)),
        next: format!("It is shown again when the flagged code changes, or when {back}."),
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
            "{} of {} to its pattern are 👎, on {}.",
            pattern.feedback.thumbs_down,
            counted(u64::from(pattern.feedback.reactors), "reaction"),
            counted(u64::from(pattern.feedback.pull_requests), "pull request")
        ),
        None => "The reactions that hid it were cleared or removed since the last review.".to_owned(),
    };
    let next = match facts.pattern {
        Some(_) => {
            "It is shown again once a maintainer clears the pattern's reactions, people change them, or feedback.autoSuppress is off."
        }
        None => "The next review shows it again if the code still has it.",
    };
    FindingVerdict {
        class: "warn",
        headline: "Hidden: people reject its pattern.".to_owned(),
        because,
        next: next.to_owned(),
        by_pattern: facts.pattern.is_some(),
    }
}

fn in_details(facts: &FindingVerdictFacts<'_>, last: &StoredSighting) -> FindingVerdict {
    let because = if last.grounded {
        "There were more findings than review.maxComments, and others had a higher severity or confidence."
    } else {
        "Its line is not part of the diff, where GitHub accepts no comment."
    };
    let next = if facts.found.subject.pull().is_some() {
        "Each review lists it while it is open. It becomes inline when its line changes."
    } else {
        "Each report lists it while it is open."
    };
    verdict_of("", "Open, and listed in the review's details.", because.to_owned(), next)
}

fn at_its_line(facts: &FindingVerdictFacts<'_>, last: &StoredSighting) -> FindingVerdict {
    let fresh = "It is judged again when the flagged code changes.";
    let comment = facts.posted.last();
    match (comment, said_in(facts.posted, last.review)) {
        (Some(_), true) if facts.posted.len() > 1 => verdict_of(
            "bad",
            "Open, and commented again.",
            format!("Review {} found it in the changed code.", last.review),
            fresh,
        ),
        (Some(_), true) => verdict_of(
            "bad",
            "Open, and commented inline.",
            format!("Review {} posted the comment.", last.review),
            fresh,
        ),
        (Some(comment), false) => {
            let since = facts.sightings.iter().filter(|one| one.review > comment.run).count() as u64;
            verdict_of(
                "",
                "Open, and not repeated.",
                format!(
                    "Review {} posted the comment. {} found the same code, which gets no second comment.",
                    comment.run,
                    counted(since, "later review")
                ),
                fresh,
            )
        }
        (None, _) => {
            verdict_of("bad", "Open.", "The report shows it; there is no comment on GitHub.".to_owned(), fresh)
        }
    }
}

pub(crate) fn said_in(posted: &[PostedFinding], review: ReviewId) -> bool {
    posted.iter().any(|one| one.run == review)
}

/// What one review did about a finding, in two words.
pub(crate) fn note(sighting: &StoredSighting, is_said: bool) -> &'static str {
    match (sighting.status, sighting.shown) {
        (FindingStatus::Fixed, _) => "fixed",
        (FindingStatus::Dismissed, ShownAs::Suppressed) => "dismissed",
        (_, ShownAs::Suppressed) => "hidden",
        _ if is_said => "commented",
        (_, ShownAs::LowConfidence) => "low confidence",
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
            message: "It runs.\n\nA second reading did not confirm this: it quotes no line".into(),
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
            replacement: None,
            unproven: false,
        }
    }

    fn seen(review: i64, status: FindingStatus, shown: ShownAs, hidden_by: Option<HiddenBy>) -> StoredSighting {
        let confidence: Confidence = serde_json::from_value(55.into()).expect("points");
        StoredSighting {
            review: ReviewId::new(review),
            id: FindingId::new(1),
            finding: finding(),
            excerpt: None,
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

    /// The headline of a finding with these sightings and comments.
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

    /// A repository can only be created by a store.
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
            "Open, and not repeated. Review 1 posted the comment. 1 later review found the same code, which gets no second comment. It is judged again when the flagged code changes."
        );
        assert!(headline(&both[..1], &[], None, &said).starts_with("Open, and commented inline. Review 1"));
        assert!(headline(&both, &[], None, &[comment(1, &repo), comment(2, &repo)]).contains("commented again"));
        assert!(headline(&both, &[], None, &[]).contains("there is no comment on GitHub"));
        let gone = seen(3, FindingStatus::Fixed, ShownAs::Details, None);
        assert_eq!(
            headline(&[new.clone(), same.clone(), gone], &[], None, &said),
            "Fixed. Review 2 still found it, review 3 did not. If the same code comes back, the finding is reopened."
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
        assert!(said.contains("@mona resolved its thread") && said.contains("the thread is reopened"), "{said}");
        let withdrawn = StoredDismissal { withdrawn_at: Some(Timestamp::UNIX_EPOCH), ..no };
        let said = headline(&hidden(HiddenBy::Dismissal), &[withdrawn], None, &[]);
        assert!(said.contains("withdrawn since") && said.contains("next review shows it again"), "{said}");

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
            said.contains("3 of 3 reactions to its pattern are 👎") && said.contains("clears the pattern's reactions"),
            "{said}"
        );
        let said = headline(&hidden(HiddenBy::Feedback), &[], None, &[]);
        assert!(said.contains("were cleared or removed"), "{said}");
        for (by, expected) in [
            (HiddenBy::Pattern("glob:*.js".into()), "“glob:*.js”"),
            (HiddenBy::Area, "about style are hidden by review.focusAreas"),
            (HiddenBy::Severity, "It is medium, which is below"),
        ] {
            let said = headline(&hidden(by), &[], None, &[]);
            assert!(said.contains(expected) && said.contains("The next review shows it again"), "{said}");
        }
        let said = headline(&hidden(HiddenBy::SecondReading), &[], None, &[]);
        assert!(said.contains("did not confirm this finding. If a later review"), "{said}");
        let folded = [seen(1, FindingStatus::New, ShownAs::LowConfidence, None)];
        assert!(headline(&folded, &[], None, &[]).contains("55 %; review.minConfidence is 60"));
        let off = StoredSighting { grounded: false, ..seen(1, FindingStatus::New, ShownAs::Details, None) };
        assert!(headline(&[off], &[], None, &[]).contains("not part of the diff"));
    }
}
