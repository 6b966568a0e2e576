//! Describes a remote repository to fetch from, and its token.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// A repository on another machine. Git gets the token through the environment: it never appears in a list of processes
/// or in a file on disk.
#[derive(Clone, PartialEq, Eq)]
pub struct Remote {
    url: String,
    token: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("an address to fetch from begins with https://, http:// or file:// and has no user or password in it")]
pub struct InvalidRemote;

impl Remote {
    pub fn new(url: &str, token: Option<&str>) -> Result<Self, InvalidRemote> {
        let rest = ["https://", "http://", "file://"].iter().find_map(|scheme| url.strip_prefix(scheme));
        let host = rest.ok_or(InvalidRemote)?.split('/').next().unwrap_or_default();
        if host.contains('@') || url.chars().any(|c| c.is_control() || c == ' ') {
            return Err(InvalidRemote);
        }
        let token = token.map(str::trim).filter(|token| !token.is_empty());
        Ok(Self { url: url.to_owned(), token: token.map(str::to_owned) })
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// Git settings for one call. The token goes to this host only, even if the host redirects git elsewhere.
    pub(crate) fn environment(&self) -> Vec<(&'static str, String)> {
        let mut settings = vec![("GIT_ALLOW_PROTOCOL", "https:http:file".to_owned())];
        if self.url.starts_with("http://127.0.0.1:") {
            // A proxy is for other machines, whatever its variables say.
            settings.push(("no_proxy", "127.0.0.1".to_owned()));
        }
        let Some(token) = &self.token else { return settings };
        let host: Vec<&str> = self.url.splitn(4, '/').take(3).collect();
        let word = STANDARD.encode(format!("x-access-token:{token}"));
        settings.extend([
            ("GIT_CONFIG_COUNT", "1".to_owned()),
            ("GIT_CONFIG_KEY_0", format!("http.{}/.extraHeader", host.join("/"))),
            ("GIT_CONFIG_VALUE_0", format!("Authorization: Basic {word}")),
        ]);
        settings
    }
}

impl fmt::Debug for Remote {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let token = self.token.as_ref().map(|_| "redacted");
        formatter.debug_struct("Remote").field("url", &self.url).field("token", &token).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::{InvalidRemote, Remote};

    #[test]
    fn the_token_is_for_its_host_and_never_shown() {
        let remote = Remote::new("https://git.example:8443/o/n.git", Some(" s3cret\n")).expect("an address");
        assert!(!format!("{remote:?}").contains("s3cret"));
        let environment = remote.environment();
        let value = |name: &str| environment.iter().find(|(key, _)| *key == name).map(|(_, value)| value.as_str());
        assert_eq!(value("GIT_CONFIG_KEY_0"), Some("http.https://git.example:8443/.extraHeader"));
        // `x-access-token:s3cret`
        assert_eq!(value("GIT_CONFIG_VALUE_0"), Some("Authorization: Basic eC1hY2Nlc3MtdG9rZW46czNjcmV0"));
        assert_eq!(Remote::new("https://git.example/o/n", None).expect("an address").environment().len(), 1);
    }

    #[test]
    fn what_is_no_address() {
        for url in [
            "",
            "--upload-pack=x",
            "ext::sh -c x",
            "git@host:o/n",
            "ssh://host/x",
            "https://user:word@host/o/n",
            "https://host/a b",
        ] {
            assert_eq!(Remote::new(url, None), Err(InvalidRemote), "{url}");
        }
    }
}
