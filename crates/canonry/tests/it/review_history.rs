//! The history of reviews: `why`, `stats`, `trends` and `feedback`.

use canonry_domain::review::{DismissalKind, Dismisser, ReviewSubject};
use canonry_domain::{GithubId, Login};
use canonry_store::{FindingId, NewReaction, Repo, Store};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::on_both_engines;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::place::{Place, Ran};
use crate::working_copy::{WorkingCopy, code, credential, told};

async fn store(copy: &WorkingCopy) -> (Store, Repo) {
    let url = format!("sqlite:{}", copy.place.database().display());
    let store = Store::open_existing(&url.parse().expect("valid")).await.expect("it is there");
    let repo = store.repos().list().await.expect("it answers").pop().expect("one repository");
    (store, repo)
}

fn login(name: &str) -> Login {
    name.parse().expect("a login")
}

fn id(finding: &Value) -> FindingId {
    FindingId::new(finding["id"].as_i64().expect("an id"))
}

#[test]
fn why_tells_the_story_of_a_finding() {
    let copy = WorkingCopy::new();
    copy.write("src/app.js", &code("debugger;")).commit("push A");
    copy.review(&["--base", "main"]);
    copy.write("src/app.js", &format!("first();\n{}", code("debugger;"))).commit("push B");
    copy.review(&["--base", "main"]);
    let shown = copy.canonry(&["why", "src/app.js:13"]).succeeded().stdout;
    for words in [
        "src/app.js:11  Debugging code is left in",
        "medium correctness, fp-",
        "branch/topic; shown at its line",
        "reported by builtin (debug-leftover)",
        "confidence 70 %: starts at 50, +10 for medium, +10 for correctness\n",
        "  review 1  new  src/app.js:10  70 %  shown at its line\n",
        "  review 2  moved  src/app.js:11  70 %  shown at its line\n",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    let document = copy.canonry(&["why", "src/app.js:11:3", "--json"]).succeeded().json();
    let finding = &document["findings"][0];
    assert_eq!((&finding["status"], &finding["subject"]), (&json!("moved"), &json!("branch/topic")));
    assert_eq!(finding["sightings"].as_array().map(Vec::len), Some(2));
    assert_eq!(
        finding["confidence_parts"],
        json!({"start": 50, "parts": {"severity": 10, "category": 10, "confirmed": 0, "feedback": 0}, "other": 0})
    );
    assert_eq!(document["stats"]["findings"], 1);
    let below =
        copy.command(&["why", "app.js:11", "--json"]).current_dir(copy.path("src")).output().expect("it starts");
    let below: Value = serde_json::from_slice(&below.stdout).expect("JSON");
    assert_eq!(below["findings"], document["findings"]);
    let far = copy.canonry(&["why", "src/app.js:18"]).succeeded().stdout;
    assert!(far.starts_with("No findings near src/app.js:18 in octo/cat."), "{far}");
    assert_eq!(copy.canonry(&["why", "src/app.js", "--json"]).json()["stats"]["findings"], 1);
    assert_eq!(copy.canonry(&["why", "src/app.js", "--branch", "other", "--json"]).json()["stats"]["findings"], 0);
    assert_eq!(copy.canonry(&["why", "../up.js:1"]).exit, Some(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dismissal_holds_until_the_code_changes() {
    let copy = WorkingCopy::new();
    copy.write("src/app.js", &code("debugger;")).commit("push A");
    let first = copy.review(&["--base", "main", "--pr", "12", "--no-publish"]);
    let (store, _) = store(&copy).await;
    let by = login("mona");
    let now = Timestamp::now();
    let finding = id(&first["findings"][0]);
    assert!(
        store
            .findings()
            .dismiss(finding, None, DismissalKind::WontFix, Dismisser::Author, &by, now)
            .await
            .expect("written")
    );
    store.disconnect().await;
    let again = ["--base", "main", "--pr", "12", "--no-publish"];
    let ran = copy.canonry(&[&["review", "--json", "--fail-on", "minor"], &again[..]].concat()).succeeded();
    assert_eq!(told(&ran.json()), ["debug-leftover src/app.js:10 dismissed suppressed"]);
    assert_eq!(ran.json()["findings"][0]["suppressed_by"], "dismissal");
    let why = copy.canonry(&["why", "src/app.js:10", "--pr", "12"]).succeeded().stdout;
    assert!(why.contains("hidden: a person dismissed it, and its code is unchanged"), "{why}");
    assert!(why.contains("dismissed by mona (author) on "), "{why}");
    assert!(why.contains("holds while the code stays the same"), "{why}");
    copy.write("src/app.js", &code("debugger; debugger;")).commit("push B");
    let changed = copy.review(&again);
    assert_eq!(told(&changed), ["debug-leftover src/app.js:10 same inline"]);
    let why = copy.canonry(&["why", "src/app.js:10", "--pr", "12"]).succeeded().stdout;
    assert!(why.contains("does not hold for the present code"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn reactions_are_listed_hide_where_wanted_and_are_cleared() {
    let copy = WorkingCopy::new();
    copy.git(&["switch", "--quiet", "main"]);
    copy.write(".canonry.yml", "feedback: {autoSuppress: {enabled: true}}\n").commit("Settings");
    copy.git(&["switch", "--quiet", "topic"]);
    copy.git(&["rebase", "--quiet", "main"]);
    copy.write("src/app.js", &code("debugger;")).write("src/key.js", &code(&credential())).commit("push A");
    let mut reaction = 0;
    for pull in ["1", "2"] {
        let document = copy.review(&["--base", "main", "--pr", pull, "--no-publish"]);
        let (store, repo) = store(&copy).await;
        for finding in document["findings"].as_array().expect("a list") {
            for person in ["ada", "bob", "cyd"] {
                reaction += 1;
                let (by, now) = (login(person), Timestamp::now());
                let new = NewReaction {
                    repo: repo.id,
                    reaction: GithubId(reaction),
                    finding: id(finding),
                    by: &by,
                    up: false,
                    at: now,
                    teaches: true,
                };
                assert!(store.findings().record_reaction(&new).await.expect("written"));
            }
        }
        store.disconnect().await;
    }
    let document = copy.canonry(&["feedback", "list", "--json"]).succeeded().json();
    let patterns = document["patterns"].as_array().expect("a list");
    assert_eq!(patterns.len(), 2, "{document}");
    let of = |title: &str| patterns.iter().find(|pattern| pattern["title"] == title).expect(title);
    let debugging = of("Debugging code is left in");
    for (key, value) in [
        ("thumbs_up", json!(0)),
        ("thumbs_down", json!(3)),
        ("reactors", json!(3)),
        ("pull_requests", json!(2)),
        ("suppressed", json!(true)),
        ("protected", json!(false)),
    ] {
        assert_eq!(debugging[key], value, "{key} in {document}");
    }
    let leaked = of("A credential is committed");
    assert_eq!((&leaked["suppressed"], &leaked["protected"]), (&json!(false), &json!(true)));
    let text = copy.canonry(&["feedback", "list"]).succeeded().stdout;
    assert!(text.contains("2 patterns in octo/cat:") && text.contains("protected from reactions"), "{text}");

    let hidden = copy.review(&["--base", "main", "--pr", "3", "--no-publish"]);
    assert_eq!(
        told(&hidden),
        ["leaked-credential src/key.js:10 new inline", "debug-leftover src/app.js:10 new suppressed"]
    );
    assert_eq!(hidden["findings"][1]["suppressed_by"], "feedback");
    let why = copy.canonry(&["why", "src/app.js:10", "--pr", "3"]).succeeded().stdout;
    assert!(why.contains("-60 for reactions"), "{why}");

    let fingerprint = debugging["fingerprint"].as_str().expect("a text");
    assert!(copy.canonry(&["feedback", "clear", fingerprint]).ended_with(2).contains("--by LOGIN"));
    copy.canonry(&["maintainers", "set", "mona", "--repo", "octo/cat"]).succeeded();
    let stranger = copy.canonry(&["feedback", "clear", fingerprint, "--by", "hubot"]);
    assert!(stranger.ended_with(4).starts_with("only maintainers may do this, and hubot does not maintain octo/cat"));
    let cleared = copy.canonry(&["feedback", "clear", fingerprint, "--by", "Mona"]).succeeded().stdout;
    assert_eq!(
        cleared,
        "Cleared the reactions to 1 pattern in octo/cat; later ones will count.\n\
         To revert: canonry feedback restore --repo octo/cat --by Mona\n"
    );
    let patterns = || copy.canonry(&["feedback", "list", "--json"]).json()["stats"]["patterns"].clone();
    assert_eq!(copy.canonry(&["feedback", "restore", "--by", "hubot"]).exit, Some(4));
    copy.canonry(&["feedback", "restore", "--by", "mona"]).succeeded();
    assert_eq!(patterns(), 2, "it counts again");
    // Clearing all of them needs a confirmation, and can be undone too.
    let unsure = copy.canonry(&["feedback", "clear", "--by", "mona"]);
    assert!(unsure.ended_with(4).contains("add --yes"));
    assert_eq!(patterns(), 2);
    copy.canonry(&["feedback", "clear", "--by", "mona", "--yes"]).succeeded();
    assert_eq!(patterns(), 0);
    let restored = copy.canonry(&["feedback", "restore", "--by", "mona", "--json"]).succeeded().json();
    assert_eq!((&restored["stats"]["restored"], patterns()), (&json!(2), json!(2)));
    let nothing = copy.canonry(&["feedback", "restore", "--by", "mona"]).succeeded().stdout;
    assert_eq!(nothing, "Nothing to restore: no clear is in force in octo/cat.\n");
    copy.canonry(&["feedback", "clear", fingerprint, "--by", "Mona"]).succeeded();
    let again = copy.command(&["feedback", "clear", fingerprint, "--json"]).env("GITHUB_USER", "mona").output();
    let again: Value = serde_json::from_slice(&again.expect("it starts").stdout).expect("JSON");
    assert_eq!((&again["stats"]["cleared"], &again["by"]), (&json!(0), &json!("mona")));
    assert_eq!(copy.canonry(&["feedback", "list", "--json"]).json()["stats"]["patterns"], 1);
    assert_eq!(copy.canonry(&["feedback", "clear", "fp-xyz", "--by", "mona"]).exit, Some(2));
    let visible = copy.review(&["--base", "main", "--pr", "4", "--no-publish"]);
    assert_eq!(visible["findings"][1]["visibility"], "inline");
}

#[test]
fn figures_count_each_finding_once() {
    let copy = WorkingCopy::new();
    let none = copy.canonry(&["stats"]);
    assert!(none.failed().contains("no database"), "{none:?}");
    copy.write("src/app.js", &code("debugger;")).write("src/key.js", &code(&credential())).commit("push A");
    copy.review(&["--base", "main"]);
    copy.write("src/app.js", &code("calm();")).commit("push B");
    copy.review(&["--base", "main"]);
    let document = copy.canonry(&["stats", "--repo", "octo/cat", "--since", "30d", "--json"]).succeeded().json();
    for (key, value) in [
        ("reviews", json!(2)),
        ("findings", json!(2)),
        ("suppressed", json!(0)),
        ("by_severity", json!({"critical": 1, "major": 0, "medium": 1, "minor": 0})),
        ("avg_findings_per_review", json!(1.0)),
        ("avg_confidence", json!(82.5)),
        ("fixed", json!(1)),
        ("fixed_rate", json!(0.5)),
    ] {
        assert_eq!(document[key], value, "{key} in {document}");
    }
    assert_eq!(document["top_files"][0], json!({"path": "src/key.js", "findings": 1}));
    assert_eq!(document["stats"]["reviews"], 2);
    let text = copy.canonry(&["stats"]).succeeded().stdout;
    assert!(
        text.starts_with(
            "2 reviews of 1 change in octo/cat: 2 findings, 0 hidden.\nFixed: 1 of the shown findings (50 %).\n"
        ),
        "{text}"
    );
    let old = copy.canonry(&["stats", "--since", "2026-13-01"]);
    assert_eq!(old.exit, Some(2));

    let trends = copy.canonry(&["trends", "--days", "7", "--json"]).succeeded().json();
    let days = trends["days"].as_array().expect("a list");
    assert_eq!(days.len(), 7);
    let keys: Vec<&str> = days[0].as_object().expect("an object").keys().map(String::as_str).collect();
    assert_eq!(keys, ["date", "reviews", "findings", "suppressed", "avg_confidence"]);
    // Midnight may pass while this runs.
    assert_eq!(trends["stats"], json!({"reviews": 2, "findings": 2, "suppressed": 0}));
    assert_eq!((&days[0]["reviews"], &days[0]["avg_confidence"]), (&json!(0), &Value::Null));
    assert!(copy.canonry(&["trends"]).succeeded().stdout.starts_with("octo/cat, days with reviews in the last 30:\n"));
    for days in ["0", "99999"] {
        assert_eq!(copy.canonry(&["trends", "--days", days]).exit, Some(2), "{days}");
    }
}

#[test]
fn only_counts_leave_a_repository_and_only_if_it_shares() {
    let copy = WorkingCopy::new();
    copy.write("src/app.js", &code("debugger;")).commit("push A");
    copy.review(&["--base", "main"]);
    let nobody = copy.canonry(&["stats", "--global"]).succeeded().stdout;
    assert!(nobody.starts_with("No repository shares its counts"), "{nobody}");
    copy.place.write("sharing.yml", "knowledge: {shareGlobal: true}\n");
    copy.review(&["--base", "main", "--full", "--config", "../sharing.yml"]);
    let shared = copy.canonry(&["stats", "--global", "--json"]).succeeded();
    let document = shared.json();
    let pattern = &document["patterns"][0];
    assert_eq!((&pattern["severity"], &pattern["shown"]), (&json!("medium"), &json!(1)));
    assert!(!shared.stdout.contains("app.js") && !shared.stdout.contains("Debugging"), "{}", shared.stdout);
    assert_eq!(copy.canonry(&["stats", "--global", "--repo", "octo/cat"]).exit, Some(2));
}

#[test]
fn outside_a_clone_one_of_several_repositories_must_be_named() {
    let place = Place::with_items();
    place.canonry(&["import", "--repo", "octo/dog", "items.jsonl"]).succeeded();
    for arguments in [&["stats"][..], &["trends"], &["feedback", "list"], &["why", "a.js:1"]] {
        let ran = place.canonry(arguments);
        assert!(ran.ended_with(2).starts_with("the database has 2 repositories (octo/cat and octo/dog)"), "{ran:?}");
        let named = [arguments, &["--repo", "octo/cat"]].concat();
        assert_eq!(place.canonry(&named).exit, Some(0), "{named:?}");
        let unknown = [arguments, &["--repo", "octo/cow"]].concat();
        assert!(place.canonry(&unknown).failed().starts_with("octo/cow is not in the database"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pull_requests_and_branches_have_ledgers_of_their_own() {
    let copy = WorkingCopy::new();
    copy.write("src/app.js", &code("debugger;")).commit("push A");
    let branch = copy.review(&["--base", "main"]);
    let pull = copy.review(&["--base", "main", "--pr", "5", "--no-publish"]);
    assert_eq!((&branch["findings"][0]["status"], &pull["findings"][0]["status"]), (&json!("new"), &json!("new")));
    let (store, repo) = store(&copy).await;
    let reviews = store.review().list(repo.id, None, 10).await.expect("it answers");
    let subjects: Vec<ReviewSubject> = reviews.into_iter().map(|review| review.subject).collect();
    let expected = [ReviewSubject::Pull("5".parse().expect("a number")), ReviewSubject::Branch("topic".to_owned())];
    assert_eq!(subjects, expected);
    store.disconnect().await;
}

on_both_engines! {
    async fn reviews_and_their_history_are_the_same_on_both_engines(database: TestDatabase) {
        let copy = WorkingCopy::new();
        let canonry = |arguments: &[&str]| {
            let mut command = copy.command(arguments);
            Ran::of(command.env("CANONRY_DATABASE_URL", database.url()).output().expect("the program starts"))
        };
        let review = || canonry(&["review", "--base", "main", "--json"]).succeeded().json();
        copy.write("src/app.js", &code("debugger;")).write("src/key.js", &code(&credential())).commit("push A");
        assert_eq!(told(&review()), ["leaked-credential src/key.js:10 new inline", "debug-leftover src/app.js:10 new inline"]);
        copy.write("src/app.js", &code("calm();")).commit("push B");
        assert_eq!(told(&review()), ["leaked-credential src/key.js:10 same inline", "debug-leftover src/app.js:10 fixed details"]);
        let stats = canonry(&["stats", "--json"]).succeeded().json();
        assert_eq!((&stats["reviews"], &stats["findings"], &stats["fixed_rate"]), (&json!(2), &json!(2), &json!(0.5)));
        let trends = canonry(&["trends", "--json"]).succeeded().json();
        assert_eq!(trends["stats"], json!({"reviews": 2, "findings": 2, "suppressed": 0}));
        let why = canonry(&["why", "src/app.js:10", "--json"]).succeeded().json();
        let statuses: Vec<&Value> =
            why["findings"][0]["sightings"].as_array().expect("a list").iter().map(|one| &one["status"]).collect();
        assert_eq!(statuses, ["new", "fixed"]);
        assert_eq!(canonry(&["feedback", "list", "--json"]).succeeded().json()["patterns"], json!([]));
        assert_eq!(canonry(&["feedback", "clear", "--by", "mona", "--yes", "--json"]).succeeded().json()["stats"]["cleared"], 0);
        assert_eq!(canonry(&["stats", "--global", "--json"]).succeeded().json()["patterns"], json!([]));
    }
}
