//! Applies all rules to all files.

use std::collections::BTreeSet;

use canonry_domain::review::{RepoPath, ReviewerName};

use super::reading::{BuiltinRule, FileToRead, ReadFile};
use super::{
    committed_output, conflict_markers, credentials, debug_leftovers, disabled_tests, focused_tests, large_files,
    merge_leftovers, secret_files, workflow_security,
};
use crate::change::file_change::ChangeKind;
use crate::findings::reviewer_answer::ReviewerAnswer;

const RULES: [BuiltinRule; 12] = [
    conflict_markers::RULE,
    credentials::RULE,
    secret_files::RULE,
    focused_tests::RULE,
    disabled_tests::RULE,
    debug_leftovers::RULE,
    committed_output::RULE,
    large_files::RULE,
    merge_leftovers::RULE,
    workflow_security::INJECTION,
    workflow_security::UNTRUSTED_CHECKOUT,
    workflow_security::UNPINNED_ACTION,
];

pub fn read_with_rules(files: &[FileToRead<'_>]) -> ReviewerAnswer {
    let readings: Vec<ReadFile<'_>> = files.iter().map(|file| ReadFile::of(*file)).collect();
    let reviewer = ReviewerName::builtin();
    let mut reported = Vec::new();
    for rule in RULES {
        reported.extend((rule.check)(&readings).into_iter().map(|remark| remark.into_finding(rule.id)));
    }
    // A file without a text was not read: a byte that makes git call it binary must not mark its findings as fixed.
    let was_read = |file: &&FileToRead<'_>| file.text.is_some() || file.change.kind == ChangeKind::Deleted;
    let read: BTreeSet<RepoPath> = files.iter().filter(was_read).map(|file| file.change.path.clone()).collect();
    ReviewerAnswer { reported, read: vec![(reviewer, Some(read))], ..ReviewerAnswer::default() }
}

#[cfg(test)]
mod tests {
    use super::super::reading::FileToRead;
    use super::super::reading::tests::new_file;
    use super::{RULES, read_with_rules};

    #[test]
    fn every_rule_has_a_name_of_its_own() {
        let mut names: Vec<_> = RULES.iter().map(|rule| rule.id).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), RULES.len());
    }

    #[test]
    fn rules_report_in_their_order_and_tell_what_they_read() {
        let text = "import pdb\n<<<<<<< HEAD\n=======\n>>>>>>> x\n";
        let (code, plain) = (new_file("a.py", text), new_file("b.txt", "fine\n"));
        let files = [
            FileToRead { change: &code, text: Some(text), bytes: None },
            FileToRead { change: &plain, text: Some("fine\n"), bytes: None },
        ];
        let heard = read_with_rules(&files);
        let rules: Vec<_> = heard.reported.iter().filter_map(|one| one.rule.as_deref()).collect();
        assert_eq!(rules, ["conflict-marker", "debug-leftover"]);
        assert_eq!(heard.read[0].1.as_ref().map(|paths| paths.len()), Some(2));
    }
}
