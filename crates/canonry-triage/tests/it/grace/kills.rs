//! The sweep is killed at every point of the outbox and at any wait, and started again.

use canonry_github::outbox::OutboxError;
use canonry_store::GraceState;
use canonry_testkit::database::TestDatabase;
use canonry_testkit::on_both_engines;
use canonry_triage::{GraceError, GraceOutcome};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::ending::{soaking, until};
use crate::grace::cases::{announced, assert_closed, grace, in_grace, meanwhile, said, sweep, try_sweep};
use crate::triage::setting::{REPO, Setting, plain};

/// A longer sweep is considered endless.
const MOST_POINTS: usize = 60;

/// Advances the time past the hour of the write limits and past the lease of a killed process.
fn recover(setting: &Setting) {
    setting.emulator.forget_requests();
    setting.later(25);
}

on_both_engines! {
    async fn a_sweep_survives_a_kill_at_every_point(database: TestDatabase) {
        let setting = in_grace(database).await;
        for points in 0..MOST_POINTS {
            let context = format!("killed after {points} points");
            let item = announced(&setting).await;
            setting.later(73);
            let github = setting.github();
            let passed = AtomicUsize::new(0);
            let checkpoint = move |_| match passed.fetch_add(1, Ordering::SeqCst) {
                passed if passed < points => ControlFlow::Continue(()),
                _ => ControlFlow::Break(()),
            };
            let outbox = setting.outbox().await.with_checkpoint(Arc::new(checkpoint));
            let killed = match try_sweep(&setting, &github, &outbox).await {
                Ok(swept) => {
                    assert_eq!(swept, [(item, GraceOutcome::Closed)], "{context}");
                    false
                }
                Err(GraceError::Outbox(OutboxError::Stopped(_))) => true,
                Err(error) => panic!("{context}: {error}"),
            };
            recover(&setting);
            if killed {
                assert_eq!(sweep(&setting).await, [(item, GraceOutcome::Closed)], "{context}");
            }
            assert_eq!(grace(&setting, item).await.state, GraceState::Closed, "{context}");
            assert_closed(&setting, item, &context);
            if !killed {
                return;
            }
        }
        panic!("it does not end");
    }

    async fn a_sweep_survives_an_end_at_any_wait(database: TestDatabase) {
        let setting = in_grace(database).await;
        let (mut waits, cases) = (usize::MAX, if soaking() { 300 } else { 12 });
        for case in 0..=cases {
            let at = if case == 0 { waits } else { waits * (case - 1) / cases };
            let context = format!("case {case}, ended at wait {at} of {waits}");
            let item = announced(&setting).await;
            setting.later(73);
            let (github, outbox) = (setting.github(), setting.outbox().await);
            let (ended, waited) = until(try_sweep(&setting, &github, &outbox), at).await;
            if let Some(ended) = ended {
                assert_eq!(ended.expect("swept"), [(item, GraceOutcome::Closed)], "{context}");
            }
            if case == 0 {
                waits = waited;
            }
            recover(&setting);
            sweep(&setting).await;
            assert_eq!(grace(&setting, item).await.state, GraceState::Closed, "{context}");
            assert_closed(&setting, item, &context);
        }
    }

    async fn an_objection_while_it_was_dead_counts(database: TestDatabase) {
        let setting = in_grace(database).await;
        let (mut waits, cases) = (usize::MAX, if soaking() { 300 } else { 10 });
        for case in 0..=cases {
            let at = if case == 0 { waits } else { waits * (case - 1) / cases };
            let context = format!("case {case}, ended at wait {at} of {waits}");
            let item = announced(&setting).await;
            setting.later(73);
            let (github, outbox) = (setting.github(), setting.outbox().await);
            let (ended, waited) = until(try_sweep(&setting, &github, &outbox), at).await;
            if case == 0 {
                waits = waited;
                assert!(ended.is_some());
                continue;
            }
            let was_open = crate::grace::cases::is_open(&setting, item);
            meanwhile(&setting, |world| world.comment(REPO, plain(item), "ann", "Please do not."));
            recover(&setting);
            sweep(&setting).await;
            assert_eq!(crate::grace::cases::is_open(&setting, item), was_open, "{context}: nothing is closed after it");
            let state = grace(&setting, item).await.state;
            let expected = if was_open { GraceState::Cancelled } else { GraceState::Closed };
            assert_eq!(state, expected, "{context}");
            if was_open {
                assert!(said(&setting, item).starts_with("**Close cancelled**"), "{context}");
                for comment in setting.comments(item) {
                    assert!(!comment.starts_with("Closed as a duplicate"), "{context}: {comment}");
                }
            }
        }
    }
}
