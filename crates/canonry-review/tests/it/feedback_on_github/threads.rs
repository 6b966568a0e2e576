//! Tests dismissals in the thread of a finding, and the answers to questions about it.

use canonry_domain::review::{DismissalKind, Dismisser};
use canonry_domain::{GithubId, ItemNumber};
use canonry_review::{
    FindingThread, dismiss_by_mention, dismiss_in_thread, dismisser, explain_finding, is_maintainer, reopen_thread,
};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::Fault;
use canonry_testkit::on_both_engines;
use canonry_testkit::public_text::{assert_readable, words_in_sight};

use crate::feedback_on_github::setting::{GRAVE, MILD, Setting};
use crate::pipeline::project::login;

on_both_engines! {
    async fn who_may_say_no(database: TestDatabase) {
        let setting = Setting::new(&database).await;
        let (store, github, repo) = (&setting.project.store, Some(&setting.github), &setting.repo);
        let author = login("ann");
        let may = async |by: &str| dismisser(store, github, repo, &login(by), Some(&author)).await.expect("answers");
        assert_eq!(may("Ann").await, Some(Dismisser::Author));
        assert_eq!(may("maint").await, Some(Dismisser::Maintainer));
        assert_eq!((may("ada").await, may("stale[bot]").await, may("nobody-at-all").await), (None, None, None));
        // No guess: without an answer from GitHub there is an error.
        setting.emulator.fault(Fault::on("GET", "/repos/*/*/collaborators/*/permission").answer(403));
        assert!(is_maintainer(store, github, repo, &login("maint")).await.is_err());
        assert!(!is_maintainer(store, None, repo, &login("maint")).await.expect("nobody is known to"));
        // Only a list that was set by hand replaces GitHub's answer.
        let source = canonry_store::MaintainerSource::Github;
        store.repos().set_maintainers(repo.id, source, &[login("ada")], setting.now()).await.expect("stored");
        assert_eq!(may("ada").await, None);
        setting.set_maintainers(&["ada", "ann"]).await;
        assert_eq!((may("ada").await, may("maint").await), (Some(Dismisser::Maintainer), None));
        assert_eq!(may("ann").await, Some(Dismisser::Maintainer));
    }

    async fn a_no_is_about_what_the_comment_says(database: TestDatabase) {
        let mut setting = Setting::new(&database).await;
        let posted = setting.pull_by("ann").await;
        let (store, now) = (&setting.project.store, setting.now());
        let (ann, maint) = (login("ann"), login("maint"));
        let mild = posted.thread(&setting, MILD);
        let said = dismiss_by_mention(store, mild, &ann, Dismisser::Author, now).await.expect("writes");
        assert_eq!(said.map(|said| (said.finding, said.silences)), Some((posted.finding(MILD), true)));
        // A protected finding is hidden only if a maintainer dismisses it.
        let grave = posted.thread(&setting, GRAVE);
        for (by, dismisser, silences) in [(&ann, Dismisser::Author, false), (&maint, Dismisser::Maintainer, true)] {
            let said = dismiss_in_thread(store, grave, DismissalKind::WontFix, by, dismisser, now).await.expect("writes");
            assert_eq!(said.map(|said| said.silences), Some(silences), "{by}");
        }
        let other_pull = FindingThread { number: ItemNumber::new(99).expect("positive"), ..mild };
        let other_thread = FindingThread { thread: GithubId(1), ..mild };
        for elsewhere in [other_pull, other_thread] {
            let said = dismiss_by_mention(store, elsewhere, &maint, Dismisser::Maintainer, now).await.expect("asks");
            assert_eq!(said, None);
            assert!(!reopen_thread(store, elsewhere, now).await.expect("asks"));
            assert!(explain_finding(store, elsewhere, None).await.expect("reads").is_none());
        }

        // Reopening a thread withdraws the dismissal by resolving, and nothing else.
        assert!(!reopen_thread(store, mild, now).await.expect("asks"));
        dismiss_in_thread(store, mild, DismissalKind::Resolved, &ann, Dismisser::Author, now).await.expect("writes");
        assert!(reopen_thread(store, mild, now).await.expect("writes"));
        let standing = store.findings().dismissals_of(posted.finding(MILD)).await.expect("reads");
        let standing: Vec<_> = standing.iter().map(|one| (one.dismissal.kind, one.withdrawn_at.is_some())).collect();
        assert_eq!(standing, [(DismissalKind::NotUseful, false), (DismissalKind::Resolved, true)]);
    }

    async fn why_a_finding_is_what_it_is(database: TestDatabase) {
        let mut setting = Setting::new(&database).await;
        let posted = setting.pull_by("ann").await;
        let (store, thread) = (&setting.project.store, posted.thread(&setting, MILD));
        setting.react(posted.comment(MILD), &[("ada", "-1")]);
        setting.poll().await;
        dismiss_by_mention(store, thread, &login("ann"), Dismisser::Author, crate::pipeline::project::at(7)).await.expect("writes");
        let life = explain_finding(store, thread, None).await.expect("reads").expect("a finding");
        insta::assert_snapshot!(life.markdown(), @"
        **Odd name** is shown at its line. It is a minor style finding, reported by cat.

        - Reactions to `fp-208bf5e1`: 0 👍, 1 👎 from 1 person, rejected on 1 pull request.
        - dismissed by ann (author) on 15 Jan 2027: not useful; holds while the code stays the same.

        <details><summary>Found by 1 review</summary>

        - 15 Jan 2027, 08:00 UTC review 1 new a.js:30 shown at its line

        </details>
        ");
        assert_readable(&life.markdown());
        assert!(words_in_sight(&life.markdown()) <= 60, "{}", life.markdown());
        assert!(life.in_words().contains("dismissed by ann (author) on 15 Jan 2027: not useful"), "{}", life.in_words());
        assert_eq!(life.document()["dismissals"][0]["holds"], true);
    }
}
