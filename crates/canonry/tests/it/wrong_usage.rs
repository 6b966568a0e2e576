//! Exit status 2 for wrong arguments, 1 with one sentence for every other error.

use crate::place::{Place, Ran, names_in};

#[test]
fn wrong_arguments_are_exit_2_and_touch_nothing() {
    let place = Place::new();
    for arguments in [
        &[][..],
        &["frobnicate"],
        &["import"],
        &["show", "--repo", "invalid", "--number", "1"],
        &["export", "--repo", "a/b/c"],
        &["import", "--repo", "invalid", "x.jsonl"],
        &["show", "--repo", "octo/cat", "--number", "0"],
        &["show", "--repo", "octo/cat", "--number", "9223372036854775808"],
        &["show", "--repo", "octo/cat", "--number", "1", "--type", "discussion"],
        &["export", "--repo", "octo/cat", "--state", "ajar"],
        &["maintainers", "set", "--repo", "octo/cat"],
        &["maintainers", "set", "--repo", "octo/cat", "two words"],
        &["doctor", "--github-api", "nowhere"],
        &["init", "--quiet", "--verbose"],
        &["completions", "tcsh"],
    ] {
        let ran = place.canonry(arguments);
        assert_eq!((ran.exit, ran.stdout.as_str()), (Some(2), ""), "{arguments:?}: {ran:?}");
        assert!(!ran.stderr.is_empty(), "{arguments:?}");
    }
    assert_eq!(names_in(&place.path("")), ["tmp"]);
}

#[test]
fn help_and_version_are_results() {
    let place = Place::new();
    for arguments in [&["--help"][..], &["-h"], &["help", "import"], &["maintainers", "set", "--help"], &["--version"]]
    {
        let ran = place.canonry(arguments);
        assert_eq!((ran.exit, ran.stderr.as_str()), (Some(0), ""), "{arguments:?}");
        assert!(ran.stdout.to_lowercase().contains("canonry"), "{ran:?}");
    }
}

/// Every command and subcommand that is not hidden.
fn commands(place: &Place) -> Vec<Vec<String>> {
    let page = place.canonry(&["reference", "commands"]).succeeded().stdout;
    let names = page.lines().filter_map(|line| line.strip_prefix("### `canonry ")?.strip_suffix('`'));
    names.map(|name| name.split(' ').map(str::to_owned).collect()).collect()
}

#[test]
fn every_commands_help_begins_with_an_example() {
    let place = Place::new();
    let commands = commands(&place);
    assert!(commands.len() > 60, "{commands:?}");
    for command in commands {
        for option in ["--help", "-h"] {
            let arguments: Vec<&str> = command.iter().map(String::as_str).chain([option]).collect();
            let help = place.canonry(&arguments).succeeded().stdout;
            let example = help.strip_prefix("Example:\n  ").and_then(|rest| rest.lines().next()).unwrap_or_default();
            assert!(example.contains(&format!("canonry {}", command.join(" "))), "{command:?}: {help}");
        }
    }
}

#[test]
fn with_json_an_error_is_one_document_too() {
    let place = Place::with_items();
    for (arguments, exit, command, repo, message) in [
        (&["--json"][..], 2, None, None, "a command is missing; see `canonry --help`"),
        (&["frobnicate", "--json"], 2, None, None, "unrecognized subcommand 'frobnicate'"),
        (
            &["show", "--json", "--repo", "invalid", "--number", "1"],
            2,
            Some("show"),
            None,
            "invalid value 'invalid' for '--repo <OWNER/NAME>': \"invalid\" is not a repository name; write it as owner/name, for example rust-lang/rust",
        ),
        (
            &["maintainers", "set", "--repo", "octo/cat", "--json"],
            2,
            Some("maintainers set"),
            None,
            "the following required arguments were not provided: <LOGIN>...",
        ),
        (
            &["--json", "show", "--repo", "octo/cat", "--number", "9"],
            1,
            Some("show"),
            Some("octo/cat"),
            "octo/cat has no item #9; check the number, or fetch it with `canonry sync` or `canonry import`",
        ),
        (
            &["export", "--repo", "octo/dog", "--json"],
            1,
            Some("export"),
            Some("octo/dog"),
            "octo/dog is not in the database, which has octo/cat; import it with `canonry sync` or `canonry import`",
        ),
    ] {
        let ran = place.canonry(arguments);
        let document = ran.json();
        assert_eq!(ran.exit, Some(exit), "{ran:?}");
        assert_eq!(document["schema_version"], 1);
        assert_eq!(document["command"].as_str(), command, "{document}");
        assert_eq!(document["repo"].as_str(), repo, "{document}");
        assert_eq!(document["run_id"].as_str().map(str::len), Some(28), "{document}");
        assert_eq!(document["error"]["message"], message, "{document}");
    }
}

#[test]
fn an_unknown_repository_is_answered_with_the_known_ones() {
    let place = Place::with_items();
    for name in ["a", "b", "c", "d", "e", "f", "g", "h"] {
        place.write("one.jsonl", r#"{"number":1,"title":"t"}"#);
        place.canonry(&["import", "--repo", &format!("many/{name}"), "one.jsonl"]).succeeded();
    }
    assert_eq!(
        place.canonry(&["export", "--repo", "octo/dog"]).failed(),
        "octo/dog is not in the database, which has many/a, many/b, many/c, many/d, many/e, many/f, many/g, many/h and 1 more; \
         import it with `canonry sync` or `canonry import`"
    );
    // Letter case makes no difference on GitHub, and none here.
    place.canonry(&["export", "--repo", "OCTO/cat"]).succeeded();
}

#[test]
fn a_database_that_is_none_is_named_and_not_touched() {
    let place = Place::new();
    let text = place.write("notes.txt", "these are notes, not a database at all\n".repeat(50));
    for (url, exit, message) in [
        (
            "sqlite:absent.db",
            1,
            "there is no database at sqlite:absent.db; create it with `canonry init --db sqlite:absent.db`, or name another one with --db",
        ),
        ("sqlite:notes.txt", 1, "notes.txt is not a SQLite database; nothing was changed; name another file with --db"),
        ("notes.txt", 2, "\"notes.txt\" is not a database; write sqlite:PATH or postgres://user@host/name"),
        (
            "mysql://me:s3cret@host/db",
            2,
            "\"mysql://me@host/db\" is not a database; write sqlite:PATH or postgres://user@host/name",
        ),
    ] {
        let ran = place.canonry(&["show", "--db", url, "--repo", "octo/cat", "--number", "1"]);
        assert_eq!(ran.ended_with(exit), message, "{url}");
    }
    let itself = ["override", "duplicate", "1", "1", "--repo", "octo/cat", "--db", "sqlite:absent.db"];
    place.canonry(&itself).ended_with(2);
    assert_eq!(
        place.canonry(&["init", "--db", "sqlite:notes.txt"]).failed(),
        "notes.txt is not a SQLite database; nothing was changed; name another file with --db"
    );
    assert!(
        place
            .canonry(&["init", "--db", "sqlite:no/such/folder/x.db"])
            .failed()
            .starts_with("the database at sqlite:no/such/folder/x.db cannot be opened: ")
    );
    assert_eq!(std::fs::read_to_string(text).expect("still there").lines().count(), 50);
    assert_eq!(names_in(&place.path("")), ["notes.txt", "tmp"]);
}

#[test]
fn a_server_that_does_not_answer_is_one_sentence_without_the_password() {
    let place = Place::new();
    let url = "postgres://me:s3cret@127.0.0.1:1/canonry?password=s3cret";
    // Each waits some time for the server, so they run at the same time.
    let [by_option, by_variable, doctor] = std::thread::scope(|scope| {
        let mut by_variable = place.command(&["init", "-vv"]);
        by_variable.env("CANONRY_DATABASE_URL", url);
        let by_variable = scope.spawn(move || Ran::of(by_variable.output().expect("the program starts")));
        let by_option = scope.spawn(|| place.canonry(&["init", "--db", url]));
        let doctor = scope.spawn(|| place.canonry(&["doctor", "--db", url, "--json"]));
        [by_option, by_variable, doctor].map(|ran| ran.join().expect("it ran"))
    });
    assert!(
        by_option.failed().starts_with("the database at postgres://me@127.0.0.1:1/canonry cannot be opened: "),
        "{by_option:?}"
    );
    for ran in [&by_option, &by_variable, &doctor, &place.canonry(&["init", "--help"])] {
        assert!(!format!("{ran:?}").contains("s3cret"), "{ran:?}");
    }
    assert_eq!(by_variable.exit, Some(1));
}

#[test]
fn without_a_home_the_database_must_be_named() {
    let place = Place::new();
    let ran = Ran::of(
        place
            .command(&["init"])
            .env("HOME", "")
            .env("XDG_DATA_HOME", place.path("data"))
            .output()
            .expect("the program starts"),
    );
    assert_eq!(ran.exit, Some(0), "{ran:?}");
    assert_eq!(names_in(&place.path("data/canonry")), ["canonry.db"]);
}
