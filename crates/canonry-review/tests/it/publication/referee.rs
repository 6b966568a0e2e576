//! Tests that comments of other bots and people are witnesses: each problem is shown once, with its threads, and none of
//! them makes a check fail.

use std::collections::BTreeSet;

use canonry_domain::review::{BotRecord, ReviewSubject, ShownAs};
use canonry_review::{FindingLife, ReviewReport, remarks_of_pull, weigh_remarks};
use canonry_store::{FindingId, WitnessedRemark};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::Fault;
use canonry_testkit::on_both_engines;
use canonry_testkit::public_text::assert_readable;
use serde_json::{Value, json};

use crate::publication::setting::{ALL, REPO, Setting, code, done, finding, saying};

const RABBIT: &str = "rabbit[bot]";
const GEMINI: &str = "gemini-code-assist[bot]";
const LEAK: &str = "leak(file);";
const SAID: &str = "The file handle is never closed after reading";

async fn with_bots(database: TestDatabase, own: &[(u32, &str)]) -> Setting {
    let mut setting = Setting::with_app(database, &ALL, &code(own)).await;
    setting.settings.review.referee.bots = vec!["rabbit".to_owned(), GEMINI.to_owned()];
    let mut world = setting.emulator.world();
    for bot in [RABBIT, GEMINI, "unlisted[bot]"] {
        world.bot(bot);
    }
    drop(world);
    setting
}

fn comment(setting: &Setting, by: &str, line: u64, body: &str) -> u64 {
    setting.emulator.world().comment_on_line(REPO, setting.number(), by, "src/app.js", line, body)
}

fn leak(severity: &str) -> Value {
    saying(
        finding("File handle never closed", 5, severity, "correctness"),
        "The file handle is not closed after reading.",
    )
}

async fn weighed(setting: &Setting, findings: &[Value]) -> ReviewReport {
    let mut report = setting.review(findings).await;
    weigh(setting, &mut report).await;
    report
}

async fn weigh(setting: &Setting, report: &mut ReviewReport) {
    let (github, outbox) = (setting.github(), setting.outbox().await);
    let bots = &setting.settings.review.referee.bots;
    let heard = remarks_of_pull(&github, outbox.own_login(), &setting.repo.name, setting.pull, bots).await;
    let now = "2026-02-01T00:00:00Z".parse().expect("a time");
    weigh_remarks(&setting.store, setting.repo.id, None, report, heard.expect("read"), now).await.expect("weighed");
}

async fn life(setting: &Setting, finding: FindingId, page: &str) -> FindingLife {
    let found = setting.store.findings().get(setting.repo.id, finding).await.expect("read").expect("stored");
    FindingLife::read(&setting.store, setting.repo.id, Some(page), found, &[]).await.expect("read")
}

async fn records(setting: &Setting) -> Vec<(String, u64, u64, u64, u64)> {
    let records = setting.store.findings().bot_records(setting.repo.id).await.expect("read");
    let plain = |one: BotRecord| (one.login.key(), one.remarks, one.agreed, one.share.right, one.share.wrong);
    records.into_iter().map(plain).collect()
}

on_both_engines! {
    async fn what_several_say_is_one_problem(database: TestDatabase) {
        let setting = with_bots(database, &[(5, LEAK)]).await;
        let thread = comment(&setting, RABBIT, 5, &format!("**Potential issue**: {SAID}.\n\n```suggestion\nclose(file);\n```"));
        comment(&setting, GEMINI, 6, &format!("![high](https://x.example/high.svg) {SAID}!"));
        comment(&setting, "mona", 5, &format!("{SAID}?"));
        comment(&setting, "unlisted[bot]", 5, SAID);
        let reply = setting.emulator.world().reply_in_thread(REPO, thread, "ann", "I do not think so");
        let report = weighed(&setting, &[leak("major")]).await;
        let referee = report.referee.as_ref().expect("weighed");
        assert_eq!((referee.remarks, referee.problems.len(), referee.settled), (3, 1, 0), "{referee:?}");
        assert_eq!(referee.problems[0].names(), [GEMINI, RABBIT, "mona"]);
        let own = report.findings[0].id.expect("stored");
        assert_eq!(referee.problems[0].findings, [own]);
        // The thread of the bot at the same line is enough.
        assert_eq!(done(&setting.publish(&report).await), (0, true, 0));
        let body = setting.own_bodies().remove(0);
        let link = format!("https://github.com/acme/widgets/pull/{}#discussion_r{thread}", setting.number());
        assert!(body.contains(&format!("`{RABBIT}` already reported this problem in [this thread]({link}).")), "{body}");
        assert!(body.contains("<summary>Other reviewers: 1 open problem</summary>"), "{body}");
        assert_eq!(body.matches("also found by Canonry").count(), 1, "{body}");
        assert!(!body.contains(&format!("discussion_r{reply}")) && !body.contains("unlisted"), "{body}");
        assert_readable(&body);
        assert_eq!(setting.check().expect("a check").1.as_deref(), Some("neutral"));
        // A repeated run says nothing twice.
        let again = weighed(&setting, &[leak("major")]).await;
        assert_eq!(done(&setting.publish(&again).await), (0, false, 0));
        assert_eq!(setting.own_reviews(), (1, 0));
        let stored = setting.store.findings().remarks_of_finding(setting.repo.id, own).await.expect("read");
        let who: Vec<(&str, bool)> = stored.iter().map(|one| (one.author.as_str(), one.is_bot)).collect();
        assert_eq!(who, [(RABBIT, true), (GEMINI, true), ("mona", false)]);
        assert_eq!(stored[0].link.as_deref(), Some(link.as_str()));
        // The history of the finding names them all, with links to this repository only.
        let life = life(&setting, own, "https://github.com/acme/widgets").await;
        assert!(life.in_words().contains(&format!("also named by {RABBIT}")), "{}", life.in_words());
        assert!(life.in_words().contains(&link) && life.in_words().contains("also named by mona"), "{}", life.in_words());
        assert!(life.markdown().contains("- Also named by [rabbit"), "{}", life.markdown());
        assert!(life.markdown().contains(&format!("]({link})")) && !life.markdown().contains('@'), "{}", life.markdown());
        let remarks = life.document()["remarks"].clone();
        assert_eq!((&remarks[0]["author"], &remarks[0]["bot"], &remarks[0]["link"]), (&json!(RABBIT), &json!(true), &json!(link)));
        assert_eq!((&remarks[2]["author"], &remarks[2]["bot"]), (&json!("mona"), &json!(false)));
        let elsewhere = self::life(&setting, own, "https://github.acme.dev/acme/widgets").await;
        assert_eq!(elsewhere.document()["remarks"][0]["link"], Value::Null);
        assert_eq!(records(&setting).await, [(GEMINI.to_owned(), 1, 1, 0, 0), (RABBIT.to_owned(), 1, 1, 0, 0)]);
    }

    async fn what_canonry_hides_agrees_with_nobody(database: TestDatabase) {
        let mut setting = with_bots(database, &[(5, LEAK)]).await;
        setting.settings.review.suppressions = canonry_config::parse("review: {suppressions: [noise, file handle never closed]}").config.review.suppressions;
        comment(&setting, RABBIT, 5, SAID);
        // Hidden findings do not take the places of shown ones either.
        let hidden = (0..400).map(|at| finding(&format!("Sheer noise {at}"), 9, "major", "security"));
        let shown = saying(finding("Handle leaks", 5, "minor", "performance"), SAID);
        let report = weighed(&setting, &hidden.chain([leak("major"), shown]).collect::<Vec<_>>()).await;
        let referee = report.referee.as_ref().expect("weighed");
        let the_shown = report.findings.iter().find(|one| one.sighting.finding.title == "Handle leaks").expect("it is there");
        assert_eq!(referee.problems[0].findings, [the_shown.id.expect("stored")], "{referee:?}");
        assert_eq!((report.hidden().count(), records(&setting).await), (401, vec![(RABBIT.to_owned(), 1, 1, 0, 0)]));
    }

    async fn a_critical_finding_stays_at_its_line(database: TestDatabase) {
        let setting = with_bots(database, &[(5, LEAK)]).await;
        comment(&setting, RABBIT, 5, SAID);
        let report = weighed(&setting, &[leak("critical")]).await;
        assert_eq!(done(&setting.publish(&report).await), (1, true, 0));
    }

    async fn a_thread_that_a_bot_closes_without_a_fix_hides_nothing(database: TestDatabase) {
        let setting = with_bots(database, &[(5, LEAK)]).await;
        let thread = comment(&setting, RABBIT, 5, SAID);
        assert_eq!(done(&setting.publish(&weighed(&setting, &[leak("major")]).await).await), (0, true, 0));
        setting.push(&code(&[(5, LEAK), (20, "more();")]));
        assert_eq!(done(&setting.publish(&weighed(&setting, &[leak("major")]).await).await), (0, false, 0));
        setting.emulator.world().resolve_thread(REPO, thread, RABBIT);
        assert_eq!(done(&setting.publish(&weighed(&setting, &[leak("major")]).await).await), (1, true, 0));
        assert_eq!(done(&setting.publish(&weighed(&setting, &[leak("major")]).await).await), (0, false, 0));
        assert_eq!(setting.own_reviews(), (2, 1));
    }

    async fn a_closed_thread_hides_nothing_among_the_further_findings_either(database: TestDatabase) {
        let mut setting = with_bots(database, &[(5, LEAK)]).await;
        let thread = comment(&setting, RABBIT, 5, SAID);
        let found = [leak("medium")];
        assert_eq!(done(&setting.publish(&weighed(&setting, &found).await).await), (0, true, 0));
        // From here there is no room for it at its line.
        setting.settings.review.max_comments = 0;
        let further = weighed(&setting, &found).await;
        assert_eq!(further.findings[0].shown, ShownAs::Details);
        assert_eq!(done(&setting.publish(&further).await), (0, false, 0));
        setting.emulator.world().resolve_thread(REPO, thread, RABBIT);
        assert_eq!(done(&setting.publish(&weighed(&setting, &found).await).await), (0, true, 0));
        let body = setting.own_bodies().remove(1);
        assert!(body.contains("Further findings (1)") && body.contains("File handle never closed"), "{body}");
        assert_eq!(done(&setting.publish(&weighed(&setting, &found).await).await), (0, false, 0));
    }

    async fn a_thread_that_was_linked_counts_as_open_while_the_comments_are_unknown(database: TestDatabase) {
        let setting = with_bots(database, &[(5, LEAK)]).await;
        let thread = comment(&setting, RABBIT, 5, SAID);
        assert_eq!(done(&setting.publish(&weighed(&setting, &[leak("major")]).await).await), (0, true, 0));
        setting.push(&code(&[(5, LEAK), (25, "more();")]));
        let both = [leak("major"), finding("Odd name", 25, "minor", "style")];
        // GitHub did not return the comments: the review is published without them.
        let unread = setting.review(&both).await;
        assert!(unread.names_bots && unread.referee.is_none());
        assert_eq!(done(&setting.publish(&unread).await), (1, true, 0));
        setting.comment_about("Odd name");
        setting.emulator.world().resolve_thread(REPO, thread, RABBIT);
        assert_eq!(done(&setting.publish(&weighed(&setting, &both).await).await), (1, true, 0));
        setting.comment_about("File handle never closed");
        assert_eq!(setting.own_reviews(), (3, 2));
    }

    async fn a_remark_names_a_finding_as_long_as_they_are_alike(database: TestDatabase) {
        let setting = with_bots(database, &[(5, LEAK)]).await;
        let liked = comment(&setting, RABBIT, 5, SAID);
        setting.emulator.world().react_to_review_comment(REPO, liked, "mona", "+1");
        setting.emulator.fault(Fault::on("GET", "/repos/*/*/pulls/comments/*/reactions").times(1).answer(404));
        let report = weighed(&setting, &[leak("major")]).await;
        let note = "the reactions to 1 comment of other reviewers were not read and count as none";
        assert!(report.notes.iter().any(|one| one == note), "{:?}", report.notes);
        let own = report.findings[0].id.expect("stored");
        let (github, outbox) = (setting.github(), setting.outbox().await);
        let bots = &setting.settings.review.referee.bots;
        let heard = remarks_of_pull(&github, outbox.own_login(), &setting.repo.name, setting.pull, bots).await.expect("read");
        let alone = [WitnessedRemark { remark: &heard.remarks[0], finding: None, agreeing: 0 }];
        let subject = ReviewSubject::Pull(setting.pull);
        // A finding that is fixed is compared with nothing, and keeps its witnesses; another grouping takes them away.
        for (compared, expected) in [(BTreeSet::new(), 1), (BTreeSet::from([own]), 0)] {
            let now = "2026-02-02T00:00:00Z".parse().expect("a time");
            setting.store.findings().record_remarks(setting.repo.id, &subject, &alone, &compared, now).await.expect("stored");
            let stored = setting.store.findings().remarks_of_finding(setting.repo.id, own).await.expect("read");
            assert_eq!(stored.len(), expected, "{compared:?}");
        }
    }

    async fn nobody_hides_a_finding_but_a_listed_bot(database: TestDatabase) {
        let setting = with_bots(database, &[(5, LEAK)]).await;
        comment(&setting, "ann", 5, SAID);
        comment(&setting, "unlisted[bot]", 5, SAID);
        let report = weighed(&setting, &[leak("major")]).await;
        assert_eq!(report.referee.as_ref().map(|referee| referee.problems.len()), Some(0));
        assert_eq!(done(&setting.publish(&report).await), (1, true, 0));
    }

    async fn a_bot_alone_changes_no_check_and_gets_a_record(database: TestDatabase) {
        let setting = with_bots(database, &[(5, LEAK), (20, "eval(x);")]).await;
        let changed = comment(&setting, RABBIT, 5, SAID);
        let tidied = comment(&setting, RABBIT, 20, "Consider renaming this variable");
        let liked = comment(&setting, GEMINI, 30, "step30 throws when the queue is empty");
        let report = weighed(&setting, &[]).await;
        assert_eq!(report.referee.as_ref().map(|referee| (referee.problems.len(), referee.settled)), Some((3, 0)));
        assert_eq!(done(&setting.publish(&report).await), (0, false, 0));
        assert_eq!(setting.check().expect("a check").1.as_deref(), Some("success"));
        assert!(setting.check_text().contains("Other reviewers: 3 open problems"), "{}", setting.check_text());
        // People decide: one thread ends with a change of its code, another without; a bot's own 👍 counts for nothing.
        setting.push(&code(&[(5, "close(file);"), (20, "eval(x);")]));
        {
            let mut world = setting.emulator.world();
            world.resolve_thread(REPO, changed, "ann");
            world.resolve_thread(REPO, tidied, "ann");
            world.react_to_review_comment(REPO, liked, RABBIT, "+1");
        }
        let second = weighed(&setting, &[]).await;
        let referee = second.referee.as_ref().expect("weighed");
        assert_eq!((referee.problems.len(), referee.settled), (1, 2), "{referee:?}");
        assert_eq!(records(&setting).await, [(GEMINI.to_owned(), 1, 0, 0, 0), (RABBIT.to_owned(), 2, 0, 1, 1)]);
        setting.emulator.world().react_to_review_comment(REPO, liked, "mona", "-1");
        let third = weighed(&setting, &[]).await;
        assert_eq!(third.referee.as_ref().map(|referee| (referee.problems.len(), referee.settled)), Some((0, 3)));
        assert_eq!(records(&setting).await[0], (GEMINI.to_owned(), 1, 0, 0, 1));
        assert_eq!(done(&setting.publish(&third).await), (0, false, 0));
        let text = setting.check_text();
        assert!(text.contains("Other reviewers: 0 open problems, 3 settled") && !text.contains('%'), "{text}");
        assert!(text.contains("| `rabbit[bot]` | 2 | 0 | 1 of 2 right here, likely between 0 and 2 |"), "{text}");
    }

    async fn kills_repeat_nothing(database: TestDatabase) {
        let setting = with_bots(database, &[(5, LEAK)]).await;
        comment(&setting, RABBIT, 5, SAID);
        let mut report = setting.review(&[leak("major"), finding("Other", 9, "minor", "style")]).await;
        for steps in 0.. {
            weigh(&setting, &mut report).await;
            if setting.publish_until(&report, steps).await.is_some() {
                break;
            }
            assert!(steps < 100, "it never ends");
            // By then the lease of the dead process has ended.
            setting.emulator.world().advance(600);
        }
        assert_eq!(setting.own_reviews(), (1, 1));
        assert_eq!(records(&setting).await, [(RABBIT.to_owned(), 1, 1, 0, 0)]);
    }
}
