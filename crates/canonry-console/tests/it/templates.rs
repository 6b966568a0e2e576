//! No template contains what the pages' policy forbids, or what would let a stranger's text through.

use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn templates_hold_nothing_inline_and_nothing_unescaped() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let files = templates(&folder);
    assert!(files.len() > 10, "{} templates found in {}", files.len(), folder.display());
    for file in files {
        let text = fs::read_to_string(&file).expect("a template");
        let name = file.strip_prefix(&folder).expect("in the folder").display();
        for tag in text.split('<').skip(1).map(|rest| rest.split('>').next().expect("a first part")) {
            let tag = tag.to_lowercase();
            assert!(!tag.starts_with("style"), "{name}: <{tag}> would be refused by the policy");
            assert!(
                !tag.starts_with("script") || tag.contains(" src="),
                "{name}: <{tag}> would be refused by the policy"
            );
            for attribute in tag.split_whitespace().skip(1).filter_map(|word| word.split_once('=')) {
                let (attribute, value) = attribute;
                assert!(attribute != "style", "{name}: style={value} would be refused by the policy");
                assert!(!attribute.starts_with("on"), "{name}: {attribute}={value} would be refused by the policy");
                assert!(!attribute.starts_with("hx-on"), "{name}: {attribute}={value} would be refused by the policy");
            }
        }
        let packed: String = text.split_whitespace().collect();
        assert!(!packed.contains("|safe"), "{name}: a text that is not escaped; give it a type that is HtmlSafe");
        assert!(!packed.contains("{%filtersafe"), "{name}: a text that is not escaped");
    }
}

fn templates(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(templates(&path));
        } else if path.extension().is_some_and(|extension| extension == "html") {
            found.push(path);
        }
    }
    found
}
