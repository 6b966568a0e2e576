//! Checks that the generated references match the program.

use std::path::Path;

use crate::place::Place;

#[test]
fn the_references_in_docs_are_the_programs_own_words() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    for (what, file) in [
        ("commands", "commands.md"),
        ("mentions", "mentions.md"),
        ("configuration", "configuration.md"),
        ("schema", "canonry.schema.json"),
    ] {
        let printed = Place::new().canonry(&["reference", what]).succeeded().stdout;
        let kept = std::fs::read_to_string(docs.join(file)).expect(file);
        assert!(printed == kept, "docs/{file} is out of date: run `cargo xtask docs`");
    }
}
