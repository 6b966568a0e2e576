//! What a sync stores of pull requests is enough for `check`: their changes and the branches they were merged into.

use canonry_testkit::github::{CloseReason, Emulator, NewIssue, Permission, Pull, World};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::place::{Place, Ran};
use crate::working_copy::WorkingCopy;

const REPO: &str = "octo/cat";
const FONT: &str = "thread 'ui' panicked at crates/tui/src/glyphs.rs:301:9:\nglyph cache lost the fallback font";
const LOCK: &str =
    "thread 'sync' panicked at crates/relay/src/lock.rs:12:7:\nlock file is held by a process that has ended";
const PANIC: &str = "thread 'main' panicked at crates/store/src/sqlite.rs:88:40:\nread-only database handle cannot begin an immediate transaction";
const DAY: i64 = 86_400;

/// A repository as it was three weeks ago.
fn world() -> World {
    let mut world = World::new();
    world.now = Timestamp::now() - SignedDuration::from_hours(24 * 21);
    world.repo(REPO);
    for login in ["mona", "zoe"] {
        world.user(login);
    }
    world.collaborator(REPO, "mona", Permission::Write);
    world.token("t0ken", "mona");
    world
}

fn open(world: &mut World, title: &str, body: &str) -> u64 {
    world.advance(60);
    world.open(REPO, "zoe", NewIssue::new(title, body))
}

/// Opens a pull request that adds lines to a file.
fn open_pull(world: &mut World, base: &str, (title, body): (&str, &str), path: &str, patch: &str) -> u64 {
    world.advance(60);
    let pull = Pull { base_ref: base.to_owned(), ..Pull::default() };
    let pull = pull.file(path, &format!("@@ -1,1 +1,9 @@\n{patch}"));
    world.open(REPO, "zoe", NewIssue::new(title, body).pull(pull))
}

fn synced(place: &Place, emulator: &Emulator, more: &[&str]) -> Ran {
    let mut command = place.command(&[&["sync", "--repo", REPO], more].concat());
    command.env("CANONRY_GITHUB_API_URL", emulator.url()).env("GITHUB_TOKEN", "t0ken");
    Ran::of(command.output().expect("the program starts"))
}

/// A clone with a change as its last commit, and the patch and texts of a pull request with the same change.
fn changed_clone() -> (WorkingCopy, (&'static str, &'static str), &'static str) {
    let copy = WorkingCopy::new();
    let base = "def glyph(letter):\n    return glyphs.get(letter)\n";
    let changed = "def glyph(letter):\n    found = glyphs.get(letter)\n    if found is None:\n        found = fallback_font.glyph_of(letter)\n    return found_or_box\n";
    copy.write("src/glyphs.py", base).commit("Add glyphs");
    copy.write("src/glyphs.py", changed).commit("Draw letters of another font instead of boxes");
    let texts = ("Use the fallback font for missing glyphs", "Letters without a glyph were drawn as boxes.");
    let patch = "-    return glyphs.get(letter)\n+    found = glyphs.get(letter)\n+    if found is None:\n+        found = fallback_font.glyph_of(letter)\n+    return found_or_box";
    (copy, texts, patch)
}

/// Opens a pull request that has nothing to do with glyphs.
fn open_other(world: &mut World) {
    let texts = ("Release stale locks", "A lock of a process that has ended was kept.");
    open_pull(world, "main", texts, "src/lock.py", "-    hold()\n+    release_stale_lock()");
}

#[test]
fn a_change_that_is_open_as_a_pull_request_is_in_progress_after_a_sync() {
    let (copy, texts, patch) = changed_clone();
    let mut world = world();
    let twin = open_pull(&mut world, "main", texts, "src/glyphs.py", patch);
    open_other(&mut world);
    let emulator = Emulator::start_blocking(world);
    let check = |more: &[&str]| copy.canonry(&[&["check", "--diff", "HEAD~1..HEAD"], more].concat());

    let without = synced(&copy.place, &emulator, &["--changes", "0"]).succeeded();
    assert!(!without.stdout.contains("Changes of"), "{without:?}");
    copy.place.canonry(&["embed"]).succeeded();
    assert_eq!(check(&["--json"]).json()["lacks_changes"], true);
    let text = check(&[]).stdout;
    let remedy = "`canonry sync` fetches the changes of open pull requests, and of those closed in the last 90 days.";
    assert!(text.contains(remedy), "{text}");

    let partly = synced(&copy.place, &emulator, &["--changes", "2"]).succeeded();
    assert!(partly.stdout.contains("\nChanges of 1 pull request stored; 1 left for the next sync.\n"), "{partly:?}");
    let rest = synced(&copy.place, &emulator, &[]).succeeded();
    assert!(rest.stdout.contains("\nChanges of 1 pull request stored.\n"), "{rest:?}");
    let found = check(&["--json"]);
    let document = found.json();
    assert_eq!(
        (found.exit, &document["answer"], &document["item"]["number"], &document["same_lines"]),
        (Some(11), &json!("in_progress"), &json!(twin), &json!(true)),
        "{document}"
    );
    assert_eq!(document["without_changes"], 0, "{document}");
}

#[test]
fn a_change_that_was_merged_into_another_branch_is_not_fixed() {
    for (base, exit, answer) in [("main", 12, "fixed"), ("1.x", 10, "reported")] {
        let (copy, texts, patch) = changed_clone();
        let mut world = world();
        let twin = open_pull(&mut world, base, texts, "src/glyphs.py", patch);
        open_other(&mut world);
        world.merge(REPO, twin, "mona");
        let emulator = Emulator::start_blocking(world);
        synced(&copy.place, &emulator, &[]).succeeded();
        copy.place.canonry(&["embed"]).succeeded();
        let found = copy.canonry(&["check", "--diff", "HEAD~1..HEAD", "--json"]);
        let document = found.json();
        assert_eq!((found.exit, &document["answer"]), (Some(exit), &json!(answer)), "{base}: {document}");
        assert_eq!(document["item"]["number"], json!(twin), "{document}");
    }
}

/// Two closed reports: a pull request that does not name the first probably fixed it, another names the second. Both
/// were merged into `base`. Returns what `check` answers about each.
fn answers_with_fixes_on(base: &str) -> [(Option<i32>, Value); 2] {
    let mut world = world();
    let report = open(&mut world, "Text turns into boxes", &format!("Since the update.\n{FONT}"));
    let named = open(&mut world, "Sync never ends after a crash", LOCK);
    open(&mut world, "Opening a read-only database panics", PANIC);
    open(&mut world, "Print the version in the log", "Please write the version to the log when the daemon starts.");
    world.advance(13 * DAY);
    let fixes = format!("Fixes #{named}");
    let pulls = [
        (
            base,
            "Keep the fallback font of glyphs",
            "The cache of glyphs lost it.",
            "crates/tui/src/glyphs.rs",
            "+glyph cache lost the fallback font",
        ),
        (base, "Release stale locks", &fixes, "crates/relay/src/lock.rs", "+release();"),
        ("main", "Wrap text in tables", "", "crates/tui/src/table.rs", "+wrap();"),
        ("main", "Show boxes around groups", "", "crates/tui/src/group.rs", "+boxes();"),
        ("main", "Read text from the clipboard", "", "crates/tui/src/clip.rs", "+paste();"),
        ("main", "Update the text of the help", "", "docs/help.md", "+help"),
        ("main", "Turn the page with a key", "", "crates/tui/src/pager.rs", "+turn();"),
    ];
    for (base, title, body, path, patch) in pulls {
        let pull = open_pull(&mut world, base, (title, body), path, patch);
        world.advance(600);
        world.merge(REPO, pull, "mona");
    }
    world.advance(DAY);
    for closed in [report, named] {
        world.close(REPO, closed, "mona", CloseReason::Completed);
    }
    let (place, emulator) = (Place::new(), Emulator::start_blocking(world));
    synced(&place, &emulator, &[]).succeeded();
    place.canonry(&["embed"]).succeeded();
    [("Text turns into boxes", FONT), ("Sync never ends", LOCK)].map(|(title, body)| {
        let ran = place.canonry(&["check", "--title", title, "--body", body, "--json"]);
        (ran.exit, ran.json())
    })
}

#[test]
fn a_fix_is_known_after_a_sync_if_it_is_on_the_default_branch() {
    let [probable, named] = answers_with_fixes_on("main").map(|(exit, fixed)| {
        assert_eq!((exit, &fixed["answer"]), (Some(12), &json!("fixed")), "{fixed}");
        assert_eq!((&fixed["fix"]["base_branch"], &fixed["fix"]["on_default_branch"]), (&json!("main"), &json!(true)));
        fixed["fix"].clone()
    });
    assert!(probable["confidence"].as_f64().is_some_and(|sure| sure > 0.7), "{probable}");
    assert_eq!(probable["evidence"][0], "it changes `crates/tui/src/glyphs.rs`, which the issue names", "{probable}");
    assert_eq!((&named["confidence"], &named["title"]), (&Value::Null, &json!("Release stale locks")), "{named}");
    for (exit, reported) in answers_with_fixes_on("1.x") {
        assert_eq!((exit, &reported["answer"], &reported["fix"]), (Some(10), &json!("reported"), &Value::Null));
    }
}
