//! What each webhook causes: rows, jobs and writes, in whatever order it comes.

use canonry_domain::{
    EventBy, GoneReason, Item, ItemNumber, ItemState, ItemType, OutcomeEvent, OutcomeKind, RepoName, StateReason,
};
use canonry_server::{AttemptEnd, Publish as _};
use canonry_store::{
    Delivery, DeliveryAction, DeliveryReceipt, DeliveryState, JobFilter, JobKind, JobState, NewDelivery, NewJob,
    PackedText, RepoAccess, TriageActionKind,
};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::{Answer, CloseReason, Fault, NewIssue, Pull};
use canonry_testkit::on_both_engines;
use serde_json::{Value, json};

use crate::world::As;
use crate::world::job_world::{JobWorld, OWN, REPO};

pub(crate) const TITLE: &str = "Crash when the settings page opens with an empty profile";
pub(crate) const BODY: &str = "Opening the settings page with an empty profile crashes the app with `TypeError: profile is undefined` \
    in settings.js line 42. Steps: sign in with a new account, open the settings page, see the error in the console.";

impl JobWorld {
    /// Stores a webhook as the intake does.
    pub(crate) async fn deliver(&self, id: &str, event: &str, payload: &Value) {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let repo: Option<RepoName> = payload["repository"]["full_name"].as_str().and_then(|name| name.parse().ok());
        let number = [&payload["issue"], &payload["pull_request"]].into_iter().find_map(|item| item["number"].as_i64());
        let repo_id = payload["repository"]["id"].as_i64();
        let key = match (repo_id, number, payload["installation"]["id"].as_i64()) {
            (Some(repo), Some(number), _) => format!("repo/{repo}#{number}"),
            (Some(repo), None, _) => format!("repo/{repo}"),
            (None, _, Some(installation)) => format!("installation/{installation}"),
            (None, _, None) => format!("delivery/{id}"),
        };
        let (action, body) = (text(&payload["action"]), payload.to_string());
        let job = json!({ "event": event, "action": action, "github_id": repo_id });
        let job = NewJob { key: &key, repo: repo.as_ref(), kind: JobKind::Webhook, payload: &job };
        let new = NewDelivery {
            id,
            event,
            action: action.as_deref(),
            repo: repo.as_ref(),
            number: number.and_then(|number| ItemNumber::new(number).ok()),
            payload: &PackedText::pack(&body),
            fate: DeliveryAction::Job(job),
        };
        assert_eq!(
            self.store.deliveries().accept(&new, self.clock.now()).await.expect("stored"),
            DeliveryReceipt::Queued
        );
    }

    /// Stores all pending deliveries of the emulated GitHub, in its order.
    pub(crate) async fn deliver_pending(&self) -> Vec<String> {
        let mut ids = Vec::new();
        for delivery in self.emulator.pending_deliveries() {
            self.emulator.note_attempt(delivery.id, 202);
            self.deliver(&delivery.guid, &delivery.event, &delivery.payload).await;
            ids.push(delivery.guid);
        }
        ids
    }

    /// The pending deliveries of the emulated GitHub, without delivering them: event and payload.
    fn untold(&self) -> Vec<(String, Value)> {
        let told = self.emulator.pending_deliveries().into_iter().map(|delivery| {
            self.emulator.note_attempt(delivery.id, 202);
            (delivery.event, delivery.payload)
        });
        told.collect()
    }

    /// Runs jobs until none is due.
    pub(crate) async fn work_off(&self) -> Vec<AttemptEnd> {
        let mut ended = Vec::new();
        while let Some(one) = self.work().await {
            ended.push(one);
            assert!(ended.len() < 1_000, "it goes on for ever");
        }
        ended
    }

    /// Stores everything, runs the jobs, and advances the time for those that wait.
    pub(crate) async fn settle(&self) -> Vec<String> {
        let ids = self.deliver_pending().await;
        for _ in 0..5 {
            if !self.work_off().await.contains(&AttemptEnd::Postponed) {
                break;
            }
            self.emulator.world().advance(60);
        }
        ids
    }

    async fn synced(&self) {
        let job =
            NewJob { key: &self.sync_key(), repo: Some(&self.repo.name), kind: JobKind::Sync, payload: &json!({}) };
        self.store.jobs().enqueue_once(&job, self.clock.now(), self.clock.now()).await.expect("queued");
        assert_eq!(self.work().await, Some(AttemptEnd::Done));
    }

    pub(crate) async fn delivery(&self, id: &str) -> Delivery {
        self.store.deliveries().get(id).await.expect("reads").expect("stored")
    }

    async fn end_of(&self, id: &str) -> (DeliveryState, String) {
        let delivery = self.delivery(id).await;
        (delivery.state, delivery.reason.unwrap_or_default())
    }

    async fn item(&self, item_type: ItemType, number: u64) -> Item {
        let item = self.store.corpus().item(self.repo.id, item_type, at(number)).await.expect("reads");
        item.unwrap_or_else(|| panic!("{item_type} #{number} is not there"))
    }

    async fn events(&self, number: u64) -> Vec<OutcomeEvent> {
        self.store.learning().outcome_events(self.repo.id, at(number)).await.expect("reads")
    }

    pub(crate) fn open(&self, by: &str) -> u64 {
        self.emulator.world().open(REPO, by, NewIssue::new(TITLE, BODY))
    }

    pub(crate) fn settings(&self, text: &str) {
        self.emulator.world().get_mut(REPO).file(".canonry.yml", text);
    }

    async fn triages(&self, number: u64) -> usize {
        self.store.duplicates().triage_records_of(self.repo.id, ItemType::Issue, at(number)).await.expect("reads").len()
    }
}

pub(crate) fn at(number: u64) -> ItemNumber {
    ItemNumber::new(i64::try_from(number).expect("small")).expect("a number")
}

fn words(events: &[OutcomeEvent]) -> Vec<(OutcomeKind, EventBy, Option<i64>)> {
    events.iter().map(|event| (event.kind, event.by, event.duplicate_of.map(ItemNumber::get))).collect()
}

on_both_engines! {
    async fn a_new_issue_waits_for_the_corpus_and_is_recorded_in_silence(database: TestDatabase) {
        let setting = JobWorld::new(&database, As::Token).await;
        setting.open("ann");
        setting.untold();
        let number = setting.open("ann");
        let ids = setting.deliver_pending().await;
        assert_eq!(setting.work().await, Some(AttemptEnd::Postponed), "there is nothing to compare it with");
        assert_eq!(setting.work().await, Some(AttemptEnd::Done), "the sync");
        assert_eq!(setting.work().await, None, "it looks again in a while");
        setting.emulator.world().advance(30);
        assert_eq!(setting.work().await, Some(AttemptEnd::Done));
        assert_eq!(setting.end_of(&ids[0]).await, (DeliveryState::Done, String::new()));
        let record = setting.store.duplicates().triage_records_of(setting.repo.id, ItemType::Issue, at(number)).await.expect("reads").remove(0);
        assert_eq!((record.record.run_id.as_str(), record.record.target.map(ItemNumber::get)), (ids[0].as_str(), Some(1)));
        assert_eq!(setting.emulator.writes().len(), 0, "shadow is the default");
        setting.emulator.assert_no_unknown_routes();
    }

    async fn what_the_repository_wants_said_is_said_once(database: TestDatabase) {
        let setting = JobWorld::new(&database, As::Token).await;
        setting.settings("triage: {mode: suggest}");
        setting.open("ann");
        setting.settle().await;
        let number = setting.open("ann");
        let ids = setting.settle().await;
        let actions = setting.store.duplicates().triage_actions_of(setting.repo.id, ItemType::Issue, at(number)).await.expect("reads");
        assert_eq!(actions.iter().map(|stored| stored.action.action).collect::<Vec<_>>(), [TriageActionKind::Commented]);
        while setting.service.publish_one().await.expect("publishes") {}
        // The same again, and an edit that changes no text.
        canonry_server::replay(&setting.store, &ids[0], setting.clock.now()).await.expect("queued");
        setting.emulator.world().edit_title(REPO, number, "ann", TITLE);
        setting.emulator.world().edit_body(REPO, number, "ann", &format!("{BODY}\n\n"));
        setting.settle().await;
        while setting.service.publish_one().await.expect("publishes") {}
        assert_eq!(setting.emulator.world().comments_by(REPO, number, OWN).len(), 1);
        assert_eq!(setting.emulator.world().issue(REPO, number).labels, ["possible-duplicate"]);
        assert_eq!(setting.triages(number).await, 1);
        // Our own comment and label came back as webhooks, and caused nothing.
        setting.settle().await;
        assert_eq!(setting.events(number).await, []);
        setting.emulator.assert_no_unknown_routes();
    }

    async fn nobody_answers_bots_or_itself(database: TestDatabase) {
        let setting = JobWorld::new(&database, As::Token).await;
        setting.emulator.world().bot("renovate[bot]");
        let (by_bot, by_us) = (setting.open("renovate[bot]"), setting.open(OWN));
        let ids = setting.settle().await;
        for (id, number, why) in [(&ids[0], by_bot, "a bot did it"), (&ids[1], by_us, "Canonry did it itself")] {
            assert_eq!(setting.end_of(id).await, (DeliveryState::Ignored, format!("stored, not triaged: {why}")));
            assert_eq!((setting.item(ItemType::Issue, number).await.title.as_str(), setting.triages(number).await), (TITLE, 0));
        }
        // A person edits a bot's item: it still gets no answer.
        setting.emulator.world().edit_title(REPO, by_bot, "ann", "Another title");
        let ids = setting.settle().await;
        assert_eq!(setting.end_of(&ids[0]).await, (DeliveryState::Ignored, "stored, not triaged: a bot wrote it".to_owned()));
        assert_eq!(setting.item(ItemType::Issue, by_bot).await.title, "Another title");
    }

    async fn what_people_do_with_an_issue_is_kept_with_who_did_it(database: TestDatabase) {
        let setting = JobWorld::new(&database, As::Token).await;
        setting.emulator.world().bot("stale[bot]");
        setting.emulator.world().user("sam");
        let number = setting.open("ann");
        let comment = {
            let mut world = setting.emulator.world();
            world.collaborator(REPO, "mia", canonry_testkit::github::Permission::Write);
            world.advance(60);
            let comment = world.comment(REPO, number, "mia", "Duplicate of #1, and not of #9");
            world.comment(REPO, number, "sam", "me too");
            world.close(REPO, number, "sam", CloseReason::NotPlanned);
            world.advance(60);
            world.label(REPO, number, "mia", "duplicate");
            world.label(REPO, number, "mia", "possible-duplicate");
            world.unlabel(REPO, number, "sam", "possible-duplicate");
            world.advance(60);
            world.reopen(REPO, number, "sam");
            world.advance(60);
            world.close(REPO, number, "stale[bot]", CloseReason::Completed);
            world.advance(60);
            world.reopen(REPO, number, OWN);
            comment
        };
        setting.settle().await;
        let expected = [
            (OutcomeKind::Closed, EventBy::Person, None),
            (OutcomeKind::Labeled, EventBy::Maintainer, None),
            (OutcomeKind::Reopened, EventBy::Person, None),
            (OutcomeKind::Closed, EventBy::Bot, None),
            (OutcomeKind::Reopened, EventBy::Canonry, None),
        ];
        // The first issue is not a duplicate of itself.
        assert_eq!(words(&known(setting.events(number).await)), expected);
        setting.open("ann");
        let other = setting.open("ann");
        {
            let mut world = setting.emulator.world();
            let comment = world.comment(REPO, other, "mia", "Duplicate of #1");
            world.advance(1);
            world.edit_comment(REPO, comment, "mia", "Duplicate of #2");
            world.advance(1);
            world.delete_comment(REPO, comment, "sam");
            let another = world.comments_by(REPO, number, "sam")[0].id;
            world.delete_comment(REPO, another, "sam");
        }
        setting.settle().await;
        let said = [Some(1), Some(2), None].map(|of| (OutcomeKind::Commented, EventBy::Maintainer, of));
        assert_eq!(words(&setting.events(other).await), said);
        assert!(comment > 0);
        let events = known(setting.events(number).await);
        assert_eq!(events[0].state_reason, Some(StateReason::NotPlanned));
        assert!(events.iter().all(|event| event.kind != OutcomeKind::Commented), "what named nothing has nothing to take back");
    }

    async fn a_webhook_about_a_known_issue_is_all_there_is_to_learn(database: TestDatabase) {
        let setting = JobWorld::new(&database, As::Token).await;
        let number = setting.open("ann");
        setting.settle().await;
        for turn in 0..2 {
            {
                let mut world = setting.emulator.world();
                world.advance(60);
                world.close(REPO, number, "ann", CloseReason::Completed);
            }
            setting.settle().await;
            {
                let mut world = setting.emulator.world();
                world.advance(60);
                world.reopen(REPO, number, "ann");
            }
            setting.settle().await;
            let events = setting.events(number).await;
            assert_eq!(events.len(), 2 * (turn + 1), "{events:#?}");
            assert!(events.iter().all(|event| event.by == EventBy::Person), "{events:#?}");
        }
    }

    async fn the_order_of_arrival_does_not_matter(database: TestDatabase) {
        let setting = JobWorld::new(&database, As::Token).await;
        setting.synced().await;
        let number = setting.open("ann");
        for (title, seconds) in [("Second title of the crash report", 60), ("Third title of the crash report", 60)] {
            let mut world = setting.emulator.world();
            world.advance(seconds);
            world.edit_title(REPO, number, "ann", title);
        }
        {
            let mut world = setting.emulator.world();
            world.advance(60);
            world.close(REPO, number, "ann", CloseReason::Completed);
            world.advance(60);
            world.label(REPO, number, "ann", "duplicate");
        }
        let mut told = setting.untold();
        assert_eq!(told.len(), 5);
        told.reverse();
        for (order, (event, payload)) in told.iter().enumerate() {
            setting.deliver(&format!("late-{order}"), event, payload).await;
        }
        setting.work_off().await;
        let item = setting.item(ItemType::Issue, number).await;
        assert_eq!((item.title.as_str(), item.state), ("Third title of the crash report", ItemState::Closed));
        assert_eq!(item.labels, ["duplicate"]);
        assert_eq!(words(&known(setting.events(number).await)), [(OutcomeKind::Closed, EventBy::Person, None), (OutcomeKind::Labeled, EventBy::Person, None)]);
        let reasons: Vec<String> = setting.reasons(5).await;
        assert_eq!(reasons, ["", "", "the item is closed", "the item is closed", "the item is closed"]);
    }

    async fn what_has_left_stays_away(database: TestDatabase) {
        let setting = JobWorld::new(&database, As::Token).await;
        setting.emulator.world().repo("tide/rock");
        setting.synced().await;
        let (deleted, moved) = (setting.open("ann"), setting.open("ann"));
        let told = setting.untold();
        {
            let mut world = setting.emulator.world();
            world.advance(60);
            world.delete(REPO, deleted, "ann");
            world.transfer(REPO, moved, "ann", "tide/rock");
        }
        setting.settle().await;
        assert_eq!(setting.item(ItemType::Issue, deleted).await.gone, Some(GoneReason::Deleted));
        assert_eq!(setting.item(ItemType::Issue, moved).await.gone, Some(GoneReason::Transferred));
        for (at, (event, payload)) in told.iter().enumerate() {
            setting.deliver(&format!("late-{at}"), event, payload).await;
        }
        setting.work_off().await;
        assert_eq!(setting.item(ItemType::Issue, deleted).await.gone, Some(GoneReason::Deleted));
        assert_eq!(setting.end_of("late-1").await, (DeliveryState::Ignored, "the item is no longer in the repository".to_owned()));
        assert_eq!(setting.triages(deleted).await, 0);
    }

    async fn pull_requests_are_triaged_and_have_no_outcome(database: TestDatabase) {
        let setting = JobWorld::new(&database, As::Token).await;
        setting.settings("review: {enabled: false}");
        let open = |title: &str| setting.emulator.world().open(REPO, "ann", NewIssue::new(title, BODY).pull(Pull::default()));
        let first = open(TITLE);
        setting.settle().await;
        let number = open(TITLE);
        setting.emulator.world().comment(REPO, number, "ann", "Duplicate of #1");
        setting.settle().await;
        setting.emulator.world().close(REPO, number, "ann", CloseReason::Completed);
        setting.settle().await;
        let records = setting.store.duplicates().triage_records_of(setting.repo.id, ItemType::Pr, at(number)).await.expect("reads");
        assert_eq!((records.len(), records[0].record.candidates[0].number), (1, at(first)));
        let item = setting.item(ItemType::Pr, number).await;
        assert_eq!((item.state, item.comments), (ItemState::Closed, 1));
        assert_eq!(setting.events(number).await, []);
    }

    async fn a_push_forgets_what_an_open_pull_request_changed(database: TestDatabase) {
        let setting = JobWorld::new(&database, As::Token).await;
        setting.settings("review: {enabled: false}");
        let pull = || Pull::default().file("src/tap.rs", "@@ -1 +1 @@\n-cold();\n+warm();");
        let open = || setting.emulator.world().open(REPO, "ann", NewIssue::new(TITLE, BODY).pull(pull()));
        let (pushed, merged) = (open(), open());
        let opened = setting.untold();
        setting.emulator.world().advance(60);
        setting.emulator.world().merge(REPO, merged, "ann");
        setting.untold();
        setting.synced().await;
        let is_known = async |of: u64| setting.item(ItemType::Pr, of).await.changes.is_some();
        assert_eq!((is_known(pushed).await, is_known(merged).await), (true, true));
        // As GitHub tells of a push; of the merged one it comes late.
        for (at, (event, mut payload)) in opened.into_iter().enumerate() {
            payload["action"] = json!("synchronize");
            setting.deliver(&format!("push-{at}"), &event, &payload).await;
        }
        setting.work_off().await;
        assert_eq!((is_known(pushed).await, is_known(merged).await), (false, true));
        setting.synced().await;
        assert!(is_known(pushed).await, "the next sync fetches it");
    }

    async fn a_repository_is_known_by_its_id(database: TestDatabase) {
        let setting = JobWorld::new(&database, As::Token).await;
        let number = setting.open("ann");
        let before = setting.untold();
        setting.emulator.world().rename_repo(REPO, "tide/shore", "ann");
        setting.settle().await;
        let name = async |id| setting_name(&setting, id).await;
        assert_eq!(name(setting.repo.id).await, "tide/shore");
        // A delivery from before the rename comes after it.
        setting.deliver("late", &before[0].0, &before[0].1).await;
        setting.settle_jobs().await;
        assert_eq!(name(setting.repo.id).await, "tide/shore");
        assert_eq!(setting.item(ItemType::Issue, number).await.title, TITLE);
        // Another repository gets the name, and then this one gets it back.
        setting.emulator.world().repo(REPO);
        setting.open("ann");
        setting.settle().await;
        let other = setting.store.repos().find(&REPO.parse().expect("a name")).await.expect("reads").expect("known");
        assert_ne!(other.id, setting.repo.id);
        {
            let mut world = setting.emulator.world();
            world.rename_repo(REPO, "tide/rock", "ann");
            world.rename_repo("tide/shore", REPO, "ann");
        }
        // The second rename is delivered first.
        let mut told = setting.untold();
        told.reverse();
        for (at, (event, payload)) in told.iter().enumerate() {
            setting.deliver(&format!("renamed-{at}"), event, payload).await;
        }
        setting.settle_jobs().await;
        assert_eq!((name(setting.repo.id).await, name(other.id).await), (REPO.to_owned(), "tide/rock".to_owned()));
        setting.emulator.assert_no_unknown_routes();
    }

    async fn nothing_is_done_where_access_has_ended(database: TestDatabase) {
        let setting = JobWorld::new(&database, As::App).await;
        setting.synced().await;
        let installation = |action: &str| json!({"action": action, "installation": {"id": 5, "account": {"login": "Tide"}}});
        let listed = json!([{"id": setting.repo.github_id.expect("known").0, "full_name": REPO}]);
        let changed = |word: &str| json!({"action": word, "installation": {"id": 5}, (format!("repositories_{word}")): listed});
        let repository = |action: &str| json!({"action": action, "repository": {"id": setting.repo.github_id.expect("known").0, "full_name": REPO}});
        let cases = [
            ("installation", installation("suspend"), RepoAccess::Suspended, "the installation is suspended"),
            ("installation", installation("unsuspend"), RepoAccess::Active, ""),
            ("installation_repositories", changed("removed"), RepoAccess::Removed, "Canonry no longer has access to it"),
            ("installation_repositories", changed("added"), RepoAccess::Active, ""),
            ("repository", repository("archived"), RepoAccess::Archived, "it is archived"),
            ("repository", repository("unarchived"), RepoAccess::Active, ""),
            ("installation", installation("deleted"), RepoAccess::Removed, "Canonry no longer has access to it"),
            ("installation", json!({"action": "created", "installation": {"id": 5}, "repositories": listed}), RepoAccess::Active, ""),
            ("repository", repository("deleted"), RepoAccess::Deleted, "it was deleted"),
        ];
        for (at, (event, payload, access, why)) in cases.iter().enumerate() {
            setting.deliver(&format!("access-{at}"), event, payload).await;
            assert_eq!(setting.work().await, Some(AttemptEnd::Done), "{payload}");
            assert_eq!(setting.store.repos().access(setting.repo.id).await.expect("reads"), *access, "{payload}");
            setting.settle_jobs().await;
            // Longer than a check of an inaccessible repository is cached.
            setting.emulator.world().advance(660);
            if *access == RepoAccess::Removed {
                setting.emulator.fault(Fault::on("GET", "/repos/*/*").always().answer(404));
            }
            let number = setting.open("ann");
            let ids = setting.settle().await;
            setting.emulator.clear_faults();
            let (state, reason) = setting.end_of(&ids[0]).await;
            let expected = if why.is_empty() { String::new() } else { format!("nothing is done in {REPO}: {why}") };
            assert_eq!((state == DeliveryState::Ignored, reason), (!why.is_empty(), expected), "{payload}");
            assert_eq!(setting.triages(number).await, usize::from(why.is_empty()));
        }
    }

    async fn a_token_sees_that_a_repository_is_back(database: TestDatabase) {
        is_back(&JobWorld::new(&database, As::Token).await).await;
    }

    async fn an_app_sees_that_a_repository_is_back(database: TestDatabase) {
        is_back(&JobWorld::new(&database, As::App).await).await;
    }

    async fn a_text_that_is_edited_again_and_again_is_looked_at_once_more(database: TestDatabase) {
        let setting = JobWorld::new(&database, As::Token).await;
        setting.synced().await;
        let number = setting.open("ann");
        setting.settle().await;
        for title in ["The first title after it", "The second title after it", "The last title after it"] {
            setting.emulator.world().advance(60);
            setting.emulator.world().edit_title(REPO, number, "ann", title);
            setting.settle().await;
        }
        setting.emulator.world().close(REPO, number, "ann", CloseReason::Completed);
        setting.emulator.world().advance(1);
        setting.emulator.world().reopen(REPO, number, "ann");
        let ids = setting.settle().await;
        assert_eq!(setting.end_of(&ids[1]).await.0, DeliveryState::Done, "nothing else waits for it");
        assert_eq!(setting.triages(number).await, 1);
        let queued = JobFilter { state: Some(JobState::Queued), ..JobFilter::default() };
        let jobs = setting.store.jobs().list(&queued, 10).await.expect("reads");
        assert_eq!(jobs.iter().map(|job| job.kind.as_str()).collect::<Vec<_>>(), ["triage"]);
        setting.emulator.world().advance(600);
        assert_eq!(setting.work_off().await, [AttemptEnd::Done]);
        assert_eq!(setting.triages(number).await, 2);
        let (item, records) = (setting.item(ItemType::Issue, number).await, setting.store.duplicates().triage_records_of(setting.repo.id, ItemType::Issue, at(number)).await.expect("reads"));
        assert_eq!(item.title, "The last title after it");
        assert!(records.iter().any(|stored| stored.record.content_version == item.content_version));
        // Long after the triage, an edit is triaged at once.
        setting.emulator.world().advance(600);
        setting.emulator.world().edit_title(REPO, number, "ann", "Yet another title");
        setting.settle().await;
        assert_eq!(setting.triages(number).await, 3);
    }

    async fn a_first_sync_that_died_loses_no_new_item(database: TestDatabase) {
        let setting = JobWorld::new(&database, As::Token).await;
        setting.emulator.fault(Fault::on("GET", "/repos/*/*/issues").always().answer(410));
        let number = setting.open("ann");
        let ids = setting.deliver_pending().await;
        assert_eq!(setting.work_off().await, [AttemptEnd::Postponed, AttemptEnd::Dead], "the item waits for the sync");
        setting.emulator.world().advance(60);
        assert_eq!(setting.work_off().await, [AttemptEnd::Postponed]);
        let reason = setting.store.jobs().list(&JobFilter { delivery: Some(ids[0].clone()), ..JobFilter::default() }, 1).await.expect("reads").remove(0).error;
        assert!(reason.as_deref().is_some_and(|reason| reason.starts_with("the items of tide/pool could not be fetched")), "{reason:?}");
        setting.emulator.clear_faults();
        setting.emulator.world().advance(3_600);
        setting.settle_jobs().await;
        assert_eq!((setting.end_of(&ids[0]).await.0, setting.triages(number).await), (DeliveryState::Done, 1));
    }

    async fn a_new_item_does_not_wait_for_the_night(database: TestDatabase) {
        let setting = JobWorld::new(&database, As::Token).await;
        let now = setting.clock.now();
        let sync = NewJob { key: &setting.sync_key(), repo: Some(&setting.repo.name), kind: JobKind::Sync, payload: &json!({}) };
        setting.store.jobs().enqueue_once(&sync, now + jiff::SignedDuration::from_hours(1), now).await.expect("queued");
        setting.open("ann");
        setting.deliver_pending().await;
        assert_eq!(setting.work_off().await, [AttemptEnd::Postponed, AttemptEnd::Done], "the sync is done at once");
    }

    async fn a_payload_that_this_version_cannot_read_fails_at_once(database: TestDatabase) {
        let setting = JobWorld::new(&database, As::Nobody).await;
        let now = setting.clock.now();
        let newer = json!({ "github_id": 7, "subject": { "pull": 9 } });
        for kind in [JobKind::Review, JobKind::ApplyClose] {
            let job = NewJob { key: "k", repo: None, kind, payload: &newer };
            let id = setting.store.jobs().enqueue(&job, now, now).await.expect("stored");
            assert_eq!(setting.work().await, Some(AttemptEnd::Dead));
            let error = setting.store.jobs().get(id).await.expect("reads").expect("stored").error;
            let words = format!("this version of Canonry cannot read job {id} of kind {kind}, which another version stored");
            assert_eq!(error, Some(words));
        }
    }

    async fn what_only_a_newer_version_can_do_is_left_to_it(database: TestDatabase) {
        let setting = JobWorld::new(&database, As::Nobody).await;
        let now = setting.clock.now();
        let job = NewJob { key: "k", repo: None, kind: JobKind::Sync, payload: &json!({}) };
        let id = setting.store.jobs().enqueue(&job, now, now).await.expect("stored");
        database.execute("UPDATE jobs SET kind = 'forecast'").await;
        assert_eq!(setting.store.jobs().get(id).await.expect("reads").expect("stored").kind.to_string(), "forecast");
        assert_eq!(setting.work().await, Some(AttemptEnd::Postponed));
        assert_eq!(setting.store.jobs().get(id).await.expect("reads").expect("stored").run_after, now + jiff::SignedDuration::from_mins(1));
        setting.emulator.world().advance(86_400);
        assert_eq!(setting.work().await, Some(AttemptEnd::Dead));
    }

    async fn settings_come_from_the_default_branch_and_mistakes_are_silent(database: TestDatabase) {
        let setting = JobWorld::new(&database, As::Token).await;
        setting.settings("triage: {mode: suggest, excludeLabels: [wontfix], duplicateThreshold: 70}");
        setting.open("ann");
        setting.settle().await;
        assert_eq!(setting.store.learning().threshold_settings(setting.repo.id).await.expect("reads").configured.get(), 70);
        let mode = async |wanted: &str| {
            let number = setting.open("ann");
            let ids = setting.settle().await;
            let actions = setting.store.duplicates().triage_actions_of(setting.repo.id, ItemType::Issue, at(number)).await.expect("reads");
            let mode = actions.first().map(|stored| stored.action.mode.as_str().to_owned());
            assert_eq!(mode.unwrap_or(setting.end_of(&ids[0]).await.1), wanted);
        };
        mode("suggest").await;
        // Without a push, fetched settings are used for ten minutes.
        setting.settings("triage: {mode: off, duplicateThreshold: 70}");
        mode("suggest").await;
        setting.emulator.world().advance(600);
        mode("triage is off in this repository").await;
        setting.push("triage: {mode: suggest, duplicateThreshold: 7}").await;
        mode("shadow").await;
        assert_eq!(setting.store.learning().threshold_settings(setting.repo.id).await.expect("reads").configured.get(), 70, "a mistake changes nothing that was learned");
        // GitHub fails: the last settings are used.
        setting.push("triage: {mode: grace}").await;
        setting.emulator.fault(Fault::on("GET", "/repos/*/*/contents/*").always().answer(503));
        mode("shadow").await;
        setting.emulator.clear_faults();
        mode("grace").await;
    }

    async fn a_failing_github_is_waited_for(database: TestDatabase) {
        let setting = JobWorld::new(&database, As::Token).await;
        setting.synced().await;
        setting.open("ann");
        let ids = setting.deliver_pending().await;
        let fault = Fault::on("GET", "/repos/*/*/contents/*").always();
        setting.emulator.fault(fault.answer(502));
        assert_eq!(setting.work().await, Some(AttemptEnd::Postponed), "it is not tried in vain");
        let job = setting.store.jobs().list(&JobFilter { delivery: Some(ids[0].clone()), ..JobFilter::default() }, 1).await.expect("reads").remove(0);
        let error = job.error.expect("an error");
        assert!(error.contains("GitHub failed to answer") && !error.contains("profile"), "{error}");
        setting.emulator.clear_faults();
        let limited = Answer::message(403, "API rate limit exceeded").header("x-ratelimit-remaining", "0");
        let reset = (setting.clock.now().as_second() + 3_000).to_string();
        setting.emulator.fault(Fault::on("GET", "/repos/*/*/contents/*").always().answer_with(limited.header("x-ratelimit-reset", &reset)));
        setting.emulator.world().advance(60);
        assert_eq!(setting.work().await, Some(AttemptEnd::Postponed), "GitHub's limit is nobody's fault");
        setting.emulator.clear_faults();
        setting.emulator.world().advance(3_600);
        setting.work_off().await;
        assert_eq!(setting.end_of(&ids[0]).await.0, DeliveryState::Done);
    }

    async fn what_cannot_be_acted_on_is_ignored_with_a_reason(database: TestDatabase) {
        let setting = JobWorld::new(&database, As::Nobody).await;
        let repository = json!({"id": 7, "full_name": "tide/new", "default_branch": "main"});
        let pull = json!({"id": 1, "number": 2});
        let review = |part: &str| json!({"pull_request": pull, part: {"id": 1}, "repository": repository});
        let cases = [
            ("ping", json!({"zen": "z"}), "GitHub tested the webhook"),
            ("label", json!({"label": {"name": "bug"}, "repository": repository}), "labels arrive with their items"),
            ("pull_request_review", review("review"), "comments of a review arrive in events of their own"),
            ("pull_request_review_comment", review("comment"), "only new comments are answered"),
            ("check_run", json!({"check_run": {"id": 1}, "repository": repository}), "only a check that is requested again starts a review"),
            ("issues", json!({"action": "opened", "issue": {"id": 1, "number": 2}}), "it names no repository"),
            ("issues", json!({"action": "opened", "issue": {"id": 1, "number": 2}, "repository": {"id": 7, "full_name": "../.."}}), "it names no repository"),
            ("issues", json!({"action": "opened", "issue": {"id": 1, "number": -2}, "repository": repository}), "it names no issue or pull request"),
            ("issues", json!({"action": "opened", "issue": []}), "Canonry does not handle this issues event"),
            ("push", json!({"ref": "refs/heads/topic", "repository": repository}), "only a push to the default branch changes the settings"),
            ("push", json!({"ref": "refs/heads/main", "repository": {"id": 8, "full_name": "tide/else", "default_branch": "main"}}), "no settings of this repository are cached"),
            ("repository", json!({"action": "deleted", "repository": {"id": 8, "full_name": "tide/else"}}), "this repository is not stored"),
        ];
        for (at, (event, payload, why)) in cases.iter().enumerate() {
            let id = format!("d{at}");
            setting.deliver(&id, event, payload).await;
            assert_eq!(setting.work().await, Some(AttemptEnd::Done), "{payload}");
            assert_eq!(setting.end_of(&id).await, (DeliveryState::Ignored, (*why).to_owned()), "{payload}");
        }
        assert_eq!(setting.emulator.requests().len(), 0);
    }

    async fn without_github_everything_is_recorded_and_nothing_asked(database: TestDatabase) {
        let setting = JobWorld::new(&database, As::Nobody).await;
        setting.store.repos().write_settings(setting.repo.id, Some("triage: {mode: suggest}"), setting.clock.now()).await.expect("stored");
        let number = setting.open("ann");
        setting.emulator.world().close(REPO, number, "ann", CloseReason::Duplicate(None));
        let other = setting.open("ann");
        setting.emulator.world().rename_repo(REPO, "tide/shore", "ann");
        setting.settle().await;
        assert_eq!((setting.triages(number).await, setting.triages(other).await), (1, 1));
        assert_eq!(words(&known(setting.events(number).await)), [(OutcomeKind::Closed, EventBy::Person, None)]);
        assert_eq!(setting_name(&setting, setting.repo.id).await, "tide/shore");
        assert_eq!(setting.emulator.requests().len(), 0);
    }

    async fn a_huge_body_is_taken_in(database: TestDatabase) {
        let setting = JobWorld::new(&database, As::Nobody).await;
        let body = format!("{BODY} Duplicate of #4\0 {}", "wide \u{1f30a} ".repeat(200_000));
        let repository = json!({"id": setting.repo.github_id.expect("known").0, "full_name": REPO});
        let issue = json!({"id": 1, "number": 9, "title": TITLE, "body": body, "state": "open", "user": {"login": "ann"}});
        setting.deliver("d1", "issues", &json!({"action": "opened", "issue": issue, "repository": repository})).await;
        assert_eq!(setting.work().await, Some(AttemptEnd::Done));
        assert_eq!(setting.item(ItemType::Issue, 9).await.body.len(), body.len() + 2, "a NUL is shown as three bytes");
        assert_eq!(setting.triages(9).await, 1);
    }
}

/// GitHub answers once that the repository does not exist, and shows it again later.
async fn is_back(setting: &JobWorld) {
    setting.synced().await;
    let fault = setting.emulator.fault(Fault::on("GET", "/repos/*/*").always().answer(404));
    setting.synced().await;
    assert_eq!(setting.store.repos().access(setting.repo.id).await.expect("reads"), RepoAccess::Removed);
    setting.emulator.world().advance(60);
    let number = setting.open("ann");
    let ids = setting.deliver_pending().await;
    assert_eq!(setting.work().await, Some(AttemptEnd::Done));
    assert_eq!(
        setting.end_of(&ids[0]).await,
        (DeliveryState::Ignored, format!("nothing is done in {REPO}: Canonry no longer has access to it"))
    );
    assert!(fault.hits() > 1);
    setting.emulator.clear_faults();
    setting.emulator.world().advance(60);
    setting.emulator.world().edit_title(REPO, number, "ann", "The settings page crashes with an empty profile");
    setting.deliver_pending().await;
    assert_eq!(setting.work_off().await, [AttemptEnd::Postponed], "GitHub was asked a minute ago");
    setting.emulator.world().advance(600);
    setting.settle_jobs().await;
    assert_eq!(setting.store.repos().access(setting.repo.id).await.expect("reads"), RepoAccess::Active);
    assert_eq!(setting.triages(number).await, 1);
}

/// Events with a known actor: an event that a sync would also have found adds nothing.
fn known(events: Vec<OutcomeEvent>) -> Vec<OutcomeEvent> {
    events.into_iter().filter(|event| event.by != EventBy::Unknown).collect()
}

async fn setting_name(setting: &JobWorld, id: canonry_store::RepoId) -> String {
    let repos = setting.store.repos().list().await.expect("reads");
    repos.into_iter().find(|repo| repo.id == id).expect("stored").name.to_string()
}

impl JobWorld {
    /// Runs queued jobs, and advances the time for those that wait.
    async fn settle_jobs(&self) {
        for _ in 0..5 {
            if !self.work_off().await.contains(&AttemptEnd::Postponed) {
                break;
            }
            self.emulator.world().advance(60);
        }
    }

    /// Pushes other settings to the default branch.
    async fn push(&self, text: &str) {
        self.settings(text);
        let repository =
            json!({"id": self.repo.github_id.expect("known").0, "full_name": REPO, "default_branch": "main"});
        let payload = json!({"ref": "refs/heads/main", "repository": repository});
        self.deliver(&format!("push of {text}"), "push", &payload).await;
        assert_eq!(self.work().await, Some(AttemptEnd::Done));
    }

    /// The reasons of the deliveries `late-0`, `late-1`, …
    async fn reasons(&self, count: usize) -> Vec<String> {
        let mut reasons = Vec::new();
        for at in 0..count {
            reasons.push(self.end_of(&format!("late-{at}")).await.1);
        }
        reasons
    }
}
