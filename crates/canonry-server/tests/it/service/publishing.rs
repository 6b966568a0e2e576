//! Outbox entries of handlers are sent; entries that need a person are not.

use canonry_domain::{GithubId, ItemNumber, ItemType, WriteKey, WriteOrigin};
use canonry_github::outbox::{Close, CloseAs, Write};
use canonry_store::{OutboxEntry, OutboxState};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::{Fault, NewIssue, State, loopback_client};
use canonry_testkit::on_both_engines;
use reqwest::StatusCode;

use crate::world::job_world::{JobWorld, OWN, REPO};
use crate::world::{As, until};

impl JobWorld {
    fn issue(&self) -> ItemNumber {
        let number = self.emulator.world().open(REPO, "ann", NewIssue::new("Water is cold", "Brr."));
        ItemNumber::new(i64::try_from(number).expect("small")).expect("valid")
    }

    /// A suggestion as a handler stores it.
    async fn suggest(&self, number: ItemNumber) -> OutboxEntry {
        let key = WriteKey::of_item(WriteOrigin::TriageComment, self.repo.id.get(), ItemType::Issue, number).and(1);
        let write = Write::Comment { body: "This looks like #1.".to_owned() };
        self.outbox().await.enqueue(self.repo.id, number, &key, write).await.expect("stored")
    }

    /// A close as `apply-close` stores it before it is killed.
    async fn close(&self, number: ItemNumber) -> OutboxEntry {
        let write = Write::Close(Close {
            close_as: CloseAs::DuplicateOf(GithubId(1)),
            comment: "Closing.".to_owned(),
            comment_if_refused: "Not closing.".to_owned(),
        });
        let key = WriteKey::of_item(WriteOrigin::Close, 1, ItemType::Issue, number).with_record(1);
        self.outbox().await.enqueue(self.repo.id, number, &key, write).await.expect("stored")
    }

    async fn state(&self, entry: &OutboxEntry) -> OutboxState {
        self.store.outbox().get(entry.id).await.expect("reads").expect("stored").state
    }

    fn comments(&self, number: ItemNumber) -> usize {
        let number = u64::try_from(number.get()).expect("positive");
        self.emulator.world().comments_by(REPO, number, OWN).len()
    }
}

on_both_engines! {
    async fn suggestions_are_sent_and_closes_never(database: TestDatabase) {
        let setting = JobWorld::new(&database, As::Token).await;
        let (first, second, third) = (setting.issue(), setting.issue(), setting.issue());
        let close = setting.close(second).await;
        let earlier = setting.close(third).await;
        let behind = setting.suggest(third).await;
        let running = setting.serve().await;
        let suggestion = setting.suggest(first).await;
        setting.wake.notify_one();
        until("the suggestion is sent", async || setting.state(&suggestion).await == OutboxState::Sent).await;
        // One more suggestion is sent afterwards, so everything else has had its turn.
        let fourth = setting.issue();
        let last = setting.suggest(fourth).await;
        setting.wake.notify_one();
        until("another is sent", async || setting.state(&last).await == OutboxState::Sent).await;
        assert!(running.stop().await.drained);
        for waiting in [&close, &earlier, &behind] {
            assert_eq!(setting.state(waiting).await, OutboxState::Pending, "{}", waiting.key);
        }
        assert_eq!([first, second, third, fourth].map(|number| setting.comments(number)), [1, 0, 0, 1]);
        let writes: Vec<String> = setting.emulator.writes().into_iter().map(|write| write.method + " " + &write.path).collect();
        assert_eq!(writes, ["POST /repos/tide/pool/issues/1/comments", "POST /repos/tide/pool/issues/4/comments"]);
        assert_eq!(setting.emulator.world().issue(REPO, 2).state, State::Open);
    }

    async fn a_github_that_is_down_holds_up_nothing_but_what_is_sent_there(database: TestDatabase) {
        let setting = JobWorld::new(&database, As::Token).await;
        let number = setting.issue();
        let suggestion = setting.suggest(number).await;
        let down = setting.emulator.fault(Fault::on("*", "/**").always().answer(503));
        let running = setting.serve().await;
        setting.wake.notify_one();
        until("GitHub is asked in vain", async || down.hits() > 0).await;
        let ready = loopback_client().get(format!("{}/readyz", running.url)).send().await.expect("answers");
        assert_eq!(ready.status(), StatusCode::OK);
        setting.emulator.clear_faults();
        until("it is sent", async || setting.state(&suggestion).await == OutboxState::Sent).await;
        assert!(running.stop().await.drained);
        assert_eq!(setting.comments(number), 1);
    }

    async fn a_write_under_way_is_seen_through_at_the_end(database: TestDatabase) {
        let setting = JobWorld::new(&database, As::Token).await;
        let number = setting.issue();
        let suggestion = setting.suggest(number).await;
        let (held, mut gate) = Fault::on("POST", "/**/comments").hold();
        setting.emulator.fault(held);
        let running = setting.serve().await;
        gate.arrived().await;
        let served = running.stop_and(|| gate.release()).await;
        assert!(served.drained);
        assert_eq!((setting.state(&suggestion).await, setting.comments(number)), (OutboxState::Sent, 1));
    }
}
