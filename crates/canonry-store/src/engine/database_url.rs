//! The address of a database: `sqlite:PATH` or `postgres://…`.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

#[derive(Clone, PartialEq, Eq)]
pub enum DatabaseUrl {
    Sqlite(PathBuf),
    Postgres(String),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{shown} is not a database; write sqlite:PATH or postgres://user@host/name")]
pub struct InvalidDatabaseUrl {
    shown: String,
}

impl DatabaseUrl {
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::Sqlite(path) => Some(path),
            Self::Postgres(_) => None,
        }
    }
}

impl FromStr for DatabaseUrl {
    type Err = InvalidDatabaseUrl;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return Ok(Self::Postgres(text.to_owned()));
        }
        match text.strip_prefix("sqlite:") {
            Some(path) => {
                let path = path.strip_prefix("//").unwrap_or(path);
                // A database in memory would vanish with the connection that created it.
                if path.is_empty() || path.starts_with(":memory:") {
                    return Err(InvalidDatabaseUrl { shown: format!("{text:?}") });
                }
                Ok(Self::Sqlite(PathBuf::from(path)))
            }
            None => {
                let shown = without_password(text);
                let shown = if text.contains("://") { format!("{shown:?}") } else { shown };
                Err(InvalidDatabaseUrl { shown })
            }
        }
    }
}

/// Shows the address without its password.
impl fmt::Display for DatabaseUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(formatter, "sqlite:{}", path.display()),
            Self::Postgres(url) => formatter.write_str(&without_password(url)),
        }
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "DatabaseUrl({self})")
    }
}

/// Removes `:password` from `scheme://user:password@host`, and every parameter after `?`. Text of another form may
/// contain a password anywhere, so it is not shown at all.
fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        let is_name = url.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '/' | '\\'));
        return if is_name { format!("{url:?}") } else { "that text".to_owned() };
    };
    let (user, host) = rest.rsplit_once('@').map_or((None, rest), |(user, host)| (Some(user), host));
    let host = host.split('?').next().unwrap_or(host);
    match user.and_then(|user| user.split(':').next()) {
        Some(user) => format!("{scheme}://{user}@{host}"),
        None => format!("{scheme}://{host}"),
    }
}

#[cfg(test)]
mod tests {
    use super::DatabaseUrl;

    #[test]
    fn a_password_is_never_shown() {
        let url: DatabaseUrl = "postgres://me:s3cr3t@db.example:5432/canonry?password=s3cr3t".parse().expect("valid");
        assert_eq!(url.to_string(), "postgres://me@db.example:5432/canonry");
        assert_eq!(format!("{url:?}"), "DatabaseUrl(postgres://me@db.example:5432/canonry)");
        let odd: DatabaseUrl = "postgres://me:pa?s3cr3t@h/db".parse().expect("valid");
        assert_eq!(odd.to_string(), "postgres://me@h/db");
        let error = "host=db password=s3cr3t".parse::<DatabaseUrl>().expect_err("no address").to_string();
        assert!(!error.contains("s3cr3t"), "{error}");
        let error = "mysql://me:s3cr3t@host/db".parse::<DatabaseUrl>().expect_err("unknown engine").to_string();
        assert!(!error.contains("s3cr3t"), "{error}");
    }

    #[test]
    fn sqlite_paths() {
        for (text, path) in
            [("sqlite:a b.db", "a b.db"), ("sqlite:///var/x.db", "/var/x.db"), ("sqlite:/var/x.db", "/var/x.db")]
        {
            let url: DatabaseUrl = text.parse().expect(text);
            assert_eq!(url.file().expect("a file").to_str(), Some(path));
        }
        for text in ["", "sqlite:", "sqlite::memory:", "canonry.db"] {
            assert!(text.parse::<DatabaseUrl>().is_err(), "{text:?} was accepted");
        }
    }
}
