//! `embed`, `candidates`, `search` and `calibrate` through the command line, on both engines.

use std::time::{Duration, Instant};

use canonry_testkit::database::TestDatabase;
use canonry_testkit::models::{Fault, ModelServer, vectors_with_cosines};
use canonry_testkit::on_both_engines;
use canonry_testkit::samples::TIDEPOOL;
use serde_json::{Value, json};

use crate::place::{ITEMS, Place, Ran};

const REPO: &str = "octo/cat";
const KEY: &str = "sk-nobody-may-read-this";

fn canonry(place: &Place, database: &TestDatabase, arguments: &[&str]) -> Ran {
    let mut command = place.command(arguments);
    command.args(["--repo", REPO]).env("CANONRY_DATABASE_URL", database.url()).env("OPENAI_API_KEY", KEY);
    let ran = Ran::of(command.output().expect("the program starts"));
    assert!(!format!("{ran:?}").contains(KEY), "the key is shown: {ran:?}");
    ran
}

fn with_model(place: &Place, database: &TestDatabase, server: &ModelServer, arguments: &[&str]) -> Ran {
    let base_url = server.base_url();
    let remote = ["--embedder", "openai", "--embed-base-url", &base_url];
    canonry(place, database, &[arguments, &remote].concat())
}

fn import(place: &Place, database: &TestDatabase, lines: &[Value]) {
    let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
    place.write("import.jsonl", lines.join("\n"));
    canonry(place, database, &["import", "import.jsonl"]).succeeded();
}

fn set(document: &Value, item_type: &str, number: i64) -> Value {
    let sets = document["sets"].as_array().expect("a list of sets");
    let found = sets.iter().find(|set| set["number"] == number && set["type"] == item_type);
    found.unwrap_or_else(|| panic!("no set of #{number}: {document}")).clone()
}

fn scores(set: &Value) -> Vec<(i64, f64)> {
    let members = set["members"].as_array().expect("a list of members").iter();
    members.map(|one| (one["number"].as_i64().expect("a number"), one["score"].as_f64().expect("a score"))).collect()
}

fn found(document: &Value) -> Vec<i64> {
    let hits = document["hits"].as_array().expect("a list of hits");
    hits.iter().map(|hit| hit["number"].as_i64().expect("a number")).collect()
}

/// Asserts that a list is in the order of its scores, and records whether its similarities contradict that order.
fn falls(list: &Value, contradicted: &mut bool) {
    let numbers = |key: &str| -> Vec<f64> {
        let list = list.as_array().expect("a list").iter();
        list.map(|one| one[key].as_f64().unwrap_or_else(|| panic!("no {key}: {one}"))).collect()
    };
    assert!(numbers("score").is_sorted_by(|one, other| one >= other), "{list}");
    *contradicted |= !numbers("similarity").is_sorted_by(|one, other| one >= other);
}

on_both_engines! {
    /// Every list for a person or a program is in the order of its scores.
    async fn a_list_is_in_the_order_of_its_scores(database: TestDatabase) {
        let place = Place::new();
        place.write("items.jsonl", TIDEPOOL.items.replace("tidepool/tidepool", REPO));
        canonry(&place, &database, &["import", "items.jsonl"]).succeeded();
        canonry(&place, &database, &["embed"]).succeeded();
        let wide = ["candidates", "--k", "8", "--min-score", "0.3", "--state", "all", "--source-state", "all", "--json"];
        let found = canonry(&place, &database, &wide).succeeded().json();
        let [mut contradicted, mut of_new] = [false, false];
        for set in found["sets"].as_array().expect("a list of sets") {
            falls(&set["members"], &mut contradicted);
            assert!(set["members"].as_array().expect("a list").iter().zip(1..).all(|(one, rank)| one["rank"] == rank));
        }
        assert!(contradicted, "the similarity alone would have another order somewhere");
        for number in ["5", "12", "30", "41"] {
            let about = ["detect-new", "--number", number, "--min-score", "0.3", "--json"];
            falls(&canonry(&place, &database, &about).succeeded().json()["top_matches"], &mut of_new);
            let shown = canonry(&place, &database, &["show", "--number", number, "--json"]).succeeded().json();
            for set in shown["candidate_sets"].as_array().expect("a list") {
                falls(&set["members"], &mut of_new);
            }
            for record in shown["triage_records"].as_array().expect("a list") {
                falls(&record["candidates"], &mut of_new);
            }
            let near = ["search", "--similar-to", number, "--json"];
            let hits = canonry(&place, &database, &near).succeeded().json();
            let scores: Vec<f64> =
                hits["hits"].as_array().expect("a list").iter().map(|hit| hit["score"].as_f64().expect("a score")).collect();
            assert!(scores.is_sorted_by(|one, other| one >= other), "{hits}");
        }
    }

    async fn scripted_cosines_are_the_scores(database: TestDatabase) {
        let (place, server) = (Place::new(), ModelServer::start().await);
        let (source, [open, closed]) = vectors_with_cosines([0.95, 0.9]);
        server.vector_for("exec approvals", source);
        server.vector_for("approval asked", open);
        server.vector_for("approval comes back", closed);
        import(&place, &database, &[
            json!({"number": 9000, "title": "exec approvals still required despite ask=off", "body": "It asks."}),
            json!({"number": 9001, "title": "approval asked", "state": "open"}),
            json!({"number": 9002, "title": "approval comes back", "state": "closed"}),
            json!({"number": 9003, "title": "something else"}),
            json!({"number": 9004, "title": "approval asked", "type": "pr"}),
            json!({"number": 9005, "title": "ä".repeat(400), "body": "ö".repeat(9_000), "state": "closed"}),
        ]);
        let done = with_model(&place, &database, &server, &["embed", "--json"]).succeeded().json();
        let stats = &done["stats"];
        assert_eq!((&stats["discovered"], &stats["embedded"], &stats["failed"]), (&json!(6), &json!(6), &json!(0)));
        assert_eq!(done["model"], "openai:text-embedding-3-small");
        let longest = server.embedded_texts().into_iter().find(|text| text.starts_with('ä')).expect("it was sent");
        let count = |letter| longest.chars().filter(|&character| character == letter).count();
        assert_eq!((count('ä'), count('ö'), longest.chars().count()), (300, 7_698, 8_000));

        let arguments = ["candidates", "--retrieval", "dense", "--state", "all", "--json"];
        let made = with_model(&place, &database, &server, &arguments).succeeded().json();
        assert_eq!((&made["calibrated"], &made["repo"]), (&json!(false), &json!(REPO)));
        let first = set(&made, "issue", 9000);
        assert_eq!((scores(&first), &first["status"]), (vec![(9001, 0.95), (9002, 0.9)], &json!("fresh")));
        assert_eq!((&first["members"][0]["rank"], &first["members"][1]["rank"]), (&json!(1), &json!(2)));
        let parts = &first["members"][0]["parts"];
        assert!(parts["dense"] == 0.95 && parts["lexical"].is_number(), "{parts}");
        assert_eq!(scores(&set(&made, "issue", 9003)), []);
        assert_eq!(scores(&set(&made, "pr", 9004)), []);
        assert_eq!(made["stats"]["sets_written"], 4, "closed items are no sources: {made}");

        let narrow = ["candidates", "--retrieval", "dense", "--state", "all", "--k", "1", "--type", "issue", "--json"];
        let made = with_model(&place, &database, &server, &narrow).succeeded().json();
        assert_eq!(scores(&set(&made, "issue", 9000)), [(9001, 0.95)]);
        let strict = ["candidates", "--retrieval", "dense", "--min-score", "0.96", "--source-state", "all", "--json"];
        let made = with_model(&place, &database, &server, &strict).succeeded().json();
        assert_eq!((scores(&set(&made, "issue", 9000)), &made["stats"]["sets_written"]), (vec![], &json!(6)));
        let shown = canonry(&place, &database, &["show", "--number", "9000", "--json"]).succeeded().json();
        let statuses: Vec<&Value> = shown["candidate_sets"].as_array().expect("sets").iter().map(|set| &set["status"]).collect();
        assert_eq!(statuses, ["fresh", "stale", "stale"]);

        import(&place, &database, &[json!({"number": 9000, "title": "exec approvals, edited", "body": ""})]);
        let shown = canonry(&place, &database, &["show", "--number", "9000", "--json"]).succeeded().json();
        assert_eq!(shown["candidate_sets"][0]["status"], "stale");
        server.forget_requests();
        let again = with_model(&place, &database, &server, &["embed", "--only-changed", "--json"]).succeeded().json();
        assert_eq!((&again["stats"]["embedded"], server.embedded_texts()), (&json!(1), vec!["exec approvals, edited".to_owned()]));
    }

    async fn a_bad_embedder_is_told_in_one_sentence(database: TestDatabase) {
        let (place, server) = (Place::new(), ModelServer::start().await);
        import(&place, &database, &[json!({"number": 1, "title": "kelp"}), json!({"number": 2, "title": "crab"})]);
        let embed = || with_model(&place, &database, &server, &["embed", "--only-changed"]);
        for (fault, words) in [
            (Fault::UnevenDimension, "a vector has 255 dimensions, the others have 256; the item was #2"),
            (Fault::NullComponent, "is not a finite number; the item was #2"),
            (Fault::FewerVectors, "1 vectors came back for 2 texts; the items were #1 to #2"),
            (Fault::status(401), "status 401 (no vectors today for Bearer [key]), asked once; the items were #1 to #2"),
        ] {
            server.fault_once(fault);
            let ran = embed();
            let told = ran.failed();
            assert!(told.contains("with openai: ") && told.contains(words) && told.contains("--only-changed"), "{told}");
        }
        let none = with_model(&place, &database, &server, &["candidates"]);
        assert_eq!(
            none.failed(),
            "octo/cat is not embedded by openai:text-embedding-3-small yet; run `canonry embed --repo octo/cat \
             --embedder openai --embed-model text-embedding-3-small` first, or use --retrieval lexical"
        );
        server.fault_when("", Fault::Hang);
        let hasty = ["embed", "--embed-timeout", "1s", "--embed-tries", "1"];
        let silent = with_model(&place, &database, &server, &hasty);
        assert!(silent.failed().contains("no answer within 1 s, asked once"), "{silent:?}");
        server.clear_faults();
        server.forget_requests();
        server.fault_once(Fault::status(429).retry_after(0));
        let fine = embed().succeeded();
        assert!(fine.stdout.starts_with("Embedded 2 ") && fine.stdout.contains("with openai:"), "{fine:?}");
        assert_eq!(server.requests().len(), 2);
    }

    async fn a_calibration_is_fitted_stored_and_used(database: TestDatabase) {
        let (place, server) = (Place::new(), ModelServer::start().await);
        let issue = |number: i64, title: String, of: Option<i64>| {
            json!({"number": number, "title": title, "duplicate_of": of, "created_at": format!("2026-01-01T00:{number:02}:00Z")})
        };
        // Each pair has its own two dimensions; the distance of the second item from the first depends on the pair's
        // number.
        let pairs = 25_i64;
        let mut lines = Vec::new();
        for pair in 0..pairs {
            let at = usize::try_from(2 * pair).expect("small");
            let mut first = vec![0.0; 52];
            let mut second = first.clone();
            let cosine = 0.60 + 0.01 * pair as f32;
            first[at] = 1.0;
            (second[at], second[at + 1]) = (cosine, (1.0 - cosine * cosine).sqrt());
            server.vector_for(&format!("first {pair}."), first);
            server.vector_for(&format!("second {pair}."), second);
            lines.push(issue(2 * pair + 1, format!("first {pair}."), None));
            lines.push(issue(2 * pair + 2, format!("second {pair}."), Some(2 * pair + 1)));
        }
        import(&place, &database, &lines[..10]);
        with_model(&place, &database, &server, &["embed"]).succeeded();
        let few = with_model(&place, &database, &server, &["calibrate"]);
        assert!(few.failed().contains("5 true pairs are too few, 20 are needed"), "{few:?}");
        assert!(few.failed().contains("canonry sync --outcomes"), "{few:?}");

        import(&place, &database, &lines);
        with_model(&place, &database, &server, &["embed", "--only-changed"]).succeeded();
        let candidates = || {
            let arguments = ["candidates", "--retrieval", "dense", "--min-score", "0.5", "--json"];
            with_model(&place, &database, &server, &arguments).succeeded().json()
        };
        let before = candidates();
        assert_eq!((&before["calibrated"], scores(&set(&before, "issue", 2))), (&json!(false), vec![(1, 0.6)]));
        let fitted = with_model(&place, &database, &server, &["calibrate", "--json"]).succeeded().json();
        assert_eq!(fitted["stats"]["true_pairs"], pairs);
        let after = candidates();
        assert_eq!(after["calibrated"], true);
        let scored = scores(&set(&after, "issue", 2));
        assert!(scored[0].0 == 1 && (0.7..0.8).contains(&scored[0].1), "about the .75 of one in twenty: {scored:?}");
        let local = canonry(&place, &database, &["calibrate"]);
        assert!(local.ended_with(2).starts_with("the local model is calibrated already"), "{local:?}");
    }

    async fn every_script_and_every_odd_text_is_searched(database: TestDatabase) {
        let place = Place::new();
        let huge = "The tide table is wrong. ".repeat(420_000);
        import(&place, &database, &[
            json!({"number": 1, "title": "保存するとアプリがクラッシュする", "body": "ファイルを保存するたびに強制終了します。"}),
            json!({"number": 2, "title": "ダークモードに対応してほしい", "body": "夜に画面がまぶしいです。"}),
            json!({"number": 3, "title": "无法连接到数据库", "body": "升级以后一直提示连接超时。"}),
            json!({"number": 4, "title": "التطبيق يتوقف عند فتح الملف", "body": "يحدث ذلك في كل مرة."}),
            json!({"number": 5, "title": "🦀🦀🦀", "body": "🔥"}),
            json!({"number": 6, "title": "```rust\nfn main() { parse_config().unwrap(); }\n```", "body": ""}),
            json!({"number": 7, "title": "Nothing in here", "body": ""}),
            json!({"number": 8, "title": "zero\u{0}bytes in the journal", "body": "a\u{0}b\u{0}c"}),
            json!({"number": 9, "title": "Tide table is wrong", "body": huge}),
            json!({"number": 10, "title": "\u{200b}", "body": "\u{0}"}),
            json!({"number": 11, "title": "Dark mode on windows", "body": "Please add a dark theme.", "state": "closed"}),
            json!({"number": 12, "title": "Dark mode on linux", "body": "Please add a dark theme."}),
            json!({"number": 13, "type": "pr", "title": "Add a dark theme", "body": "Dark mode, as in #12"}),
        ]);
        let started = Instant::now();
        canonry(&place, &database, &["embed"]).succeeded();
        let made = canonry(&place, &database, &["candidates", "--source-state", "all", "--json"]).succeeded().json();
        assert_eq!(made["stats"]["sets_written"], 13);
        let search = |arguments: &[&str]| {
            found(&canonry(&place, &database, &[&["search", "--json"], arguments].concat()).succeeded().json())
        };
        for (query, first) in [
            ("保存 クラッシュ", 1),
            ("ダークモード", 2),
            ("数据库连接超时", 3),
            ("فتح الملف", 4),
            ("parse_config", 6),
            ("journal zero", 8),
            ("tide table", 9),
        ] {
            assert_eq!(search(&["--query", query]).first(), Some(&first), "{query}");
        }
        // Without words there is nothing to find, but that is no failure.
        for query in ["🦀🦀🦀", "\u{200b}", " ", "؟", "}{"] {
            canonry(&place, &database, &["search", "--query", query]).succeeded();
        }
        assert_eq!(search(&["--similar-to", "12"]).first(), Some(&11));
        assert_eq!(search(&["--similar-to", "12", "--state", "open"]).iter().find(|&&hit| hit == 11 || hit == 12), None);
        assert_eq!(search(&["--query", "dark mode", "--limit", "1"]).len(), 1);
        let dark = search(&["--query", "dark mode", "--type", "all"]);
        assert!([11, 12, 13].iter().all(|hit| dark.contains(hit)), "{dark:?}");
        assert!(search(&["--similar-to", "12", "--type", "pr"]).contains(&13));
        let without = search(&["--query", "dark mode", "--exclude", "windows"]);
        assert!(without.contains(&12) && !without.contains(&11), "{without:?}");
        assert_eq!(search(&["--query", "dark mode", "--include", "windows"]).first(), Some(&11));
        assert_eq!(search(&["--query", "dark mode", "--include", "linux"]).first(), Some(&12));
        assert_eq!(search(&["--query", "dark mode", "--retrieval", "lexical", "--min-score", "1"]), Vec::<i64>::new());
        let hits = canonry(&place, &database, &["search", "--query", "dark theme linux", "--json"]).succeeded().json();
        let hit = &hits["hits"][0];
        assert_eq!((&hit["number"], &hit["type"], &hit["state"], &hit["title"]), (&json!(12), &json!("issue"), &json!("open"), &json!("Dark mode on linux")));
        assert!(hit["score"].is_number() && hit.get("url").is_some(), "{hit}");
        // Some thirty runs of a debug build: not every part may read the ten megabytes in full.
        assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
    }
}

#[test]
fn what_is_missing_is_said_with_what_to_run() {
    let place = Place::with_items();
    let told = |arguments: &[&str]| place.canonry(arguments).failed().to_owned();
    for command in ["candidates", "search"] {
        let query: &[&str] = if command == "search" { &["--query", "crash"] } else { &[] };
        let message = told(&[&[command, "--repo", REPO], query].concat());
        assert!(message.starts_with("octo/cat is not embedded by local:"), "{message}");
        assert!(message.contains("run `canonry embed --repo octo/cat` first"), "{message}");
        let message = told(&[&[command, "--repo", "octo/dog"], query].concat());
        assert!(message.starts_with("octo/dog is not in the database"), "{message}");
    }
    place.canonry(&["search", "--repo", REPO, "--query", "crash", "--retrieval", "lexical"]).succeeded();
    let message = told(&["embed", "--repo", "octo/dog"]);
    assert!(message.contains("which has octo/cat"), "{message}");
    let message = told(&["embed", "--repo", REPO, "--embedder", "voyage"]);
    assert!(message.contains("no key in VOYAGE_API_KEY"), "{message}");
    let wrong = place.canonry(&["embed", "--repo", REPO, "--embed-model", "m"]);
    assert!(wrong.ended_with(2).contains("name one with --embedder"), "{wrong:?}");
    place.canonry(&["embed", "--repo", REPO]).succeeded();
    let message = told(&["search", "--repo", REPO, "--similar-to", "99"]);
    assert!(message.starts_with("there is no item #99"), "{message}");
    // Importing the same texts again leaves nothing to embed.
    place.write("again.jsonl", ITEMS);
    place.canonry(&["import", "--repo", REPO, "again.jsonl"]).succeeded();
    let again = place.canonry(&["embed", "--repo", REPO, "--only-changed", "--json"]).succeeded().json();
    assert_eq!(again["stats"]["embedded"], 0);
}

#[test]
fn wrong_usage_is_told_before_anything_is_opened() {
    let place = Place::new();
    let search = |arguments: &[&str]| place.canonry(&[&["search", "--repo", REPO], arguments].concat()).exit;
    for arguments in [
        &[][..],
        &["--query", "a", "--similar-to", "1"],
        &["--query", ""],
        &["--query", "a", "--limit", "0"],
        &["--query", "a", "--limit", "51"],
        &["--query", "a", "--min-score", "1.5"],
        &["--query", "a", "--min-score", "nan"],
        &["--query", "a", "--type", "commit"],
        &["--query", "a", "--retrieval", "fuzzy"],
        &["--similar-to", "0"],
    ] {
        assert_eq!(search(arguments), Some(2), "{arguments:?}");
    }
    for arguments in [&["--k", "0"][..], &["--k", "51"], &["--state", "merged"], &["--embedder", "mine"]] {
        let ran = place.canonry(&[&["candidates", "--repo", REPO], arguments].concat());
        assert_eq!(ran.exit, Some(2), "{ran:?}");
    }
    assert!(!place.database().exists());
}
