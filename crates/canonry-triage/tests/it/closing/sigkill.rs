//! Processes that are really killed: a child applies or undoes a plan and sends itself SIGKILL at a point, or is
//! killed during its request; the next child continues. Also two children that run at once.
#![expect(clippy::print_stdout, reason = "a soak tells how many kills there were")]

use std::ops::ControlFlow;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use canonry_config::parse;
use canonry_domain::{ItemNumber, UndoReason};
use canonry_github::outbox::Outbox;
use canonry_github::{Auth, ClientOptions, Clock, GitHub, ManualClock, Secret, SystemClock};
use canonry_store::{CloseRunId, Store};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::{Fault, Recorded};
use canonry_testkit::on_both_engines;
use canonry_triage::{ApplyOptions, UndoOptions, apply_close, undo_close};
use jiff::{SignedDuration, Timestamp};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::closing::setting::{REPO, Setting, TOKEN};
use crate::ending::{soak_kills, soaking};

const DATABASE: &str = "CANONRY_CLOSING_CHILD_DATABASE";
const API: &str = "CANONRY_CLOSING_CHILD_API";
const NOW: &str = "CANONRY_CLOSING_CHILD_NOW";
const POINTS: &str = "CANONRY_CLOSING_CHILD_POINTS";
const TASK: &str = "CANONRY_CLOSING_CHILD_TASK";
const PLAN: &str = "CANONRY_CLOSING_CHILD_PLAN";

/// Longer than one child can wait on its clock, so that time never goes back, and short enough that a plan does not
/// become too old while its children are killed.
const BETWEEN_CHILDREN: SignedDuration = SignedDuration::from_hours(2);

/// The child: applies or undoes until it is done, or until its last point.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "the process that the other tests of this file kill"]
async fn child() {
    let read = |name: &str| std::env::var(name).expect("told by the parent");
    let clock: Arc<dyn Clock> = match read(NOW).as_str() {
        "real" => Arc::new(SystemClock),
        now => Arc::new(ManualClock::new(now.parse().expect("a time"))),
    };
    let points: usize = read(POINTS).parse().expect("a number");
    let plan = CloseRunId::new(read(PLAN).parse().expect("a number"));
    let store = Store::open(&read(DATABASE).parse().expect("a URL"), clock.now()).await.expect("opens");
    let options = ClientOptions {
        api: read(API).parse().expect("a URL"),
        clock,
        ..ClientOptions::new(Auth::Token(Secret::new(TOKEN)))
    };
    let passed = AtomicUsize::new(0);
    let checkpoint = move |_| {
        if passed.fetch_add(1, Ordering::SeqCst) >= points {
            kill(Pid::this(), Signal::SIGKILL).expect("killed");
        }
        ControlFlow::Continue(())
    };
    let github = GitHub::new(options).expect("a client");
    let repo = store.repos().find(&REPO.parse().expect("a name")).await.expect("reads").expect("known");
    let outbox = Outbox::open(store.clone(), github.clone(), [7; 32]).await.expect("an outbox");
    let outbox = outbox.with_checkpoint(Arc::new(checkpoint));
    let config = parse("");
    let failed = match read(TASK).as_str() {
        "apply" => {
            let options = ApplyOptions {
                plan,
                approved_only: false,
                config: &config,
                run_id: "child",
                most_rows: None,
                ordered_at: jiff::Timestamp::MAX,
            };
            apply_close(&store, &github, &outbox, &repo, options, &mut |_| {}).await.expect("applied").failed
        }
        _ => {
            let (run, reason, config) = (plan, UndoReason::NotDuplicate, &config.config);
            let options =
                UndoOptions { run, item: None, reason, note: None, by: None, config, run_id: "child", most_rows: None };
            undo_close(&store, &github, &outbox, &repo, options, &mut |_| {}).await.expect("undone").failed
        }
    };
    assert_eq!(failed, 0);
}

fn spawn_at(url: &str, setting: &Setting, task: &str, plan: CloseRunId, points: usize, now: &str) -> Child {
    Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "closing::sigkill::child", "--ignored", "--test-threads", "1"])
        .env(DATABASE, url)
        .env(API, setting.emulator.url())
        .env(NOW, now)
        .env(POINTS, points.to_string())
        .env(TASK, task)
        .env(PLAN, plan.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("a child")
}

/// Spawns a child some time after the last one.
fn spawn(url: &str, setting: &Setting, task: &str, plan: CloseRunId, points: usize) -> Child {
    let now: Timestamp = {
        let mut world = setting.emulator.world();
        world.now += BETWEEN_CHILDREN;
        world.now
    };
    spawn_at(url, setting, task, plan, points, &now.to_string())
}

fn was_killed(status: ExitStatus) -> bool {
    assert!(status.success() || status.signal() == Some(9), "the child failed: {status}");
    !status.success()
}

/// Runs children until one is not killed. Returns how many were killed.
fn run_to_the_end(url: &str, setting: &Setting, task: &str, plan: CloseRunId, round: usize) -> usize {
    // Few points at a time, so that each round is cut into many pieces, always at other places.
    let (mut points, mut kills) = (2 + round % 5, 0);
    while was_killed(spawn(url, setting, task, plan, points).wait().expect("ends")) {
        kills += 1;
        points += 4;
        assert!(points < 400, "round {round} does not end");
    }
    kills
}

fn assert_undone(setting: &Setting, duplicates: &[ItemNumber]) {
    for duplicate in duplicates {
        let shown = setting.shown(*duplicate);
        let counted = (shown.open, shown.closes, shown.comments.len(), shown.labels.len());
        assert_eq!(counted, (true, 1, 2, 0), "#{duplicate}: {shown:?}");
    }
}

on_both_engines! {
    async fn children_that_kill_themselves_close_and_reopen_each_item_once(database: TestDatabase) {
        let url = database.url().to_owned();
        let setting = Setting::new(database).await;
        let (mut of_apply, mut of_undo, wanted) = (0, 0, if soaking() { soak_kills(2_500) } else { 8 });
        let mut round = 0;
        while of_apply + of_undo < wanted {
            let (original, duplicates) = setting.cluster(2);
            let plan = setting.plan(&[(duplicates[0], original), (duplicates[1], original)]).await;
            let writes = || Fault::on("*", "/repos/**").when(Recorded::is_write);
            setting.emulator.fault(writes().nth(1 + round % 7).apply_and_drop());
            of_apply += run_to_the_end(&url, &setting, "apply", plan, round);
            for duplicate in &duplicates {
                setting.assert_closed(*duplicate, original, &format!("round {round}"));
            }
            setting.assert_back_link(original, &duplicates, &format!("round {round}"));
            setting.emulator.clear_faults();
            setting.emulator.fault(writes().nth(1 + round % 7).apply_and_drop());
            of_undo += run_to_the_end(&url, &setting, "undo", plan, round);
            assert_undone(&setting, &duplicates);
            setting.emulator.clear_faults();
            setting.next_hour();
            setting.later(24 * 3600);
            round += 1;
        }
        println!("SIGKILLs between two steps: apply {of_apply}, undo {of_undo}");
    }

    async fn children_killed_during_a_request_close_and_reopen_each_item_once(database: TestDatabase) {
        let url = database.url().to_owned();
        let setting = Setting::new(database).await;
        let rounds = if soaking() { soak_kills(400) } else { 4 };
        for round in 0..rounds {
            let (original, duplicates) = setting.cluster(2);
            let plan = setting.plan(&[(duplicates[0], original), (duplicates[1], original)]).await;
            for task in ["apply", "undo"] {
                let writes = Fault::on("*", "/repos/**").when(Recorded::is_write).nth(1 + round / 2 % 7);
                // Before GitHub has applied it, or after.
                let (fault, mut gate) = if round % 2 == 0 { writes.hold() } else { writes.hold_answer() };
                setting.emulator.fault(fault);
                let mut victim = spawn(&url, &setting, task, plan, usize::MAX);
                gate.arrived().await;
                victim.kill().expect("killed");
                assert!(was_killed(victim.wait().expect("ends")));
                gate.release();
                setting.emulator.clear_faults();
                assert!(!was_killed(spawn(&url, &setting, task, plan, usize::MAX).wait().expect("ends")));
                if task == "apply" {
                    for duplicate in &duplicates {
                        setting.assert_closed(*duplicate, original, &format!("round {round}"));
                    }
                    setting.assert_back_link(original, &duplicates, &format!("round {round}"));
                }
            }
            assert_undone(&setting, &duplicates);
            setting.next_hour();
            setting.later(24 * 3600);
        }
        println!("SIGKILLs during a request: apply {rounds}, undo {rounds}");
    }

    async fn two_processes_at_once_apply_two_plans_and_one_plan_twice(database: TestDatabase) {
        let url = database.url().to_owned();
        let setting = Setting::new(database).await;
        {
            let mut world = setting.emulator.world();
            world.now = Timestamp::now();
            world.follows_wall_clock = true;
        }
        let ((one, of_one), (two, of_two)) = (setting.cluster(1), setting.cluster(1));
        let plans = [setting.plan(&[(of_one[0], one)]).await, setting.plan(&[(of_two[0], two)]).await];
        let mut children: Vec<Child> = [plans[0], plans[1], plans[1]]
            .into_iter()
            .map(|plan| spawn_at(&url, &setting, "apply", plan, usize::MAX, "real"))
            .collect();
        for child in &mut children {
            assert!(child.wait().expect("ends").success());
        }
        for (duplicates, original) in [(of_one, one), (of_two, two)] {
            setting.assert_closed(duplicates[0], original, "at once");
            setting.assert_back_link(original, &duplicates, "at once");
        }
    }
}
