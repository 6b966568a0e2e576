//! Reviews of pull requests, four pushes each, and the feedback on their findings.

use canonry_domain::review::{
    Category, CodeHash, CommitSha, Finding, FindingStatus, Fingerprint, LineRange, PatternKey, RepoPath, ReviewMode,
    ReviewSubject, ReviewerName, Severity, ShownAs, Witness,
};
use canonry_domain::{GithubId, Login};
use canonry_store::{ClaimOutcome, FindingId, FindingRecord, NewReaction, ReviewClaim, ReviewRecord};
use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::{Failure, Filling, number};

/// Findings that each push adds.
const NEW: i64 = 10;
const PUSHES: i64 = 4;

pub(crate) async fn fill(filling: &Filling) -> Result<(), Failure> {
    let pulls = filling.items / 200;
    for pull in 0..pulls {
        let mut known: Vec<(FindingId, Finding)> = Vec::new();
        for push in 0..PUSHES {
            let fresh: Vec<Finding> = (0..NEW).map(|at| finding(pull * 40 + push * NEW + at)).collect();
            let again = known.iter().map(|(id, finding)| FindingRecord {
                earlier: Some(*id),
                status: FindingStatus::Same,
                said_inline: true,
                code_unchanged: true,
                ..new(finding)
            });
            let records: Vec<FindingRecord<'_>> = fresh.iter().map(new).chain(again).collect();
            let hours = (pulls - pull) * 2 + PUSHES - push;
            let ids = reviewed(filling, filling.issues() + pull + 1, push, hours, &records).await?;
            known = ids.into_iter().zip(fresh).collect();
        }
        for (at, (id, _)) in known.iter().enumerate().take(3) {
            react(filling, pull * 3 + i64::try_from(at)?, *id).await?;
        }
    }
    Ok(())
}

async fn reviewed(
    filling: &Filling,
    pull: i64,
    push: i64,
    hours: i64,
    findings: &[FindingRecord<'_>],
) -> Result<Vec<FindingId>, Failure> {
    let (store, at) = (&filling.store, filling.ago(hours));
    let subject = ReviewSubject::Pull(number(pull));
    let (base, head): (CommitSha, CommitSha) =
        (format!("{pull:040x}").parse()?, format!("{pull:039x}{push:x}").parse()?);
    let claim = ReviewClaim {
        repo: filling.repo.id,
        subject: &subject,
        base: &base,
        base_branch: None,
        head: &head,
        requested: true,
        full: false,
        asked_at: at,
        owner: "bench",
        until: at + SignedDuration::from_mins(5),
    };
    let ClaimOutcome::Run(run) = store.review().claim(&claim, at).await? else {
        return Err("another review runs".into());
    };
    let record = ReviewRecord {
        run: run.id,
        owner: "bench",
        mode: ReviewMode::Full,
        reason: "no-prior-review",
        files_read: 12,
        lines_read: 400,
        notes: &[],
        reviewers: &details(),
        model: Some("m-1"),
        cost_usd: 0.0123,
        findings,
    };
    store.review().complete(&record, at).await?.ok_or_else(|| "the review is another's".into())
}

async fn react(filling: &Filling, at: i64, finding: FindingId) -> Result<(), Failure> {
    let by: Login = format!("person-{}", at % 40).parse()?;
    let reaction = NewReaction {
        repo: filling.repo.id,
        reaction: GithubId(at + 1),
        finding,
        by: &by,
        up: at % 3 == 0,
        at: filling.ago(1),
        teaches: true,
    };
    filling.store.findings().record_reaction(&reaction).await?;
    Ok(())
}

fn finding(at: i64) -> Finding {
    // Some titles are repeated, most are not.
    let title =
        if at % 3 == 0 { format!("Call of eval {}", at % 60) } else { format!("A lock is held for too long ({at})") };
    let severity =
        [Severity::Critical, Severity::Major, Severity::Minor, Severity::Minor][usize::try_from(at % 4).unwrap_or(0)];
    let category = [Category::Correctness, Category::Style, Category::Security][usize::try_from(at % 3).unwrap_or(0)];
    let line = u32::try_from(at % 700 + 1).unwrap_or(1);
    Finding {
        message: format!("{title}: it may be called twice, and the second call sees what the first has left behind."),
        path: RepoPath::exact(&format!("src/part_{}/file_{}.rs", at % 17, at % 230)).expect("invariant: a path"),
        lines: LineRange::new(line, line),
        severity,
        category,
        fingerprint: Fingerprint::of_title(&title),
        code: Some(CodeHash::of([title.as_str()])),
        around: None,
        witnesses: vec![Witness { reviewer: ReviewerName::builtin(), rule: None, key: PatternKey::of_title(&title) }],
        partial: Default::default(),
        tags: Default::default(),
        fix: None,
        replacement: None,
        unproven: false,
        title,
    }
}

fn new(finding: &Finding) -> FindingRecord<'_> {
    FindingRecord {
        earlier: None,
        finding,
        excerpt: None,
        status: FindingStatus::New,
        shown: ShownAs::Inline,
        hidden_by: None,
        confidence: serde_json::from_value(json!(60)).expect("invariant: points"),
        grounded: true,
        said_inline: false,
        reported: true,
        code_unchanged: false,
    }
}

fn details() -> Value {
    json!({
        "reviewers": [{ "name": "builtin", "findings": 20, "files": 12, "problems": [], "notes": [] }],
        "coverage": { "files_changed": 13, "files_read": 12, "lines_read": 400, "skipped": [] },
        "hidden_patterns": 0, "since": null, "moved_from": [], "read": {},
        "model": { "model": "m-1", "calls": 2, "input_tokens": 10, "output_tokens": 5, "cost_usd": 0.0123 },
    })
}
