//! `purge`: deletes all data of a repository after a confirmation, and nothing else.

use canonry_domain::{GithubId, RepoName};
use canonry_store::{BrakeKind, CloseRunId, JobCaps, JobKind, JobScope, NewJob, Store};
use canonry_testkit::database::{Engine, TestDatabase};
use canonry_testkit::on_both_engines;
use jiff::{SignedDuration, Timestamp};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::place::{Place, Ran};

/// Enough transactions that some are visible before the last.
const MANY: u64 = 8_000;

fn name(text: &str) -> RepoName {
    text.parse().expect("a name")
}

async fn store(database: &TestDatabase) -> Store {
    Store::open_existing(&database.url().parse().expect("valid")).await.expect("it is there")
}

fn canonry(place: &Place, database: &TestDatabase, arguments: &[&str]) -> Ran {
    Ran::of(place.command(arguments).env("CANONRY_DATABASE_URL", database.url()).output().expect("the program starts"))
}

/// Two repositories with a few items each, embedded and compared.
fn two_repositories(database: &TestDatabase) -> Place {
    let place = Place::new();
    let run = |arguments: &[&str]| canonry(&place, database, arguments).succeeded();
    for (repo, word) in [("octo/Cat", "zanzibarite"), ("octo/dog", "quokkaline")] {
        let line = |number: u64| {
            let body =
                format!("The {word} stops after {number} minutes, and the log says that the {word} was dropped.");
            format!(
                "{}\n",
                json!({"number": number, "title": format!("The {word} stops"), "body": body, "author": "mona"})
            )
        };
        place.write("items.jsonl", (1..=4).map(line).collect::<String>());
        run(&["import", "--repo", repo, "items.jsonl"]);
        run(&["embed", "--repo", repo]);
        run(&["candidates", "--repo", repo, "--min-score", "0.1"]);
        run(&["pause", "--repo", repo]);
        run(&["resume", "--repo", repo]);
    }
    place
}

/// The number of index files of a repository, anywhere below the place or the database's folder.
fn indexes(place: &Place, database: &TestDatabase, of: &str) -> usize {
    let mut folders = vec![place.path("")];
    folders.extend(database.folder().map(std::path::Path::to_owned));
    let mut found = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
            match entry.file_type().expect("a kind").is_dir() {
                true => folders.push(entry.path()),
                false => found += usize::from(entry.file_name().to_string_lossy().starts_with(of)),
            }
        }
    }
    found
}

on_both_engines! {
    async fn a_repository_is_forgotten_and_the_other_one_is_not(database: TestDatabase) {
        let place = two_repositories(&database);
        let run = |arguments: &[&str]| canonry(&place, &database, arguments);
        let dog = run(&["export", "--repo", "octo/dog"]).succeeded().stdout;
        let about_dog = run(&["purge", "--repo", "octo/dog", "--dry-run", "--json"]).succeeded().json()["tables"].clone();
        assert!(indexes(&place, &database, "octo_Cat-") > 0);

        let refused = run(&["purge", "--repo", "octo/cat"]);
        assert_eq!(refused.ended_with(4), "nothing is deleted without --yes; see what is stored with `canonry purge --repo octo/Cat --dry-run`");
        let foretold = run(&["purge", "--repo", "octo/cat", "--dry-run", "--json"]).succeeded().json();
        let tables = &foretold["tables"];
        assert_eq!((&tables["items"], &tables["embeddings"], &tables["brakes"]), (&json!(4), &json!(4), &json!(1)), "{foretold}");
        assert!(tables["candidate_set_members"].as_u64() > Some(0), "{foretold}");
        assert_eq!((&foretold["repo"], &foretold["dry_run"], &foretold["remarks"]), (&json!("octo/Cat"), &json!(true), &json!([])));
        let sum: u64 = tables.as_object().expect("tables").values().filter_map(Value::as_u64).sum();
        assert_eq!(foretold["stats"], json!({ "rows": sum }));
        let words = run(&["purge", "--repo", "octo/cat", "--dry-run"]).succeeded().stdout;
        assert!(words.starts_with(&format!("{sum} rows about octo/Cat:\n")) && words.ends_with("\nTo delete: canonry purge --repo octo/Cat --yes\n"), "{words}");

        let done = run(&["purge", "--repo", "OCTO/cat", "--yes", "--json"]).succeeded().json();
        assert_eq!((&done["stats"]["rows"], &done["tables"]), (&json!(sum), tables), "{done}");
        assert_eq!(indexes(&place, &database, "octo_Cat-"), 0);
        assert!(indexes(&place, &database, "octo_dog-") > 0);
        let again = run(&["purge", "--repo", "octo/cat", "--yes"]);
        assert_eq!(again.failed(), "nothing is stored about octo/cat; check the name: the database has octo/dog");
        assert!(run(&["export", "--repo", "octo/cat"]).failed().contains("octo/cat is not in the database"));
        assert_eq!(run(&["export", "--repo", "octo/dog"]).succeeded().stdout, dog);
        assert_eq!(run(&["purge", "--repo", "octo/dog", "--dry-run", "--json"]).succeeded().json()["tables"], about_dog);
        if database.engine() == Engine::Sqlite {
            let folder = database.folder().expect("a folder");
            let file = std::fs::read(folder.join("canonry.db")).expect("the file");
            let holds = |word: &str| file.windows(word.len()).any(|bytes| bytes == word.as_bytes());
            assert_eq!((holds("zanzibarite"), holds("quokkaline")), (false, true), "deleted rows are overwritten");
            assert!(!folder.join("canonry.db-wal").exists());
        }

        let last = run(&["purge", "--repo", "octo/dog", "--yes"]).succeeded().stdout;
        assert!(last.starts_with("Deleted ") && last.contains(" rows about octo/dog, and "), "{last}");
        let none = run(&["purge", "--repo", "octo/dog", "--yes"]);
        assert_eq!(none.failed(), "nothing is stored about octo/dog: the database has no repository");
    }

    async fn the_number_of_a_plan_does_not_come_again(database: TestDatabase) {
        let place = Place::new();
        place.write("items.jsonl", crate::place::ITEMS);
        let run = |arguments: &[&str]| canonry(&place, &database, arguments).succeeded();
        let mut last = 0;
        for _ in 0..3 {
            run(&["import", "--repo", "octo/cat", "items.jsonl"]);
            run(&["maintainers", "set", "--repo", "octo/cat", "mona"]);
            let store = store(&database).await;
            let planned = run(&["plan-close", "--repo", "octo/cat", "--json"]).json()["plan"]["id"].as_i64().expect("a number");
            assert_eq!(planned, last + 1);
            let plan = CloseRunId::new(planned);
            let apply = store.plans().begin_apply(plan, "applying", Timestamp::now()).await.expect("begun").expect("a plan");
            let undo = store.plans().begin_undo(plan, None, "undoing", Timestamp::now()).await.expect("begun").expect("a plan");
            let again = store.plans().begin_undo(plan, None, "undoing", Timestamp::now()).await.expect("begun").expect("a plan");
            assert_eq!((apply.id.get(), undo.id.get(), again.id.get()), (planned + 1, planned + 2, planned + 2), "none is left out");
            last = undo.id.get();
            run(&["purge", "--repo", "octo/cat", "--yes"]);
            assert_eq!(store.plans().run(undo.id).await.expect("reads"), None);
            store.disconnect().await;
        }
    }

    async fn a_purge_waits_for_nobody_and_goes_over_nobody(database: TestDatabase) {
        let place = Place::new();
        place.write("items.jsonl", crate::place::ITEMS);
        canonry(&place, &database, &["import", "--repo", "octo/cat", "items.jsonl"]).succeeded();
        let purge = || canonry(&place, &database, &["purge", "--repo", "octo/cat", "--yes"]);
        let store = store(&database).await;
        let repo = store.repos().find(&name("octo/cat")).await.expect("reads").expect("known");
        let repo = store.repos().identify(repo.id, GithubId(77), &repo.name).await.expect("writes").expect("noted");
        store.repos().set_installation(repo.id, Some(GithubId(44))).await.expect("writes");
        let now = Timestamp::now();
        let soon = now + SignedDuration::from_mins(10);

        assert!(store.close().take_lease(repo.id, "apply of plan 7", now, soon).await.expect("writes"));
        assert_eq!(purge().ended_with(4), "apply of plan 7 is closing or reopening items in octo/cat; run `canonry purge` again when apply of plan 7 is done");
        store.close().release_lease(repo.id, "apply of plan 7").await.expect("writes");

        let job = NewJob { key: "octo/cat", repo: Some(&repo.name), kind: JobKind::Sync, payload: &json!({}) };
        let id = store.jobs().enqueue(&job, now, now).await.expect("queued");
        let caps = JobCaps { per_repo: 4, in_all: 9 };
        let leased = store.jobs().lease("worker", caps, JobScope::All, now, soon).await.expect("leases");
        assert_eq!(leased.map(|job| job.id), Some(id));
        let refused = purge();
        assert!(refused.ended_with(4).starts_with(&format!("job {id} (sync) about octo/cat is running; wait for it")), "{refused:?}");
        assert_eq!(store.corpus().item_counts(repo.id).await.expect("counts").total(), 3, "nothing is deleted");
        assert!(store.close().brakes(repo.id).await.expect("reads").is_empty());

        // Its worker was killed: a job without a worker is deleted with the rest.
        database.execute("UPDATE jobs SET lease_until = 1").await;
        let done = canonry(&place, &database, &["purge", "--repo", "octo/cat", "--yes", "--json"]).succeeded().json();
        assert_eq!(done["remarks"], json!(["The App is installed on octo/cat (installation 44), so the next webhook stores it again. Remove the App from the repository on GitHub, then purge again."]));
        assert_eq!((store.jobs().get(id).await.expect("reads"), store.repos().find(&repo.name).await.expect("reads")), (None, None));
        store.disconnect().await;
    }

    async fn a_purge_that_was_killed_is_ended_by_running_it_again(database: TestDatabase) {
        let place = Place::new();
        let lines: String = (1..=MANY).map(|number| format!("{}\n", json!({"number": number, "title": format!("Item {number}")}))).collect();
        place.write("many.jsonl", lines);
        place.write("items.jsonl", crate::place::ITEMS);
        for (repo, file) in [("octo/cat", "many.jsonl"), ("octo/dog", "items.jsonl")] {
            canonry(&place, &database, &["import", "--repo", repo, file]).succeeded();
        }
        let store = store(&database).await;
        let repo = store.repos().find(&name("octo/cat")).await.expect("reads").expect("known");
        let arguments = ["purge", "--repo", "octo/cat", "--yes", "--json", "--db", database.url()];

        let mut child = place.start(&arguments);
        let mut left = MANY;
        while left == MANY && child.try_wait().expect("it is our child").is_none() {
            left = store.corpus().item_counts(repo.id).await.expect("counts").total();
        }
        kill(Pid::from_raw(i32::try_from(child.id()).expect("process ids are small")), Signal::SIGKILL).expect("it is there");
        assert_eq!(child.wait().expect("it has ended").code(), None, "it ended before it could be killed");
        let left = store.corpus().item_counts(repo.id).await.expect("counts").total();
        assert!((1..MANY).contains(&left), "{left} items are left");
        let pause = store.close().brake_in_force(repo.id, BrakeKind::Pause).await.expect("reads").expect("nothing is written meanwhile");
        assert_eq!(pause.why, "a purge was interrupted; continue it with `canonry purge --repo octo/cat --yes`");

        let again = place.canonry(&arguments).succeeded().json();
        assert_eq!(again["tables"]["items"], left, "{again}");
        assert_eq!(store.repos().find(&repo.name).await.expect("reads"), None);
        assert!(store.maintenance().rows_about(&repo.name).await.expect("counts").iter().all(|(_, rows)| *rows == 0));
        let dog = store.repos().find(&name("octo/dog")).await.expect("reads").expect("known");
        assert_eq!(store.corpus().item_counts(dog.id).await.expect("counts").total(), 3);
        store.disconnect().await;
    }

    async fn the_vectors_of_one_model_are_deleted_alone(database: TestDatabase) {
        let place = two_repositories(&database);
        let run = |arguments: &[&str]| canonry(&place, &database, &[&["purge", "--repo", "octo/cat"], arguments].concat());
        let models = run(&["--dry-run", "--json"]).succeeded().json()["models"].clone();
        let model = models[0]["model"].as_str().expect("a model").to_owned();
        assert_eq!(models, json!([{ "model": model, "vectors": 4 }]));
        let wrong = run(&["--vectors-of", "openai:none", "--yes"]);
        assert_eq!(wrong.failed(), format!("octo/Cat has no vectors of openai:none; it has those of {model}"));
        assert!(run(&["--vectors-of", &model]).ended_with(4).ends_with(&format!("canonry purge --repo octo/Cat --vectors-of {model} --dry-run`")));
        let foretold = run(&["--vectors-of", &model, "--dry-run", "--json"]).succeeded().json();
        assert_eq!((&foretold["stats"], &foretold["model"]), (&json!({ "rows": 4 }), &json!(model)));
        let done = run(&["--vectors-of", &model, "--yes"]).succeeded().stdout;
        assert_eq!(done, format!("Deleted 4 vectors of {model} in octo/Cat.\n"));
        assert_eq!(indexes(&place, &database, "octo_Cat-"), 0);
        let left = run(&["--dry-run", "--json"]).succeeded().json();
        let tables = &left["tables"];
        assert_eq!((&tables["items"], &tables["embeddings"], &tables["token_vectors"]), (&json!(4), &json!(0), &json!(0)), "{left}");
        let dog = canonry(&place, &database, &["purge", "--repo", "octo/dog", "--dry-run", "--json"]).succeeded().json();
        assert_eq!(dog["tables"]["embeddings"], 4);
    }
}
