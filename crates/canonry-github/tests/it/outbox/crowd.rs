//! Tests several workers on one store.

use std::sync::Arc;

use canonry_domain::WriteKey;
use canonry_github::outbox::{Unconditional, Write};
use canonry_store::OutboxState;
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::Fault;
use canonry_testkit::on_both_engines;

use crate::outbox::setting::{Setting, close, comment};

on_both_engines! {
    async fn workers_share_the_work_and_repeat_nothing(database: TestDatabase) {
        let setting = Arc::new(Setting::new(database).await);
        let outbox = setting.outbox().await;
        let mut items = Vec::new();
        for index in 0..8 {
            let item = setting.open_issue();
            let enqueue = async |key: &str, write: Write| {
                outbox.enqueue(setting.repo.id, item, &WriteKey::other(&format!("{key} {index}")), write).await.expect("stored").id
            };
            let last = [
                enqueue("comment", comment("Hello")).await,
                enqueue("label", Write::Label { name: "possible-duplicate".to_owned() }).await,
                enqueue("close", close(&setting)).await,
            ][2];
            items.push((item, last));
        }
        let writes = Fault::on("*", "/repos/**").when(canonry_testkit::github::Recorded::is_write);
        setting.emulator.fault(writes.nth(5).times(4).apply_and_drop());
        let workers: Vec<_> = (0..4).map(|worker| {
            let (setting, items) = (Arc::clone(&setting), items.clone());
            tokio::spawn(async move {
                let outbox = setting.outbox().await;
                let mut order: Vec<_> = (0..items.len()).collect();
                order.rotate_left(worker * 2);
                for index in order {
                    // The four workers share one clock, and each of them advances it while it waits. On a slow machine
                    // it can pass the end of another worker's lease; a worker that loses its lease gets an entry that
                    // is not sent yet.
                    let mut entry = outbox.publish(items[index].1, &Unconditional).await.expect("worked on");
                    for _ in 0..10 {
                        if entry.state != OutboxState::Pending {
                            break;
                        }
                        entry = outbox.publish(items[index].1, &Unconditional).await.expect("worked on");
                    }
                    assert_eq!(entry.state, OutboxState::Sent, "{entry:?}");
                }
            })
        }).collect();
        for worker in workers {
            worker.await.expect("works");
        }
        for (item, _) in items {
            assert_eq!(setting.own_comments(item), ["Hello", crate::outbox::setting::CLOSING]);
            assert_eq!(setting.closes(item), (1, true));
        }
    }
}
