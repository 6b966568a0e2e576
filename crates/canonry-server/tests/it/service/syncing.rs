//! The job that syncs a repository.

use canonry_domain::{ItemNumber, ItemType};
use canonry_server::{AttemptEnd, Scheduler, Schedules};
use canonry_store::{JobFilter, JobKind, JobState, MaintainerSource, NewJob, RepoAccess};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::{Fault, NewIssue, Pull};
use canonry_testkit::on_both_engines;
use serde_json::json;

use crate::world::As;
use crate::world::job_world::{JobWorld, OWN, REPO};

impl JobWorld {
    /// Advances the time and runs the jobs of the night.
    async fn sync(&self, hours: i64) {
        self.emulator.world().advance(hours * 3600);
        let scheduler = Scheduler { store: self.store.clone(), clock: self.clock.clone(), schedules: Schedules::Token };
        scheduler.catch_up().await.expect("queued");
        while let Some(ended) = self.work().await {
            assert_eq!(ended, AttemptEnd::Done);
        }
    }

    pub(crate) fn sync_key(&self) -> String {
        format!("sync/{}", self.repo.github_id.expect("known").0)
    }

    async fn gone(&self) -> Vec<i64> {
        let gone = self.store.corpus().gone_numbers(self.repo.id).await.expect("reads");
        gone.into_iter().map(ItemNumber::get).collect()
    }

    async fn maintainers(&self) -> (MaintainerSource, Vec<String>) {
        let list = self.store.repos().maintainers(self.repo.id).await.expect("reads").expect("known");
        (list.source, list.logins.iter().map(ToString::to_string).collect())
    }
}

on_both_engines! {
    async fn what_needs_a_look_at_everything_is_done_once_a_night(database: TestDatabase) {
        let setting = JobWorld::new(&database, As::Token).await;
        for _ in 0..2 {
            setting.emulator.world().open(REPO, "ann", NewIssue::new("Water is cold", "Brr."));
        }
        setting.sync(0).await;
        assert_eq!(setting.maintainers().await, (MaintainerSource::Github, vec![OWN.to_owned()]));
        setting.emulator.world().delete(REPO, 2, "ann");
        setting.emulator.forget_requests();
        setting.sync(1).await;
        assert_eq!(setting.gone().await, [0; 0], "no list of changes shows it");
        let asked = setting.emulator.requests().iter().map(|request| request.named_path.clone()).collect::<Vec<_>>();
        assert_eq!(asked, ["/repos/tide/pool", "/repos/tide/pool/issues"], "a sync in between is cheap");
        let ann = ["ann".parse().expect("a login")];
        setting.store.repos().set_maintainers(setting.repo.id, MaintainerSource::Set, &ann, setting.clock.now()).await.expect("stored");
        setting.sync(20).await;
        assert_eq!(setting.gone().await, [2]);
        assert_eq!(setting.maintainers().await, (MaintainerSource::Set, vec!["ann".to_owned()]), "a list that was set stands");
    }

    async fn the_changes_of_pull_requests_are_stored(database: TestDatabase) {
        let setting = JobWorld::new(&database, As::Token).await;
        let pull = Pull::default().file("src/tap.rs", "@@ -1 +1 @@\n-cold();\n+warm();");
        setting.emulator.world().open(REPO, "ann", NewIssue::new("Warm the water", "It is cold.").pull(pull));
        setting.sync(0).await;
        let number = ItemNumber::new(1).expect("valid");
        let stored = setting.store.corpus().item(setting.repo.id, ItemType::Pr, number).await.expect("reads").expect("known");
        assert_eq!(stored.changes.expect("stored").files, ["src/tap.rs"]);
        assert_eq!(stored.base_branch.as_deref(), Some("main"));
        setting.emulator.forget_requests();
        setting.sync(1).await;
        assert!(setting.emulator.requests().iter().all(|request| !request.path.contains("/pulls")), "once is enough");
    }

    async fn a_repository_is_synced_by_its_id(database: TestDatabase) {
        let setting = JobWorld::new(&database, As::Token).await;
        let (now, id) = (setting.clock.now(), setting.repo.github_id.expect("known"));
        let payload = json!({ "github_id": id.0 });
        let job = NewJob { key: &setting.sync_key(), repo: Some(&setting.repo.name), kind: JobKind::Sync, payload: &payload };
        setting.store.jobs().enqueue(&job, now, now).await.expect("queued");
        // The repository is renamed before its turn comes, and another one has its name.
        setting.emulator.world().rename_repo(REPO, "tide/shore", "ann");
        setting.emulator.world().repo(REPO);
        let renamed = setting.store.repos().identify(setting.repo.id, id, &"tide/shore".parse().expect("a name")).await;
        renamed.expect("stored").expect("a free name");
        assert_eq!(setting.work().await, Some(AttemptEnd::Done));
        assert!(setting.emulator.requests().iter().all(|request| !request.path.starts_with("/repos/tide/pool")));
        assert!(setting.store.corpus().sync_progress(setting.repo.id).await.expect("reads").finished_at.is_some());
    }

    async fn a_repository_out_of_sight_is_left_alone(database: TestDatabase) {
        let setting = JobWorld::new(&database, As::Token).await;
        setting.emulator.fault(Fault::on("GET", "/repos/tide/pool").always().answer(404));
        setting.sync(0).await;
        assert_eq!(setting.store.repos().access(setting.repo.id).await.expect("reads"), RepoAccess::Removed);
        setting.emulator.forget_requests();
        setting.sync(24).await;
        assert_eq!(setting.emulator.requests().len(), 0);
        let dead = JobFilter { state: Some(JobState::Dead), ..JobFilter::default() };
        assert_eq!(setting.store.jobs().list(&dead, 10).await.expect("reads"), []);
    }
}
