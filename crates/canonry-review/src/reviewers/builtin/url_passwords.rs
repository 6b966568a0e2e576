//! Recognizes passwords in URLs that are not secret.

use std::ops::Range;

use super::usual_passwords::is_usual_password;

/// Ends of host names that never exist on the public internet.
const RESERVED: [&str; 9] = [
    "localhost",
    "local",
    "test",
    "example",
    "invalid",
    "example.com",
    "example.org",
    "example.net",
    "host.docker.internal",
];

/// Whether a password gives no access: it is commonly known, or its host is the local machine or a name inside a
/// container network.
pub(super) fn opens_nothing(text: &str, password: &Range<usize>) -> bool {
    let (before, value, after) = (&text[..password.start], &text[password.clone()], &text[password.end..]);
    let user = before.rsplit_once("://").map_or("", |(_, user)| user.trim_end_matches(':'));
    user.eq_ignore_ascii_case(value) || is_usual_password(value) || is_near(host(after))
}

/// The host after the `@` of a URL.
fn host(after: &str) -> &str {
    let after = after.strip_prefix('@').unwrap_or(after);
    match after.strip_prefix('[') {
        Some(address) => address.split(']').next().unwrap_or(""),
        None => {
            let ends = |c: char| !(c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | '$' | '{' | '}' | '%'));
            after.split(ends).next().unwrap_or("").trim_end_matches('.')
        }
    }
}

fn is_near(host: &str) -> bool {
    let host = host.to_lowercase();
    // A name of one part is known in one network only; an IPv6 address has colons.
    let is_single = !host.contains(['.', ':']);
    is_single
        || host.starts_with("127.")
        || matches!(host.as_str(), "0.0.0.0" | "::1" | "::")
        || RESERVED.iter().any(|end| host.strip_suffix(end).is_some_and(|name| name.is_empty() || name.ends_with('.')))
}

#[cfg(test)]
mod tests {
    use super::opens_nothing;

    fn harmless(user: &str, password: &str, rest: &str) -> bool {
        let before = format!("x = \"redis://{user}:");
        let text = format!("{before}{password}@{rest}");
        opens_nothing(&text, &(before.len()..before.len() + password.len()))
    }

    #[test]
    fn whom_a_password_lets_in() {
        let own = "hJ7kQ9zR2mX4";
        for host in [
            "localhost:5432/db\"",
            "127.0.0.1",
            "[::1]:80/",
            "0.0.0.0",
            "db/x",
            "my-service:6379",
            "${DB_HOST}/x",
            "api.localhost",
            "host.docker.internal:3306",
            "db.example.com",
            "DB.TEST.",
        ] {
            assert!(harmless("app", own, host), "{host}");
        }
        for host in ["db.acme.dev/x", "10.0.0.7:5432", "[2001:db8::1]/", "localhost.acme.dev", "notexample.com"] {
            assert!(!harmless("app", own, host), "{host}");
            assert!(harmless("postgres", "postgres", host), "{host}");
            assert!(harmless("app-User", "app-user", host), "{host}");
            assert!(harmless("app", "Admin123", host), "{host}");
        }
    }
}
