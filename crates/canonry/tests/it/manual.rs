//! What the program prints about itself: completions, manual pages, reference.

use std::fs;

use crate::place::{Place, names_in};

#[test]
fn completions_for_every_shell() {
    let place = Place::new();
    for (shell, first) in [("bash", "_canonry() {"), ("zsh", "#compdef canonry"), ("fish", "# Print an optspec")] {
        let script = place.canonry(&["completions", shell]).succeeded().stdout;
        assert!(script.starts_with(first), "{shell}: {}", &script[..60]);
        assert!(script.contains("maintainers"), "{shell}");
        assert_eq!(place.canonry(&["completions", shell, "--json"]).json()["script"], script);
    }
}

#[test]
fn manual_pages_for_every_command() {
    let place = Place::new();
    let page = place.canonry(&["man"]).succeeded().stdout;
    assert!(page.contains(".TH canonry 1"), "{page}");
    for heading in ["START", "TRIAGE", "REVIEW", "OPERATE"] {
        assert!(page.contains(&format!(".SH {heading}\n")), "{heading}: {page}");
    }
    fs::create_dir(place.path("man1")).expect("a new folder");
    let written = place.canonry(&["man", "man1"]).succeeded().stdout;
    let pages = names_in(&place.path("man1"));
    assert_eq!(written, format!("Wrote {} pages to man1.\n", pages.len()));
    for page in ["canonry.1", "canonry-import.1", "canonry-maintainers-set.1"] {
        assert!(pages.contains(&page.to_owned()), "{pages:?}");
    }
    assert!(!pages.contains(&"canonry-reference.1".to_owned()), "{pages:?}");
    let document = place.canonry(&["man", "man1", "--json"]).json();
    assert_eq!(document["stats"]["pages"], pages.len());
    assert_eq!(
        place.canonry(&["man", "nowhere"]).failed(),
        "nowhere/canonry.1 cannot be written; check the folder and its permissions: No such file or directory (os error 2)"
    );
}

#[test]
fn the_reference_names_every_command_and_no_hidden_one() {
    let place = Place::new();
    let page = place.canonry(&["reference", "commands"]).succeeded().stdout;
    for command in ["init", "doctor", "import", "export", "show", "maintainers set", "config check", "demo", "man"] {
        assert!(page.contains(&format!("### `canonry {command}`\n")), "{command}: {page}");
    }
    for heading in ["## Start", "## Triage", "## Review", "## Operate"] {
        assert!(page.contains(&format!("\n{heading}\n")), "{heading}: {page}");
    }
    for hidden in ["canonry reference", "canonry apply-close", "canonry undo-close", "--run <"] {
        assert!(!page.contains(hidden), "{hidden}: {page}");
    }
    assert!(place.canonry(&["reference", "configuration"]).succeeded().stdout.starts_with("# `.canonry.yml`"));
    let schema = place.canonry(&["reference", "schema"]).succeeded();
    assert_eq!(schema.json(), place.canonry(&["config", "schema"]).json());
}
