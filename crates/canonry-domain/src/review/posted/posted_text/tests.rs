//! Tests of the review texts: examples as people read them, and properties for any input.

use std::collections::BTreeMap;

use canonry_testkit::public_text::{assert_readable, words_in_sight};
use proptest::prelude::{any, prop, prop_assert, prop_assert_eq, proptest};

use super::{
    CheckConclusion, EarlierFinding, FindingComment, ListedFinding, PostedSummary, RETIRED_SUMMARY, check_conclusion,
    check_output, fenced, finding_comment, fixed_comment, not_reviewed_comment, repeated_finding_comment, review_body,
    status_comment,
};
use crate::review::{
    CommitSha, CountedFinding, DismissalKind, FindingStatus, ReviewCounts, ReviewGaps, ScopeReason, Severity, ShownAs,
};

fn sha(digits: &str) -> CommitSha {
    digits.repeat(6)[..40].parse().expect("an id")
}

fn plain() -> FindingComment<'static> {
    FindingComment {
        title: "Possible SQL injection in the query",
        message: "",
        more: "",
        severity: Severity::Major,
        rules: "`semgrep/sql-concat`",
        status: FindingStatus::New,
        said_of_other_code: false,
        fix: None,
        suppression: Some("`\"Possible SQL injection in the query\"`"),
        handle: Some("canonry"),
    }
}

fn counted(findings: &[(FindingStatus, Severity, ShownAs)]) -> ReviewCounts {
    ReviewCounts::of(findings.iter().map(|(status, severity, shown)| CountedFinding {
        status: *status,
        severity: *severity,
        shown: *shown,
        hidden_by: None,
    }))
}

fn listed(severity: Severity, place: &str, title: &str, message: &str) -> ListedFinding {
    let (place, title, message) = (place.to_owned(), title.to_owned(), message.to_owned());
    ListedFinding { severity, place, title, message, note: None, since: None }
}

fn earlier(status: FindingStatus, place: &str, title: &str) -> EarlierFinding {
    EarlierFinding {
        status,
        place: place.to_owned(),
        moved_from: None,
        title: title.to_owned(),
        since: Some("aaaaaaa".to_owned()),
        dismissed: None,
    }
}

/// The data that the summary of a test borrows from.
struct Facts {
    head: CommitSha,
    reason: ScopeReason,
    counts: ReviewCounts,
    suppressed: BTreeMap<Severity, usize>,
    gaps: ReviewGaps,
}

impl Facts {
    fn of(counts: ReviewCounts) -> Self {
        let gaps = ReviewGaps { reviewers: 2, ..ReviewGaps::default() };
        Self { head: sha("abc1234"), reason: ScopeReason::NoPriorReview, counts, suppressed: BTreeMap::new(), gaps }
    }

    fn summary(&self) -> PostedSummary<'_> {
        PostedSummary {
            head: &self.head,
            reason: &self.reason,
            counts: &self.counts,
            suppressed: &self.suppressed,
            gaps: &self.gaps,
            listed: &[],
            unposted: None,
            resolved: &[],
            earlier: &[],
            further: &[],
            low_confidence: &[],
            read: (3, 3, 120),
            unlisted: 0,
            skipped: &[],
            hidden: None,
            hidden_patterns: 0,
            reviewers: "builtin (0 findings), semgrep (2 findings)",
            model: None,
            problems: &[],
            notes: &[],
            others: None,
            handle: Some("canonry"),
        }
    }
}

/// A second review with entries in every list.
struct SecondReview {
    facts: Facts,
    listed: Vec<ListedFinding>,
    resolved: Vec<ListedFinding>,
    earlier: Vec<EarlierFinding>,
    further: Vec<ListedFinding>,
    low_confidence: Vec<ListedFinding>,
    skipped: Vec<String>,
    notes: Vec<String>,
}

impl SecondReview {
    fn new() -> Self {
        let facts = Facts {
            reason: ScopeReason::IncrementalFrom(sha("1234567")),
            suppressed: [(Severity::Minor, 1), (Severity::Medium, 2)].into(),
            ..Facts::of(counted(&[
                (FindingStatus::New, Severity::Critical, ShownAs::Inline),
                (FindingStatus::Moved, Severity::Major, ShownAs::Inline),
                (FindingStatus::Same, Severity::Medium, ShownAs::Inline),
                (FindingStatus::New, Severity::Medium, ShownAs::Details),
                (FindingStatus::New, Severity::Minor, ShownAs::LowConfidence),
                (FindingStatus::Dismissed, Severity::Minor, ShownAs::Suppressed),
                (FindingStatus::New, Severity::Medium, ShownAs::Suppressed),
                (FindingStatus::New, Severity::Medium, ShownAs::Suppressed),
                (FindingStatus::Fixed, Severity::Major, ShownAs::Details),
            ]))
        };
        let password = "Whoever reads the code can log in.";
        Self {
            facts,
            listed: vec![
                ListedFinding {
                    note: Some("outside the diff"),
                    ..listed(Severity::Critical, "`src/db.js:41`", "Password in the code", password)
                },
                ListedFinding {
                    note: Some("code changed"),
                    since: Some("aaaaaaa".to_owned()),
                    ..listed(Severity::Medium, "`src/c.js:3`", "Unused variable `x`", "")
                },
            ],
            resolved: vec![listed(Severity::Critical, "`src/f.js:2`", "Eval of a cookie", "")],
            earlier: vec![
                earlier(FindingStatus::Fixed, "`src/a.js:10`", "Eval of input"),
                EarlierFinding {
                    moved_from: Some("`src/b.js:12`".to_owned()),
                    ..earlier(FindingStatus::Moved, "`src/b.js:20`", "File stays open")
                },
                EarlierFinding {
                    dismissed: Some(("`mona`".to_owned(), DismissalKind::WontFix)),
                    ..earlier(FindingStatus::Dismissed, "`src/d.js:7`", "Long line")
                },
            ],
            further: vec![ListedFinding {
                since: Some("aaaaaaa".to_owned()),
                ..listed(Severity::Medium, "`src/e.js:5`", "Off the diff", "")
            }],
            low_confidence: vec![listed(Severity::Minor, "`src/e.js:9`", "Perhaps a typo", "")],
            skipped: vec!["`logo.png`: it is binary".to_owned()],
            notes: vec!["semgrep: 2 results have no place".to_owned()],
        }
    }

    fn summary(&self) -> PostedSummary<'_> {
        PostedSummary {
            listed: &self.listed,
            resolved: &self.resolved,
            earlier: &self.earlier,
            further: &self.further,
            low_confidence: &self.low_confidence,
            read: (5, 4, 1_234),
            unlisted: 0,
            skipped: &self.skipped,
            hidden: Some("3 findings hidden: 1 dismissed, 2 by feedback."),
            hidden_patterns: 2,
            model: Some("m-1: 3 calls, 12,345 tokens in, 678 tokens out, $0.0312"),
            notes: &self.notes,
            ..self.facts.summary()
        }
    }
}

/// A review that is incomplete and could not be posted.
fn troubled() -> Facts {
    Facts {
        gaps: ReviewGaps { reviewers: 2, troubled_reviewers: 1, skipped_files: 1, none_listed: false },
        ..Facts::of(counted(&[(FindingStatus::New, Severity::Minor, ShownAs::Inline)]))
    }
}

#[test]
fn a_finding_at_its_line() {
    let fix = fenced("db.query(\"… WHERE name = $1\", [name])");
    let told = FindingComment {
        message: "The value of `name` is put into the statement as it is.",
        more: "Whoever controls `name` controls the statement.",
        fix: Some(&fix),
        ..plain()
    };
    insta::assert_snapshot!(finding_comment(&told), @r#"
    **Possible SQL injection in the query**

    The value of `name` is put into the statement as it is.

    <details>
    <summary>More</summary>

    Whoever controls `name` controls the statement.

    </details>

    Suggested:

    ```
    db.query("… WHERE name = $1", [name])
    ```

    <sub>Major · `semgrep/sql-concat` · Not useful? Reply `/canonry not useful`.</sub>
    "#);
}

#[test]
fn a_finding_with_nothing_but_a_title() {
    insta::assert_snapshot!(finding_comment(&plain()), @"
    **Possible SQL injection in the query**

    <sub>Major · `semgrep/sql-concat` · Not useful? Reply `/canonry not useful`.</sub>
    ");
}

#[test]
fn a_finding_that_is_posted_again_says_why() {
    let back = finding_comment(&FindingComment { status: FindingStatus::Reopened, ..plain() });
    assert!(back.contains("\n\nThis was fixed before and is back.\n\n"), "{back}");
    let known = FindingComment { status: FindingStatus::Moved, ..plain() };
    let changed = finding_comment(&FindingComment { said_of_other_code: true, ..known });
    assert!(changed.contains("\n\nThis was posted before; its code has changed since.\n\n"), "{changed}");
    // The finding is known, but it was never posted at its line.
    assert_eq!(finding_comment(&known), finding_comment(&plain()));
}

#[test]
fn a_thread_that_cannot_be_resolved_says_so_itself() {
    assert_eq!(fixed_comment("**Leak**", &sha("abc1234")), "Fixed in `abc1234`.\n\n**Leak**");
    assert_eq!(
        repeated_finding_comment("**Leak**", &sha("abc1234")),
        "The code has changed; a newer comment on `abc1234` replaces this one.\n\n**Leak**"
    );
}

#[test]
fn the_status_of_a_clean_change() {
    let facts = Facts::of(ReviewCounts::default());
    insta::assert_snapshot!(status_comment(&facts.summary()), @"
    **No findings.** Last reviewed commit: `abc1234`.

    <details>
    <summary>Review details</summary>

    - Full review: no earlier review.
    - 3 of 3 changed files read, 120 lines.
    - Reviewers: builtin (0 findings), semgrep (2 findings).

    `/canonry help` lists the commands.

    </details>
    ");
    let (title, text) = check_output(&facts.summary());
    insta::assert_snapshot!(format!("{title}\n\n{text}"), @"
    No findings

    - Full review: no earlier review.
    - 3 of 3 changed files read, 120 lines.
    - Reviewers: builtin (0 findings), semgrep (2 findings).
    ");
}

#[test]
fn a_second_review_says_what_became_of_every_finding() {
    let second = SecondReview::new();
    insta::assert_snapshot!(review_body(&second.summary()), @"
    **5 findings**: 1 critical, 1 major, 2 medium, 1 minor. Since the last review: 3 new, 1 fixed, 2 still open.

    - **Critical**: Password in the code · `src/db.js:41` · outside the diff
      Whoever reads the code can log in.
    - **Medium**: Unused variable `x` · `src/c.js:3` · code changed · since `aaaaaaa`

    Still open, although their threads are resolved; only a maintainer can dismiss these:

    - **Critical**: Eval of a cookie · `src/f.js:2`

    <details>
    <summary>Further findings (1)</summary>

    - **Medium**: Off the diff · `src/e.js:5` · since `aaaaaaa`

    </details>

    <details>
    <summary>Low confidence (1)</summary>

    - **Minor**: Perhaps a typo · `src/e.js:9`

    </details>

    <details>
    <summary>Earlier findings (3)</summary>

    - **Fixed**: Eval of input · `src/a.js:10` · since `aaaaaaa`
    - **Still open**: File stays open · `src/b.js:12` → `src/b.js:20` · since `aaaaaaa`
    - **Dismissed** by `mona` (won't fix): Long line · `src/d.js:7` · since `aaaaaaa`

    </details>

    <details>
    <summary>Review details</summary>

    - Incremental review: changes since `1234567`.
    - 4 of 5 changed files read, 1,234 lines; 1 skipped.
    - Reviewers: builtin (0 findings), semgrep (2 findings).
    - Model: m-1: 3 calls, 12,345 tokens in, 678 tokens out, $0.0312.
    - 3 findings hidden: 1 dismissed, 2 by feedback.
    - 2 patterns auto-suppressed based on prior feedback.

    | severity | shown | hidden |
    |---|--:|--:|
    | critical | 1 | 0 |
    | major | 1 | 0 |
    | medium | 2 | 2 |
    | minor | 1 | 1 |

    Not read:

    - `logo.png`: it is binary

    Notes:

    - semgrep: 2 results have no place

    `/canonry help` lists the commands.

    </details>
    ");
    let (title, text) = check_output(&second.summary());
    insta::assert_snapshot!(format!("{title}\n\n{text}"), @"
    5 findings: 1 critical, 1 major, 2 medium, 1 minor

    Since the last review: 3 new, 1 fixed, 2 still open.

    - **Critical**: Password in the code · `src/db.js:41` · outside the diff
      Whoever reads the code can log in.
    - **Medium**: Unused variable `x` · `src/c.js:3` · code changed · since `aaaaaaa`

    Still open, although their threads are resolved; only a maintainer can dismiss these:

    - **Critical**: Eval of a cookie · `src/f.js:2`

    <details>
    <summary>Further findings (1)</summary>

    - **Medium**: Off the diff · `src/e.js:5` · since `aaaaaaa`

    </details>

    <details>
    <summary>Low confidence (1)</summary>

    - **Minor**: Perhaps a typo · `src/e.js:9`

    </details>

    <details>
    <summary>Earlier findings (3)</summary>

    - **Fixed**: Eval of input · `src/a.js:10` · since `aaaaaaa`
    - **Still open**: File stays open · `src/b.js:12` → `src/b.js:20` · since `aaaaaaa`
    - **Dismissed** by `mona` (won't fix): Long line · `src/d.js:7` · since `aaaaaaa`

    </details>

    - Incremental review: changes since `1234567`.
    - 4 of 5 changed files read, 1,234 lines; 1 skipped.
    - Reviewers: builtin (0 findings), semgrep (2 findings).
    - Model: m-1: 3 calls, 12,345 tokens in, 678 tokens out, $0.0312.
    - 3 findings hidden: 1 dismissed, 2 by feedback.
    - 2 patterns auto-suppressed based on prior feedback.

    | severity | shown | hidden |
    |---|--:|--:|
    | critical | 1 | 0 |
    | major | 1 | 0 |
    | medium | 2 | 2 |
    | minor | 1 | 1 |

    Not read:

    - `logo.png`: it is binary

    Notes:

    - semgrep: 2 results have no place
    ");
}

#[test]
fn what_is_not_whole_or_not_posted_says_so_first() {
    let facts = troubled();
    let summary = PostedSummary {
        listed: &[listed(Severity::Minor, "`a.js:1`", "Typo", "It is spelled otherwise.")],
        unposted: Some("403 Forbidden"),
        skipped: &["`big.js`: it is too large".to_owned()],
        problems: &["semgrep: the report ends in the middle".to_owned()],
        ..facts.summary()
    };
    insta::assert_snapshot!(status_comment(&summary), @"
    **1 finding**: 1 minor. Last reviewed commit: `abc1234`.

    The review is incomplete: 1 of 2 reviewers had problems, 1 file was not read.

    The review could not be posted: 403 Forbidden.

    - **Minor**: Typo · `a.js:1`
      It is spelled otherwise.

    <details>
    <summary>Review details</summary>

    - Full review: no earlier review.
    - 3 of 3 changed files read, 120 lines; 1 skipped.
    - Reviewers: builtin (0 findings), semgrep (2 findings).

    | severity | shown | hidden |
    |---|--:|--:|
    | minor | 1 | 0 |

    Problems:

    - semgrep: the report ends in the middle

    Not read:

    - `big.js`: it is too large

    `/canonry help` lists the commands.

    </details>
    ");
    let (title, text) = check_output(&summary);
    assert_eq!(title, "1 finding: 1 minor; the review is incomplete");
    let expected = "The review is incomplete: 1 of 2 reviewers had problems, 1 file was not read.\n\n\
        The review could not be posted: 403 Forbidden.\n\n- **Minor**: Typo · `a.js:1`\n  It is spelled otherwise.\n\n";
    assert!(text.starts_with(expected), "{text}");
}

#[test]
fn a_commit_that_could_not_be_reviewed() {
    let why = "Git could not fetch the commits.";
    insta::assert_snapshot!(not_reviewed_comment(&sha("abc1234"), why, Some("canonry"), None), @"
    **Not reviewed**: `abc1234`. Git could not fetch the commits.

    `/canonry review` tries again.
    ");
    let last = not_reviewed_comment(&sha("abc1234"), "No.", Some("canonry"), Some("**1 finding**: 1 minor."));
    assert!(last.ends_with("\n\n---\n\nThe last review:\n\n**1 finding**: 1 minor."), "{last}");
}

#[test]
fn without_a_listener_no_text_offers_a_command() {
    let unheard = FindingComment { handle: None, ..plain() };
    insta::assert_snapshot!(finding_comment(&unheard), @r#"
    **Possible SQL injection in the query**

    <sub>Major · `semgrep/sql-concat` · Not useful? Add `"Possible SQL injection in the query"` to `review.suppressions` in `.canonry.yml`.</sub>
    "#);
    let untold = finding_comment(&FindingComment { suppression: None, ..unheard });
    assert!(untold.contains("Not useful? Add a pattern for its title to `review.suppressions`"), "{untold}");
    // Settings never hide a critical finding.
    let grave = finding_comment(&FindingComment { severity: Severity::Critical, ..unheard });
    assert!(grave.ends_with("<sub>Critical · `semgrep/sql-concat`</sub>"), "{grave}");
    let missed = not_reviewed_comment(&sha("abc1234"), "Git could not fetch the commits.", None, None);
    assert!(missed.ends_with("\n\nRun the review again."), "{missed}");
    let facts = Facts::of(ReviewCounts::default());
    let details = review_body(&PostedSummary { handle: None, ..facts.summary() });
    let hint = "To hide a finding, add its title to `review.suppressions` in `.canonry.yml`.\n\n</details>";
    assert!(details.ends_with(hint), "{details}");
    for text in [finding_comment(&unheard), missed, details] {
        assert!(!text.contains("`/"), "{text}");
        assert_readable(&text);
    }
}

/// Every text that a review writes on GitHub, with its maximum number of words outside finding lines and details.
fn every_text() -> Vec<(String, usize)> {
    let (second, clean, trouble) = (SecondReview::new(), Facts::of(ReviewCounts::default()), troubled());
    let unposted = PostedSummary { unposted: Some("403 Forbidden"), ..trouble.summary() };
    let fix = fenced("a`b");
    let remark = FindingComment { message: "It is put in as it is.", more: "Always.", fix: Some(&fix), ..plain() };
    let mut texts = Vec::new();
    for summary in [second.summary(), clean.summary(), trouble.summary(), unposted] {
        texts.extend([(review_body(&summary), 60), (status_comment(&summary), 60)]);
        let (title, text) = check_output(&summary);
        texts.extend([(title, 20), (text, usize::MAX)]);
    }
    texts.push((finding_comment(&remark), 40));
    texts.push((finding_comment(&FindingComment { status: FindingStatus::Reopened, ..remark }), 50));
    texts.push((fixed_comment("**Leak**", &sha("abc1234")), 10));
    texts.push((repeated_finding_comment("**Leak**", &sha("abc1234")), 20));
    texts.push((not_reviewed_comment(&sha("abc1234"), "Git could not fetch the commits.", Some("canonry"), None), 30));
    texts.push((RETIRED_SUMMARY.to_owned(), 30));
    texts
}

#[test]
fn every_text_is_short_and_readable() {
    for (text, most) in every_text() {
        assert_readable(&text);
        let words = words_in_sight(&text);
        assert!(words <= most, "{words} words, and {most} are the most:\n{text}");
    }
}

#[test]
fn only_a_whole_review_without_findings_is_green() {
    let reviewed = ReviewGaps { reviewers: 1, ..ReviewGaps::default() };
    let first = ScopeReason::NoPriorReview;
    let of = |status, severity, shown| counted(&[(status, severity, shown)]);
    let standing = |severity| of(FindingStatus::Same, severity, ShownAs::Inline);
    for (counts, gaps, reason, expected) in [
        (ReviewCounts::default(), reviewed, &first, CheckConclusion::Success),
        (standing(Severity::Major), reviewed, &first, CheckConclusion::Neutral),
        (of(FindingStatus::New, Severity::Minor, ShownAs::LowConfidence), reviewed, &first, CheckConclusion::Neutral),
        (standing(Severity::Critical), reviewed, &first, CheckConclusion::Failure),
        (
            of(FindingStatus::Dismissed, Severity::Critical, ShownAs::Suppressed),
            reviewed,
            &first,
            CheckConclusion::Success,
        ),
        (of(FindingStatus::Fixed, Severity::Critical, ShownAs::Inline), reviewed, &first, CheckConclusion::Success),
        (ReviewCounts::default(), ReviewGaps::default(), &first, CheckConclusion::ActionRequired),
        (
            ReviewCounts::default(),
            ReviewGaps::default(),
            &ScopeReason::NoChangesSince(sha("abc1234")),
            CheckConclusion::Success,
        ),
        (ReviewCounts::default(), ReviewGaps { skipped_files: 1, ..reviewed }, &first, CheckConclusion::ActionRequired),
        (ReviewCounts::default(), ReviewGaps { none_listed: true, ..reviewed }, &first, CheckConclusion::Neutral),
        (
            standing(Severity::Critical),
            ReviewGaps { troubled_reviewers: 1, ..reviewed },
            &first,
            CheckConclusion::ActionRequired,
        ),
    ] {
        assert_eq!(check_conclusion(&counts, &gaps, reason), expected, "{counts:?} {gaps:?}");
    }
}

proptest! {
    #[test]
    fn nothing_ends_its_own_fence(text in "[`~a\n ]{0,60}") {
        let fenced = fenced(&text);
        let mut lines = fenced.lines();
        let fence = lines.next().expect("a fence");
        prop_assert!(fence.len() >= 3 && fence.bytes().all(|byte| byte == b'`'));
        let ends: Vec<usize> =
            fenced.lines().enumerate().skip(1).filter(|(_, line)| line.trim().starts_with(fence)).map(|(at, _)| at).collect();
        prop_assert_eq!(ends, vec![fenced.lines().count() - 1]);
    }

    #[test]
    fn however_much_there_is_to_say_it_fits_and_ends_well(
        many in 0usize..400, long in 0usize..6_000, notes in prop::collection::vec(any::<u16>(), 0..300),
    ) {
        let facts = Facts::of(counted(&vec![(FindingStatus::Same, Severity::Major, ShownAs::Inline); many]));
        let (title, place) = ("&ZeroWidthSpace;".repeat(long / 16), "p".repeat(long / 10));
        let lists: Vec<ListedFinding> = (0..many).map(|_| listed(Severity::Major, &place, &title, &title)).collect();
        let told: Vec<EarlierFinding> = (0..many).map(|_| earlier(FindingStatus::Same, &place, &title)).collect();
        let notes: Vec<String> = notes.iter().map(|note| "n".repeat(usize::from(*note) / 16)).collect();
        let summary = PostedSummary {
            listed: &lists, resolved: &lists, earlier: &told, further: &lists, low_confidence: &lists, skipped: &notes, problems: &notes,
            notes: &notes, ..facts.summary()
        };
        let text = status_comment(&summary);
        prop_assert!(text.chars().count() < 60_000 && review_body(&summary).chars().count() < 60_000, "{}", text.chars().count());
        prop_assert_eq!(text.matches("<details>").count(), text.matches("</details>").count());
        prop_assert!(text.ends_with("\n\n</details>"));
        prop_assert!(check_output(&summary).1.chars().count() < 60_000);
    }
}
