//! Answers to findings: "won't fix" in many forms, negated, quoted, and from people without permission.

use canonry_domain::GithubId;
use canonry_domain::review::{DismissalKind, Dismisser, HiddenBy, ShownAs};
use canonry_server::AttemptEnd;
use canonry_store::JobScope;
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::{Fault, NewPull, loopback_client_builder};
use canonry_testkit::on_both_engines;

use crate::feedback::reviewed::{
    LEFTOVER, LEFTOVER_LINE, OWN, comment, dismissals, inline, pull_by, push_elsewhere, reviewed_pool, shown,
};
use crate::world::review_world::{REPO as POOL, ReviewWorld};

/// A person answers in a thread; returns whether Canonry acknowledged it with a thumb.
async fn answer(setting: &ReviewWorld, thread: u64, by: &str, text: &str) -> bool {
    let reply = setting.meanwhile(|world| world.reply_in_thread(POOL, thread, by, text));
    setting.settle().await;
    let world = setting.emulator.world();
    let comments = world.get(POOL).issues.values().filter_map(|issue| issue.pull.as_ref());
    let found = comments.flat_map(|pull| &pull.review_comments).find(|one| one.id == reply).expect("there");
    let thumbs: Vec<&str> = found.reactions.iter().map(|reaction| reaction.content.as_str()).collect();
    assert!(found.reactions.iter().all(|reaction| reaction.author == OWN), "{thumbs:?}");
    assert!(thumbs.is_empty() || thumbs == ["+1"], "{thumbs:?}");
    !thumbs.is_empty()
}

/// A person deletes their inline comment.
async fn delete(setting: &ReviewWorld, comment: u64, by: &str) {
    let token = format!("ghp_tokenOf{by}0123456789");
    setting.meanwhile(|world| {
        world.token(&token, by);
    });
    let url = format!("{}/repos/{POOL}/pulls/comments/{comment}", setting.emulator.url());
    let answer = loopback_client_builder()
        .build()
        .expect("a client")
        .delete(url)
        .bearer_auth(&token)
        .header("user-agent", by)
        .send()
        .await;
    assert_eq!(answer.expect("an answer").status(), 204);
    setting.settle().await;
}

on_both_engines! {
    async fn an_answer_that_says_no_holds_and_gets_a_thumb(database: TestDatabase) {
        let setting = reviewed_pool(&database, "").await;
        let number = pull_by(&setting, "ann", LEFTOVER_LINE).await;
        let thread = comment(&setting, number, LEFTOVER);
        for (by, text) in [
            ("ann", "This is not a false positive."),
            ("ann", "> Won't fix\n\nI would rather fix it."),
            ("ann", "`won't fix` is what I would say"),
            ("ann", "won't fix?"),
            ("dora", "Won't fix"),
            ("stale[bot]", "Won't fix"),
        ] {
            assert!(!answer(&setting, thread, by, text).await, "{by}: {text}");
            assert_eq!(dismissals(&setting, thread).await, [], "{by}: {text}");
        }
        assert!(answer(&setting, thread, "ann", "Won't fix, the harness waits for it.").await);
        let by_ann = (DismissalKind::WontFix, Dismisser::Author, "ann".to_owned(), true);
        assert_eq!(dismissals(&setting, thread).await, std::slice::from_ref(&by_ann));
        assert!(answer(&setting, thread, "ann", "wontfix").await, "said again, it is heard again");
        assert!(answer(&setting, thread, "wren", "By design.").await);
        let by_wren = (DismissalKind::WontFix, Dismisser::Maintainer, "wren".to_owned(), true);
        assert_eq!(dismissals(&setting, thread).await, [by_ann, by_wren]);
        assert_eq!(inline(&setting, number), 1, "nothing is answered in words");
        push_elsewhere(&setting, number, "ann", "one();\n").await;
        assert_eq!(shown(&setting, number, LEFTOVER).await, (ShownAs::Suppressed, Some(HiddenBy::Dismissal)));
    }

    async fn an_answer_elsewhere_says_nothing_to_a_finding(database: TestDatabase) {
        let setting = reviewed_pool(&database, "").await;
        let number = pull_by(&setting, "ann", LEFTOVER_LINE).await;
        let thread = comment(&setting, number, LEFTOVER);
        let path = setting.emulator.world().review_comments_by(POOL, number, OWN)[0].path.clone();
        let others = setting.meanwhile(|world| world.comment_on_line(POOL, number, "wren", &path, 1, "Why first?"));
        setting.settle().await;
        assert!(!answer(&setting, others, "ann", "Won't fix").await);
        assert_eq!(dismissals(&setting, thread).await, []);
        // Delivered twice by GitHub, it is recorded once.
        let reply = setting.meanwhile(|world| world.reply_in_thread(POOL, thread, "ann", "intended"));
        let told = setting.emulator.pending_deliveries();
        let told = told.iter().rfind(|delivery| delivery.event == "pull_request_review_comment").expect("told").guid.clone();
        setting.settle().await;
        setting.meanwhile(|world| world.redeliver(&told));
        setting.settle().await;
        assert_eq!(dismissals(&setting, thread).await.len(), 1);
        let reactions = {
            let world = setting.emulator.world();
            world.pull(POOL, number).review_comments.iter().find(|one| one.id == reply).expect("there").reactions.len()
        };
        assert_eq!(reactions, 1);
    }

    async fn who_deletes_their_no_takes_it_back(database: TestDatabase) {
        let setting = reviewed_pool(&database, "").await;
        let number = pull_by(&setting, "ann", LEFTOVER_LINE).await;
        let thread = comment(&setting, number, LEFTOVER);
        let said = ["Won't fix", "wontfix"].map(|text| setting.meanwhile(|world| world.reply_in_thread(POOL, thread, "ann", text)));
        let by_wren = setting.meanwhile(|world| world.reply_in_thread(POOL, thread, "wren", "By design."));
        setting.settle().await;
        let stand = async || {
            let all = dismissals(&setting, thread).await;
            all.into_iter().map(|(_, _, by, stands)| (by, stands)).collect::<Vec<_>>()
        };
        let (ann, wren) = (|stands| ("ann".to_owned(), stands), |stands| ("wren".to_owned(), stands));
        assert_eq!(stand().await, [ann(true), wren(true)]);
        delete(&setting, said[0], "ann").await;
        assert_eq!(stand().await, [ann(true), wren(true)], "she says it elsewhere");
        delete(&setting, said[1], "ann").await;
        assert_eq!(stand().await, [ann(false), wren(true)]);
        delete(&setting, by_wren, "wren").await;
        assert_eq!(stand().await, [ann(false), wren(false)]);
        push_elsewhere(&setting, number, "ann", "one();\n").await;
        assert_eq!(shown(&setting, number, LEFTOVER).await, (ShownAs::Inline, None));
    }

    async fn a_no_to_what_is_not_recorded_yet_is_waited_for(database: TestDatabase) {
        let setting = reviewed_pool(&database, "").await;
        // GitHub has the review and does not list its comments.
        setting.emulator.fault(Fault::on("GET", "/repos/*/*/pulls/*/reviews/*/comments").always().answer(502));
        let number = setting.meanwhile(|world| {
            world.commit(POOL, "slow", &[("slow.js", Some(&format!("first();\n{LEFTOVER_LINE}last();\n")))]);
            world.open_pull(POOL, "ann", "slow", NewPull::new("Be slow"))
        });
        setting.work_off().await;
        let thread = comment(&setting, number, LEFTOVER);
        let id = GithubId(i64::try_from(thread).expect("small"));
        assert_eq!(setting.store.findings().posted_of_comment(setting.repo.id, id).await.expect("reads"), None);
        setting.meanwhile(|world| world.reply_in_thread(POOL, thread, "ann", "Won't fix"));
        setting.deliver().await;
        let mut ended = Vec::new();
        while let Some(one) = setting.work(JobScope::Caused).await {
            ended.push(one);
        }
        assert!(ended.contains(&AttemptEnd::Postponed), "{ended:?}");
        setting.emulator.clear_faults();
        for _ in 0..5 {
            setting.emulator.world().advance(120);
            setting.work_off().await;
        }
        setting.settle().await;
        assert_eq!(dismissals(&setting, thread).await.len(), 1);
    }

    async fn not_useful_is_heard_in_the_thread(database: TestDatabase) {
        let setting = reviewed_pool(&database, "").await;
        let number = pull_by(&setting, "ann", LEFTOVER_LINE).await;
        let thread = comment(&setting, number, LEFTOVER);
        setting.meanwhile(|world| world.reply_in_thread(POOL, thread, "dora", "/canonry not useful"));
        setting.settle().await;
        assert_eq!(dismissals(&setting, thread).await, []);
        setting.meanwhile(|world| world.reply_in_thread(POOL, thread, "wren", "@canonry not useful, please"));
        setting.settle().await;
        let by_wren = (DismissalKind::NotUseful, Dismisser::Maintainer, "wren".to_owned(), true);
        assert_eq!(dismissals(&setting, thread).await, [by_wren]);
    }
}
