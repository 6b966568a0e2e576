//! A new issue whose problem was fixed before: what is posted, what never is, and what people's answers teach.

use canonry_domain::{FixKind, ItemNumber, ItemType, LessonKind, TriageMode, Verdict};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::{CloseReason, Fault, NewIssue, Pull};
use canonry_testkit::on_both_engines;
use canonry_triage::{poll_reactions, why_item};
use insta::assert_snapshot;

use crate::triage::setting::{ALPHA, GAMMA, LABEL, OWN, REPO, Setting, no, number, plain, told, yes};

const TITLE: &str = "Opening a read-only database panics";
const PANIC: &str = "The exporter stops.\n\n```\nthread 'main' panicked at crates/store/src/sqlite.rs:88:40:\n\
    read-only database handle cannot begin an immediate transaction\n```";

/// A report and the pull request that says that it fixes it.
struct Fixed {
    report: ItemNumber,
    pull: ItemNumber,
}

/// Zoe reports a problem, a pull request for `base` is merged, and the report is closed. All of it is known by sync only,
/// which does not see the base.
async fn fixed(setting: &Setting, base: &str) -> Fixed {
    setting.vector_of("on the harbour", GAMMA, 1.0);
    let (report, pull) = {
        let mut world = setting.emulator.world();
        let report = world.open(REPO, "zoe", NewIssue::new(TITLE, &format!("{PANIC}\n\nSeen on the harbour.")));
        let fix = NewIssue::new("Open it read-only", &format!("Fixes #{report}"));
        world.advance(60);
        let pull = world.open(REPO, "bob", fix.pull(Pull { base_ref: base.to_owned(), ..Pull::default() }));
        world.advance(3_600);
        world.merge(REPO, pull, "maint");
        world.close(REPO, report, "maint", CloseReason::Completed);
        (number(report), number(pull))
    };
    setting.sync().await;
    setting.later(24);
    Fixed { report, pull }
}

/// Ann reports it again.
fn again(setting: &Setting, more: &str) -> ItemNumber {
    setting.vector_of("on the pier", GAMMA, 0.95);
    open(setting, &format!("{PANIC}\n\nSeen on the pier.\n\n{more}"))
}

fn open(setting: &Setting, body: &str) -> ItemNumber {
    let mut world = setting.emulator.world();
    world.advance(60);
    number(world.open(REPO, "ann", NewIssue::new(TITLE, body)))
}

async fn lesson(setting: &Setting, item: ItemNumber) -> LessonKind {
    let outcome = setting.store.learning().issue_outcome(setting.repo.id, item).await.expect("reads");
    outcome.map_or(LessonKind::Unknown, |outcome| outcome.lesson.kind())
}

async fn poll(setting: &Setting) {
    setting.later(4);
    let own = OWN.parse().expect("a login");
    poll_reactions(&setting.store, &setting.github(), &own, setting.now()).await.expect("polled");
}

on_both_engines! {
    async fn a_new_issue_whose_problem_is_fixed_is_told_so_and_nothing_else(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let Fixed { report, pull } = fixed(&setting, "main").await;
        let item = again(&setting, "");
        setting.emulator.forget_requests();
        let triaged = setting.triage(item).await;
        assert_eq!(told(&triaged), (Some("commented"), "above_threshold"));
        let verdict = triaged.verdict.expect("a verdict");
        assert_eq!((verdict.verdict, verdict.target), (Verdict::NotDuplicate, None), "it is no duplicate");
        assert_eq!((report.get(), pull.get()), (3, 4));
        let comments = setting.comments(item);
        assert_eq!(comments.len(), 1);
        assert_snapshot!(comments[0], @"
        Probably fixed by #4 (merged 15 Jan 2026).

        That change fixed #3, which may be the same problem.

        Both show `read-only database handle cannot begin an immediate transaction` at `sqlite.rs:88:40`. Both mention `crates/store/src/sqlite.rs`.

        **Not the same?** 👎 this comment. Nothing is closed because of it.
        ");
        assert_eq!(setting.labels(item), Vec::<String>::new());
        assert_eq!(setting.emulator.writes().len(), 1, "only the comment");
        let record = setting.records(item).await.remove(0).record;
        let fix = record.fix.expect("a fix");
        assert_eq!((fix.kind, fix.report, fix.fix, fix.release), (FixKind::Fixed, report, pull, None));
        // What was fetched is stored.
        let stored = setting.store.corpus().item(setting.repo.id, ItemType::Pr, pull).await.expect("reads").expect("stored");
        assert_eq!(stored.base_branch.as_deref(), Some("main"));
        let why = why_item(&setting.store, &setting.repo, ItemType::Issue, item, None).await.expect("explained");
        assert!(why.starts_with("This may be the same problem as #3, which #4 fixed. Canonry commented because"), "{why}");
    }

    async fn a_killed_run_says_the_same(database: TestDatabase) {
        let setting = Setting::new(database).await;
        fixed(&setting, "main").await;
        let item = again(&setting, "");
        setting.detect_only(item, "killed").await;
        let triaged = setting.try_triage(item, "killed").await.expect("triaged");
        setting.publish().await;
        assert_eq!(told(&triaged), (Some("commented"), "above_threshold"));
        let said = setting.comments(item);
        assert_eq!((said.len(), setting.records(item).await.len(), setting.labels(item).len()), (1, 1, 0));
        assert!(said[0].starts_with("Probably fixed by #4") && said[0].contains("sqlite.rs:88:40"), "{said:?}");
        setting.try_triage(item, "killed").await.expect("triaged");
        setting.publish().await;
        assert_eq!(setting.comments(item), said);
    }

    async fn what_was_fixed_long_ago_may_be_back(database: TestDatabase) {
        let setting = Setting::new(database).await;
        fixed(&setting, "main").await;
        setting.later(24 * 70);
        let item = again(&setting, "");
        setting.triage(item).await;
        assert_snapshot!(setting.comments(item).remove(0), @"
        This may be a regression of #3. That was fixed by #4 (merged 15 Jan 2026).

        Both show `read-only database handle cannot begin an immediate transaction` at `sqlite.rs:88:40`. Both mention `crates/store/src/sqlite.rs`.

        **Not the same?** 👎 this comment. Nothing is closed because of it.
        ");
        assert_eq!(setting.labels(item), Vec::<String>::new());
        // Closing it as a duplicate is no lesson about duplicates.
        let id = setting.emulator.world().issue(REPO, 3).id;
        setting.emulator.world().close(REPO, plain(item), "maint", CloseReason::Duplicate(Some(id)));
        setting.sync().await;
        assert_eq!(lesson(&setting, item).await, LessonKind::Unknown);
        let counts = setting.store.learning().thresholds(setting.repo.id).await.expect("reads").repository.counts;
        assert_eq!((counts.confirmed, counts.missed, counts.total), (0, 0, 0));
    }

    async fn a_fix_that_no_release_contains_is_not_back(database: TestDatabase) {
        let setting = Setting::new(database).await;
        setting.emulator.world().commit(REPO, "main", &[("sqlite.rs", Some("read and write\n"))]);
        setting.emulator.world().release(REPO, "main", "v1.3");
        setting.later(1);
        fixed(&setting, "main").await;
        setting.later(24 * 70);
        let item = again(&setting, "Version: 1.3");
        setting.triage(item).await;
        let said = setting.comments(item).remove(0);
        assert!(said.starts_with("Probably fixed by #4 (merged 15 Jan 2026).\n"), "{said}");
    }

    async fn a_fix_that_was_reverted_is_none(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let Fixed { pull, .. } = fixed(&setting, "main").await;
        let revert = |title: &str, of: u64| {
            let mut world = setting.emulator.world();
            let revert = NewIssue::new(title, &format!("Reverts {REPO}#{of}")).pull(Pull::default());
            let revert = world.open(REPO, "maint", revert);
            world.advance(60);
            world.merge(REPO, revert, "maint");
            revert
        };
        let reverted = revert("Revert \"Open it read-only\"", plain(pull));
        setting.sync().await;
        let item = again(&setting, "");
        assert_eq!(told(&setting.triage(item).await), (Some("recorded"), "not_duplicate"));
        assert!(setting.comments(item).is_empty());
        setting.emulator.world().close(REPO, plain(item), "maint", CloseReason::NotPlanned);
        revert("Revert \"Revert \"Open it read-only\"\"", reverted);
        setting.sync().await;
        let item = again(&setting, "");
        setting.triage(item).await;
        assert!(setting.comments(item).remove(0).starts_with("Probably fixed by #4 "));
    }

    async fn a_release_is_named_and_the_reporters_version_decides(database: TestDatabase) {
        let setting = Setting::new(database).await;
        setting.emulator.world().commit(REPO, "main", &[("sqlite.rs", Some("read-only\n"))]);
        fixed(&setting, "main").await;
        {
            let mut world = setting.emulator.world();
            world.commit(REPO, "1.x", &[("old.rs", Some("old\n"))]);
            world.release(REPO, "main", "v1.4.0-rc1").prerelease = true;
            world.release(REPO, "main", "v1.4");
            world.advance(60);
            world.release(REPO, "main", "v1.5");
        }
        let old = again(&setting, "Version: 1.3.2");
        setting.triage(old).await;
        let said = setting.comments(old).remove(0);
        assert!(said.starts_with("Probably fixed by #4 (merged ") && said.contains("; please try `v1.4`."), "{said}");
        // What was closed as not planned says nothing about a fix.
        setting.emulator.world().close(REPO, plain(old), "maint", CloseReason::NotPlanned);
        setting.sync().await;
        let new = again(&setting, "Version: 1.4.1");
        setting.triage(new).await;
        let said = setting.comments(new).remove(0);
        assert!(said.starts_with("This may be a regression of #3. That was fixed by #4 (merged "), "{said}");
        assert!(said.contains(", released in `v1.4`)."), "{said}");
    }

    async fn only_a_change_of_the_default_branch_after_the_report_is_a_fix(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let other = fixed(&setting, "1.x").await;
        let item = again(&setting, "");
        assert_eq!(told(&setting.triage(item).await), (Some("recorded"), "not_duplicate"));
        assert_eq!((setting.comments(item).len(), setting.records(item).await[0].record.fix.clone()), (0, None));
        let stored = setting.store.corpus().item(setting.repo.id, ItemType::Pr, other.pull).await.expect("reads").expect("stored");
        assert_eq!(stored.base_branch.as_deref(), Some("1.x"));
        // A pull request that was merged before the report cannot have fixed it, whatever it says now.
        let early = {
            let mut world = setting.emulator.world();
            let early = world.open(REPO, "bob", NewIssue::new("Earlier", "").pull(Pull::default()));
            world.merge(REPO, early, "maint");
            world.advance(3_600);
            early
        };
        setting.vector_of("on the lake", 3, 1.0);
        {
            let mut world = setting.emulator.world();
            let report = world.open(REPO, "zoe", NewIssue::new(TITLE, &format!("{PANIC}\n\nSeen on the lake.")));
            world.advance(60);
            world.edit_body(REPO, early, "bob", &format!("Fixes #{report}"));
            world.close(REPO, report, "maint", CloseReason::Completed);
            world.advance(3_600);
        }
        setting.sync().await;
        setting.vector_of("on the river", 3, 0.95);
        let item = open(&setting, &format!("{PANIC}\n\nSeen on the river."));
        assert_eq!(told(&setting.triage(item).await), (Some("recorded"), "not_duplicate"));
        assert!(setting.comments(item).is_empty());
    }

    async fn shadow_records_the_fix_and_writes_nothing(database: TestDatabase) {
        let mut setting = Setting::new(database).await;
        setting.rules.mode = TriageMode::Shadow;
        let Fixed { report, .. } = fixed(&setting, "main").await;
        let item = again(&setting, "");
        assert_eq!(told(&setting.triage(item).await), (Some("recorded"), "mode"));
        assert!(setting.emulator.writes().is_empty() && setting.entries(item).await.is_empty());
        assert_eq!(setting.records(item).await[0].record.fix.as_ref().map(|fix| fix.report), Some(report));
    }

    async fn below_the_threshold_nothing_is_said(database: TestDatabase) {
        let setting = Setting::new(database).await;
        fixed(&setting, "main").await;
        setting.vector_of("on the river", GAMMA, 0.84);
        let item = open(&setting, &format!("{PANIC}\n\nSeen on the river."));
        assert_eq!(told(&setting.triage(item).await), (Some("recorded"), "below_threshold"));
        assert!(setting.comments(item).is_empty());
    }

    async fn people_who_disagree_are_heard_and_agreement_confirms_no_duplicate(database: TestDatabase) {
        let setting = Setting::new(database).await;
        fixed(&setting, "main").await;
        let item = again(&setting, "");
        setting.triage(item).await;
        let react = |content: &str| {
            let comment = setting.comment_id(item);
            let mut world = setting.emulator.world();
            world.advance(60);
            for by in ["zoe", "bob"] {
                world.react_to_comment(REPO, comment, by, content);
            }
        };
        react("+1");
        poll(&setting).await;
        assert_eq!(lesson(&setting, item).await, LessonKind::Unknown);
        {
            let comment = setting.comment_id(item);
            let mut world = setting.emulator.world();
            world.get_mut(REPO).comments.get_mut(&comment).expect("a comment").reactions.clear();
        }
        react("-1");
        poll(&setting).await;
        assert_eq!(lesson(&setting, item).await, LessonKind::FalsePositive);
        let thresholds = setting.store.learning().thresholds(setting.repo.id).await.expect("reads");
        assert_eq!((thresholds.repository.counts.false_positives, thresholds.repository.counts.total), (1, 1));
        assert_eq!(thresholds, setting.store.learning().recomputed_thresholds(setting.repo.id).await.expect("reads"));
    }

    async fn an_edit_turns_a_fix_into_a_duplicate_and_back(database: TestDatabase) {
        let setting = Setting::new(database).await;
        fixed(&setting, "main").await;
        let item = again(&setting, "");
        setting.triage(item).await;
        assert_eq!(setting.labels(item), Vec::<String>::new());
        let edit = |body: &str| setting.emulator.world().edit_body(REPO, plain(item), "ann", body);
        setting.judge_says(yes(1, 0.96));
        setting.vector_of("on the dunes", ALPHA, 0.95);
        setting.later(1);
        edit(&format!("{PANIC}\n\nSeen on the dunes."));
        setting.triage(item).await;
        let said = setting.comments(item);
        assert!(said.len() == 1 && said[0].contains("the same problem as #1 "), "{said:?}");
        assert_eq!(setting.labels(item), [LABEL]);
        setting.judge_says(no());
        setting.later(1);
        edit(&format!("{PANIC}\n\nSeen on the pier, after all."));
        setting.triage(item).await;
        let said = setting.comments(item);
        assert!(said.len() == 1 && said[0].starts_with("Probably fixed by #4"), "{said:?}");
        assert_eq!(setting.labels(item), Vec::<String>::new(), "no label says that it is a duplicate");
    }

    async fn an_open_report_comes_before_a_fixed_one(database: TestDatabase) {
        let setting = Setting::new(database).await;
        fixed(&setting, "main").await;
        setting.vector_of("on the river", GAMMA, 0.99);
        let open = open(&setting, &format!("{PANIC}\n\nSeen on the river."));
        setting.sync().await;
        setting.judge_says(yes(open.get(), 0.96));
        let item = again(&setting, "");
        setting.triage(item).await;
        let said = setting.comments(item).remove(0);
        assert!(said.contains(&format!("the same problem as #{open} ")) && !said.contains("#4"), "{said}");
    }

    async fn releases_that_cannot_be_read_are_not_named(database: TestDatabase) {
        let setting = Setting::new(database).await;
        setting.emulator.world().commit(REPO, "main", &[("sqlite.rs", Some("read-only\n"))]);
        fixed(&setting, "main").await;
        setting.emulator.world().release(REPO, "main", "v1.4");
        setting.emulator.fault(Fault::on("GET", "/repos/*/*/releases").answer(403));
        let item = again(&setting, "");
        setting.triage(item).await;
        let said = setting.comments(item).remove(0);
        assert!(said.starts_with("Probably fixed by #4") && !said.contains("v1.4"), "{said}");
    }
}
