//! A pause stops all writes and loses nothing.

use canonry_server::AttemptEnd;
use canonry_store::{DeliveryState, JobScope};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::{NewPull, World};
use canonry_testkit::on_both_engines;

use crate::world::As;
use crate::world::review_world::{PLAIN, REMARKABLE, REPO, ReviewWorld};

on_both_engines! {
    async fn what_comes_while_paused_waits(database: TestDatabase) {
        let setting = ReviewWorld::new(&database, As::App, "").await;
        setting.pause().await;
        setting.emulator.world().commit(REPO, "one", &[("src/pool.js", Some(REMARKABLE))]);
        let mut number = 0;
        let open = |world: &mut World| number = world.open_pull(REPO, "ann", "one", NewPull::new("Fill"));
        assert_eq!(setting.tell(open).await, (DeliveryState::Done, String::new()));
        assert_eq!(setting.work_off().await, [AttemptEnd::Postponed]);
        // Days later it still waits, and then the current head is reviewed.
        setting.emulator.world().advance(10 * 86_400);
        assert_eq!(setting.work_off().await, [AttemptEnd::Postponed]);
        assert_eq!((setting.runs(number).await.len(), setting.writes()), (0, 0));
        let head = setting.push(number, PLAIN);
        setting.resume().await;
        setting.settle().await;
        assert_eq!(setting.reviewed(number).await, [head]);
    }

    async fn what_was_asked_for_before_waits(database: TestDatabase) {
        let setting = ReviewWorld::new(&database, As::App, "").await;
        let number = setting.open("ann", "one", REMARKABLE, NewPull::new("Fill the pool"));
        setting.deliver().await;
        assert_eq!(setting.work(JobScope::Caused).await, Some(AttemptEnd::Done));
        setting.pause().await;
        assert_eq!(setting.work_off().await, [AttemptEnd::Postponed]);
        setting.emulator.world().advance(3_600);
        assert_eq!(setting.work_off().await, [AttemptEnd::Postponed]);
        assert_eq!((setting.runs(number).await.len(), setting.writes()), (0, 0));
        setting.resume().await;
        setting.settle().await;
        assert_eq!((setting.posted(number), setting.reviewed(number).await.len()), ((1, 1), 1));
    }
}

impl ReviewWorld {
    /// The number of writes to GitHub, without token requests.
    fn writes(&self) -> usize {
        self.emulator.writes().iter().filter(|request| !request.path.ends_with("/access_tokens")).count()
    }
}
