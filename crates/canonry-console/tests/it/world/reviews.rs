//! Reviews of two pull requests in the store, with people's answers.

use canonry_domain::review::{
    Category, CodeExcerpt, CodeHash, CommitSha, Finding, FindingStatus, Fingerprint, HiddenBy, LineRange, PatternKey,
    RepoPath, ReviewMode, ReviewSubject, ReviewerName, Severity, ShownAs, Witness,
};
use canonry_domain::{GithubId, Login};
use canonry_store::{ClaimOutcome, FindingId, FindingRecord, NewReaction, ReviewClaim, ReviewId, ReviewRecord};
use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::world::{ConsoleWorld, HOSTILE, number};

impl ConsoleWorld {
    /// Links lead to the real GitHub.
    pub(crate) async fn on_github() -> Self {
        Self::with(|parts| parts.github_api = "https://api.github.com".parse().expect("a URL")).await
    }

    /// The number of patterns with votes that count, and the number of recorded actions.
    pub(crate) async fn patterns_and_actions(&self) -> (usize, usize) {
        let patterns = self.store.findings().pattern_feedback(self.repo.id).await.expect("reads").len();
        (patterns, self.store.console().actions(self.repo.id, 99).await.expect("reads").len())
    }

    /// A review of a pull request that began this many hours ago, in place of one that was not completed.
    pub(crate) async fn begun(&self, pull: i64, head: char, hours: i64) -> ReviewId {
        let at = self.now - SignedDuration::from_hours(hours);
        let subject = ReviewSubject::Pull(number(pull));
        let (base, head) = (sha('0'), sha(head));
        let claim = ReviewClaim {
            repo: self.repo.id,
            subject: &subject,
            base: &base,
            base_branch: None,
            head: &head,
            requested: true,
            full: false,
            asked_at: at,
            owner: "test",
            until: at + SignedDuration::from_mins(5),
        };
        let ClaimOutcome::Run(run) = self.store.review().claim(&claim, at).await.expect("claims") else {
            panic!("nothing stands in the way")
        };
        run.id
    }

    pub(crate) async fn failed(&self, pull: i64, head: char, hours: i64, why: &str) -> ReviewId {
        let run = self.begun(pull, head, hours).await;
        let at = self.now - SignedDuration::from_hours(hours);
        assert!(self.store.review().fail(run, "test", why, at).await.expect("stores"));
        run
    }

    /// A completed review of a pull request, this many hours ago.
    pub(crate) async fn reviewed(
        &self,
        pull: i64,
        head: char,
        hours: i64,
        reviewers: &Value,
        findings: &[FindingRecord<'_>],
    ) -> (ReviewId, Vec<FindingId>) {
        let run = self.begun(pull, head, hours).await;
        let record = ReviewRecord {
            run,
            owner: "test",
            mode: ReviewMode::Full,
            reason: "no-prior-review",
            files_read: 2,
            lines_read: 40,
            notes: &[HOSTILE.to_owned()],
            reviewers,
            model: Some("m-1"),
            cost_usd: 0.0123,
            findings,
        };
        let at = self.now - SignedDuration::from_hours(hours);
        let ids = self.store.review().complete(&record, at).await.expect("stores").expect("its own");
        (run, ids)
    }

    pub(crate) async fn thumb(&self, id: i64, finding: FindingId, by: &str, up: bool) {
        let by: Login = by.parse().expect("a login");
        let at = self.now - SignedDuration::from_mins(id);
        let reaction =
            NewReaction { repo: self.repo.id, reaction: GithubId(id), finding, by: &by, up, at, teaches: true };
        assert!(self.store.findings().record_reaction(&reaction).await.expect("kept"), "new");
    }
}

pub(crate) struct ReviewHistory {
    pub(crate) first: ReviewId,
    pub(crate) last: ReviewId,
    pub(crate) eval: FindingId,
    pub(crate) nasty: FindingId,
    pub(crate) rejected: FindingId,
}

/// Four pushes of one pull request: commented, not repeated, not reviewed, fixed; beside it a hidden finding with a
/// hostile name, and on another pull request a finding that people reject.
pub(crate) async fn review_history(world: &ConsoleWorld) -> ReviewHistory {
    let eval = finding("src/run.js", 3, "Call of eval");
    let nasty = Finding {
        severity: Severity::Minor,
        category: Category::Style,
        message: HOSTILE.to_owned(),
        fix: Some(HOSTILE.to_owned()),
        ..finding(&format!("docs/{}", HOSTILE.replace('/', "_")), 9, HOSTILE)
    };
    let by = HiddenBy::Pattern(HOSTILE.to_owned());
    let code = excerpt("let a = 1;\n\neval(a);\n}\n");
    let found = FindingRecord { excerpt: Some(&code), ..new(&eval) };
    let (first, ids) = world.reviewed(1, 'a', 50, &details(), &[found, hidden(&nasty, &by)]).await;
    let posted = [(ids[0], GithubId(71))];
    world.store.findings().record_posted(world.repo.id, number(1), first, &posted, world.now).await.expect("stored");
    let same = |id, finding| FindingRecord {
        earlier: Some(id),
        status: FindingStatus::Same,
        said_inline: true,
        code_unchanged: true,
        ..new(finding)
    };
    let still = FindingRecord { earlier: Some(ids[1]), status: FindingStatus::Same, ..hidden(&nasty, &by) };
    let known = FindingRecord { excerpt: Some(&code), ..same(ids[0], &eval) };
    world.reviewed(1, 'b', 40, &json!({}), &[known, still]).await;
    world.reviewed(1, 'c', 30, &json!({}), &[still]).await;
    let fixed = FindingRecord { status: FindingStatus::Fixed, ..same(ids[0], &eval) };
    let (last, _) = world.reviewed(1, 'd', 20, &json!({}), &[fixed, still]).await;

    let loud = Finding { category: Category::Style, ..finding("src/run.js", 8, "Odd name") };
    let (_, others) = world.reviewed(2, 'a', 26, &details(), &[new(&loud)]).await;
    for (id, by) in [(1, "ada"), (2, "bob"), (3, "eve")] {
        world.thumb(id, others[0], by, false).await;
    }
    world.thumb(9, ids[0], "ada", true).await;
    ReviewHistory { first, last, eval: ids[0], nasty: ids[1], rejected: others[0] }
}

pub(crate) fn details() -> Value {
    json!({
        "reviewers": [{ "name": "builtin", "findings": 2, "files": 2, "problems": [], "notes": [HOSTILE] }],
        "coverage": {
            "files_changed": 3, "files_read": 2, "lines_read": 40,
            "skipped": [{ "path": "big.bin", "why": "it is too large", "gap": false }],
        },
        "hidden_patterns": 0,
        "since": null,
        "model": { "model": "m-1", "calls": 2, "input_tokens": 10, "output_tokens": 5, "cost_usd": 0.0123 },
        "moved_from": [],
        "read": {},
    })
}

/// A file with its third line flagged.
fn excerpt(text: &str) -> CodeExcerpt {
    CodeExcerpt::around(text, LineRange::new(3, 3).expect("a line")).expect("it has the line")
}

/// A commit whose id is one letter, repeated.
pub(crate) fn sha(letter: char) -> CommitSha {
    letter.to_string().repeat(40).parse().expect("an id")
}

pub(crate) fn finding(path: &str, line: u32, title: &str) -> Finding {
    Finding {
        title: title.to_owned(),
        message: format!("{title}, at length."),
        path: RepoPath::exact(path).expect("a path"),
        lines: LineRange::new(line, line),
        severity: Severity::Major,
        category: Category::Correctness,
        fingerprint: Fingerprint::of_title(title),
        code: Some(CodeHash::of([title])),
        around: None,
        witnesses: vec![Witness { reviewer: ReviewerName::builtin(), rule: None, key: PatternKey::of_title(title) }],
        partial: Default::default(),
        tags: Default::default(),
        fix: None,
        replacement: None,
        unproven: false,
    }
}

/// The record of a new finding that is shown.
pub(crate) fn new(finding: &Finding) -> FindingRecord<'_> {
    FindingRecord {
        earlier: None,
        finding,
        excerpt: None,
        status: FindingStatus::New,
        shown: ShownAs::Inline,
        hidden_by: None,
        confidence: serde_json::from_value(json!(60)).expect("points"),
        grounded: true,
        said_inline: false,
        reported: true,
        code_unchanged: false,
    }
}

pub(crate) fn hidden<'a>(finding: &'a Finding, by: &'a HiddenBy) -> FindingRecord<'a> {
    FindingRecord { shown: ShownAs::Suppressed, hidden_by: Some(by), ..new(finding) }
}
