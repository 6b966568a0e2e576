//! Actions: who may do them, and that a refused action changes nothing.

use canonry_domain::{GithubId, UndoReason};
use canonry_github::Clock as _;
use canonry_server::{ApplyOrder, UndoOrder, queue_apply, queue_sync, queue_undo};
use canonry_store::{BrakeKind, CloseRunId, DeliveryState, JobFilter, JobId, JobState, Repo};
use canonry_testkit::github::Permission;
use jiff::SignedDuration;
use reqwest::StatusCode;

use crate::world::service::{DELIVERY, ServiceWorld};
use crate::world::{REPO, Who};

async fn state(world: &ServiceWorld) -> (bool, bool, JobState, DeliveryState, usize, usize) {
    let (store, repo) = (&world.store, world.repo.id);
    let brake = async |kind| store.close().brake_in_force(repo, kind).await.expect("reads").is_some();
    let job = store.jobs().get(world.dead).await.expect("reads").expect("known").state;
    let delivery = store.deliveries().get(DELIVERY).await.expect("reads").expect("known").state;
    let jobs = store.jobs().list(&JobFilter::default(), 99).await.expect("reads").len();
    let actions = store.console().actions(repo, 99).await.expect("reads").len();
    (brake(BrakeKind::Pause).await, brake(BrakeKind::Breaker).await, job, delivery, jobs, actions)
}

fn actions(world: &ServiceWorld) -> Vec<String> {
    vec![
        "/r/tide/pool/pause".to_owned(),
        "/r/tide/pool/resume".to_owned(),
        "/r/tide/pool/sync".to_owned(),
        "/r/tide/pool/jobs/retry".to_owned(),
        format!("/jobs/{}/retry", world.dead),
        format!("/deliveries/{DELIVERY}/replay"),
    ]
}

#[tokio::test]
async fn what_is_refused_changes_nothing() {
    let world = ServiceWorld::new().await;
    let before = state(&world).await;
    let mut all = actions(&world);
    all.push("/jobs/retry".to_owned());
    for path in &all {
        for (who, expected) in [(Who::Rita, 403), (Who::Stranger, 404), (Who::Nobody, 401)] {
            let csrf = if who == Who::Nobody { "x".to_owned() } else { world.csrf(who).await };
            let answer = world.send(who, path, Some(&csrf), &world.address, &[("reason", "r")]).await;
            let status = answer.status().as_u16();
            // For a stranger the operators' action is forbidden, and a repository's action does not exist.
            let expected = if path == "/jobs/retry" && who == Who::Stranger { 403 } else { expected };
            assert_eq!(status, expected, "{path} by {who:?}");
        }
        let (mona, rita) = (world.csrf(Who::Mona).await, world.csrf(Who::Rita).await);
        let forged = [
            (None, world.address.as_str()),
            (Some("made up"), world.address.as_str()),
            (Some(rita.as_str()), world.address.as_str()),
            (Some(mona.as_str()), "https://evil.example"),
            (Some(mona.as_str()), "null"),
        ];
        for (csrf, origin) in forged {
            let answer = world.send(Who::Mona, path, csrf, origin, &[]).await;
            assert_eq!(answer.status(), StatusCode::FORBIDDEN, "{path} with {csrf:?} from {origin}");
        }
        let got = world.ask(Who::Mona, path).await.status();
        assert!(
            got == StatusCode::METHOD_NOT_ALLOWED || got == StatusCode::NOT_FOUND || got == StatusCode::FORBIDDEN,
            "{path}: {got}"
        );
        assert_eq!(state(&world).await, before, "{path}");
    }
}

#[tokio::test]
async fn whoever_lost_the_right_since_the_page_does_nothing() {
    let world = ServiceWorld::new().await;
    let before = state(&world).await;
    let csrf = world.csrf(Who::Mona).await;
    world.page(Who::Mona, "/r/tide/pool").await;
    world.emulator.world().collaborator(REPO, "mona", Permission::Read);
    assert!(world.page(Who::Mona, "/r/tide/pool").await.contains("Sync now"), "a page believes GitHub for a minute");
    for path in actions(&world) {
        let answer = world.send(Who::Mona, &path, Some(&csrf), &world.address, &[]).await;
        assert_eq!(answer.status(), StatusCode::FORBIDDEN, "{path}");
    }
    assert_eq!(state(&world).await, before);
    assert!(!world.page(Who::Mona, "/r/tide/pool").await.contains("Sync now"), "and now the page knows too");
}

#[tokio::test]
async fn a_maintainer_pauses_and_resumes() {
    let world = ServiceWorld::new().await;
    let pressed = world.press(Who::Mona, "/r/tide/pool/pause", &[("reason", "a release\u{202e} <blink>")]).await;
    assert_eq!(
        (pressed.status(), pressed.headers()["location"].to_str().expect("text")),
        (StatusCode::SEE_OTHER, "/r/tide/pool")
    );
    let brake =
        world.store.close().brake_in_force(world.repo.id, BrakeKind::Pause).await.expect("reads").expect("paused");
    assert_eq!(
        (brake.set_by.map(|by| by.to_string()).as_deref(), brake.why.as_str()),
        (Some("mona"), "a release\u{202e} <blink>")
    );
    let page = world.page(Who::Mona, "/r/tide/pool").await;
    assert!(
        page.contains("<strong>Paused.</strong>") && page.contains("a release") && !page.contains("<blink>"),
        "{page}"
    );
    world.press(Who::Mona, "/r/tide/pool/resume", &[]).await;
    assert_eq!(world.store.close().brake_in_force(world.repo.id, BrakeKind::Pause).await.expect("reads"), None);
    let actions = world.store.console().actions(world.repo.id, 2).await.expect("reads");
    let told: Vec<_> = actions.iter().map(|one| (one.action.as_str(), one.by.as_ref().map(|by| by.as_str()))).collect();
    assert_eq!(told, [("resume", Some("mona")), ("pause", Some("mona"))]);
}

#[tokio::test]
async fn jobs_and_deliveries_are_done_again() {
    let world = ServiceWorld::new().await;
    let job = async || world.store.jobs().get(world.dead).await.expect("reads").expect("known");
    let pressed = world.press(Who::Mona, &format!("/jobs/{}/retry", world.dead), &[]).await;
    assert_eq!(pressed.status(), StatusCode::SEE_OTHER);
    assert_eq!((job().await.state, job().await.attempts), (JobState::Queued, 0));
    let refused = world.press(Who::Mona, &format!("/deliveries/{DELIVERY}/replay"), &[]).await;
    assert_eq!(refused.status(), StatusCode::BAD_REQUEST);
    assert!(refused.text().await.expect("a page").contains("is already queued"));
    let all = world.press(Who::Operator, "/jobs/retry", &[("repo", "tide/pool")]).await;
    assert_eq!(all.status(), StatusCode::SEE_OTHER);
    let wrong = world.press(Who::Operator, "/jobs/retry", &[("repo", "nonsense")]).await;
    assert_eq!(wrong.status(), StatusCode::BAD_REQUEST);
    let synced = world.press(Who::Mona, "/r/tide/pool/sync", &[]).await;
    assert_eq!(synced.status(), StatusCode::SEE_OTHER);
    let filter = JobFilter { kind: Some("sync".to_owned()), ..JobFilter::default() };
    assert_eq!(world.store.jobs().list(&filter, 9).await.expect("reads").len(), 1);
    let imported = "tide/imported".parse().expect("a name");
    world.store.repos().ensure(&imported, world.clock.now()).await.expect("stored");
    let refused = world.press(Who::Operator, "/r/tide/imported/sync", &[]).await;
    assert_eq!(refused.status(), StatusCode::BAD_REQUEST);
    assert!(refused.text().await.expect("a page").contains("`canonry sync --repo tide/imported`"));
}

async fn is_dead(world: &ServiceWorld, job: JobId) -> bool {
    world.store.jobs().get(job).await.expect("reads").expect("known").state == JobState::Dead
}

#[tokio::test]
async fn an_order_that_was_given_up_is_given_anew_and_not_tried_again() {
    let world = ServiceWorld::new().await;
    let (plan, now) = (CloseRunId::new(3), world.clock.now());
    let order = ApplyOrder { plan, approved_only: false, only_takes_back: false, by: None };
    let apply = queue_apply(&world.store, &world.repo, &order, now).await.expect("reads").expect("queued");
    world.give_up(apply).await;
    let order = UndoOrder { plan, item: None, reason: UndoReason::Other, note: None, by: None };
    let undo = queue_undo(&world.store, &world.repo, &order, now).await.expect("reads").expect("queued");
    world.give_up(undo).await;
    for (job, who) in [(apply, Who::Mona), (undo, Who::Mona), (apply, Who::Operator), (undo, Who::Operator)] {
        let pressed = world.press(who, &format!("/jobs/{job}/retry"), &[]).await;
        let to = pressed.headers()["location"].to_str().expect("text");
        assert_eq!((pressed.status(), to), (StatusCode::SEE_OTHER, "/r/tide/pool/plans/3"), "{who:?}");
        let page = world.page(who, &format!("/jobs/{job}")).await;
        assert!(page.contains(r#"href="/r/tide/pool/plans/3""#) && !page.contains("Try it now"), "{page}");
        assert!(is_dead(&world, job).await, "{who:?}");
    }
    world.press(Who::Mona, "/r/tide/pool/jobs/retry", &[]).await;
    assert!(!is_dead(&world, world.dead).await, "others are tried again");
    world.press(Who::Operator, "/jobs/retry", &[]).await;
    assert!(is_dead(&world, apply).await && is_dead(&world, undo).await);
}

#[tokio::test]
async fn what_is_about_a_former_repository_of_the_name_is_not_its_maintainers() {
    let world = ServiceWorld::new().await;
    let id = world.repo.github_id.expect("identified").0;
    let sync_of = async |repo: &Repo| {
        let job = queue_sync(&world.store, repo, world.clock.now()).await.expect("reads").expect("queued");
        world.give_up(job).await;
        job
    };
    let former = Repo { github_id: Some(GithubId(id + 1_000)), ..world.repo.clone() };
    let theirs = sync_of(&former).await;
    let renamed = Repo { name: "tide/before".parse().expect("a name"), ..world.repo.clone() };
    let own = sync_of(&renamed).await;
    for (delivery, repo_id, is_ignored) in
        [("theirs", id + 1_000, false), ("ignored", id + 1_000, true), ("own", id, true)]
    {
        world.deliver(delivery, repo_id, is_ignored).await;
    }
    let hidden = [format!("/jobs/{theirs}"), "/deliveries/theirs".to_owned(), "/deliveries/ignored".to_owned()];
    for path in &hidden {
        assert_eq!(world.ask(Who::Mona, path).await.status(), StatusCode::NOT_FOUND, "{path}");
        assert_eq!(world.ask(Who::Operator, path).await.status(), StatusCode::OK, "{path}");
        let action = if path.starts_with("/jobs") { "retry" } else { "replay" };
        let pressed = world.press(Who::Mona, &format!("{path}/{action}"), &[]).await;
        assert_eq!(pressed.status(), StatusCode::NOT_FOUND, "{path}/{action}");
    }
    for (list, of_own) in [
        ("/r/tide/pool/jobs", format!("/jobs/{}", world.dead)),
        ("/r/tide/pool/deliveries", "/deliveries/own".to_owned()),
    ] {
        let page = world.page(Who::Mona, list).await;
        assert!(page.contains(&format!(r#"href="{of_own}""#)), "{page}");
        for path in &hidden {
            assert!(!page.contains(&format!(r#"href="{path}""#)), "{path}: {page}");
        }
    }
    world.press(Who::Mona, "/r/tide/pool/jobs/retry", &[]).await;
    assert!(is_dead(&world, theirs).await && !is_dead(&world, world.dead).await);
    let page = world.page(Who::Mona, &format!("/jobs/{own}")).await;
    assert!(page.contains(r#"<a href="/r/tide/pool">tide/pool</a>"#), "by its id under whatever name: {page}");
}

#[tokio::test]
async fn whoever_may_not_has_github_asked_once_in_a_while() {
    let world = ServiceWorld::new().await;
    let asked = || world.emulator.requests().len();
    for (who, status, believed) in [(Who::Stranger, StatusCode::NOT_FOUND, 10), (Who::Rita, StatusCode::FORBIDDEN, 1)] {
        let csrf = world.csrf(who).await;
        let send = async |path: &str| {
            let answer = world.send(who, path, Some(&csrf), &world.address, &[]).await;
            assert_eq!(answer.status(), status, "{path} by {who:?}");
        };
        let before = asked();
        send("/r/tide/pool/pause").await;
        let first = asked();
        assert!(first > before, "{who:?}");
        for path in actions(&world) {
            send(&path).await;
        }
        assert_eq!(asked(), first, "{who:?}");
        world.clock.advance(SignedDuration::from_mins(believed));
        send("/r/tide/pool/pause").await;
        assert!(asked() > first, "{who:?}");
    }
    let csrf = world.csrf(Who::Mona).await;
    let before = asked();
    for path in actions(&world) {
        let answer = world.send(Who::Mona, &path, Some(&csrf), "https://evil.example", &[]).await;
        assert_eq!(answer.status(), StatusCode::FORBIDDEN, "{path}");
    }
    assert_eq!(asked(), before, "another site costs nothing");
    world.press(Who::Mona, "/r/tide/pool/pause", &[("reason", "r")]).await;
    let once = asked();
    world.press(Who::Mona, "/r/tide/pool/resume", &[]).await;
    assert!(before < once && once < asked(), "a yes is asked for again");
}
