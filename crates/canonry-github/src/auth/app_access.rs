//! Defines the permissions and events of Canonry's GitHub App.

/// The App's permissions on repositories, each with its level.
///
/// `contents` is `read`. With `write` GitHub would also resolve the conversations of fixed findings, but it is the one
/// permission that allows changing code, so that decision is left to the operator.
pub const APP_PERMISSIONS: [(&str, &str); 5] =
    [("metadata", "read"), ("contents", "read"), ("issues", "write"), ("pull_requests", "write"), ("checks", "write")];

/// The events that the App subscribes to. GitHub sends events about the installation without a subscription.
pub const APP_EVENTS: [&str; 10] = [
    "check_run",
    "check_suite",
    "issue_comment",
    "issues",
    "pull_request",
    "pull_request_review",
    "pull_request_review_comment",
    "pull_request_review_thread",
    "push",
    "repository",
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::{APP_EVENTS, APP_PERMISSIONS};
    use crate::webhook::known_events;

    #[test]
    fn the_app_subscribes_to_what_is_acted_on() {
        // Sent to every App without a subscription, or only read and never acted on.
        let others = ["installation", "installation_repositories", "ping", "label"];
        let wanted: BTreeSet<&str> = known_events().filter(|name| !others.contains(name)).collect();
        assert_eq!(BTreeSet::from(APP_EVENTS), wanted);
    }

    #[test]
    fn every_part_of_the_api_that_is_called_has_its_permission() {
        // The permission that GitHub's documentation requires for the calls in each file; "" for none.
        let needed = [
            ("check_runs", "checks"),
            ("clone_url", ""),
            ("close_facts", "issues"),
            ("collaborators", "metadata"),
            ("comments", "issues"),
            ("contents", "contents"),
            ("deliveries", ""),
            ("identity", ""),
            ("issues", "issues"),
            ("item_from_rest", ""),
            ("labels", "issues"),
            ("lenient", ""),
            ("mod", ""),
            ("pulls", "pull_requests"),
            ("reactions", "issues"),
            ("releases", "contents"),
            ("repos", "metadata"),
            ("reviews", "pull_requests"),
            ("threads", "pull_requests"),
            ("timeline", "issues"),
            ("users", ""),
        ];
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/api");
        let files: BTreeSet<String> = std::fs::read_dir(folder)
            .expect("the folder is there")
            .map(|entry| entry.expect("it can be listed").path().file_stem().expect("a name").display().to_string())
            .collect();
        let known: BTreeSet<String> = needed.iter().map(|(file, _)| (*file).to_owned()).collect();
        assert_eq!(files, known, "say which permission the calls of a new file need, and whether the App has it");
        let asked: BTreeSet<&str> = APP_PERMISSIONS.iter().map(|(name, _)| *name).collect();
        let used: BTreeSet<&str> = needed.iter().map(|(_, name)| *name).filter(|name| !name.is_empty()).collect();
        assert_eq!(asked, used);
    }
}
