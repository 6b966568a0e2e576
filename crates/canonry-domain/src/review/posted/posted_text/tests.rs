//! The texts as people read them, and what holds for them whatever is put in.

use std::collections::BTreeMap;

use proptest::prelude::{any, prop, prop_assert, prop_assert_eq, proptest};

use super::{
    CheckConclusion, EarlierFinding, FindingComment, ListedFinding, PostedSummary, check_conclusion, check_output,
    fenced, finding_comment, fixed_comment, incomplete_comment, repeated_finding_comment, summary_comment,
};
use crate::review::confidence;
use crate::review::{
    Category, CommitSha, Confidence, ConfidenceSigns, CountedFinding, DismissalKind, FindingStatus, PatternFeedback,
    ReviewCounts, ReviewGaps, ScopeReason, Severity, ShownAs,
};

fn sha(digits: &str) -> CommitSha {
    digits.repeat(6)[..40].parse().expect("an id")
}

fn sure() -> Confidence {
    let (severity, category, feedback) = (Severity::Major, Category::Security, PatternFeedback::default());
    confidence(ConfidenceSigns { severity, category, confirmed: false, feedback })
}

fn plain() -> FindingComment<'static> {
    FindingComment {
        title: "Possible SQL injection in the query",
        message: "",
        severity: Severity::Major,
        category: Category::Security,
        confidence: sure(),
        history: None,
        reviewers: "semgrep (sql-concat)",
        status: FindingStatus::New,
        said_of_other_code: false,
        fix: None,
        handle: "canonry",
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
    ListedFinding { severity, confidence: sure(), place, title, message, since: None }
}

fn earlier(status: FindingStatus, place: &str, title: &str) -> EarlierFinding {
    EarlierFinding {
        status,
        code_unchanged: true,
        place: place.to_owned(),
        moved_from: None,
        title: title.to_owned(),
        since: Some("aaaaaaa".to_owned()),
        dismissed: None,
    }
}

/// What a test's summary borrows from.
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
            on_top: &[],
            unposted: None,
            resolved: &[],
            earlier: &[],
            further: &[],
            low_confidence: &[],
            read: (3, 3, 120),
            skipped: &[],
            hidden: None,
            hidden_patterns: 0,
            reviewers: "builtin (0 findings), semgrep (2 findings)",
            model: None,
            problems: &[],
            notes: &[],
            handle: "canonry",
        }
    }
}

#[test]
fn a_finding_at_its_line() {
    let fix = fenced("db.query(\"… WHERE name = $1\", [name])");
    let told = FindingComment {
        message: "The value of `name` is put into the statement as it is.",
        history: Some("fixed 27 of 38 here"),
        fix: Some(&fix),
        ..plain()
    };
    insta::assert_snapshot!(finding_comment(&told), @r#"
    **Possible SQL injection in the query**

    Major · security · 85 % sure, fixed 27 of 38 here · semgrep (sql-concat)

    The value of `name` is put into the statement as it is.

    Suggested:

    ```
    db.query("… WHERE name = $1", [name])
    ```

    <sub>Not useful? Give this comment a 👎, resolve the thread, or reply `/canonry not useful`.</sub>
    "#);
}

#[test]
fn a_finding_with_nothing_but_a_title() {
    insta::assert_snapshot!(finding_comment(&plain()), @r"
    **Possible SQL injection in the query**

    Major · security · 85 % sure · semgrep (sql-concat)

    <sub>Not useful? Give this comment a 👎, resolve the thread, or reply `/canonry not useful`.</sub>
    ");
}

#[test]
fn a_finding_that_is_said_again_says_why() {
    let back = finding_comment(&FindingComment { status: FindingStatus::Reopened, ..plain() });
    assert!(back.contains("\n\nThis was fixed before and is back.\n\n"), "{back}");
    let known = FindingComment { status: FindingStatus::Moved, ..plain() };
    let changed = finding_comment(&FindingComment { said_of_other_code: true, ..known });
    assert!(changed.contains("\n\nThis was said before; its code has changed since.\n\n"), "{changed}");
    // Known, but never said at its line.
    assert_eq!(finding_comment(&known), finding_comment(&plain()));
}

#[test]
fn a_thread_that_cannot_be_resolved_says_so_itself() {
    assert_eq!(fixed_comment("**Leak**", &sha("abc1234")), "Fixed in `abc1234`.\n\n**Leak**");
    assert_eq!(
        repeated_finding_comment("**Leak**", &sha("abc1234")),
        "The code has changed; a newer comment says this about `abc1234`.\n\n**Leak**"
    );
}

#[test]
fn nothing_found_is_one_sentence_and_the_details() {
    let facts = Facts::of(ReviewCounts::default());
    insta::assert_snapshot!(summary_comment(&facts.summary()), @r"
    **Nothing found.** Last reviewed commit: `abc1234`.

    <details>
    <summary>Review details</summary>

    - Full review: none was completed before.
    - 3 of 3 changed files read, 120 lines.
    - Reviewers: builtin (0 findings), semgrep (2 findings).

    `/canonry help` tells what can be asked for here.

    </details>
    ");
}

#[test]
fn a_second_review_says_what_became_of_every_finding() {
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
    let told = [
        earlier(FindingStatus::Fixed, "`src/a.js:10`", "Eval of input"),
        EarlierFinding {
            moved_from: Some("`src/b.js:12`".to_owned()),
            ..earlier(FindingStatus::Moved, "`src/b.js:20`", "File stays open")
        },
        EarlierFinding { code_unchanged: false, ..earlier(FindingStatus::Same, "`src/c.js:3`", "Unused variable `x`") },
        EarlierFinding {
            dismissed: Some(("`mona`".to_owned(), DismissalKind::WontFix)),
            ..earlier(FindingStatus::Dismissed, "`src/d.js:7`", "Long line")
        },
    ];
    let on_top =
        [listed(Severity::Critical, "`src/db.js:41`", "Password in the code", "Whoever reads the code can log in.")];
    let summary = PostedSummary {
        on_top: &on_top,
        earlier: &told,
        resolved: &[listed(Severity::Critical, "`src/f.js:2`", "Eval of a cookie", "")],
        further: &[ListedFinding {
            since: Some("aaaaaaa".to_owned()),
            ..listed(Severity::Medium, "`src/e.js:5`", "Off the diff", "Not told here.")
        }],
        low_confidence: &[listed(Severity::Minor, "`src/e.js:9`", "Perhaps a typo", "")],
        read: (5, 4, 1_234),
        skipped: &["`logo.png`: it is binary".to_owned()],
        hidden: Some("3 findings suppressed: 1 dismissed by people, 2 by feedback."),
        hidden_patterns: 2,
        model: Some("m-1: 3 calls, 12,345 tokens in, 678 tokens out, $0.0312"),
        notes: &["semgrep: 2 results have no place".to_owned()],
        ..facts.summary()
    };
    insta::assert_snapshot!(summary_comment(&summary), @r"
    **5 findings: 1 critical, 1 major, 2 medium, 1 minor; 3 new.** Last reviewed commit: `abc1234`.

    These could not be placed at a line of the diff:

    - **Critical**: Password in the code · `src/db.js:41`
      Whoever reads the code can log in.

    These stand although their threads are resolved, since only a maintainer can dismiss them:

    - **Critical**: Eval of a cookie · `src/f.js:2`

    Earlier findings: 1 fixed, 1 still there, 1 moved, 1 dismissed.

    - **Fixed** in `abc1234`: Eval of input · `src/a.js:10` · since `aaaaaaa`
    - **Moved**: File stays open · `src/b.js:12` → `src/b.js:20` · since `aaaaaaa`
    - **Still there**: Unused variable `x` · `src/c.js:3` · its code changed · since `aaaaaaa`
    - **Dismissed** by `mona` (will not be fixed): Long line · `src/d.js:7` · since `aaaaaaa`

    <details>
    <summary>Further findings (1)</summary>

    - Medium: Off the diff · `src/e.js:5` · 85 % sure · since `aaaaaaa`

    </details>

    <details>
    <summary>Low confidence (1)</summary>

    - Minor: Perhaps a typo · `src/e.js:9` · 85 % sure

    </details>

    <details>
    <summary>Review details</summary>

    - Incremental review: what came since `1234567`.
    - 4 of 5 changed files read, 1,234 lines; 1 skipped.
    - Reviewers: builtin (0 findings), semgrep (2 findings).
    - Model: m-1: 3 calls, 12,345 tokens in, 678 tokens out, $0.0312.
    - 3 findings suppressed: 1 dismissed by people, 2 by feedback.
    - 2 patterns auto-suppressed based on prior feedback.

    | severity | shown | suppressed |
    |---|--:|--:|
    | critical | 1 | 0 |
    | major | 1 | 0 |
    | medium | 2 | 2 |
    | minor | 1 | 1 |

    Not read:

    - `logo.png`: it is binary

    Notes:

    - semgrep: 2 results have no place

    `/canonry help` tells what can be asked for here.

    </details>
    ");
    insta::assert_snapshot!(check_output(&summary, None).1, @r"
    The findings are told in the conversation of the pull request.

    Earlier findings: 1 fixed, 1 still there, 1 moved, 1 dismissed.

    - Incremental review: what came since `1234567`.
    - 4 of 5 changed files read, 1,234 lines; 1 skipped.
    - Reviewers: builtin (0 findings), semgrep (2 findings).
    - Model: m-1: 3 calls, 12,345 tokens in, 678 tokens out, $0.0312.
    - 3 findings suppressed: 1 dismissed by people, 2 by feedback.
    - 2 patterns auto-suppressed based on prior feedback.

    | severity | shown | suppressed |
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
fn what_is_not_whole_says_so_first() {
    let facts = Facts {
        gaps: ReviewGaps { reviewers: 2, troubled_reviewers: 1, skipped_files: 1 },
        ..Facts::of(counted(&[(FindingStatus::New, Severity::Minor, ShownAs::Inline)]))
    };
    let summary = PostedSummary {
        skipped: &["`big.js`: it is too large".to_owned()],
        problems: &["semgrep: the report ends in the middle".to_owned()],
        ..facts.summary()
    };
    insta::assert_snapshot!(summary_comment(&summary), @r"
    **1 finding: 1 minor.** Last reviewed commit: `abc1234`.

    The review is incomplete: 1 of 2 reviewers had problems, 1 file was not read. The details below say more.

    <details>
    <summary>Review details</summary>

    - Full review: none was completed before.
    - 3 of 3 changed files read, 120 lines; 1 skipped.
    - Reviewers: builtin (0 findings), semgrep (2 findings).

    | severity | shown | suppressed |
    |---|--:|--:|
    | minor | 1 | 0 |

    Problems:

    - semgrep: the report ends in the middle

    Not read:

    - `big.js`: it is too large

    `/canonry help` tells what can be asked for here.

    </details>
    ");
    insta::assert_snapshot!(incomplete_comment(&sha("abc1234"), "git could not fetch the commits.", "canonry", None), @r"
    **The review of `abc1234` could not be completed**, so that nothing is known about it yet.

    git could not fetch the commits.

    It is tried again by itself where that can help; `/canonry review` asks for it.
    ");
    let last = incomplete_comment(&sha("abc1234"), "No.", "canonry", Some("**1 finding: 1 minor.**"));
    assert!(last.ends_with("\n\n---\n\nThe last review said:\n\n**1 finding: 1 minor.**"), "{last}");
}

#[test]
fn what_could_not_be_posted_says_why() {
    let facts = Facts::of(counted(&[(FindingStatus::New, Severity::Minor, ShownAs::Inline)]));
    let on_top = [listed(Severity::Minor, "`a.js:1`", "Typo", "")];
    let told = summary_comment(&PostedSummary { on_top: &on_top, unposted: Some("forbidden"), ..facts.summary() });
    let expected = "\n\nThese could not be posted at their lines (forbidden):\n\n- **Minor**: Typo · `a.js:1`\n\n";
    assert!(told.contains(expected), "{told}");
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
            on_top: &lists, resolved: &lists, earlier: &told, further: &lists, low_confidence: &lists, skipped: &notes, problems: &notes,
            notes: &notes, ..facts.summary()
        };
        let text = summary_comment(&summary);
        prop_assert!(text.chars().count() < 60_000, "{}", text.chars().count());
        prop_assert_eq!(text.matches("<details>").count(), text.matches("</details>").count());
        prop_assert!(text.ends_with("\n\n</details>"));
        prop_assert!(check_output(&summary, None).1.chars().count() < 60_000);
    }
}
