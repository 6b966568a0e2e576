//! Samples of verdicts, drawn for people to answer.

use canonry_domain::{AdjudicatedAnswer, AdjudicationSummary, Verdict};
use canonry_store::AdjudicationKind;
use reqwest::StatusCode;

use crate::reading::{assert_harmless, linked, words};
use crate::world::{ConsoleWorld, REPO, Who};

#[tokio::test]
async fn a_sample_is_drawn_answered_and_counted() {
    let world = ConsoleWorld::new().await;
    world.issues(10).await;
    let nothing = words(&world.page(Who::Mona, "/adjudicate").await);
    assert!(nothing.contains("No sample yet.") && nothing.contains("They change no threshold"), "{nothing}");
    for (of, verdict) in [(2, Verdict::Duplicate), (3, Verdict::MaybeDuplicate), (4, Verdict::NotDuplicate)] {
        world.said(of, verdict, 0.93).await;
    }
    let drawn = world.send(Who::Mona, "/adjudicate/draw", None, &[("seed", "5"), ("size", "10")]).await;
    assert_eq!(drawn.status(), StatusCode::SEE_OTHER);
    // The summary asks maintainers for answers, and includes possible duplicates.
    let summary = words(&world.page(Who::Mona, "").await);
    assert!(summary.contains("3 cases to answer"), "{summary}");
    let reader = world.told("").await;
    assert!(!reader.contains("cases to answer"), "{reader}");
    let (maybe, sure) = (reader.find("maybe of #1 · 93"), reader.find("duplicate of #1 · 93"));
    assert!(maybe.is_some() && maybe < sure, "the newest first: {reader}");
    for (fields, why) in [([("seed", "x"), ("size", "10")], "seed"), ([("seed", "1"), ("size", "201")], "1 to 200")] {
        let refused = world.send(Who::Mona, "/adjudicate/draw", None, &fields).await;
        assert_eq!(refused.status(), StatusCode::BAD_REQUEST);
        let page = refused.text().await.expect("a page");
        assert!(page.contains(why), "{page}");
    }

    let case = world.store.judge().next_adjudication(world.repo.id, None).await.expect("reads").expect("drawn");
    let page = world.page(Who::Mona, "/adjudicate").await;
    assert_harmless(&page);
    let told = words(&page);
    let verdicts = ["maybe a duplicate, score", "a duplicate, score", "not a duplicate, score"];
    assert!(
        told.contains("verdict is hidden until you answer") && !verdicts.iter().any(|words| told.contains(words)),
        "{told}"
    );
    assert!(
        page.contains(r#"data-key="1""#) && page.contains(r#"data-key="s""#) && page.contains("What happens in 1:")
    );
    let open = words(&world.page(Who::Mona, "/adjudicate?blind=0").await);
    assert!(open.contains("Canonry’s verdict: ") && verdicts.iter().any(|words| open.contains(words)), "{open}");

    let path = format!("/adjudicate/{}", case.id.get());
    let answered = world.send(Who::Mona, &path, None, &[("word", "same")]).await;
    assert_eq!(answered.status(), StatusCode::SEE_OTHER);
    let next = answered.headers()["location"].to_str().expect("a path").to_owned();
    let tail = next.strip_prefix(&format!("/r/{REPO}")).expect("a page of the repository");
    let told = words(&world.page(Who::Mona, tail).await);
    assert!(told.contains("you answered same problem ; Canonry’s verdict was"), "{told}");
    assert!(told.contains("1 of 3 answered."), "{told}");
    let kept = world.store.judge().adjudication(world.repo.id, case.id).await.expect("reads").expect("there");
    let answer = kept.answer.expect("answered");
    assert_eq!((answer.word, answer.by.map(|by| by.to_string())), (AdjudicatedAnswer::Same, Some("mona".to_owned())));
    let actions = world.store.console().actions(world.repo.id, 10).await.expect("reads");
    assert!(
        actions.iter().any(|action| action.action == "adjudicate" && action.subject.ends_with(": same")),
        "{actions:?}"
    );

    // Another maintainer does not overwrite the answer; its author may change it.
    world.send(Who::Hubot, &path, None, &[("word", "different")]).await;
    let kept = world.store.judge().adjudication(world.repo.id, case.id).await.expect("reads").expect("there");
    assert_eq!(kept.answer.expect("answered").word, AdjudicatedAnswer::Same);
    world.send(Who::Mona, &path, None, &[("word", "unsure")]).await;
    let kept = world.store.judge().adjudication(world.repo.id, case.id).await.expect("reads").expect("there");
    assert_eq!(kept.answer.expect("answered").word, AdjudicatedAnswer::Unsure);

    // A person who skips all cases sees how many wait.
    let mut at = "/adjudicate".to_owned();
    for _ in 0..3 {
        let Some(skip) = linked(&world.page(Who::Mona, &at).await, "Skip <kbd>") else { break };
        at = skip;
    }
    let told = words(&world.page(Who::Mona, &at).await);
    assert!(told.contains("That was the last case. You skipped 2."), "{at} {told}");
}

#[tokio::test]
async fn a_reader_and_a_forged_form_change_nothing() {
    let world = ConsoleWorld::new().await;
    world.issues(10).await;
    world.said(2, Verdict::Duplicate, 0.93).await;
    let draw =
        |seed| world.store.judge().draw_adjudications(world.repo.id, AdjudicationKind::Triage, seed, 5, world.now);
    assert_eq!(draw(1).await.expect("drawn"), 1);
    let case = world.store.judge().next_adjudication(world.repo.id, None).await.expect("reads").expect("drawn");
    let path = format!("/adjudicate/{}", case.id.get());
    let same = [("word", "same")];
    assert_eq!(world.send(Who::Rita, &path, None, &same).await.status(), StatusCode::FORBIDDEN);
    assert_eq!(world.send(Who::Stranger, &path, Some("x"), &same).await.status(), StatusCode::NOT_FOUND);
    assert_eq!(world.send(Who::Nobody, &path, Some("x"), &same).await.status(), StatusCode::UNAUTHORIZED);
    assert_eq!(world.send(Who::Mona, &path, Some("forged"), &same).await.status(), StatusCode::FORBIDDEN);
    let others = world.csrf(Who::Hubot).await;
    assert_eq!(world.send(Who::Mona, &path, Some(&others), &same).await.status(), StatusCode::FORBIDDEN);
    let nonsense = world.send(Who::Mona, &path, None, &[("word", "perhaps")]).await;
    assert_eq!(nonsense.status(), StatusCode::BAD_REQUEST);
    // A case that does not exist cannot be answered.
    assert_eq!(world.send(Who::Mona, "/adjudicate/4711", None, &same).await.status(), StatusCode::NOT_FOUND);
    let more = [("seed", "2"), ("size", "5")];
    assert_eq!(world.send(Who::Rita, "/adjudicate/draw", None, &more).await.status(), StatusCode::FORBIDDEN);
    let people = AdjudicationSummary::of(&world.store.judge().adjudication_totals(world.repo.id).await.expect("reads"));
    assert_eq!((people.answered, people.waiting), (0, 1));
    assert_eq!(world.store.console().actions(world.repo.id, 10).await.expect("reads"), []);
}

#[tokio::test]
async fn a_sample_is_worked_through_by_itself() {
    let world = ConsoleWorld::new().await;
    world.issues(30).await;
    for of in 2..=25 {
        world.said(of, Verdict::Duplicate, 0.93).await;
    }
    let draw =
        |seed| world.store.judge().draw_adjudications(world.repo.id, AdjudicationKind::Triage, seed, 2, world.now);
    for seed in 1..=12 {
        assert_eq!(draw(seed).await.expect("drawn"), 2);
    }
    // The filter is kept from case to case, by a skip and by an answer.
    let page = world.page(Who::Mona, "/adjudicate?seed=3&from=verdicts").await;
    assert!(page.contains("sample 3,") && page.contains("value=\"verdicts\" selected"), "{page}");
    let skip = linked(&page, "Skip <kbd>").expect("a way on");
    assert!(skip.contains("seed=3&from=verdicts&after="), "{skip}");
    let second = world.page(Who::Mona, &skip).await;
    let case =
        second.split("/adjudicate/").find_map(|rest| rest.split('"').next()?.parse::<i64>().ok()).expect("a case");
    let fields = [("word", "same"), ("seed", "3"), ("from", "verdicts"), ("after", "1")];
    let answered = world.send(Who::Mona, &format!("/adjudicate/{case}"), None, &fields).await;
    let next = answered.headers()["location"].to_str().expect("a path").to_owned();
    assert!(next.contains("seed=3&from=verdicts&answered="), "{next}");
    assert!(world.page(Who::Mona, "/adjudicate?seed=3&blind=0").await.contains("name=\"blind\" value=\"0\""));
    let none = words(&world.page(Who::Mona, "/adjudicate?from=edges").await);
    assert!(none.contains("No more open cases match this filter.") && none.contains("All cases"), "{none}");
    let odd = words(&world.page(Who::Mona, "/adjudicate?seed=x&from=%3Cscript%3E&samples=-").await);
    assert!(odd.contains("sample 1,"), "what cannot be read is not asked for: {odd}");

    // Samples are listed newest first, and all of them can be reached.
    let first = world.page(Who::Mona, "/adjudicate").await;
    let seeds = |page: &str| -> Vec<i64> {
        let table =
            page.split("id=\"samples\"").nth(1).and_then(|rest| rest.split("</table>").next()).expect("a table");
        table.split("?seed=").skip(1).filter_map(|rest| rest.split('"').next()?.parse().ok()).collect()
    };
    assert_eq!(seeds(&first), (3..=12).rev().collect::<Vec<_>>());
    assert!(first.contains("name=\"seed\" value=\"13\""), "the next seed is a new one");
    let older = world.page(Who::Mona, &linked(&first, "Next page").expect("more")).await;
    assert_eq!(seeds(&older), [2, 1]);
    assert!(older.contains("name=\"seed\" value=\"13\"") && linked(&older, "First page").is_some());
}
