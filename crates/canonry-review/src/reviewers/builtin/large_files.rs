//! Finds large files, which every clone contains for ever.

use canonry_domain::review::{Category, Severity};

use super::reading::{BuiltinRule, ReadFile, Remark};
use crate::change::file_change::ChangeKind;

pub(super) const RULE: BuiltinRule = BuiltinRule { id: "large-file", check };

/// The size from which a file is large. GitHub warns at 50 MB; a tenth of that, in each of ten versions, is as much.
const LARGE: u64 = 5_000_000;

fn check(files: &[ReadFile<'_>]) -> Vec<Remark> {
    let new = files.iter().filter(|file| file.change.kind == ChangeKind::Added);
    new.filter_map(|file| {
        let bytes = file.bytes.filter(|bytes| *bytes >= LARGE)?;
        Some(Remark {
            path: file.path().clone(),
            lines: None,
            title: "A large file is committed",
            message: format!(
                "It has {}.{} MB, and every clone carries it for ever. Keep it in Git LFS or outside of the repository.",
                bytes / 1_000_000,
                bytes / 100_000 % 10
            ),
            severity: Severity::Medium,
            category: Category::Performance,
        })
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::super::reading::tests::new_file;
    use super::super::reading::{FileToRead, ReadFile};
    use super::RULE;
    use crate::change::file_change::{ChangeKind, ContentKind};

    #[test]
    fn what_is_large() {
        let mut change = new_file("assets/film.mp4", "");
        change.content = ContentKind::Binary;
        let found = |change: &_, bytes| (RULE.check)(&[ReadFile::of(FileToRead { change, text: None, bytes })]);
        let large = found(&change, Some(12_345_678));
        assert!(large[0].message.starts_with("It has 12.3 MB"), "{}", large[0].message);
        assert_eq!(found(&change, Some(4_999_999)), []);
        assert_eq!(found(&change, None), []);
        change.kind = ChangeKind::Modified;
        assert_eq!(found(&change, Some(12_345_678)), [], "it was large before");
    }
}
