//! `check` through the command line: what is known about a draft, and what it leaves behind.

use std::fs;
use std::io::Write as _;
use std::process::Stdio;

use canonry_testkit::database::TestDatabase;
use canonry_testkit::on_both_engines;
use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::place::{Place, Ran};
use crate::working_copy::WorkingCopy;

const PANIC: &str = "thread 'main' panicked at crates/store/src/sqlite.rs:88:40:\nread-only database handle cannot begin an immediate transaction";
const LOCK: &str =
    "thread 'sync' panicked at crates/relay/src/lock.rs:12:7:\nlock file is held by a process that has ended";
const FONT: &str = "thread 'ui' panicked at crates/tui/src/glyphs.rs:301:9:\nglyph cache lost the fallback font";
const DAYS: [&str; 2] = ["2026-01-05T10:00:00Z", "2026-02-01T10:00:00Z"];

fn issue(number: i64, title: &str, body: &str, changed: Value) -> Value {
    let mut line = json!({
        "number": number, "title": title, "body": body, "state": "open", "author": "ann", "created_at": DAYS[0],
        "updated_at": DAYS[0], "url": format!("https://github.com/octo/cat/issues/{number}"),
    });
    let keys = line.as_object_mut().expect("a line is an object");
    let Value::Object(changed) = changed else { panic!("changes are an object") };
    keys.extend(changed);
    line
}

fn closed(reason: &str, at: &str) -> Value {
    json!({ "state": "closed", "state_reason": reason, "closed_at": at, "updated_at": at })
}

fn pull(number: i64, title: &str, body: &str, changed: Value) -> Value {
    let mut line = issue(number, title, body, changed);
    line["type"] = json!("pr");
    line
}

/// Days ago, as a time.
fn ago(days: i64) -> String {
    (jiff::Timestamp::now() - jiff::SignedDuration::from_hours(24 * days)).to_string()
}

struct Checks<'a> {
    place: Place,
    database: &'a TestDatabase,
}

impl<'a> Checks<'a> {
    fn new(database: &'a TestDatabase, lines: &[Value]) -> Self {
        let checks = Self { place: Place::new(), database };
        let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
        checks.place.write("items.jsonl", lines);
        checks.run(&["import", "--repo", "octo/cat", "items.jsonl"]).succeeded();
        checks.run(&["embed"]).succeeded();
        checks
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        let mut command = self.place.command(arguments);
        Ran::of(command.env("CANONRY_DATABASE_URL", self.database.url()).output().expect("it starts"))
    }

    fn check(&self, title: &str, body: &str, more: &[&str]) -> (Option<i32>, Value) {
        let ran = self.run(&[&["check", "--title", title, "--body", body, "--json"], more].concat());
        (ran.exit, ran.json())
    }
}

on_both_engines! {
    async fn a_draft_is_reported_in_progress_fixed_a_regression_or_new(database: TestDatabase) {
        let recently = ago(5);
        let checks = Checks::new(&database, &[
            issue(1, "Opening a read-only database panics", PANIC, json!({})),
            issue(2, "Sync never ends after a crash", LOCK, json!({})),
            issue(3, "Text turns into boxes", FONT, closed("completed", &recently)),
            issue(4, "Print the version in the log", "Please write the version to the log when the daemon starts.", json!({})),
            pull(5, "Release the lock", "Fixes #2", json!({})),
            pull(6, "Keep the fallback font", "Fixes #3", json!({"state": "closed", "merged": true, "closed_at": recently, "updated_at": recently})),
            // It names the number of another issue.
            pull(7, "Tidy up", "Fixes #13", json!({})),
        ]);
        let before = checks.run(&["export", "--repo", "octo/cat"]).stdout;

        let (exit, reported) = checks.check("panic when the database is read-only", &format!("Since today:\n{PANIC}"), &[]);
        assert_eq!((exit, &reported["answer"], &reported["item"]["number"], &reported["fix"]), (Some(10), &json!("reported"), &json!(1), &Value::Null), "{reported}");
        assert_eq!(reported["evidence"][0], "both show `read-only database handle cannot begin an immediate transaction`", "{reported}");
        assert_eq!((&reported["stats"]["compared"], &reported["synced_at"]), (&json!(4), &Value::Null));

        let (exit, begun) = checks.check("Sync never ends", &format!("After a crash it never ends.\n{LOCK}"), &[]);
        assert_eq!((exit, &begun["answer"], &begun["item"]["number"], &begun["fix"]["number"]), (Some(11), &json!("in_progress"), &json!(2), &json!(5)), "{begun}");

        let (exit, fixed) = checks.check("Text turns into boxes", &format!("Since today:\n{FONT}"), &[]);
        assert_eq!((exit, &fixed["answer"], &fixed["item"]["number"], &fixed["fix"]["number"]), (Some(12), &json!("fixed"), &json!(3), &json!(6)), "{fixed}");
        assert_eq!(fixed["fix"]["merged"], true);

        let (exit, new) = checks.check("Dark theme for the settings page", "The settings page is white at night.", &[]);
        assert_eq!((exit, &new["answer"], &new["item"]), (Some(0), &json!("new"), &Value::Null), "{new}");

        assert_eq!(checks.run(&["export", "--repo", "octo/cat"]).stdout, before, "nothing is stored");
        let jobs = checks.run(&["show", "1", "--repo", "octo/cat", "--json"]).json();
        assert!(!jobs.to_string().contains(&i64::MAX.to_string()), "{jobs}");
    }

    async fn a_problem_that_was_fixed_long_ago_may_be_back(database: TestDatabase) {
        let checks = Checks::new(&database, &[
            issue(1, "Opening a read-only database panics", PANIC, closed("completed", DAYS[1])),
            issue(2, "Sync never ends after a crash", LOCK, closed("not_planned", DAYS[1])),
            pull(3, "Open it read-only", "Fixes #1", json!({"state": "closed", "merged": true, "closed_at": DAYS[1], "updated_at": DAYS[1]})),
        ]);
        let (exit, back) = checks.check("panic when the database is read-only", PANIC, &[]);
        assert_eq!((exit, &back["answer"], &back["item"]["number"], &back["fix"]["number"]), (Some(13), &json!("possible_regression"), &json!(1), &json!(3)), "{back}");
        let (exit, refused) = checks.check("Sync hangs", LOCK, &[]);
        assert_eq!((exit, &refused["answer"], &refused["item"]["state_reason"]), (Some(10), &json!("reported"), &json!("not_planned")), "{refused}");
    }

    async fn the_probable_fix_of_a_closed_report_is_named_as_probable(database: TestDatabase) {
        let (opened, merged, closed_at) = (ago(20), ago(6), ago(5));
        let report = json!({ "created_at": opened, "state": "closed", "state_reason": "completed", "closed_at": closed_at, "updated_at": closed_at });
        let merge = |files: Value, diff: &str| json!({ "created_at": ago(7), "state": "closed", "merged": true, "closed_at": merged, "updated_at": merged, "files": files, "diff": diff });
        let checks = Checks::new(&database, &[
            issue(1, "Text turns into boxes", &format!("Since the update.\n{FONT}"), report),
            pull(2, "Keep the fallback font of glyphs", "The cache of glyphs lost it.", merge(json!(["crates/tui/src/glyphs.rs"]), "+glyph cache lost the fallback font\n")),
            issue(4, "Opening a read-only database panics", PANIC, json!({})),
            issue(5, "Sync never ends after a crash", LOCK, json!({})),
            issue(6, "Print the version in the log", "Please write the version to the log when the daemon starts.", json!({})),
            pull(7, "Wrap text in tables", "", merge(json!(["crates/tui/src/table.rs"]), "+wrap();\n")),
            pull(8, "Show boxes around groups", "", merge(json!(["crates/tui/src/group.rs"]), "+boxes();\n")),
            pull(9, "Read text from the clipboard", "", merge(json!(["crates/tui/src/clip.rs"]), "+paste();\n")),
            pull(10, "Update the text of the help", "", merge(json!(["docs/help.md"]), "+help\n")),
            pull(11, "Turn the page with a key", "", merge(json!(["crates/tui/src/pager.rs"]), "+turn();\n")),
            pull(3, "Release stale locks", "", merge(json!(["crates/relay/src/lock.rs"]), "+release();\n")),
        ]);
        let (exit, fixed) = checks.check("Text turns into boxes", FONT, &[]);
        assert_eq!((exit, &fixed["answer"], &fixed["fix"]["number"]), (Some(12), &json!("fixed"), &json!(2)), "{fixed}");
        assert!(fixed["fix"]["confidence"].as_f64().is_some_and(|sure| sure > 0.7), "{fixed}");
        assert_eq!(fixed["fix"]["evidence"][0], "it changes `crates/tui/src/glyphs.rs`, which the issue names", "{fixed}");
        let text = checks.run(&["check", "--title", "Text turns into boxes", "--body", FONT]).stdout;
        assert!(text.starts_with("Probably fixed in #2, merged "), "{text}");
        assert!(text.contains("It does not name #1, but is probably its fix: it changes `crates/tui/src/glyphs.rs`, which the issue names."), "{text}");
    }

    async fn a_draft_that_was_filed_meanwhile_is_not_its_own_duplicate(database: TestDatabase) {
        let checks = Checks::new(&database, &[issue(1, "Opening a read-only database panics", PANIC, json!({}))]);
        let (exit, own) = checks.check("Opening a read-only database panics", PANIC, &["--author", "Ann"]);
        assert_eq!((exit, &own["answer"], &own["similar"]), (Some(0), &json!("new"), &json!([])), "{own}");
        for author in [&["--author", "zoe"][..], &[]] {
            let (exit, other) = checks.check("Opening a read-only database panics", PANIC, author);
            assert_eq!((exit, &other["item"]["number"]), (Some(10), &json!(1)), "{other}");
        }
    }

    async fn the_age_of_what_is_known_is_told(database: TestDatabase) {
        let checks = Checks::new(&database, &[issue(1, "Opening a read-only database panics", PANIC, json!({}))]);
        let now = jiff::Timestamp::now();
        let synced_at = now - jiff::SignedDuration::from_hours(3);
        let store = canonry_store::Store::open(&database.url().parse().expect("a URL"), now).await.expect("opens");
        let repo = store.repos().find(&"octo/cat".parse().expect("a name")).await.expect("answers").expect("there");
        let progress = canonry_store::SyncProgress { finished_at: Some(synced_at), ..canonry_store::SyncProgress::default() };
        store.corpus().write_sync_progress(repo.id, &progress).await.expect("stored");
        store.disconnect().await;
        let text = checks.run(&["check", "--title", "Dark theme for the settings page"]).stdout;
        assert!(text.contains("Compared with 1 issue, synced 3 hours ago."), "{text}");
        // A changed text has no vector until it is embedded again: it is told, and the index follows the database.
        checks.place.write("changed.jsonl", format!("{}\n", issue(1, "Opening any database panics", PANIC, json!({ "updated_at": DAYS[1] }))));
        checks.run(&["import", "--repo", "octo/cat", "changed.jsonl"]).succeeded();
        checks.place.write("more.jsonl", format!("{}\n", issue(2, "Sync never ends after a crash", LOCK, json!({}))));
        checks.run(&["import", "--repo", "octo/cat", "more.jsonl"]).succeeded();
        checks.run(&["embed", "--only-changed"]).succeeded();
        let (exit, found) = checks.check("Sync never ends", LOCK, &[]);
        assert_eq!((exit, &found["item"]["number"], &found["stats"]["embedded"]), (Some(10), &json!(2), &json!(2)), "{found}");
    }

    async fn duplicates_of_one_item_take_one_place_in_the_list(database: TestDatabase) {
        let duplicate_of = |number: i64| json!({ "state": "closed", "state_reason": "duplicate", "closed_at": DAYS[1], "updated_at": DAYS[1], "duplicate_of": number });
        let mut lines = vec![
            issue(1, "Opening a read-only database panics", PANIC, json!({})),
            issue(2, "Read-only files of another program are locked", "Opening such a database waits for ever.", json!({})),
        ];
        for number in 3..=6 {
            // The last ones are linked with a duplicate and not with the original.
            let target = if number < 5 { 1 } else { number - 1 };
            let title = format!("Opening a read-only database panics on start {number}");
            lines.push(issue(number, &title, &format!("{PANIC}\nSeen {number} times."), duplicate_of(target)));
        }
        let checks = Checks::new(&database, &lines);
        let (exit, found) = checks.check("Opening a read-only database panics", PANIC, &["--k", "2"]);
        let similar: Vec<&Value> = found["similar"].as_array().expect("a list").iter().map(|one| &one["number"]).collect();
        assert_eq!((exit, &found["item"]["number"], similar), (Some(10), &json!(1), vec![&json!(1), &json!(2)]), "{found}");
    }

    async fn the_original_is_named_and_not_its_duplicate(database: TestDatabase) {
        let duplicate = json!({ "state": "closed", "state_reason": "duplicate", "duplicate_of": 1, "closed_at": DAYS[1], "updated_at": DAYS[1] });
        let checks = Checks::new(&database, &[
            issue(1, "Read-only files", "Files on a read-only disk cannot be opened at all.", json!({})),
            issue(2, "Opening a read-only database panics", PANIC, duplicate),
        ]);
        let (exit, found) = checks.check("panic when the database is read-only", PANIC, &[]);
        assert_eq!((exit, &found["answer"], &found["item"]["number"], &found["matched"]), (Some(10), &json!("reported"), &json!(1), &json!(2)), "{found}");
    }
}

/// The whole text of an answer.
#[test]
fn a_person_reads_the_answer_first() {
    let place = Place::new();
    let lines = [
        issue(1, "Opening a read-only database panics", PANIC, json!({})),
        issue(2, "Sync never ends after a crash", LOCK, json!({})),
    ];
    place.write("items.jsonl", lines.iter().map(|line| format!("{line}\n")).collect::<String>());
    place.canonry(&["import", "--repo", "octo/cat", "items.jsonl"]).succeeded();
    place.canonry(&["embed"]).succeeded();
    place.write("draft.md", format!("# panic when the database is read-only\n\n{PANIC}\n"));
    assert_snapshot!(place.shown(&place.canonry(&["check", "--file", "draft.md"])), @r"
    exit 10
    Reported: #1 (confidence 96 %)
      #1 Opening a read-only database panics (Open, opened 5 Jan 2026)
    Both show `read-only database handle cannot begin an immediate transaction` at `sqlite.rs:88:40`. Both mention `crates/store/src/sqlite.rs`.

    similar  score  state  title
    ────────────────────────────────────────────────────
    #2       81 %   open   Sync never ends after a crash

    Compared with 2 issues, never synced.
    ");
    let new = ["check", "--title", "Dark theme for the settings page"];
    assert_snapshot!(place.shown(&place.canonry(&new)), @r"
    exit 0
    New: no item is similar.

    Compared with 2 issues, never synced.
    The repository was never synced, so issues may be missing. Run `canonry sync` first.
    ");
    let more = issue(3, "Print the version", "Please print it when the daemon starts.", json!({}));
    place.write("more.jsonl", format!("{more}\n"));
    place.canonry(&["import", "--repo", "octo/cat", "more.jsonl"]).succeeded();
    assert_snapshot!(place.shown(&place.canonry(&new)), @r"
    exit 0
    New: no item is similar.

    Compared with 3 issues, never synced.
    1 issue without a current vector; run `canonry embed --only-changed`.
    The repository was never synced, so issues may be missing. Run `canonry sync` first.
    ");
    let mut child =
        place.command(&["check", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("starts");
    let draft = fs::read(place.path("draft.md")).expect("written");
    child.stdin.take().expect("a pipe").write_all(&draft).expect("it reads");
    assert_eq!(child.wait_with_output().expect("it ends").status.code(), Some(10));
}

#[test]
fn a_change_is_compared_with_pull_requests() {
    let copy = WorkingCopy::new();
    let place = &copy.place;
    let diff = "-    return glyphs.get(letter)\n+    found = glyphs.get(letter)\n+    if found is None:\n+        found = fallback_font.glyph_of(letter)\n+    return found_or_box\n";
    let twin = json!({ "files": ["src/glyphs.py"], "diff": diff });
    let other = json!({ "files": ["src/lock.py"], "diff": "-    hold()\n+    release_stale_lock()\n" });
    let lines = [
        pull(1, "Use the fallback font for missing glyphs", "Letters without a glyph were drawn as boxes.", twin),
        pull(2, "Release stale locks", "A lock of a process that has ended was kept.", other),
    ];
    place.write("items.jsonl", lines.iter().map(|line| format!("{line}\n")).collect::<String>());
    place.canonry(&["import", "--repo", "octo/cat", "items.jsonl"]).succeeded();
    place.canonry(&["embed"]).succeeded();
    copy.write("src/glyphs.py", "def glyph(letter):\n    return glyphs.get(letter)\n").commit("Add glyphs");
    let changed = "def glyph(letter):\n    found = glyphs.get(letter)\n    if found is None:\n        found = fallback_font.glyph_of(letter)\n    return found_or_box\n";
    copy.write("src/glyphs.py", changed).commit("Draw letters of another font instead of boxes");
    let check = |range: &str| {
        Ran::of(
            place.command(&["check", "--diff", range, "--json"]).current_dir(copy.path("")).output().expect("starts"),
        )
    };
    let found = check("HEAD~1..HEAD");
    assert_eq!(
        (found.exit, &found.json()["answer"], &found.json()["item"]["number"]),
        (Some(11), &json!("in_progress"), &json!(1)),
        "{found:?}"
    );
    fs::write(copy.path("logo.png"), [0, 159, 146, 150]).expect("a file");
    copy.commit("Add a logo");
    let binary = check("HEAD~1..HEAD");
    assert_eq!((binary.exit, &binary.json()["answer"]), (Some(0), &json!("new")), "{binary:?}");
    let refused = |range: &str| {
        Ran::of(place.command(&["check", "--diff", range]).current_dir(copy.path("")).output().expect("starts"))
    };
    assert!(refused("HEAD..HEAD").ended_with(2).contains("there is no change in HEAD..HEAD"));
    assert!(refused("HEAD").ended_with(2).contains("write BASE..HEAD"));
    assert!(refused("nowhere..HEAD").ended_with(1).contains("no commit \"nowhere\""));
}

#[test]
fn a_change_that_has_much_in_common_is_probably_known() {
    let copy = WorkingCopy::new();
    let place = &copy.place;
    let base = "def glyph(letter):\n    return glyphs.get(letter)\n";
    let diff = "-    return glyphs.get(letter)\n+    found = glyphs.get(letter)\n+    if found is None:\n+        found = fallback_font.glyph_of(letter)\n+    return found_or_box\n";
    let lines = [
        pull(
            1,
            "Use the fallback font",
            "Letters were drawn as boxes.",
            json!({ "files": ["src/glyphs.py"], "diff": diff }),
        ),
        pull(
            2,
            "Release stale locks",
            "A lock was kept.",
            json!({ "files": ["src/lock.py"], "diff": "+    release_stale_lock()\n" }),
        ),
        pull(
            3,
            "Tidy the glyphs",
            "",
            json!({ "files": ["src/glyphs.py"], "diff": "+# Letters and their pictures.\n" }),
        ),
    ];
    place.write("items.jsonl", lines.iter().map(|line| format!("{line}\n")).collect::<String>());
    place.canonry(&["import", "--repo", "octo/cat", "items.jsonl"]).succeeded();
    place.canonry(&["embed"]).succeeded();
    copy.write("src/glyphs.py", base).commit("Add glyphs");
    let changed = "def glyph(letter):\n    found = glyphs.get(letter)\n    if found is None:\n        return EMPTY_BOX_OF_FONT\n    return found_or_box\n";
    copy.write("src/glyphs.py", changed).commit("Draw a box for letters of other fonts");
    let check = |more: &[&str]| copy.canonry(&[&["check", "--diff", "HEAD~1..HEAD"], more].concat());
    let known = check(&["--json"]);
    let document = known.json();
    assert_eq!(
        (known.exit, &document["item"]["number"], &document["verdict"], &document["reason"], &document["same_lines"]),
        (Some(11), &json!(1), &json!("maybe_duplicate"), &json!("similar_change"), &json!(false)),
        "{document}"
    );
    assert_eq!(document["explanation"], "Both change `src/glyphs.py`. 4 changed lines are in both.", "{document}");
    let text = check(&[]).stdout;
    assert!(text.starts_with("Probably in progress: pull request #1\n"), "{text}");
    // Who opened #1 knows it, or checks it again.
    let own = check(&["--json", "--author", "ann"]);
    assert_eq!(
        (own.exit, &own.json()["answer"], &own.json()["reason"]),
        (Some(0), &json!("new"), &json!("no_similar_change"))
    );
    assert_eq!(own.json()["similar"][0]["number"], 1, "{own:?}");
}

#[test]
fn bad_drafts_get_a_clear_answer() {
    let place = Place::new();
    let none = place.canonry(&["check", "--title", "Crash"]);
    assert!(none.ended_with(1).contains("there is no database at"), "{none:?}");
    place.write("items.jsonl", format!("{}\n", issue(1, "Opening a read-only database panics", PANIC, json!({}))));
    place.canonry(&["import", "--repo", "octo/cat", "items.jsonl"]).succeeded();
    let early = place.canonry(&["check", "--title", "Crash"]);
    assert!(
        early.ended_with(1).contains("run `canonry embed --repo octo/cat` with the same embedder first"),
        "{early:?}"
    );
    place.canonry(&["check", "--title", "Crash", "--retrieval", "lexical"]).succeeded();
    place.canonry(&["embed"]).succeeded();
    let elsewhere = place.canonry(&["check", "--title", "Crash", "--repo", "octo/dog"]);
    assert!(elsewhere.ended_with(1).contains("octo/dog is not in the database"), "{elsewhere:?}");
    place.write("empty.md", "\n \n");
    assert!(place.canonry(&["check", "--file", "empty.md"]).ended_with(2).contains("the draft is empty"));
    place.write("binary.md", [0xff, 0xfe, 0x00]);
    assert!(place.canonry(&["check", "--file", "binary.md"]).ended_with(2).contains("is not UTF-8 text"));
    assert!(place.canonry(&["check", "--file", "absent.md"]).ended_with(1).contains("absent.md cannot be read"));
    place.write("long.md", format!("A long log\n{}", "the reader stops at once\n".repeat(40_000)));
    place.canonry(&["check", "--file", "long.md"]).succeeded();
    place.write("longer.md", "x".repeat((1 << 20) + 1));
    assert!(place.canonry(&["check", "--file", "longer.md"]).ended_with(2).contains("is larger than 1 MiB"));
    assert_eq!(place.canonry(&["check"]).exit, Some(2));
    assert_eq!(place.canonry(&["check", "--title", "a", "--file", "long.md"]).exit, Some(2));
    let offline = place.canonry(&["check", "--title", "Crash", "--sync"]);
    assert!(offline.ended_with(1).contains("GITHUB_TOKEN"), "{offline:?}");
}

/// The base of a fix decides what it is called.
#[test]
fn a_fix_is_on_the_default_branch_elsewhere_or_unknown() {
    let copy = WorkingCopy::new();
    let place = &copy.place;
    let at = ago(3);
    let closed = json!({ "state": "closed", "state_reason": "completed", "closed_at": at, "updated_at": at });
    let merged = |base: Option<&str>| json!({ "state": "closed", "merged": true, "closed_at": at, "updated_at": at, "base": base });
    let lines = [
        issue(1, "Opening a read-only database panics", PANIC, closed.clone()),
        pull(5, "Open it read-only", "Fixes #1", merged(Some("1.x"))),
        issue(2, "Text turns into boxes", FONT, closed),
        pull(6, "Keep the font", "Fixes #2", merged(None)),
        issue(3, "Sync never ends after a crash", LOCK, json!({})),
        issue(4, "Print the version in the log", "Please write the version when the daemon starts.", json!({})),
    ];
    place.write("items.jsonl", lines.iter().map(|line| format!("{line}\n")).collect::<String>());
    place.canonry(&["import", "--repo", "octo/cat", "items.jsonl"]).succeeded();
    place.canonry(&["embed"]).succeeded();
    let check = |title: &str, body: &str| place.canonry(&["check", "--title", title, "--body", body, "--json"]).json();
    let unknown = check("Opening a read-only database panics", PANIC);
    assert_eq!(unknown["answer"], "fixed", "the default branch is unknown: {unknown}");
    assert_eq!((&unknown["fix"]["base_branch"], &unknown["fix"]["on_default_branch"]), (&json!("1.x"), &Value::Null));
    let text = place.canonry(&["check", "--title", "Text turns into boxes", "--body", FONT]).stdout;
    assert!(text.starts_with("Fixed in #6, merged "), "{text}");
    assert!(text.contains("The branch into which #6 was merged is unknown.\n"), "{text}");
}

#[test]
fn a_commit_without_a_pull_request_is_a_fix() {
    let copy = WorkingCopy::new();
    let place = &copy.place;
    let at = ago(3);
    let closed = json!({ "state": "closed", "state_reason": "completed", "closed_at": at, "updated_at": at });
    let lines = [
        issue(1, "Opening a read-only database panics", PANIC, closed.clone()),
        issue(2, "Text turns into boxes", FONT, closed),
        issue(3, "Sync never ends after a crash", LOCK, json!({})),
        issue(4, "Print the version in the log", "Please write the version when the daemon starts.", json!({})),
    ];
    place.write("items.jsonl", lines.iter().map(|line| format!("{line}\n")).collect::<String>());
    place.canonry(&["import", "--repo", "octo/cat", "items.jsonl"]).succeeded();
    place.canonry(&["embed"]).succeeded();
    copy.git(&["switch", "--quiet", "main"]);
    let fixing = copy.write("a", "1").commit("Open it read-only\n\nFixes #1");
    copy.write("a", "2").commit("Mention #2 and fix #21");
    copy.write("a", "3").commit("Keep the font (#9)\n\nFixes #2");
    copy.pushed("origin");
    let check = |title: &str, body: &str| copy.canonry(&["check", "--title", title, "--body", body, "--json"]);
    let fixed = check("Opening a read-only database panics", PANIC);
    let (exit, fixed) = (fixed.exit, fixed.json());
    assert_eq!((exit, &fixed["answer"], &fixed["fix"]), (Some(12), &json!("fixed"), &Value::Null), "{fixed}");
    assert_eq!(fixed["fix_commit"]["sha"], fixing, "{fixed}");
    let text = copy.canonry(&["check", "--title", "Opening a read-only database panics", "--body", PANIC]).stdout;
    assert!(text.starts_with(&format!("Fixed in {}, committed ", &fixing[..7])), "{text}");
    let of_a_pull = check("Text turns into boxes", FONT).json();
    assert_eq!((&of_a_pull["answer"], of_a_pull.get("fix_commit")), (&json!("reported"), None), "{of_a_pull}");
}

#[test]
fn a_fix_names_its_first_release_in_a_clone_with_tags() {
    let copy = WorkingCopy::new();
    let place = &copy.place;
    let at = ago(3);
    let closed = json!({ "state": "closed", "state_reason": "completed", "closed_at": at, "updated_at": at });
    let merged = json!({ "state": "closed", "merged": true, "closed_at": at, "updated_at": at });
    let lines = [
        issue(1, "Opening a read-only database panics", PANIC, closed.clone()),
        pull(6, "Open it read-only", "Fixes #1", merged.clone()),
        issue(2, "Text turns into boxes", FONT, closed),
        issue(3, "Sync never ends after a crash", LOCK, json!({})),
        issue(
            4,
            "Print the version in the log",
            "Please write the version to the log when the daemon starts.",
            json!({}),
        ),
        pull(7, "Keep the font", "Fixes #2", merged),
    ];
    place.write("items.jsonl", lines.iter().map(|line| format!("{line}\n")).collect::<String>());
    place.canonry(&["import", "--repo", "octo/cat", "items.jsonl"]).succeeded();
    place.canonry(&["embed"]).succeeded();
    copy.write("a", "1").commit("Start (see #6)");
    copy.git(&["tag", "v1.0"]);
    copy.write("a", "2").commit("Open it read-only (#6)");
    copy.git(&["tag", "v1.1"]);
    copy.write("a", "3").commit("Merge pull request #7 from ann/font");
    copy.pushed("origin");
    let check = |title: &str, body: &str| copy.canonry(&["check", "--title", title, "--body", body, "--json"]).json();
    let released = check("Opening a read-only database panics", PANIC);
    assert_eq!((&released["answer"], &released["fix"]["released_in"]), (&json!("fixed"), &json!("v1.1")), "{released}");
    let unreleased = check("Text turns into boxes", FONT);
    assert_eq!(
        (&unreleased["answer"], &unreleased["fix"]["released_in"]),
        (&json!("fixed"), &Value::Null),
        "{unreleased}"
    );
}

/// A report that was closed three days ago, four others, and these pull requests.
fn place_with_fixes(place: &Place, pulls: &[Value]) {
    let at = ago(3);
    let closed = json!({ "state": "closed", "state_reason": "completed", "closed_at": at, "updated_at": at });
    let log = "Please write the version to the log when the daemon starts.";
    let mut lines = vec![
        issue(1, "Opening a read-only database panics", PANIC, closed),
        issue(3, "Sync never ends after a crash", LOCK, json!({})),
        issue(4, "Print the version in the log", log, json!({})),
    ];
    lines.extend_from_slice(pulls);
    place.write("items.jsonl", lines.iter().map(|line| format!("{line}\n")).collect::<String>());
    place.canonry(&["import", "--repo", "octo/cat", "items.jsonl"]).succeeded();
    place.canonry(&["embed"]).succeeded();
}

fn merged(number: i64, title: &str, body: &str, days: i64) -> Value {
    let at = ago(days);
    pull(number, title, body, json!({ "state": "closed", "merged": true, "closed_at": at, "updated_at": at }))
}

on_both_engines! {
    async fn a_reverted_fix_is_none_until_it_is_put_back(database: TestDatabase) {
        let at = ago(6);
        let report = issue(1, "Opening a read-only database panics", PANIC, closed("completed", &at));
        let others = [issue(2, "Sync never ends", LOCK, json!({})), issue(3, "Text turns into boxes", FONT, json!({}))];
        let fix = merged(31, "Fix crash, fixes #1", "", 6);
        let revert = merged(40, "Revert \"Fix crash, fixes #1\"", "Reverts octo/cat#31", 5);
        let checks = Checks::new(&database, &[&[report][..], &others, &[fix, revert]].concat());
        let check = || checks.check("panic when the database is read-only", PANIC, &[]);
        let (exit, reverted) = check();
        assert_eq!((exit, &reverted["answer"], &reverted["fix"]), (Some(10), &json!("reported"), &Value::Null), "{reverted}");
        checks.place.write("more.jsonl", format!("{}\n", merged(41, "Open it again", "Reverts octo/cat#40", 4)));
        checks.run(&["import", "--repo", "octo/cat", "more.jsonl"]).succeeded();
        let (exit, fixed) = check();
        assert_eq!((exit, &fixed["answer"], &fixed["fix"]["number"]), (Some(12), &json!("fixed"), &json!(31)), "{fixed}");
    }
}

#[test]
fn a_fix_that_a_commit_reverted_is_none() {
    let copy = WorkingCopy::new();
    place_with_fixes(&copy.place, &[]);
    let check = || {
        let checked = copy.canonry(&["check", "--title", "The database panics", "--body", PANIC, "--json"]).json();
        (checked["answer"].clone(), checked["fix_commit"]["sha"].clone())
    };
    copy.git(&["switch", "--quiet", "main"]);
    let fix = copy.write("a", "1").commit("Fix #1: open it read-only");
    copy.pushed("origin");
    assert_eq!(check(), (json!("fixed"), json!(fix)));
    let revert = copy.commit(&format!("Revert \"Fix #1: open it read-only\"\n\nThis reverts commit {fix}."));
    copy.pushed("origin");
    assert_eq!(check(), (json!("reported"), Value::Null));
    let again = copy.commit(&format!("Reapply \"Fix #1: open it read-only\"\n\nThis reverts commit {revert}."));
    copy.pushed("origin");
    assert_eq!(check(), (json!("fixed"), json!(again)));
}

#[test]
fn a_pull_request_that_a_commit_reverted_is_no_fix() {
    let copy = WorkingCopy::new();
    place_with_fixes(&copy.place, &[merged(31, "Open it read-only", "Fixes #1", 3)]);
    let check = || copy.canonry(&["check", "--title", "The database panics", "--body", PANIC, "--json"]).json();
    copy.git(&["switch", "--quiet", "main"]);
    copy.write("a", "1").commit("Open it read-only (#31)");
    copy.pushed("origin");
    assert_eq!(check()["fix"]["number"], 31);
    copy.commit("Revert \"Open it read-only (#31)\"");
    copy.pushed("origin");
    let reverted = check();
    assert_eq!((&reverted["answer"], &reverted["fix"]), (&json!("reported"), &Value::Null), "{reverted}");
}

/// A clone of a fork: its `main` and its pull requests are not those of the repository.
#[test]
fn only_the_branches_of_the_repository_count() {
    let copy = WorkingCopy::new();
    place_with_fixes(&copy.place, &[merged(31, "Open it read-only", "See #1", 3)]);
    let arguments = ["check", "--repo", "octo/cat", "--title", "The database panics", "--body", PANIC, "--json"];
    let check = || copy.canonry(&arguments).json();
    copy.git(&["remote", "set-url", "origin", "https://github.com/ann/cat.git"]);
    copy.git(&["remote", "add", "upstream", "https://github.com/octo/cat.git"]);
    copy.git(&["switch", "--quiet", "main"]);
    copy.pushed("upstream");
    let fix = copy.write("a", "1").commit("Fix #1: open it read-only");
    copy.pushed("origin");
    assert_eq!((&check()["answer"], check().get("fix_commit")), (&json!("reported"), None), "only the fork has it");
    copy.pushed("upstream");
    assert_eq!(check()["fix_commit"]["sha"], fix);
}

#[test]
fn a_draft_about_a_version_with_the_fix_may_be_a_regression() {
    let copy = WorkingCopy::new();
    place_with_fixes(&copy.place, &[merged(31, "Open it read-only", "Fixes #1", 3)]);
    copy.git(&["switch", "--quiet", "main"]);
    copy.write("a", "1").commit("Open it read-only (#31)");
    copy.git(&["tag", "v1.4.0-rc.1"]);
    copy.write("a", "2").commit("Release");
    copy.git(&["tag", "v1.4"]);
    copy.pushed("origin");
    for (said, exit, answer) in [
        ("cat 1.5", 13, "possible_regression"),
        ("Version: 1.4", 13, "possible_regression"),
        ("cat 1.3", 12, "fixed"),
        ("It stops.", 12, "fixed"),
    ] {
        let body = format!("{said}\n\n{PANIC}");
        let ran = copy.canonry(&["check", "--title", "The database panics", "--body", &body, "--json"]);
        let document = ran.json();
        assert_eq!((ran.exit, &document["answer"]), (Some(exit), &json!(answer)), "{said}: {document}");
        assert_eq!(document["fix"]["released_in"], "v1.4", "{document}");
    }
    let text = copy.canonry(&["check", "--title", "The database panics", "--body", &format!("cat 1.5\n\n{PANIC}")]);
    assert!(text.stdout.starts_with("Possible regression of #1, fixed in #31, released in v1.4"), "{text:?}");
}

/// "New" says nothing where nothing is known.
#[test]
fn without_data_nothing_is_new() {
    let place = Place::new();
    place.write("items.jsonl", format!("{}\n", pull(5, "Release the lock", "Fixes #2", json!({}))));
    place.canonry(&["import", "--repo", "octo/cat", "items.jsonl"]).succeeded();
    let empty = place.canonry(&["check", "--title", "Crash"]);
    let said = "no issue of octo/cat is known yet; run `canonry sync --repo octo/cat` first";
    assert!(empty.ended_with(1).contains(said), "{empty:?}");
    place.write("more.jsonl", format!("{}\n", issue(1, "Opening a read-only database panics", PANIC, json!({}))));
    place.canonry(&["import", "--repo", "octo/cat", "more.jsonl"]).succeeded();
    place.canonry(&["embed"]).succeeded();
    let text = place.canonry(&["check", "--title", "Dark theme for the settings page"]).stdout;
    assert!(
        text.contains("The repository was never synced, so issues may be missing. Run `canonry sync` first."),
        "{text}"
    );
}

#[test]
fn pull_requests_without_a_stored_change_are_counted() {
    let copy = WorkingCopy::new();
    let place = &copy.place;
    let change = json!({ "files": ["src/lock.py"], "diff": "+    release_stale_lock()\n" });
    let lines = [
        pull(1, "Draw letters of another font", "Letters without a glyph were drawn as boxes.", json!({})),
        pull(2, "Release stale locks", "A lock was kept.", change),
    ];
    place.write("items.jsonl", lines.iter().map(|line| format!("{line}\n")).collect::<String>());
    place.canonry(&["import", "--repo", "octo/cat", "items.jsonl"]).succeeded();
    place.canonry(&["embed"]).succeeded();
    copy.write("src/glyphs.py", "def glyph(letter):\n    return found_or_box\n").commit("Draw letters of another font");
    let check = |more: &[&str]| copy.canonry(&[&["check", "--diff", "HEAD~1..HEAD"], more].concat());
    let document = check(&["--json"]).json();
    assert_eq!((&document["without_changes"], &document["lacks_changes"]), (&json!(1), &json!(false)), "{document}");
    let text = check(&[]).stdout;
    let said = "1 similar pull request has no stored changes; whether it makes the same change is unknown.";
    assert!(text.contains(said), "{text}");
}

/// `packages/pre-push` stops a branch that repeats a pull request, whichever branch is checked out.
#[test]
fn the_hook_checks_what_is_pushed() {
    let copy = WorkingCopy::new();
    let place = &copy.place;
    let diff = "+    found = glyphs.get(letter)\n+    return found_or_box(found, fallback_font)\n";
    let twin = json!({ "files": ["src/glyphs.py"], "diff": diff });
    let lines = [pull(1, "Use the fallback font", "Letters were boxes.", twin), pull(2, "Wrap tables", "", json!({}))];
    place.write("items.jsonl", lines.iter().map(|line| format!("{line}\n")).collect::<String>());
    place.canonry(&["import", "--repo", "octo/cat", "items.jsonl"]).succeeded();
    place.canonry(&["embed"]).succeeded();
    copy.pushed("origin");
    copy.git(&["symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main"]);
    copy.git(&["switch", "--quiet", "--create", "twin"]);
    let added = "    found = glyphs.get(letter)\n    return found_or_box(found, fallback_font)\n";
    let twin = copy.write("src/glyphs.py", added).commit("Draw letters of another font");
    copy.git(&["switch", "--quiet", "topic"]);
    let topic = copy.write("src/pager.py", "def turn(page):\n    return page.next_one()\n").commit("Turn pages");
    let hook = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packages/pre-push");
    let none = "0".repeat(40);
    let push = |lines: &[String]| {
        let canonry = copy.command(&[]);
        let program = std::path::PathBuf::from(canonry.get_program());
        let path = format!("{}:{}", program.parent().expect("a folder").display(), std::env::var("PATH").expect("set"));
        let mut command = std::process::Command::new("bash");
        command.arg(&hook).args(["origin", "https://github.com/octo/cat.git"]).env_clear().current_dir(copy.path(""));
        command.envs(canonry.get_envs().filter_map(|(name, value)| Some((name, value?)))).env("PATH", path);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("bash runs");
        child.stdin.take().expect("a pipe").write_all(lines.concat().as_bytes()).expect("it reads");
        Ran::of(child.wait_with_output().expect("it ends"))
    };
    let line = |name: &str, sha: &str, known: &str| format!("refs/heads/{name} {sha} refs/heads/{name} {known}\n");
    let (first, other) = (line("topic", &topic, &none), line("twin", &twin, &none));
    assert_eq!(push(std::slice::from_ref(&first)).exit, Some(0));
    let stopped = push(&[first, other]);
    assert!(stopped.exit == Some(1) && stopped.stderr.contains("pull request #1"), "{stopped:?}");
    assert!(stopped.stderr.contains("git push --no-verify"), "{stopped:?}");
    assert_eq!(push(&[line("twin", &twin, &topic)]).exit, Some(0), "a later push finds its own pull request");
    assert_eq!(push(&[line("twin", &none, &twin)]).exit, Some(0), "a deletion");
}
