//! Finds which repositories a person may see.

use canonry_store::Repo;
use futures_util::{StreamExt as _, stream};

use crate::layout::errors::PageError;
use crate::sign_in::roles::Role;
use crate::sign_in::visit::Visit;

/// Concurrent permission requests to GitHub.
const ASKED_AT_ONCE: usize = 8;

pub(crate) struct VisibleRepos<T> {
    pub(crate) seen: Vec<(T, Role)>,
    /// The number of repositories that this person has seen before and for which GitHub could not confirm the access.
    pub(crate) unknown: usize,
}

/// The repositories that this person may see. A page checks a limited number for every reader; the rest is on the
/// next page.
pub(crate) async fn visible_repos<T>(
    visit: &Visit,
    lines: Vec<T>,
    repo_of: fn(&T) -> &Repo,
) -> Result<VisibleRepos<T>, PageError> {
    if visit.session.is_operator {
        let seen = lines.into_iter().map(|line| (line, Role::Operator)).collect();
        return Ok(VisibleRepos { seen, unknown: 0 });
    }
    let asked = lines.into_iter().map(|line| async move {
        let role = visit.console.roles.of(&visit.console, &visit.session, repo_of(&line), false).await;
        (line, role)
    });
    let answers: Vec<_> = stream::iter(asked).buffered(ASKED_AT_ONCE).collect().await;
    let mut visible = VisibleRepos { seen: Vec::new(), unknown: 0 };
    for (line, role) in answers {
        match role {
            Ok(role) => visible.seen.push((line, role)),
            Err(PageError::NotFound) => {}
            Err(PageError::Github(_)) => visible.unknown += 1,
            Err(error) => return Err(error),
        }
    }
    Ok(visible)
}
