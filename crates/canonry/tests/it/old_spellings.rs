//! Spellings of earlier versions, which still work and are not shown.

use serde_json::json;

use crate::dedupe::setting::{Setting, issue, issue_with};
use crate::place::Place;

#[test]
fn plans_and_items_may_be_named_by_options() {
    let setting = Setting::sqlite();
    let canonical = issue_with(2, json!({"author": "mona", "comments": 9}));
    setting.with_edges(&[issue(1), canonical, issue(3)], &[(1, 2, 0.95), (3, 2, 0.95)]);
    setting.maintainers(&["mona"]);
    let run = setting.plan_number(&setting.plan(&[]));
    let shown = setting.run(&["plan", "show", &run]).succeeded().stdout;
    for option in ["--run", "--plan"] {
        assert_eq!(setting.run(&["plan", "show", option, &run]).succeeded().stdout, shown);
    }
    setting.succeeds(&["plan", "exclude", "--run", &run, "--item", "1"]);
    setting.succeeds(&["plan", "approve", "--run", &run, "--item", "1"]);
    setting.run(&["plan", "export", "--run", &run]).succeeded();
    for (old, new) in [("apply-close", "apply"), ("undo-close", "undo")] {
        let (old_words, new_words) = (setting.run(&[old, "--run", &run]), setting.run(&[new, &run]));
        assert_eq!((old_words.exit, &old_words.stderr), (new_words.exit, &new_words.stderr), "{old}");
        let document = setting.run(&[old, "--run", &run, "--json"]).json();
        assert_eq!(document["command"], old, "scripts find the name that they know: {document}");
        assert_eq!(setting.run(&[new, &run, "--json"]).json()["command"], new);
        assert_eq!(setting.run(&[new, &run, "--run", &run]).exit, Some(2), "one of the two");
        assert_eq!(setting.run(&[new]).exit, Some(2), "one of the two");
    }
    let item = setting.run(&["show", "1"]).succeeded().stdout;
    assert_eq!(setting.run(&["show", "--number", "1"]).succeeded().stdout, item);
    let (old, new) = (setting.run(&["detect-new", "--number", "1"]), setting.run(&["detect-new", "1"]));
    assert_eq!((old.exit, old.stderr), (new.exit, new.stderr));
    let audit = setting.run(&["report-audit", "1"]);
    assert_eq!(setting.run(&["report-audit", "--run", "1"]).stdout, audit.stdout);
}

#[test]
fn old_spellings_are_not_shown() {
    let place = Place::new();
    for (command, hidden) in [
        (&["--help"][..], "-close\n"),
        (&["--help"], "apply-close"),
        (&["plan", "show", "--help"], "--run"),
        (&["apply", "--help"], "--run"),
        (&["show", "--help"], "--number"),
        (&["report-audit", "--help"], "--run"),
    ] {
        let help = place.canonry(command).succeeded().stdout;
        assert!(!help.contains(hidden), "{hidden}: {help}");
    }
    assert_eq!(place.canonry(&["apply-close", "--help"]).exit, Some(0));
}
