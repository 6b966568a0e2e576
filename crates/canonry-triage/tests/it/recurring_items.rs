//! A repository full of items that come again: reports of bots, check lists, monthly reports and updates, in several
//! languages. None of them is a duplicate of an earlier one, and a problem that is reported twice among them is found.

use canonry_domain::{ItemRecord, Verdict};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::on_both_engines;

use crate::unfilled_templates::{PROBLEMS, corpus, detect, issue};

/// What one person or bot files again and again: who, and the title and the text of the n-th time.
type Habit = (&'static str, fn(i64) -> (String, String));

const TESTS: [&str; 9] = [
    "sync_retries",
    "tree_order",
    "paste_word",
    "undo_drop",
    "pdf_margin",
    "ime_enter",
    "lock_file",
    "scroll_end",
    "tray_icon",
];
const MONTHS: [&str; 10] =
    ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October"];
const MONATE: [&str; 10] =
    ["Januar", "Februar", "März", "April", "Mai", "Juni", "Juli", "August", "September", "Oktober"];
const MOIS: [&str; 10] =
    ["janvier", "février", "mars", "avril", "mai", "juin", "juillet", "août", "septembre", "octobre"];

fn nth<'a>(list: &[&'a str], at: i64) -> &'a str {
    list[usize::try_from(at).expect("positive") % list.len()]
}

const HABITS: &[Habit] = &[
    ("release-lead", |at| {
        let list = "- [ ] Freeze the branch and tell the translators\n- [ ] Build the packages of every platform\n- [ ] Write the notes";
        (format!("Release checklist 3.{at}"), format!("{list}\n\nPlanned for week {}.", 10 + at))
    }),
    ("ci-watch[bot]", |at| {
        let test = nth(&TESTS, at);
        let body = format!(
            "The test `{test}` failed on the nightly build.\n\n```\n---- {test} stdout ----\nassertion `left == right` failed\n```\n\n\
            Run: https://ci.example.com/runs/{}",
            4_000 + 17 * at
        );
        (format!("CI failure of {test}"), body)
    }),
    ("ci-watch[bot]", |at| {
        let body =
            format!("The scheduled build did not finish. See https://ci.example.com/runs/{} for its log.", 9_000 + at);
        (format!("Nightly build failed 2025-03-{:02}", at + 1), body)
    }),
    ("deps[bot]", |at| {
        let body = format!(
            "Updates `paperclip` from 4.{at}.0 to 4.{}.0.\n\nRelease notes are in the repository of the package.",
            at + 1
        );
        (format!("Bump paperclip from 4.{at}.0 to 4.{}.0", at + 1), body)
    }),
    ("audit[bot]", |at| {
        (
            format!("Weekly dependency audit: {} advisories", at + 2),
            format!("The weekly audit found {} advisories in the lock file.", at + 2),
        )
    }),
    ("secretary", |at| {
        let month = nth(&MONTHS, at);
        (
            format!("Monthly report {month} 2025"),
            format!("What we did in {month}: {} issues were closed and {} were opened.", 30 + at, 20 + at),
        )
    }),
    ("schriftfuehrerin", |at| {
        let monat = nth(&MONATE, at);
        (
            format!("Monatsbericht {monat} 2025"),
            format!("Im {monat} wurden {} Meldungen geschlossen und {} neue geöffnet.", 30 + at, 20 + at),
        )
    }),
    ("tresoriere", |at| {
        let mois = nth(&MOIS, at);
        (
            format!("Compte rendu de la réunion de {mois}"),
            format!("Points abordés pendant la réunion de {mois} : budget, calendrier, traductions ({at})."),
        )
    }),
    ("fabu", |at| {
        (format!("2025年{}月月报", at + 1), format!("本月关闭了 {} 个问题，新增了 {} 个问题。", 30 + at, 20 + at))
    }),
];

/// Every habit in turn, so many times.
fn history(times: i64) -> Vec<ItemRecord> {
    let all = (0..times).flat_map(|at| HABITS.iter().map(move |habit| (at, habit)));
    (1..).zip(all).map(|(number, (at, habit))| again(number, at, habit)).collect()
}

fn again(number: i64, at: i64, (author, text): &Habit) -> ItemRecord {
    let (title, body) = text(at);
    ItemRecord { author: Some(author.parse().expect("a login")), ..issue(number, &title, &body) }
}

on_both_engines! {
    async fn what_comes_again_is_no_duplicate_of_the_last_time(database: TestDatabase) {
        let mut records = history(7);
        let after = i64::try_from(records.len()).expect("few") + 1;
        records.extend((after..).zip(PROBLEMS).map(|(number, (title, answers))| issue(number, title, &answers.join("\n\n"))));
        let (store, repo) = corpus(&database, records).await;
        let mut wrong = Vec::new();
        for (number, habit) in (101..).zip(HABITS) {
            let new = again(number, 8, habit);
            let title = new.title.clone();
            let found = detect(&store, &repo, new).await.verdict;
            if found.verdict != Verdict::NotDuplicate {
                wrong.push((title, found));
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
        let mut found = 0;
        for (at, (title, answers)) in (0..).zip(PROBLEMS) {
            let also = format!("{}\n\nThe same here with colleague {at}, every time that we have tried it.", answers[0]);
            let verdict = detect(&store, &repo, issue(121 + at, title, &also)).await.verdict;
            found += usize::from(verdict.target.is_some_and(|target| target.get() == after + at));
        }
        assert!(found >= 5, "{found} of {}", PROBLEMS.len());
    }
}
