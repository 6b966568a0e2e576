//! Repositories with different kinds of templates: unfilled forms are never duplicates, filled ones still can be.

use canonry_models::chat::TokenBudget;
use std::collections::BTreeMap;

use canonry_config::RepoConfig;
use canonry_domain::{
    Boilerplate, BoilerplateLearner, Certainty, ContentVersion, DecisionOrigin, DecisionStatus, ItemNumber, ItemRecord,
    ItemState, ItemType, Login, OnlineThresholds, OnlineVerdict, Probability, Similarity, SkipReason, Verdict,
    parse_moment,
};
use canonry_models::{Embedder as _, LocalEmbedder};
use canonry_retrieval::RetrievalMode;
use canonry_store::{EmbeddingKey, MaintainerSource, NewDecision, Repo, Representation, Store};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::on_both_engines;
use canonry_triage::{
    AnswerUse, CandidateOptions, DetectOptions, DetectReport, Detectors, EmbedOptions, EmbedSource, ItemQuery, Judge,
    JudgeOptions, LocalCandidate, LocalText, NeighbourQuery, Neighbourhood, PlanOptions, SearchFor, SearchOptions,
    candidates, detect_new, embed, judge, judge_locally, plan_close, plan_rules, read_templates, search,
};
use jiff::{SignedDuration, Timestamp};
use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, prop_oneof};
use proptest::sample::select;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;

use crate::triage::setting::{REPO, Setting};

/// The form in which a repository asks for reports.
struct Style {
    name: &'static str,
    /// The default title, if people do not change it.
    title: &'static str,
    /// The text of the form, in fields; each answer follows its field.
    fields: &'static [&'static str],
    unanswered: &'static str,
}

/// Its lines look like errors, and in a language whose instructions are unknown such lines are not learnt.
const UNLEARNT: &str = "spanish";

const STYLES: &[Style] = &[
    // What is found here is found with every other style: a template changes no verdict.
    Style { name: "none", title: "Bug report", fields: &["", "", "", ""], unanswered: "" },
    Style {
        name: "markdown",
        title: "Bug report",
        fields: &[
            "Before you open an issue, look whether somebody has opened the same one before you did.\n\n## What happens\n\nSay in your own words what goes wrong and where you see it.",
            "## How to see it\n\nWrite down every step from the start of the program up to the moment it goes wrong.",
            "## What should happen\n\nSay what you would have liked to see in its place.",
            "## Where\n\nGive the release, the operating system and everything else that may matter.",
        ],
        unanswered: "",
    },
    Style {
        name: "yaml form",
        title: "[Bug]: ",
        fields: &[
            "### What happened?",
            "### Steps to reproduce",
            "### Relevant log output",
            "### Which release do you use?",
        ],
        unanswered: "_No response_",
    },
    Style {
        name: "checklist",
        title: "[BUG] <title>",
        fields: &[
            "- [x] I have searched the open and the closed issues and this is not a duplicate of any of them\n- [x] I use the latest release of the program, not one of the year before\n- [ ] I am ready to write a pull request",
            "**Description**\n\nDescribe here what the program does that you do not like.",
            "**Log**\n\n```\n<paste the log here>\n```",
        ],
        unanswered: "",
    },
    Style {
        name: "japanese",
        title: "[バグ]: ",
        fields: &[
            "### 現象\n\n起きている現象をできるだけ具体的に書いてください。",
            "### 再現手順\n\n最初の操作から順番にすべて書いてください。",
            "### 期待する動作\n\n本来どうなるべきかを書いてください。",
        ],
        unanswered: "",
    },
    Style {
        name: "comments and a table",
        title: "",
        fields: &[
            "<!-- Vielen Dank / Thank you / ありがとう -->\n\n| | |\n|---|---|\n| Affected part of the program | one of editor, sync, export |\n| How often it happens | always, sometimes, once |",
            "> Leave this line where it is, the triage reads it\n\n<details><summary>How we handle what you report here</summary>\nSomebody of the team answers in the course of a week.\n</details>",
            "__Steps, from the first to the last__\n\n1.\n2.\n3.",
        ],
        unanswered: "",
    },
    Style {
        name: "french",
        title: "[BUG] Titre court du problème",
        fields: &[
            "## Décrivez le problème\n\nExpliquez avec vos mots ce qui ne va pas et où vous le voyez.",
            "## Comment le reproduire\n\nIndiquez chaque étape depuis le lancement du programme.",
            "## Environnement\n\n- Version du programme :\n- Système :\n- [ ] J'ai lu le guide avant d'écrire",
        ],
        unanswered: "Non renseigné",
    },
    Style {
        name: "spanish",
        title: "Informe de error",
        fields: &[
            "## Qué ocurre\n\nExplica con tus palabras cuál es el error y dónde lo ves en la pantalla.",
            "## Mensaje\n\nSi el programa muestra un error: pega aquí el texto completo, con fatal o sin ello.",
            "```\npega aquí el error completo que muestra la consola\n```",
        ],
        unanswered: "",
    },
    Style {
        name: "words of errors",
        title: "Problem with the application",
        fields: &[
            "If the app fails, paste the full output of the doctor command below.",
            "Tell us which error you got, what was not found, and what you expected instead of the failure.",
            "```\nPaste the complete error output of the console here\n```",
        ],
        unanswered: "",
    },
    Style {
        name: "chinese",
        title: "【问题反馈】",
        fields: &[
            "### 问题描述\n\n请用自己的话说明出了什么问题。",
            "### 复现步骤\n\n请按顺序写出每一步操作。",
            "### 运行环境\n\n- [x] 我已经搜索过现有的问题\n- 操作系统：\n- 软件版本：",
        ],
        unanswered: "",
    },
    Style {
        name: "russian",
        title: "Сообщение об ошибке",
        fields: &[
            "**Что произошло**\n\nОпишите своими словами, что идёт не так и где это видно.",
            "**Как воспроизвести**\n\nПеречислите все шаги от запуска программы.",
            "**Окружение**\n\nУкажите версию программы и операционную систему.",
        ],
        unanswered: "Нет ответа",
    },
    Style {
        name: "german",
        title: "Fehlerbericht",
        fields: &[
            "## Was passiert?\n\nBeschreibe in eigenen Worten, was schiefgeht und wo du es siehst.",
            "## Wie kommt man dorthin?\n\nSchreibe jeden Schritt auf, vom Start des Programms an.",
            "## Umgebung\n\nNenne Version, Betriebssystem und alles, was wichtig sein könnte.",
        ],
        unanswered: "",
    },
];

/// What people report: a title, then the answers in the fields.
pub(crate) const PROBLEMS: &[(&str, &[&str])] = &[
    (
        "Exporter writes the summary twice",
        &[
            "The exporter prints its summary at the beginning and again at the end of each run, and the second copy carries stale numbers.",
            "Run the nightly export with two targets and read the console.",
        ],
    ),
    (
        "Window flickers while a folder is renamed",
        &[
            "Renaming a folder in the tree makes the whole window flicker until the cursor leaves the pane.",
            "Open a workspace with sixty folders and press F2 on one of them.",
        ],
    ),
    (
        "Login page rejects passwords with umlauts",
        &[
            "Every password that holds an umlaut is refused since the form was rewritten, though the same one works over the API.",
            "Set a password with ü and sign in through the browser.",
        ],
    ),
    (
        "Search index grows without bound",
        &[
            "The index file on disk doubles each week and is never compacted, whatever the retention says.",
            "Leave the service running for a month on a busy repository.",
        ],
    ),
    (
        "Dark theme leaves white scroll bars",
        &[
            "With the dark theme the scroll bars of nested panes stay white and hide the text beside them.",
            "Switch the theme while a diff is open in the second pane.",
        ],
    ),
    (
        "Uploads above two gigabytes stop at 99 percent",
        &[
            "Large uploads run to ninety nine percent and then hang until the proxy gives up.",
            "Upload a disk image of three gigabytes through the web form.",
        ],
    ),
    (
        "Calendar shows meetings one hour late",
        &[
            "After the change to winter time all recurring meetings are shown one hour late in the week view.",
            "Look at a series that began in summer.",
        ],
    ),
    (
        "Printer dialog forgets the paper size",
        &[
            "The paper size goes back to letter with every document although A4 is the default of the system.",
            "Print two documents one after the other.",
        ],
    ),
];

impl Style {
    fn form(&self, answers: &[&str]) -> String {
        let field =
            |(at, field): (usize, &&str)| format!("{field}\n\n{}", answers.get(at).copied().unwrap_or(self.unanswered));
        self.fields.iter().enumerate().map(field).collect::<Vec<_>>().join("\n\n")
    }

    /// 24 unfilled forms, 4 with only a release, and one report of each problem, all by different people.
    fn repository(&self) -> Vec<ItemRecord> {
        let mut items: Vec<(String, String)> = Vec::new();
        items.extend((0..24).map(|_| (self.title.to_owned(), self.form(&[]))));
        items.extend(
            (0..4).map(|at| (self.title.to_owned(), self.form(&["", "", "", ["2.1", "2.2", "2.3", "2.4"][at]]))),
        );
        items.extend(PROBLEMS.iter().map(|(title, answers)| ((*title).to_owned(), self.form(answers))));
        items.iter().zip(1..).map(|((title, body), at)| issue(at, title, body)).collect()
    }
}

fn number(number: i64) -> ItemNumber {
    ItemNumber::new(number).expect("a number")
}

fn now() -> Timestamp {
    parse_moment("2026-02-01").expect("a time")
}

/// One issue a day, each by another person.
pub(crate) fn issue(at: i64, title: &str, body: &str) -> ItemRecord {
    ItemRecord {
        body: Some(body.to_owned()),
        state: Some(ItemState::Open),
        author: Some(format!("user{at}").parse().expect("a login")),
        assignees: Some(Vec::new()),
        created_at: Some(now() - SignedDuration::from_hours(24 * (200 - at))),
        ..ItemRecord::new(ItemType::Issue, number(at), title)
    }
}

pub(crate) async fn corpus(database: &TestDatabase, records: Vec<ItemRecord>) -> (Store, Repo) {
    let store = Store::open(&database.url().parse().expect("valid"), now()).await.expect("opens");
    let repo = store.repos().ensure(&"tide/pool".parse().expect("valid"), now()).await.expect("created");
    store.corpus().upsert_items(&repo, records, now()).await.expect("taken in");
    embed_all(&store, &repo).await;
    (store, repo)
}

pub(crate) async fn embed_all(store: &Store, repo: &Repo) -> u64 {
    let embedder = LocalEmbedder::load().expect("compiled in");
    let options = EmbedOptions { only_changed: true, ..EmbedOptions::default() };
    embed(store, &embedder, repo, options, now(), &mut |_| ()).await.expect("embeds").embedded
}

pub(crate) async fn detect(store: &Store, repo: &Repo, new: ItemRecord) -> DetectReport {
    let number = new.number;
    store.corpus().upsert_items(repo, vec![new], now()).await.expect("taken in");
    let embedder = LocalEmbedder::load().expect("compiled in");
    let with = Detectors {
        github: None,
        embedder: &embedder,
        extractor: None,
        judge: Judge::Local,
        snapshots: None,
        indexes: None,
    };
    let query = ItemQuery { repo: repo.name.clone(), item_type: Some(ItemType::Issue), number };
    let options = DetectOptions {
        k: 8,
        thresholds: OnlineThresholds::default(),
        mode: RetrievalMode::Hybrid,
        budget: TokenBudget::default(),
        run_id: "run".to_owned(),
        as_of: None,
        used_for: AnswerUse::Print,
        is_backtest: false,
    };
    detect_new(store, &query, with, &options, now()).await.expect("looks").1
}

on_both_engines! {
    /// Before, they were copies of one another at .97, and were announced and closed in mode `grace`.
    async fn unfilled_forms_are_no_duplicates_and_filled_ones_are(database: TestDatabase) {
        let mut told = Vec::new();
        let mut without_template: Vec<(Verdict, Option<ItemNumber>)> = Vec::new();
        let store = Store::open(&database.url().parse().expect("valid"), now()).await.expect("opens");
        for style in STYLES {
            let name = format!("tide/{}", style.name.replace(' ', "-")).parse().expect("a name");
            let repo = store.repos().ensure(&name, now()).await.expect("created");
            store.corpus().upsert_items(&repo, style.repository(), now()).await.expect("taken in");
            embed_all(&store, &repo).await;
            let (mut empty, mut half, mut true_ones) = (0, 0, 0);
            for at in 101..=103 {
                let found = detect(&store, &repo, issue(at, style.title, &style.form(&[]))).await;
                empty += usize::from(found.verdict.verdict != Verdict::NotDuplicate);
                if style.name != UNLEARNT {
                    assert_eq!(found.verdict.reason, "no_content", "{}: {found:?}", style.name);
                    assert!(found.top_matches.is_empty(), "{}: {:?}", style.name, found.top_matches);
                }
            }
            let half_filled = [["", "", "2.1.0 on Linux"], ["It is slow.", "", ""], ["", "On the second page.", ""]];
            for (at, answers) in (111..).zip(half_filled) {
                let found = detect(&store, &repo, issue(at, style.title, &style.form(&answers))).await;
                half += usize::from(found.verdict.verdict != Verdict::NotDuplicate);
            }
            let mut verdicts = Vec::new();
            for (at, (title, answers)) in (121..).zip(PROBLEMS) {
                // The same sentence in eight reports would itself be a template.
                let also = format!("The same with colleague {at}, every time that we have tried it.");
                let again = [answers[0], also.as_str()];
                let OnlineVerdict { verdict, target, .. } =
                    detect(&store, &repo, issue(at, title, &style.form(&again))).await.verdict;
                true_ones += usize::from(target == Some(number(28 + at - 120)));
                verdicts.push((verdict, target));
            }
            if style.name == "none" {
                without_template = verdicts.clone();
            }
            if style.name != UNLEARNT {
                assert_eq!(verdicts, without_template, "{}", style.name);
            }
            told.push(format!("{}: {empty} of 3 empty, {half} of 3 half-filled, {true_ones} of {} true", style.name, PROBLEMS.len()));
            assert_eq!((empty, half), (0, 0), "{told:?}");
            assert!(true_ones >= 5, "{told:?} {verdicts:?}");
        }
    }

    /// From the text to the verdict, with vectors and words: the same reports in a repository without a template and in
    /// ones with templates that nobody thought of.
    async fn a_template_around_everything_changes_no_verdict(database: TestDatabase) {
        let store = Store::open(&database.url().parse().expect("valid"), now()).await.expect("opens");
        let mut runner = TestRunner::deterministic();
        let mut without = None;
        for at in 0..TEMPLATES {
            let fields = match at {
                0 => vec![String::new(); 3],
                _ => vec(field(), 3..6).new_tree(&mut runner).expect("a template").current(),
            };
            let form = |answers: &[&str]| {
                let field = |(at, field): (usize, &String)| format!("{field}\n\n{}", answers.get(at).copied().unwrap_or_default());
                fields.iter().enumerate().map(field).collect::<Vec<_>>().join("\n\n")
            };
            let unfilled = (1..=6).map(|at| issue(at, "Bug report", &form(&[])));
            let filed = (7..).zip(PROBLEMS).map(|(at, (title, answers))| issue(at, title, &form(answers)));
            let name = format!("tide/any-{at}").parse().expect("a name");
            let repo = store.repos().ensure(&name, now()).await.expect("created");
            store.corpus().upsert_items(&repo, unfilled.chain(filed).collect(), now()).await.expect("taken in");
            embed_all(&store, &repo).await;
            let mut verdicts = Vec::new();
            for (at, (title, answers)) in (0..).zip(PROBLEMS) {
                let also = format!("The same with colleague {at}, every time that we have tried it.");
                let OnlineVerdict { verdict, target, confidence, reason } =
                    detect(&store, &repo, issue(21 + at, title, &form(&[answers[0], also.as_str()]))).await.verdict;
                verdicts.push((verdict, target, confidence, reason));
            }
            let without = without.get_or_insert_with(|| verdicts.clone());
            assert_eq!(&verdicts, without, "{fields:#?}");
        }
        assert!(without.is_some_and(|verdicts| verdicts.iter().any(|verdict| verdict.1.is_some())));
    }

    /// The second form of a repository whose template could not be learned yet.
    async fn the_first_two_forms_are_no_duplicates(database: TestDatabase) {
        let store = Store::open(&database.url().parse().expect("valid"), now()).await.expect("opens");
        for (at, style) in (0..).zip(STYLES) {
            for (of, titles) in [[style.title, style.title], ["Sound is gone", "Menu flickers"]].iter().enumerate() {
                let name = format!("tide/new-{at}-{of}").parse().expect("a name");
                let repo = store.repos().ensure(&name, now()).await.expect("created");
                store.corpus().upsert_items(&repo, vec![issue(1, titles[0], &style.form(&[]))], now()).await.expect("taken in");
                embed_all(&store, &repo).await;
                let found = detect(&store, &repo, issue(2, titles[1], &style.form(&[]))).await;
                assert_ne!(found.verdict.verdict, Verdict::Duplicate, "{}: {found:?}", style.name);
            }
        }
    }

    /// With so few items nobody knows what is usual: the answer was a coin toss.
    async fn the_same_report_is_recognised_in_a_repository_of_a_few_items(database: TestDatabase) {
        let store = Store::open(&database.url().parse().expect("valid"), now()).await.expect("opens");
        let text = |at: usize| (PROBLEMS[at].0, PROBLEMS[at].1.join("\n\n"));
        for others in 0..4 {
            let repo = store.repos().ensure(&format!("tide/small-{others}").parse().expect("a name"), now()).await.expect("created");
            let filed = (0..=others).map(|at| issue(1 + at as i64, text(at).0, &text(at).1)).collect();
            store.corpus().upsert_items(&repo, filed, now()).await.expect("taken in");
            embed_all(&store, &repo).await;
            let again = detect(&store, &repo, issue(9, text(0).0, &text(0).1)).await;
            assert!(again.is_duplicate, "{others}: {again:?}");
            let unrelated = detect(&store, &repo, issue(10, "Prices are in the wrong currency", "The shop shows dollars to people in Norway.")).await;
            assert!(!unrelated.is_duplicate, "{others}: {unrelated:?}");
        }
    }

    /// The files define a template before anybody has used it; former versions stay known.
    async fn template_files_are_known_from_the_first_issue_on(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let (store, repo) = (&setting.store, &setting.repo);
        let write = |path: &str, text: &str| {
            setting.emulator.world().get_mut(REPO).file(path, text);
        };
        let own = async |body: &str| {
            let known = store.corpus().boilerplate(repo.id, ItemType::Issue).await.expect("reads").unwrap_or_default();
            known.boilerplate.own_body(body)
        };
        let [markdown, form] = [STYLES[1].form(&[]), STYLES[2].form(&[])];
        write(".github/ISSUE_TEMPLATE/bug.md", &format!("---\nname: Bug\n---\n{markdown}"));
        write(".github/ISSUE_TEMPLATE/form.yml", "name: Form\nbody:\n  - type: input\n    attributes: {label: What happened?}\n");
        write(".github/pull_request_template.md", "## Which issue does it close");
        let read = read_templates(store, &setting.github(), repo, setting.now()).await.expect("reads");
        assert_eq!(read, 3);
        assert_eq!(own(&markdown).await, "");
        assert!(!own(&form).await.contains("What happened?"));
        write(".github/ISSUE_TEMPLATE/bug.md", "## Another one\n\nSay what is wrong.");
        read_templates(store, &setting.github(), repo, setting.now()).await.expect("reads");
        assert_eq!(own(&format!("{markdown}\n\nSay what is wrong.")).await, "");
        let pulls = store.corpus().boilerplate(repo.id, ItemType::Pr).await.expect("reads").expect("known");
        assert_eq!(pulls.boilerplate.own_body("## Which issue does it close\n\nNone."), "None.");
    }

    /// Judge, plan and search ignore an unfilled form, whatever was stored about it before.
    async fn an_unfilled_form_is_neither_judged_nor_planned_nor_found(database: TestDatabase) {
        let style = &STYLES[1];
        let (store, repo) = corpus(&database, style.repository()).await;
        let embedder = LocalEmbedder::load().expect("compiled in");
        let key = EmbeddingKey::raw(embedder.model_id());
        let near = Neighbourhood::load(&store, &repo, ItemType::Issue, key, embedder.calibration().clone(), None)
            .await.expect("loads");
        let wanted = NeighbourQuery { mode: RetrievalMode::Hybrid, k: 4, min_score: Similarity::ZERO, state: None };
        let options = CandidateOptions { wanted, source_state: None, joining: None };
        let sets = candidates(&store, &repo, &near, None, &options, now(), &mut |_, _| ()).await.expect("finds").sets;
        let is_form = |number: ItemNumber| number.get() <= 28;
        for set in &sets {
            assert!(set.members.iter().all(|member| !is_form(member.number)), "{set:?}");
            assert_eq!(set.members.is_empty(), is_form(set.number), "{set:?}");
        }
        // The decision of an earlier judge about two forms.
        let accepted = NewDecision {
            item_type: ItemType::Issue,
            number: number(2),
            target: Some(number(1)),
            representation: Representation::Raw,
            candidate_set: None,
            origin: DecisionOrigin::Batch,
            status: DecisionStatus::Accepted,
            replaces: false,
            model_is_duplicate: Some(true),
            confidence: Some(Probability::new(0.97).expect("valid")),
            reasoning: None,
            structure: None,
            reason: None,
            answer: None,
            provider: "local".to_owned(),
            model: "evidence.2".to_owned(),
            prompt_version: 0,
            config_hash: String::new(),
            input_hash: String::new(),
            source_version: ContentVersion::FIRST,
            target_version: Some(ContentVersion::FIRST),
            candidates: Vec::new(),
            run_id: "run".to_owned(),
        };
        store.judge().write_decisions(repo.id, &[accepted], now()).await.expect("writes");
        let options = JudgeOptions {
            item_type: Some(ItemType::Issue),
            source: EmbedSource::Raw,
            min_edge: Probability::new(0.85).expect("valid"),
            allow_stale: false,
            rejudge: false,
            joining: None,
            workers: 1,
            budget: TokenBudget::default(),
            config_hash: String::new(),
            run_id: "run".to_owned(),
        };
        let judged = judge(&store, &repo, Judge::Local, &options, now(), &mut |_| ()).await.expect("judges");
        assert_eq!(judged.skipped_no_content, 28, "{judged:?}");
        store.repos().set_maintainers(repo.id, MaintainerSource::Set, &[], now()).await.expect("stored");
        let options = PlanOptions {
            item_type: None,
            source: EmbedSource::Raw,
            rules: plan_rules(&RepoConfig::default(), None).expect("valid"),
            dry_run: false,
            config_hash: String::new(),
            run_id: "run".to_owned(),
        };
        let plan = plan_close(&store, &repo, None, &options, now()).await.expect("plans");
        let rows: Vec<_> = plan.rows.iter().map(|row| (row.number.get(), row.skip)).collect();
        assert_eq!(rows, [(2, Some(SkipReason::NoContent))]);
        let asked = SearchOptions {
            mode: RetrievalMode::Hybrid,
            state: None,
            limit: 50,
            min_score: Similarity::ZERO,
            include: Vec::new(),
            exclude: Vec::new(),
        };
        let found = search(&store, &repo, &embedder, &[near], &SearchFor::SimilarTo(number(29)), &asked).await;
        assert!(found.expect("searches").iter().all(|found| !is_form(found.number)));
    }

    /// Release check lists by different people, and what a bot files every day.
    async fn the_next_of_a_series_is_no_duplicate(database: TestDatabase) {
        let checklist = |at: i64| {
            let list = "- [ ] Branch off the release and tell everybody in the channel\n- [ ] Write the change log from the merged pull requests\n\
                - [ ] Tag the commit and wait for the builds of all platforms";
            let record = issue(at, "Release checklist", &format!("{list}\n\nThis one is for the release 2.{at}.0."));
            ItemRecord { author: Some(format!("maint{}", at % 5).parse().expect("a login")), ..record }
        };
        let nightly = |at: i64| {
            let body = format!(
                "The nightly build failed.\n\nSee the log of the run at https://ci.example.com/runs/{at} for the reason, \
                and close this one once it is fixed."
            );
            ItemRecord { author: Some("nightly".parse().expect("a login")), ..issue(at, "Nightly build failed", &body) }
        };
        let records = (1..=10).map(checklist).chain((11..=40).map(nightly)).collect();
        let (store, repo) = corpus(&database, records).await;
        for new in [checklist(51), checklist(52), nightly(53), nightly(55)] {
            let found = detect(&store, &repo, new).await;
            assert_ne!(found.verdict.verdict, Verdict::Duplicate, "{found:?}");
        }
    }

    /// What is learned later affects earlier vectors: those that it changes are made again, and no others.
    async fn a_template_that_is_learned_later_makes_its_vectors_again(database: TestDatabase) {
        let style = &STYLES[1];
        let filled: Vec<ItemRecord> = (1..).zip(&PROBLEMS[..4]).map(|(at, (title, answers))| issue(at, title, &style.form(answers))).collect();
        let (store, repo) = corpus(&database, filled).await;
        assert_eq!(embed_all(&store, &repo).await, 0);
        let plain = issue(5, "Sound is gone", "There is no sound after the machine wakes up, whatever the volume is.");
        store.corpus().upsert_items(&repo, vec![plain], now()).await.expect("taken in");
        assert_eq!(embed_all(&store, &repo).await, 1);
        let fifth = issue(6, PROBLEMS[4].0, &style.form(PROBLEMS[4].1));
        store.corpus().upsert_items(&repo, vec![fifth], now()).await.expect("taken in");
        assert_eq!(embed_all(&store, &repo).await, 5, "four of before and the new one");
        assert_eq!(embed_all(&store, &repo).await, 0);
    }
}

/// So many repositories, the first without a template.
const TEMPLATES: usize = 7;

/// A field of a form: headings, labels, requests, check-boxes, comments, quotes and code to replace, in several scripts.
fn field() -> impl Strategy<Value = String> {
    let words = || {
        select(
            &[
                "Umgebung und Version",
                "quel est le problème",
                "再現手順を順番に",
                "describe each step",
                "оборудование и система",
                "los pasos exactos",
            ][..],
        )
    };
    let heading = (select(&["#", "##", "###"][..]), words()).prop_map(|(marks, words)| format!("{marks} {words}"));
    let label = words().prop_map(|words| format!("**{words}:**"));
    let request = words().prop_map(|words| format!("Please tell us: {words}, as exactly as you can."));
    let choice = words().prop_map(|words| format!("- [ ] I have read what stands about {words} in the guide"));
    let comment = words().prop_map(|words| format!("<!-- {words}\n{words} -->"));
    let quote = words().prop_map(|words| format!("> {words} (do not delete this line)"));
    let code = Just("```\n<paste the log here>\n```".to_owned());
    let part = prop_oneof![heading, label, request, choice, comment, quote, code];
    // Two parts, so that no field is a single line that several people sent.
    (part.clone(), "[a-z]{4,9} [a-z]{4,9} [a-z]{4,9}", part)
        .prop_map(|(one, middle, two)| format!("{one}\n\n{middle}\n\n{two}"))
}

/// Unfilled forms of each kind under one short title, in pairs: neither by their whole texts, as long as their template is
/// unknown, nor by their own texts.
#[test]
fn no_two_forms_are_copies() {
    for style in STYLES {
        let records = style.repository();
        let mut learner = BoilerplateLearner::default();
        for record in &records {
            let body = record.body.as_deref().unwrap_or_default();
            learner.read(record.number, record.author.as_ref(), &record.title, body);
        }
        let learnt = learner.learn();
        let sure = |own: &Boilerplate| {
            let texts: Vec<(String, String)> = records[..28]
                .iter()
                .map(|record| ("It stops".to_owned(), own.own_body(record.body.as_deref().unwrap_or_default())))
                .collect();
            (1..texts.len()).filter(|at| is_sure(&texts[*at], &texts[at - 1])).count()
        };
        assert_eq!((sure(&Boilerplate::default()), sure(&learnt)), (0, 0), "{}", style.name);
    }
}

fn is_sure(new: &(String, String), earlier: &(String, String)) -> bool {
    let authors: [Login; 2] = ["ann", "bob"].map(|login| login.parse().expect("a login"));
    let item = |at: usize, text: &(String, String)| LocalTextOf { at, title: text.0.clone(), body: text.1.clone() };
    let (one, two) = (item(0, new), item(1, earlier));
    let parts = BTreeMap::new();
    let candidate = LocalCandidate { text: two.text(&authors[1]), score: Similarity::ONE, parts: &parts };
    let answer = judge_locally(&one.text(&authors[0]), &[candidate]);
    answer.is_duplicate && answer.structure.certainty == Some(Certainty::Sure)
}

struct LocalTextOf {
    at: usize,
    title: String,
    body: String,
}

impl LocalTextOf {
    fn text<'a>(&'a self, author: &'a Login) -> LocalText<'a> {
        LocalText {
            item_type: ItemType::Issue,
            number: number(9 - self.at as i64),
            title: &self.title,
            body: &self.body,
            labels: &[],
            author: Some(author),
            created_at: Some(now() - SignedDuration::from_hours(48 * self.at as i64)),
            changes: None,
            base_branch: None,
            common: None,
        }
    }
}
