//! The repository of a command if none is named.

use canonry_testkit::github::Emulator;
use serde_json::json;

use crate::from_github::world;
use crate::place::{Place, Ran};
use crate::working_copy::WorkingCopy;

#[test]
fn the_only_repository_need_not_be_named() {
    let place = Place::new();
    place.canonry(&["init"]).succeeded();
    assert_eq!(
        place.canonry(&["export"]).failed(),
        "the database has no repository yet; import one with `canonry sync --repo OWNER/NAME`"
    );
    place.write("one.jsonl", r#"{"number":1,"title":"t"}"#);
    place.canonry(&["import", "--repo", "octo/cat", "one.jsonl"]).succeeded();
    let document = place.canonry(&["show", "1", "--json"]).succeeded().json();
    assert_eq!((document["repo"].as_str(), document["item"]["number"].as_i64()), (Some("octo/cat"), Some(1)));
    place.canonry(&["pause"]).succeeded();
    // A repository to delete must always be named.
    assert_eq!(place.canonry(&["purge", "--dry-run"]).exit, Some(2));
}

#[test]
fn of_several_the_one_of_the_clone_is_meant() {
    let copy = WorkingCopy::new();
    copy.place.write("one.jsonl", r#"{"number":1,"title":"t"}"#);
    for name in ["octo/cat", "octo/dog"] {
        copy.place.canonry(&["import", "--repo", name, "one.jsonl"]).succeeded();
    }
    assert_eq!(copy.canonry(&["show", "1", "--json"]).succeeded().json()["repo"], "octo/cat");
    // A clone of a fork is known by the original repository.
    copy.git(&["remote", "set-url", "origin", "https://github.com/mona/cat.git"]);
    let ambiguous = copy.canonry(&["show", "1"]);
    assert_eq!(
        ambiguous.ended_with(2),
        "the database has 2 repositories (octo/cat and octo/dog); say which with --repo, for example --repo octo/cat"
    );
    copy.git(&["remote", "add", "upstream", "git@github.com:octo/dog.git"]);
    assert_eq!(copy.canonry(&["show", "1", "--json"]).succeeded().json()["repo"], "octo/dog");
    assert_eq!(copy.place.canonry(&["show", "1"]).exit, Some(2), "outside of the clone nobody can tell");
}

#[test]
fn a_clone_of_another_repository_is_never_taken_for_the_only_one() {
    let copy = WorkingCopy::new();
    copy.place.write("one.jsonl", r#"{"number":1,"title":"t"}"#);
    copy.place.canonry(&["import", "--repo", "octo/dog", "one.jsonl"]).succeeded();
    for command in [["pause"].as_slice(), &["plan-close"], &["show", "1"], &["override", "canonical", "1"]] {
        assert_eq!(
            copy.canonry(command).ended_with(2),
            "this is a clone of octo/cat, and the database has only octo/dog; run `canonry sync` here, say --repo octo/dog, or, \
             if octo/cat was renamed, `git remote set-url origin URL`",
            "{command:?}"
        );
    }
    assert_eq!(copy.canonry(&["show", "1", "--repo", "octo/dog", "--json"]).succeeded().json()["repo"], "octo/dog");
    // A clone of a fork is known by the original repository, and one of another host by nothing.
    copy.git(&["remote", "add", "upstream", "git@github.com:octo/dog.git"]);
    assert_eq!(copy.canonry(&["show", "1", "--json"]).succeeded().json()["repo"], "octo/dog");
    copy.git(&["remote", "remove", "upstream"]);
    copy.git(&["remote", "set-url", "origin", "https://gitlab.com/octo/cat.git"]);
    assert_eq!(copy.canonry(&["show", "1", "--json"]).succeeded().json()["repo"], "octo/dog");
}

#[test]
fn what_is_fetched_is_the_repository_of_the_clone() {
    let place = Place::new();
    let outside = place.command(&["sync"]).env("GITHUB_TOKEN", "t0ken").output().expect("the program starts");
    assert_eq!(outside.status.code(), Some(2), "{outside:?}");
    let words = String::from_utf8_lossy(&outside.stderr).into_owned();
    assert!(words.contains("name the repository with --repo OWNER/NAME, or run this in a clone of it"), "{words}");

    let (copy, emulator) = (WorkingCopy::new(), Emulator::start_blocking(world()));
    let mut sync = copy.command(&["sync", "--github-api", &emulator.url(), "--json"]);
    let sync = Ran::of(sync.env("GITHUB_TOKEN", "t0ken").output().expect("the program starts")).succeeded().json();
    assert_eq!((&sync["repo"], &sync["stats"]["inserted"]), (&json!("octo/cat"), &json!(3)), "{sync}");
}
