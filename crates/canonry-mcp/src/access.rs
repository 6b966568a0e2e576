//! Which repository a caller may read.

use axum::http::request::Parts;
use canonry_domain::PullChanges;
use canonry_store::Repo;
use futures_util::future::BoxFuture;

/// Who calls a tool.
#[derive(Debug, Clone, Copy)]
pub enum Caller<'a> {
    /// The user who started the program.
    Local,
    /// The sender of an HTTP request.
    Remote(&'a Parts),
}

impl Caller<'_> {
    /// The repository that the address of the request names: `/mcp?repo=OWNER/NAME`.
    pub(crate) fn repo_in_address(self) -> Option<String> {
        let Self::Remote(parts) = self else { return None };
        let named = parts.uri.query()?.split('&').find_map(|pair| pair.strip_prefix("repo="))?;
        // Names of repositories contain nothing else that is encoded.
        Some(named.replace("%2F", "/").replace("%2f", "/"))
    }
}

/// Finds repositories for callers.
pub trait RepoAccess: Send + Sync {
    /// The repository of this name, or the one that is meant without a name; else what the caller should do.
    fn repo<'a>(&'a self, name: Option<&'a str>, caller: Caller<'a>) -> BoxFuture<'a, Result<Repo, String>>;

    /// The change between two commits of the clone in which the program was started: its messages, and what changed.
    fn change_in<'a>(&'a self, range: &'a str) -> BoxFuture<'a, Result<(String, PullChanges), String>> {
        let _ = range;
        Box::pin(async { Err("this server has no clone; give the change as `diff`".to_owned()) })
    }
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::Caller;

    #[test]
    fn an_address_may_name_the_repository() {
        let named = |address: &str| {
            let (parts, ()) = Request::get(address).body(()).expect("an address").into_parts();
            Caller::Remote(&parts).repo_in_address()
        };
        for address in ["/mcp?repo=octo/cat", "/mcp?repo=octo%2Fcat", "/mcp?a=b&repo=octo%2fcat"] {
            assert_eq!(named(address).as_deref(), Some("octo/cat"), "{address}");
        }
        assert_eq!((named("/mcp"), named("/mcp?repository=octo/cat")), (None, None));
        assert_eq!(Caller::Local.repo_in_address(), None);
    }
}
