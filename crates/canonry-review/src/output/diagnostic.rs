//! Contains what the formats for programs share: a finding's rule, text and path.

use canonry_domain::review::Finding;

/// The name of a finding's rule: the reviewer, and the reviewer's own rule. A finding without a rule uses the
/// fingerprint of its title, as its feedback does.
pub(super) fn rule_id(finding: &Finding) -> String {
    let witness = finding.witnesses.first().expect("invariant: a finding has a witness");
    match &witness.rule {
        Some(rule) => format!("{}/{rule}", witness.reviewer),
        None => format!("{}/{}", witness.reviewer, finding.fingerprint),
    }
}

/// The whole text of a finding. The title is the first line, as programs that read it expect.
///
/// A suggested fix is part of the text and does not use the format's fix field: it may be a sentence, and a program
/// that applied it would write it over the code. Only a replacement of whole lines uses that field.
pub(super) fn message(finding: &Finding) -> String {
    let mut text = finding.title.clone();
    let fix = finding.fix.as_deref().map(|fix| format!("Suggested: {}", fix.trim()));
    for part in [Some(finding.message.trim().to_owned()), fix].into_iter().flatten().filter(|part| !part.is_empty()) {
        text.push_str("\n\n");
        text.push_str(&part);
    }
    text
}

/// A path that cannot be taken for a Windows path, with a drive or with backslashes between its parts.
pub(super) fn plain_path(path: &str) -> String {
    let has_drive = path.as_bytes().get(1) == Some(&b':');
    let is_ambiguous = has_drive || (path.contains('\\') && !path.contains('/'));
    if is_ambiguous { format!("./{path}") } else { path.to_owned() }
}

/// The path as a relative URI. Every byte is escaped unless it has no special meaning in any part of a URI.
pub(super) fn relative_uri(path: &str) -> String {
    let mut uri = String::with_capacity(path.len());
    for byte in plain_path(path).bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => uri.push(char::from(byte)),
            other => uri.push_str(&format!("%{other:02X}")),
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::{plain_path, relative_uri};

    #[test]
    fn paths_that_programs_do_not_mistake() {
        for (path, uri, plain) in [
            ("src/a-b_c.rs", "src/a-b_c.rs", "src/a-b_c.rs"),
            ("with space/ü.rs", "with%20space/%C3%BC.rs", "with space/ü.rs"),
            ("100%.txt", "100%25.txt", "100%.txt"),
            ("a:b/#?.rs", "./a%3Ab/%23%3F.rs", "./a:b/#?.rs"),
            ("we\\ird", "./we%5Cird", "./we\\ird"),
            ("x/we\\ird", "x/we%5Cird", "x/we\\ird"),
            ("http://x", "http%3A//x", "http://x"),
            ("a\n\"b\"", "a%0A%22b%22", "a\n\"b\""),
        ] {
            assert_eq!((relative_uri(path), plain_path(path)), (uri.to_owned(), plain.to_owned()));
        }
    }
}
