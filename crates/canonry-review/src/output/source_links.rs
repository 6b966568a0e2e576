//! Builds links from `path:line` to the code, for terminals that support them (OSC 8).

use std::fmt::Write as _;
use std::path::Path;

use canonry_domain::printable::one_line;
use canonry_domain::review::{CommitSha, LineRange, RepoPath};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceLinks {
    base: String,
    /// The separator between a path and its line; `None` if an address cannot contain a line.
    line: Option<&'static str>,
}

impl SourceLinks {
    /// Links to the files of a clone.
    pub fn to_files(root: &Path) -> Self {
        Self { base: format!("file://{}", encoded(&root.to_string_lossy())), line: None }
    }

    /// Links to the files of a commit on GitHub; `repository` is the address of the repository's page.
    pub fn to_commit(repository: &str, commit: &CommitSha) -> Self {
        Self { base: format!("{repository}/blob/{commit}"), line: Some("#L") }
    }

    /// `path:line`, as a link if `links` are given.
    pub fn place(links: Option<&Self>, path: &RepoPath, lines: Option<LineRange>) -> String {
        let place = match lines {
            Some(lines) => format!("{path}:{}", lines.first),
            None => path.to_string(),
        };
        Self::linked(links, path, lines, &one_line(&place))
    }

    pub fn linked(links: Option<&Self>, path: &RepoPath, lines: Option<LineRange>, words: &str) -> String {
        let Some(links) = links else { return words.to_owned() };
        let line = links.line.zip(lines).map(|(mark, lines)| format!("{mark}{}", lines.first)).unwrap_or_default();
        let address = format!("{}/{}{line}", links.base, encoded(path.as_str()));
        format!("\u{1b}]8;;{address}\u{1b}\\{words}\u{1b}]8;;\u{1b}\\")
    }
}

/// Percent-encodes a path, so that nothing in it controls the terminal or ends the address.
fn encoded(path: &str) -> String {
    let mut encoded = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            write!(encoded, "%{byte:02X}").expect("invariant: a String takes everything");
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use canonry_domain::review::{LineRange, RepoPath};

    use super::SourceLinks;

    #[test]
    fn places_lead_to_files_and_commits() {
        let path = RepoPath::new("src/a b.rs").expect("a path");
        let lines = Some(LineRange { first: 41, last: 43 });
        let files = SourceLinks::to_files(Path::new("/home/mona/my cat"));
        assert_eq!(
            SourceLinks::place(Some(&files), &path, lines),
            "\u{1b}]8;;file:///home/mona/my%20cat/src/a%20b.rs\u{1b}\\src/a b.rs:41\u{1b}]8;;\u{1b}\\"
        );
        let commit = "a".repeat(40).parse().expect("a commit");
        let github = SourceLinks::to_commit("https://github.com/octo/cat", &commit);
        let linked = SourceLinks::linked(Some(&github), &path, lines, "line 41");
        assert!(linked.contains(&format!("https://github.com/octo/cat/blob/{commit}/src/a%20b.rs#L41")), "{linked}");
        assert_eq!(anstream::adapter::strip_str(&linked).to_string(), "line 41");
        assert_eq!(SourceLinks::place(None, &path, None), "src/a b.rs");
    }
}
