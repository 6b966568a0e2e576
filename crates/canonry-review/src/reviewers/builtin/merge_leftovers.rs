//! Finds files that merging and patching leave behind.

use canonry_domain::review::{Category, Severity};

use super::reading::{BuiltinRule, ReadFile, Remark};
use crate::change::file_change::ChangeKind;

pub(super) const RULE: BuiltinRule = BuiltinRule { id: "merge-leftover", check };

fn check(files: &[ReadFile<'_>]) -> Vec<Remark> {
    let new = files
        .iter()
        .filter(|file| file.change.kind == ChangeKind::Added && !file.place.is_sample && !file.place.is_test);
    new.filter(|file| is_leftover(file))
        .map(|file| Remark {
            path: file.path().clone(),
            lines: None,
            title: "A leftover of a merge is committed",
            message: "Merge tools and `patch` write such files. Take it out of the commit.".to_owned(),
            severity: Severity::Medium,
            category: Category::Style,
        })
        .collect()
}

/// Whether a name is derived from another file's name: `a.rs.orig`, and Git's own `a_BACKUP_1234.rs`.
fn is_leftover(file: &ReadFile<'_>) -> bool {
    let name = file.path().file_name();
    let of_a_file = |end: &str| name.strip_suffix(end).is_some_and(|stem| stem.contains('.') && !stem.starts_with('.'));
    let by_mergetool = ["_BACKUP_", "_BASE_", "_LOCAL_", "_REMOTE_"].iter().any(|word| {
        let digits = name.split_once(word).map(|(_, rest)| rest.split('.').next().unwrap_or_default());
        digits.is_some_and(|digits| digits.len() >= 3 && digits.bytes().all(|byte| byte.is_ascii_digit()))
    });
    of_a_file(".orig") || of_a_file(".rej") || by_mergetool
}

#[cfg(test)]
mod tests {
    use super::super::reading::tests::check_table;
    use super::RULE;

    #[test]
    fn what_a_merge_left() {
        check_table(
            &RULE,
            &[
                ("src/a.rs.orig", "x", &[0]),
                ("Makefile.am.rej", "x", &[0]),
                ("src/a_BACKUP_12345.rs", "x", &[0]),
                ("debian/x.orig.tar.gz", "x", &[]),
                ("src/a.original.rs", "x", &[]),
                (".orig", "x", &[]),
                ("DB_BACKUP_PLAN.md", "x", &[]),
                ("tests/data/a.rs.orig", "x", &[]),
            ],
        );
    }
}
