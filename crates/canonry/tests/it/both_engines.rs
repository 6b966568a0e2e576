//! The corpus on SQLite and on PostgreSQL gives the same answers.

use std::collections::BTreeMap;

use canonry_domain::{ContentVersion, ItemNumber, ItemType};
use canonry_store::{NewCandidateSet, Representation, Store};
use canonry_testkit::database::{Engine, TestDatabase};
use canonry_testkit::on_both_engines;
use canonry_testkit::samples::{QUILLNOTE, TIDEPOOL};
use serde_json::{Value, json};

use crate::place::{Place, Ran};

fn canonry(place: &Place, database: &TestDatabase, arguments: &[&str]) -> Ran {
    Ran::of(place.command(arguments).env("CANONRY_DATABASE_URL", database.url()).output().expect("the program starts"))
}

fn item(place: &Place, database: &TestDatabase, item_type: &str, number: &str) -> Value {
    let ran =
        canonry(place, database, &["show", "--repo", "octo/cat", "--type", item_type, "--number", number, "--json"]);
    ran.succeeded().json()
}

fn import(place: &Place, database: &TestDatabase, lines: &[Value]) -> Value {
    let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
    place.write("import.jsonl", lines.join("\n"));
    canonry(place, database, &["import", "--repo", "octo/cat", "import.jsonl", "--json"]).succeeded().json()
}

on_both_engines! {
    async fn content_hashes_are_the_golden_ones(database: TestDatabase) {
        let place = Place::new();
        import(&place, &database, &[
            json!({"number": 1, "title": "Title\n", "body": "Body\r\n"}),
            json!({"number": 2, "title": "Title", "body": "Body"}),
            json!({"number": 3, "type": "pr", "title": "Title", "body": "Body"}),
            json!({"number": 4, "title": "Title", "body": null}),
            json!({"number": 5, "title": "Title", "body": ""}),
        ]);
        let hash = |item_type, number| item(&place, &database, item_type, number)["item"]["content_hash"].clone();
        let issue = "569363a54b503456ad0292a2db8e4466266a59b97b5077257bd58de6aa12b65e";
        assert_eq!((hash("issue", "1"), hash("issue", "2")), (json!(issue), json!(issue)));
        assert_eq!(hash("pr", "3"), "6e8975d8f7553bf305a7dc8e540c28495fa917f6ec9764e30c0c2fe488727443");
        assert_eq!(hash("issue", "4"), hash("issue", "5"));
    }

    async fn labels_change_no_version_and_a_body_does(database: TestDatabase) {
        let place = Place::new();
        let told = |labels: &[&str], body: &str| json!({"number": 1, "title": "t", "body": body, "labels": labels});
        import(&place, &database, &[told(&["bug"], "first")]);
        let url = database.url().parse().expect("valid");
        let store = Store::open_existing(&url).await.expect("just made");
        let repo = store.repos().find(&"octo/cat".parse().expect("valid")).await.expect("it answers").expect("imported");
        let set = NewCandidateSet {
            item_type: ItemType::Issue,
            number: ItemNumber::new(1).expect("valid"),
            representation: Representation::Raw,
            content_version: ContentVersion::FIRST,
            model: "m".to_owned(),
            members: Vec::new(),
            pairs: Vec::new(),
        };
        let now = "2026-02-01T00:00:00Z".parse().expect("valid");
        assert!(store.duplicates().write_candidate_set(repo.id, &set, now).await.expect("it answers"));
        store.disconnect().await;

        let changed = import(&place, &database, &[told(&["bug", "area/ui"], "first")]);
        assert_eq!(changed["stats"]["updated"], 1);
        let shown = item(&place, &database, "issue", "1");
        assert_eq!((&shown["item"]["content_version"], &shown["candidate_sets"][0]["status"]), (&json!(1), &json!("fresh")));

        import(&place, &database, &[told(&["bug", "area/ui"], "second")]);
        let shown = item(&place, &database, "issue", "1");
        assert_eq!((&shown["item"]["content_version"], &shown["candidate_sets"][0]["status"]), (&json!(2), &json!("stale")));
    }

    async fn an_export_imports_to_the_same_corpus(database: TestDatabase) {
        let place = Place::new();
        place.write("tidepool.jsonl", TIDEPOOL.items);
        place.write("quillnote.jsonl", QUILLNOTE.items);
        let first = canonry(&place, &database, &["import", "tidepool.jsonl", "quillnote.jsonl", "--json"]).succeeded().json();
        assert_eq!(first["stats"], json!({"read": 357, "inserted": 357, "updated": 0, "unchanged": 0, "failed": 0}));
        assert_eq!((&first["repo"], &first["repos"]), (&Value::Null, &json!(["tidepool/tidepool", "quillnote/quillnote"])));

        canonry(&place, &database, &["export", "--repo", "tidepool/tidepool", "-o", "out.jsonl"]).succeeded();
        let again = canonry(&place, &database, &["import", "out.jsonl", "--json"]).succeeded().json();
        assert_eq!(again["stats"], json!({"read": 214, "inserted": 0, "updated": 0, "unchanged": 214, "failed": 0}));
        assert_eq!(again["repo"], "tidepool/tidepool");

        // Imported into an empty database, the export comes out unchanged.
        let other = Place::new();
        std::fs::copy(place.path("out.jsonl"), other.path("out.jsonl")).expect("copied");
        other.canonry(&["import", "out.jsonl"]).succeeded();
        let copied = other.canonry(&["export", "--repo", "tidepool/tidepool"]).succeeded().stdout;
        assert!(copied == std::fs::read_to_string(place.path("out.jsonl")).expect("written"), "the copy differs");
        // And it contains what the sample contains.
        let by_number = |text: &str| -> BTreeMap<i64, Value> {
            let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
            lines.map(|line| (line["number"].as_i64().expect("a number"), line)).collect()
        };
        let (told, kept) = (by_number(TIDEPOOL.items), by_number(&copied));
        assert_eq!(told.len(), kept.len());
        for (number, told) in &told {
            for (key, value) in told.as_object().expect("an object") {
                assert_eq!(&kept[number][key], value, "#{number} {key}");
            }
        }
    }

    async fn unknown_is_not_nobody(database: TestDatabase) {
        let place = Place::new();
        import(&place, &database, &[json!({"number": 1, "title": "t"}), json!({"number": 2, "title": "t", "assignees": []})]);
        let assignees = |number| item(&place, &database, "issue", number)["item"]["assignees"].clone();
        assert_eq!((assignees("1"), assignees("2")), (Value::Null, json!([])));
        let lines = canonry(&place, &database, &["export", "--repo", "octo/cat"]).succeeded().stdout;
        let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        assert_eq!((lines[0].get("assignees"), lines[1].get("assignees")), (None, Some(&json!([]))));
    }

    async fn an_older_file_does_not_bring_old_text_back(database: TestDatabase) {
        let place = Place::new();
        let told = |body: &str, day: u32| json!({"number": 1, "title": "t", "body": body, "updated_at": format!("2026-01-{day:02}")});
        import(&place, &database, &[told("new", 9)]);
        let older = import(&place, &database, &[told("old", 2)]);
        assert_eq!(older["stats"]["unchanged"], 1);
        assert_eq!(item(&place, &database, "issue", "1")["item"]["body"], "new");
    }

    async fn maintainers_set_are_maintainers_listed(database: TestDatabase) {
        let place = Place::new();
        import(&place, &database, &[json!({"number": 1, "title": "t"})]);
        canonry(&place, &database, &["maintainers", "set", "--repo", "octo/cat", "mona", "hubot"]).succeeded();
        canonry(&place, &database, &["maintainers", "set", "--repo", "octo/cat", "zoe", "Mona", "mona"]).succeeded();
        let listed = canonry(&place, &database, &["maintainers", "list", "--repo", "octo/cat", "--json"]).succeeded().json();
        assert_eq!((&listed["maintainers"]["source"], &listed["maintainers"]["logins"]), (&json!("set"), &json!(["Mona", "zoe"])));
    }
}

on_both_engines! {
    async fn global_statistics_need_no_right_to_write(database: TestDatabase) {
        let place = Place::new();
        import(&place, &database, &[json!({"number": 1, "title": "t"})]);
        let mut url = database.url().to_owned();
        match database.engine() {
            Engine::Postgres => {
                url += if url.contains('?') { "&" } else { "?" };
                url += "options=-c%20default_transaction_read_only%3Don";
            }
            Engine::Sqlite => {
                let refused = "BEFORE UPDATE ON repos BEGIN SELECT RAISE(ABORT, 'nothing may be written'); END";
                database.execute(&format!("CREATE TRIGGER reading_only {refused}")).await;
            }
        }
        let mut command = place.command(&["stats", "--global", "--json"]);
        let ran = Ran::of(command.env("CANONRY_DATABASE_URL", url).output().expect("the program starts"));
        assert_eq!(ran.succeeded().json()["patterns"], json!([]));
    }
}
