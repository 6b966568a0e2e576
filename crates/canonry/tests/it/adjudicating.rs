//! A person reads pairs in the terminal, and the next backtest counts the answers.

use std::io::Write as _;
use std::process::Stdio;

use canonry_testkit::database::TestDatabase;
use canonry_testkit::on_both_engines;
use canonry_testkit::samples::TIDEPOOL;
use serde_json::Value;

use crate::place::{Place, Ran};

const REPO: &str = "tidepool/tidepool";

fn canonry(place: &Place, database: &TestDatabase, arguments: &[&str], typed: &str) -> Ran {
    let mut command = place.command(arguments);
    command.env("CANONRY_DATABASE_URL", database.url()).args(["--repo", REPO]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    let mut keys = child.stdin.take().expect("a pipe");
    // A command that does not ask closes its end.
    let _ = keys.write_all(typed.as_bytes());
    drop(keys);
    Ran::of(child.wait_with_output().expect("it ends"))
}

/// The verdicts about all items, of which people linked two.
fn backtest(place: &Place, database: &TestDatabase) -> Value {
    let arguments = ["backtest", "--sample", "300", "--truth", "truth.jsonl", "--json"];
    canonry(place, database, &arguments, "").succeeded().json()["verdicts"].clone()
}

on_both_engines! {
    async fn what_was_read_counts_in_the_next_backtest(database: TestDatabase) {
        let place = Place::new();
        place.write("items.jsonl", TIDEPOOL.items);
        let known: Vec<&str> = TIDEPOOL.truth.lines().take(2).collect();
        place.write("truth.jsonl", known.join("\n"));
        canonry(&place, &database, &["import", "items.jsonl"], "").succeeded();
        let empty = canonry(&place, &database, &["adjudicate"], "").succeeded();
        assert!(empty.stdout.contains("No pair waits to be read. Run `canonry backtest"), "{empty:?}");

        canonry(&place, &database, &["embed"], "").succeeded();
        let before = backtest(&place, &database);
        // At every confidence that is reported, not only at the default threshold.
        let at_half = |verdicts: &Value, key: &str| verdicts["levels"][0][key].as_u64().expect("a count");
        let open = at_half(&before, "unread");
        assert!(open >= 6, "some duplicates are not linked: {before}");
        assert_eq!((at_half(&before, "read_same"), at_half(&before, "read_different")), (0, 0));

        let read = canonry(&place, &database, &["adjudicate", "--json"], "x\nm\ns\nk\nd\nc\nq\n").succeeded();
        assert_eq!(read.json()["stats"]["answered"], 3, "{read:?}");
        assert_eq!(read.json()["stats"]["skipped"], 1);
        assert_eq!(read.json()["stats"]["waiting"], open - 3);
        assert!(read.stderr.contains("[s]ame  [d]ifferent"), "{read:?}");
        assert!(read.stderr.contains("same. Canonry said: "), "{read:?}");

        let after = backtest(&place, &database);
        assert_eq!((at_half(&after, "read_same"), at_half(&after, "read_different")), (1, 1), "{after}");
        assert_eq!(at_half(&after, "unread"), open - 2, "a pair that nobody can tell stays open");
        // The same pairs do not wait twice.
        let again = canonry(&place, &database, &["adjudicate", "--json"], "").succeeded();
        assert_eq!(again.json()["stats"]["waiting"], open - 3);
        let text = canonry(&place, &database, &["adjudicate", "--count", "1"], "s\n").succeeded().stdout;
        assert!(text.contains("Read 1 pair;") && text.contains("Next: canonry backtest"), "{text}");
    }
}
