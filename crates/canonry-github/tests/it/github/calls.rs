//! Tests that each call has its effect on GitHub.

use canonry_domain::{GithubId, ItemState, Login, StateReason};
use canonry_github::api::{IssuePatch, IssueQuery, ListState, Permission, ReactionSubject};
use canonry_github::{Auth, GitHubError, Secret, WriteError, item_from_issue};
use canonry_testkit::github::{CloseReason, NewIssue, Permission as Role, Pull, World};
use canonry_testkit::openapi::OpenApi;

use crate::github::emulated::{REPO, Setting, TOKEN, number, open_issues, repo};

async fn with(fill: impl FnOnce(&mut World)) -> Setting {
    Setting::with(
        |world| {
            world.collaborator(REPO, "canonry-dev", Role::Write);
            open_issues(world, 3);
            fill(world);
        },
        Auth::Token(Secret::new(TOKEN)),
        |_| {},
    )
    .await
}

#[tokio::test]
async fn an_issue_is_closed_as_a_duplicate_and_opened_again() {
    let setting = with(|_| {}).await;
    let target = setting.github.issue(&repo(), number(1)).await.expect("there");
    let closed = setting
        .github
        .patch_issue(&repo(), number(2), IssuePatch::close_as_duplicate_of(GithubId(target.id)))
        .await
        .expect("closed");
    let record = item_from_issue(&closed, setting.begin).expect("a number");
    assert_eq!((record.state, record.state_reason), (Some(ItemState::Closed), Some(Some(StateReason::Duplicate))));
    let timeline = setting.github.timeline(&repo(), number(2)).all().await.expect("a timeline");
    assert!(timeline.iter().any(|event| event.event == "closed"), "{timeline:?}");
    let open = setting.github.patch_issue(&repo(), number(2), IssuePatch::reopen()).await.expect("opened");
    assert_eq!(open.state, "open");
}

#[tokio::test]
async fn lists_obey_state_and_since() {
    let setting = with(|world| {
        world.advance(60);
        world.close(REPO, 2, "ann", CloseReason::Completed);
    })
    .await;
    let numbers = async |state, since| -> Vec<i64> {
        let issues = setting.github.issues(&repo(), IssueQuery { state, since }).all().await.expect("a list");
        issues.iter().map(|issue| issue.number).collect()
    };
    assert_eq!(numbers(ListState::Closed, None).await, [2]);
    assert_eq!(numbers(ListState::Open, None).await.len(), 2);
    let closed_at = setting.github.issue(&repo(), number(2)).await.expect("there").closed_at;
    assert_eq!(numbers(ListState::All, closed_at).await, [2]);
}

#[tokio::test]
async fn labels_come_and_go() {
    let setting = with(|_| {}).await;
    let name = "possible duplicate/é";
    let all = setting.github.add_labels(&repo(), number(1), &[name]).await.expect("added");
    assert_eq!(all.iter().map(|label| label.name.as_str()).collect::<Vec<_>>(), [name]);
    assert_eq!(setting.github.item_labels(&repo(), number(1)).all().await.expect("a list").len(), 1);
    assert!(setting.github.labels(&repo()).all().await.expect("a list").iter().any(|known| known.name == name));
    setting.github.remove_label(&repo(), number(1), name).await.expect("removed");
    let again = setting.github.remove_label(&repo(), number(1), name).await.expect_err("not there");
    assert!(matches!(again, WriteError::Refused { status: 404, .. }), "{again:?}");
}

#[tokio::test]
async fn reactions_are_read_as_they_are_now() {
    let setting = with(|world| {
        world.react(REPO, 1, "ann", "-1");
        let comment = world.comment(REPO, 1, "ann", "hello");
        world.react_to_comment(REPO, comment, "ann", "confused");
    })
    .await;
    let comment = setting.github.comments(&repo(), number(1), None).all().await.expect("a list")[0].id;
    let contents = async |subject| -> Vec<String> {
        let reactions = setting.github.reactions(&repo(), subject).all().await.expect("a list");
        reactions.into_iter().map(|reaction| reaction.content).collect()
    };
    assert_eq!(contents(ReactionSubject::Item(number(1))).await, ["-1"]);
    assert_eq!(contents(ReactionSubject::Comment(GithubId(comment))).await, ["confused"]);
}

#[tokio::test]
async fn maintainers_are_those_who_may_push() {
    let setting = with(|world| {
        world.collaborator(REPO, "mia", Role::Maintain);
        world.collaborator(REPO, "Ada", Role::Admin);
        world.collaborator(REPO, "tim", Role::Triage);
        world.collaborator(REPO, "bea", Role::Read);
    })
    .await;
    let logins: Vec<String> =
        setting.github.maintainers(&repo()).await.expect("a list").iter().map(Login::key).collect();
    assert_eq!(logins, ["ada", "canonry-dev", "mia"]);
    for (login, expected) in [("mia", Permission::Maintain), ("tim", Permission::Triage), ("bea", Permission::Read)] {
        let permission = setting.github.permission(&repo(), &login.parse().expect("a login")).await.expect("known");
        assert_eq!(permission, expected, "{login}");
        assert_eq!(permission.is_maintainer(), login == "mia");
    }
}

#[tokio::test]
async fn hidden_collaborators_are_told_with_a_way_out() {
    let setting = Setting::new().await;
    let error = setting.github.maintainers(&repo()).await.expect_err("hidden");
    assert!(matches!(error, GitHubError::CollaboratorsHidden { .. }), "{error:?}");
    let way_out = format!("or run `canonry maintainers set LOGIN… --repo {REPO}`");
    assert!(error.to_string().ends_with(&way_out), "{error}");
}

#[tokio::test]
async fn a_configuration_is_read_from_the_default_branch() {
    let setting = with(|world| {
        let repo = world.get_mut(REPO);
        repo.file(".canonry.yml", "triage: {mode: suggest}\n").file("docs/big.txt", &"x".repeat(101));
        repo.file_at("evil", ".canonry.yml", "triage: {mode: grace}\n");
    })
    .await;
    let file = async |path| setting.github.default_branch_file(&repo(), path, 100).await;
    let found = file(".canonry.yml").await.expect("read").expect("there");
    assert_eq!(found.text, "triage: {mode: suggest}\n");
    assert_eq!(file("missing.yml").await.expect("read"), None);
    let error = file("docs/big.txt").await.expect_err("too large");
    assert!(
        matches!(&error, GitHubError::BadAnswer { detail, .. } if detail == "it is larger than 100 bytes"),
        "{error:?}"
    );
}

#[tokio::test]
async fn pull_requests_and_their_files_are_read() {
    let setting = with(|world| {
        let pull = Pull::default().file("src/lib.rs", "@@ -1 +1 @@\n-a\n+b");
        world.open(REPO, "ann", NewIssue::new("A change", "Fixes it.").pull(pull));
    })
    .await;
    let pull = setting.github.pull(&repo(), number(4)).await.expect("there");
    assert_eq!((pull.title.as_str(), pull.state.as_str(), pull.merged_at), ("A change", "open", None));
    assert_eq!(setting.github.pulls(&repo(), ListState::Open).all().await.expect("a list").len(), 1);
    let files = setting.github.pull_files(&repo(), number(4)).all().await.expect("a list");
    assert_eq!(files.iter().map(|file| file.filename.as_str()).collect::<Vec<_>>(), ["src/lib.rs"]);
}

#[tokio::test]
async fn our_requests_fit_githubs_own_description() {
    let setting = with(|world| {
        world.get_mut(REPO).file(".canonry.yml", "");
        world.open(REPO, "ann", NewIssue::new("A change", "").pull(Pull::default().file("a", "@@ -1 +1 @@\n-a\n+b")));
    })
    .await;
    let (github, repo, one) = (&setting.github, repo(), number(1));
    let id = github.repo(&repo).await.expect("there").github_id();
    github.repo_by_id(&repo, id).await.expect("there");
    let query = IssueQuery { state: ListState::All, since: Some(setting.begin) };
    github.issues(&repo, query).all().await.expect("a list");
    let target = github.issue(&repo, number(2)).await.expect("there");
    let made = github.create_comment(&repo, one, "hello").await.expect("written");
    let comment = GithubId(made.id);
    github.comments(&repo, one, Some(setting.begin)).all().await.expect("a list");
    github.edit_comment(&repo, comment, "bye").await.expect("edited");
    github.reactions(&repo, ReactionSubject::Item(one)).all().await.expect("a list");
    github.reactions(&repo, ReactionSubject::Comment(comment)).all().await.expect("a list");
    github.delete_comment(&repo, comment).await.expect("deleted");
    github.labels(&repo).all().await.expect("a list");
    github.add_labels(&repo, one, &["new"]).await.expect("added");
    github.item_labels(&repo, one).all().await.expect("a list");
    github.remove_label(&repo, one, "new").await.expect("removed");
    github.patch_issue(&repo, one, IssuePatch::close_as_duplicate_of(GithubId(target.id))).await.expect("closed");
    github.patch_issue(&repo, one, IssuePatch::reopen()).await.expect("opened");
    github.patch_issue(&repo, one, IssuePatch::close(Some(StateReason::NotPlanned))).await.expect("closed");
    github.timeline(&repo, one).all().await.expect("a list");
    github.maintainers(&repo).await.expect("a list");
    github.permission(&repo, &"ann".parse().expect("a login")).await.expect("known");
    github.pulls(&repo, ListState::Open).all().await.expect("a list");
    github.pull(&repo, number(4)).await.expect("there");
    github.pull_files(&repo, number(4)).all().await.expect("a list");
    github.default_branch_file(&repo, ".canonry.yml", 100).await.expect("read");
    github.own_login().await.expect("a login");

    let description = OpenApi::load();
    let requests = setting.emulator.requests();
    let problems: Vec<String> = requests
        .iter()
        .flat_map(|request| {
            description.check_request(&request.method, &request.path, &request.query, request.body.as_ref())
        })
        .collect();
    assert_eq!(problems, Vec::<String>::new());
    assert!(requests.len() >= 25, "{}", requests.len());
}
