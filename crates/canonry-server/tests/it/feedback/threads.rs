//! Resolving the thread of a finding rejects the finding, if the person has permission.

use canonry_domain::review::{DismissalKind, Dismisser, HiddenBy, ShownAs};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::on_both_engines;

use crate::feedback::reviewed::{
    LEFTOVER, LEFTOVER_LINE, OWN, comment, dismissals, inline, key_line, pull_by, push_elsewhere, reviewed_pool, shown,
};
use crate::world::review_world::{REPO as POOL, ReviewWorld};

const RESOLVED: DismissalKind = DismissalKind::Resolved;

async fn resolve(setting: &ReviewWorld, comment: u64, by: &str) {
    setting.meanwhile(|world| world.resolve_thread(POOL, comment, by));
    setting.settle().await;
}

async fn unresolve(setting: &ReviewWorld, comment: u64, by: &str) {
    setting.meanwhile(|world| world.unresolve_thread(POOL, comment, by));
    setting.settle().await;
}

on_both_engines! {
    async fn an_author_resolves_a_thread_and_opens_it_again(database: TestDatabase) {
        let setting = reviewed_pool(&database, "").await;
        let number = pull_by(&setting, "ann", LEFTOVER_LINE).await;
        let thread = comment(&setting, number, LEFTOVER);
        resolve(&setting, thread, "stale[bot]").await;
        assert_eq!(dismissals(&setting, thread).await, []);
        unresolve(&setting, thread, "stale[bot]").await;
        resolve(&setting, thread, "ann").await;
        let by_ann = |stands| (RESOLVED, Dismisser::Author, "ann".to_owned(), stands);
        assert_eq!(dismissals(&setting, thread).await, [by_ann(true)]);
        push_elsewhere(&setting, number, "ann", "one();\n").await;
        assert_eq!(shown(&setting, number, LEFTOVER).await, (ShownAs::Suppressed, Some(HiddenBy::Dismissal)));
        assert_eq!(inline(&setting, number), 1, "nobody is told twice");

        unresolve(&setting, thread, "ann").await;
        assert_eq!(dismissals(&setting, thread).await, [by_ann(false)]);
        push_elsewhere(&setting, number, "ann", "two();\n").await;
        assert_eq!(shown(&setting, number, LEFTOVER).await.1, None);
    }

    async fn only_a_maintainer_silences_what_is_grave(database: TestDatabase) {
        let setting = reviewed_pool(&database, "").await;
        let number = pull_by(&setting, "ann", &key_line()).await;
        let thread = comment(&setting, number, "AWS");
        let title = {
            let said = setting.emulator.world();
            let body = &said.review_comments_by(POOL, number, OWN)[0].body;
            assert!(body.contains("AWS"), "{body}");
            drop(said);
            let id = crate::feedback::reviewed::finding(&setting, thread).await;
            let repo = setting.repo.id;
            setting.store.findings().get(repo, id).await.expect("reads").expect("there").finding.title
        };
        resolve(&setting, thread, "ann").await;
        push_elsewhere(&setting, number, "ann", "one();\n").await;
        assert_eq!(shown(&setting, number, &title).await, (ShownAs::Inline, None), "its author may not");
        unresolve(&setting, thread, "ann").await;
        resolve(&setting, thread, "wren").await;
        push_elsewhere(&setting, number, "ann", "two();\n").await;
        assert_eq!(shown(&setting, number, &title).await, (ShownAs::Suppressed, Some(HiddenBy::Dismissal)));
        let by_wren = (RESOLVED, Dismisser::Maintainer, "wren".to_owned(), true);
        assert_eq!(dismissals(&setting, thread).await.last(), Some(&by_wren));
    }

    async fn a_credential_that_a_push_removes_is_still_to_be_revoked(database: TestDatabase) {
        let setting = reviewed_pool(&database, "").await;
        let number = pull_by(&setting, "ann", &key_line()).await;
        let thread = comment(&setting, number, "AWS");
        let path = setting.emulator.world().review_comments_by(POOL, number, OWN)[0].path.clone();
        let concluded = |setting: &ReviewWorld| setting.conclusion(&setting.head(number));
        let is_resolved = |setting: &ReviewWorld| {
            let world = setting.emulator.world();
            world.pull(POOL, number).threads.iter().any(|one| one.comment == thread && one.resolved_by.is_some())
        };
        // A commit that removes it, another one, a force-push without any trace of it, and the deletion of the file.
        for (forced, text) in [(false, Some("first();\nlast();\n")), (false, Some("first();\n")), (true, Some("one();\n")), (false, None)] {
            setting.meanwhile(|world| match forced {
                true => world.force_push_pull(POOL, number, "ann", &[(&path, text), ("other.js", Some("two();\n"))]),
                false => world.push_pull(POOL, number, "ann", &[(&path, text)]),
            });
            setting.settle().await;
            let said = setting.check_text(number);
            // A commit of the branch that has it is named; after a force-push nothing but the memory of it is left.
            let is_told = said.contains("The credential was removed from the code, but stays readable")
                || said.contains("adds what looks like an AWS key, and a later commit removes it");
            assert!(is_told, "{forced} {text:?}: {said}");
            assert!(said.to_lowercase().contains("revoke it") && !said.to_lowercase().contains("fixed"), "{forced} {text:?}: {said}");
            assert_eq!(concluded(&setting).as_deref(), Some("failure"), "{forced} {text:?}");
            assert!(!is_resolved(&setting), "its thread stays open");
        }
        resolve(&setting, thread, "ann").await;
        push_elsewhere(&setting, number, "ann", "one();\n").await;
        assert_eq!(concluded(&setting).as_deref(), Some("failure"), "its author may not");
        unresolve(&setting, thread, "ann").await;
        resolve(&setting, thread, "wren").await;
        push_elsewhere(&setting, number, "ann", "two();\n").await;
        assert_eq!(concluded(&setting).as_deref(), Some("success"), "{}", setting.check_text(number));
        assert_eq!(inline(&setting, number), 1, "it was said once");
    }

    async fn canonrys_own_resolving_is_no_dismissal(database: TestDatabase) {
        let setting = reviewed_pool(&database, "").await;
        let number = pull_by(&setting, "ann", LEFTOVER_LINE).await;
        let thread = comment(&setting, number, LEFTOVER);
        let (path, resolved_by) = {
            let world = setting.emulator.world();
            (world.review_comments_by(POOL, number, OWN)[0].path.clone(), |setting: &ReviewWorld| {
                let world = setting.emulator.world();
                world.pull(POOL, number).threads.iter().find(|one| one.comment == thread).and_then(|one| one.resolved_by.clone())
            })
        };
        setting.meanwhile(|world| world.push_pull(POOL, number, "ann", &[(&path, Some("first();\nlast();\n"))]));
        setting.settle().await;
        assert_eq!(resolved_by(&setting).as_deref(), Some(OWN));
        assert_eq!(dismissals(&setting, thread).await, []);
        // The same mistake is reported again.
        let again = format!("first();\n{LEFTOVER_LINE}last();\n");
        setting.meanwhile(|world| world.push_pull(POOL, number, "ann", &[(&path, Some(&again))]));
        setting.settle().await;
        assert_eq!(shown(&setting, number, LEFTOVER).await, (ShownAs::Inline, None));
    }
}
