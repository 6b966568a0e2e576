//! With a wrong clock nothing is closed: the time to object runs by GitHub's clock.

use std::sync::Arc;

use canonry_github::{Auth, ClientOptions, Clock, GitHub, Secret};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::Emulator;
use canonry_testkit::on_both_engines;
use canonry_triage::GraceOutcome;
use futures_util::future::{BoxFuture, ready};
use jiff::{SignedDuration, Timestamp};

use crate::grace::cases::{announced, assert_closed, grace, in_grace, is_open, sweep, try_sweep_at};
use crate::triage::setting::{Setting, TOKEN};

const FOUR_DAYS: SignedDuration = SignedDuration::from_hours(96);

/// A clock that is ahead of GitHub's, or behind it.
struct Wrong(Arc<Emulator>, SignedDuration);

impl Clock for Wrong {
    fn now(&self) -> Timestamp {
        self.0.world().now + self.1
    }

    fn sleep_until(&self, _: Timestamp) -> BoxFuture<'_, ()> {
        Box::pin(ready(()))
    }
}

fn github(setting: &Setting, skew: SignedDuration) -> GitHub {
    let options = ClientOptions {
        api: setting.emulator.url().parse().expect("a URL"),
        clock: Arc::new(Wrong(Arc::clone(&setting.emulator), skew)),
        ..ClientOptions::new(Auth::Token(Secret::new(TOKEN)))
    };
    GitHub::new(options).expect("a client")
}

async fn sweep_with(setting: &Setting, skew: SignedDuration) -> Vec<GraceOutcome> {
    let github = github(setting, skew);
    let outbox =
        canonry_github::outbox::Outbox::open(setting.store.clone(), github.clone(), [7; 32]).await.expect("opens");
    let now = setting.now() + skew;
    let swept = try_sweep_at(setting, &github, &outbox, now).await.expect("swept");
    swept.into_iter().map(|(_, outcome)| outcome).collect()
}

on_both_engines! {
    async fn a_clock_that_is_ahead_closes_nothing_early(database: TestDatabase) {
        let setting = in_grace(database).await;
        let item = announced(&setting).await;
        let waits = GraceOutcome::Waiting("clock_skew".to_owned());
        assert_eq!(sweep_with(&setting, FOUR_DAYS).await, std::slice::from_ref(&waits));
        assert!(is_open(&setting, item));
        assert_eq!(grace(&setting, item).await.reason.as_deref(), Some("clock_skew"));
        setting.later(73);
        for skew in [FOUR_DAYS, SignedDuration::from_secs(125)] {
            assert_eq!(sweep_with(&setting, skew).await, std::slice::from_ref(&waits), "{skew}: neither is closed late by it");
        }
        assert_eq!(sweep_with(&setting, SignedDuration::from_secs(60)).await, [GraceOutcome::Closed]);
        assert_closed(&setting, item, "both clocks agree");
    }

    async fn a_clock_that_is_behind_closes_nothing(database: TestDatabase) {
        let setting = in_grace(database).await;
        let item = announced(&setting).await;
        setting.later(300);
        let waits = GraceOutcome::Waiting("clock_skew".to_owned());
        assert_eq!(sweep_with(&setting, -FOUR_DAYS).await, [waits]);
        assert!(is_open(&setting, item));
        assert_eq!(sweep(&setting).await, [(item, GraceOutcome::Closed)]);
    }

    /// The clock was behind when the close was announced, and is right at the sweep: by the recorded times, the grace
    /// period is over.
    async fn the_time_runs_from_when_github_has_the_comment(database: TestDatabase) {
        let setting = in_grace(database).await;
        let item = announced(&setting).await;
        let began = grace(&setting, item).await;
        let comment = setting.emulator.world().comments_by("acme/widgets", crate::triage::setting::plain(item), "canonry-bot")[0].created_at;
        assert_eq!(began.began_at, comment);
        setting.later(71);
        let early = began.due_at + SignedDuration::from_hours(1);
        let (github, outbox) = (setting.github(), setting.outbox().await);
        let swept = try_sweep_at(&setting, &github, &outbox, early).await.expect("swept");
        assert_eq!(swept, [(item, GraceOutcome::Waiting("not_due_on_github".to_owned()))]);
        setting.later(2);
        assert_eq!(sweep(&setting).await, [(item, GraceOutcome::Closed)]);
    }
}
