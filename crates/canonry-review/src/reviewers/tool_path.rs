//! Reads paths as tools write them: as URIs, absolute, relative, escaped.

use std::path::Path;

use canonry_domain::review::{InvalidPath, RepoPath};

/// No system opens a longer path, and a path is stored with each finding.
const LONGEST: usize = 4_096;

/// The repository path of a tool's URI; `root` is the repository's folder as the tool saw it, if it is known.
pub(crate) fn uri_path(written: &str, root: Option<&Path>) -> Result<RepoPath, InvalidPath> {
    match absolute_path(written) {
        Some(path) => plain_path(&path, root),
        // A network address is not a file of the repository.
        None if written.contains("://") => Err(InvalidPath::Absolute),
        None => plain_path(&unescaped(written.strip_prefix("file:").unwrap_or(written)), root),
    }
}

/// The repository path of a path in the system's own form.
pub(crate) fn plain_path(text: &str, root: Option<&Path>) -> Result<RepoPath, InvalidPath> {
    if text.len() > LONGEST {
        return Err(InvalidPath::Outside);
    }
    if let Some(root) = root.and_then(Path::to_str)
        && let Some(inside) = text.strip_prefix(root.trim_end_matches('/'))
        && inside.starts_with('/')
    {
        return RepoPath::new(inside.trim_start_matches('/'));
    }
    RepoPath::new(text)
}

/// The absolute path of a URI: `file:///a`, `file://localhost/a`, `file:/a`, `/a`.
pub(crate) fn absolute_path(uri: &str) -> Option<String> {
    let rest = match uri.strip_prefix("file://") {
        Some(rest) => &rest[rest.find('/')?..],
        None => uri.strip_prefix("file:").unwrap_or(uri),
    };
    let path = unescaped(rest);
    // `file:///C:/a` is `C:/a`.
    let drive = path.strip_prefix('/').filter(|rest| rest.as_bytes().get(1) == Some(&b':'));
    path.starts_with('/').then(|| drive.unwrap_or(&path).to_owned())
}

/// Decodes percent escapes. A text that does not decode to UTF-8 stays unchanged.
fn unescaped(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.filter(|_| *first == b'%').and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use canonry_domain::review::{InvalidPath, RepoPath};

    use super::{plain_path, uri_path};

    #[test]
    fn what_tools_write() {
        let root = Some(Path::new("/home/ci/repo"));
        for (written, expected) in [
            ("src/a.rs", Ok("src/a.rs")),
            ("./src/a.rs", Ok("src/a.rs")),
            ("src/with%20space.rs", Ok("src/with space.rs")),
            ("file:///home/ci/repo/src/a.rs", Ok("src/a.rs")),
            ("/home/ci/repo/src/a.rs", Ok("src/a.rs")),
            ("file:src/a.rs", Ok("src/a.rs")),
            ("100%.txt", Ok("100%.txt")),
            ("caf%E9.txt", Ok("caf%E9.txt")),
            ("file:///C:/repo/a.rs", Err(InvalidPath::Absolute)),
            ("file:///home/ci/repo/../../etc/passwd", Err(InvalidPath::Outside)),
            ("file://localhost/home/ci/repo/a%23b.rs", Ok("a#b.rs")),
            ("/home/ci/repository/a.rs", Err(InvalidPath::Absolute)),
            ("file:///etc/passwd", Err(InvalidPath::Absolute)),
            ("..%2f..%2fetc/passwd", Err(InvalidPath::Outside)),
            ("", Err(InvalidPath::Empty)),
        ] {
            let path = uri_path(written, root);
            assert_eq!(path.as_ref().map(RepoPath::as_str).map_err(Clone::clone), expected, "{written}");
        }
    }

    #[test]
    fn a_plain_path_has_no_escapes() {
        assert_eq!(plain_path("a%20b.rs", None).expect("a path").as_str(), "a%20b.rs");
        assert_eq!(plain_path("/ci/a.rs", Some(Path::new("/ci/"))).expect("a path").as_str(), "a.rs");
        assert_eq!(plain_path("/ci/a.rs", None), Err(InvalidPath::Absolute));
        assert_eq!(plain_path(&"a/".repeat(3_000), None), Err(InvalidPath::Outside));
    }
}
