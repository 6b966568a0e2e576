//! Reads the template files of a repository, so that their text counts as boilerplate from the first issue on.

use canonry_boxed::boxed;
use canonry_domain::{Boilerplate, ItemType};
use canonry_github::{GitHub, GitHubError};
use canonry_store::{Repo, Store};
use jiff::Timestamp;
use serde_json::Value;

use crate::corpus::sync::SyncError;
use crate::retrieval::boilerplate::keep_templates;

/// The maximum number of template files that are read.
const FILES: usize = 30;
const FILE_LIMIT: usize = 64 * 1024;
const FOLDER: &str = ".github";

/// Reads the issue and pull request templates of the default branch, and stores their text in addition to former
/// versions. A file that cannot be read is left out. Costs one request, and one for each folder and file of
/// templates.
#[boxed]
pub async fn read_templates(store: &Store, github: &GitHub, repo: &Repo, now: Timestamp) -> Result<u64, SyncError> {
    let mut read = 0;
    let listed = github.default_branch_folder(&repo.name, FOLDER).await?;
    for (item_type, name) in [(ItemType::Issue, "issue_template"), (ItemType::Pr, "pull_request_template")] {
        let mut paths = Vec::new();
        for entry in &listed {
            let entry_name = entry.name.to_lowercase();
            if entry.is_folder && entry_name == name {
                let inside = github.default_branch_folder(&repo.name, &format!("{FOLDER}/{}", entry.name)).await?;
                let files = inside.into_iter().filter(|file| !file.is_folder);
                paths.extend(files.map(|file| format!("{FOLDER}/{}/{}", entry.name, file.name)));
            } else if !entry.is_folder
                && entry_name.rsplit_once('.').map_or(entry_name.as_str(), |(stem, _)| stem) == name
            {
                paths.push(format!("{FOLDER}/{}", entry.name));
            }
        }
        let mut templates = Boilerplate::default();
        for path in paths.iter().take(FILES) {
            let file = match github.default_branch_file(&repo.name, path, FILE_LIMIT).await {
                Ok(file) => file,
                Err(GitHubError::BadAnswer { .. }) => None,
                Err(error) => return Err(error.into()),
            };
            let Some(file) = file else { continue };
            let is_form = path.ends_with(".yml") || path.ends_with(".yaml");
            if is_form {
                add_form(&mut templates, &file.text);
            } else {
                templates.add_template(&file.text);
            }
            read += 1;
        }
        keep_templates(store, repo, item_type, &templates, now).await?;
    }
    Ok(read)
}

/// Adds what a YAML form leaves in an issue: a heading for each field, prefilled texts, and the lines of check boxes.
/// Texts that the form only shows while it is filled in are in no issue.
fn add_form(templates: &mut Boilerplate, text: &str) {
    // A form that is not valid YAML makes no issues either.
    let Ok(form) = serde_saphyr::from_str::<Value>(text) else { return };
    if let Some(title) = form["title"].as_str() {
        templates.add_title(title);
    }
    let mut lines = String::new();
    for field in form["body"].as_array().into_iter().flatten().filter(|field| field["type"] != "markdown") {
        let attributes = &field["attributes"];
        if let Some(label) = attributes["label"].as_str() {
            lines.push_str(&format!("### {label}\n\n"));
        }
        if let Some(value) = attributes["value"].as_str() {
            lines.push_str(&format!("{value}\n\n"));
        }
        for option in attributes["options"].as_array().into_iter().flatten() {
            if let Some(label) = option["label"].as_str() {
                lines.push_str(&format!("- [ ] {label}\n"));
            }
        }
    }
    templates.add_template(&lines);
}

#[cfg(test)]
mod tests {
    use canonry_domain::{Boilerplate, has_content};

    use super::add_form;

    #[test]
    fn what_a_form_leaves_in_an_issue_is_known() {
        let mut templates = Boilerplate::default();
        let form = "name: Bug\ntitle: \"Trouble: \"\nbody:\n  - type: markdown\n    attributes: {value: Thank you for your time}\n  \
            - type: textarea\n    attributes: {label: Which part is it about, value: Write it down here}\n  \
            - type: checkboxes\n    attributes: {label: Rules, options: [{label: Nobody has reported this before me}]}\n";
        add_form(&mut templates, form);
        let issue =
            "### Which part is it about\n\nWrite it down here\n\n### Rules\n\n- [X] Nobody has reported this before me";
        assert!(!has_content(&templates.own_title("Trouble: "), &templates.own_body(issue)));
        assert_eq!(templates.own_body("Thank you for your time"), "Thank you for your time");
        add_form(&mut templates, "{ not yaml");
    }
}
