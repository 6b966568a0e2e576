//! The last check before triage posts on GitHub.

use canonry_config::{ParsedSettings, parse};
use canonry_domain::{WriteKind, WriteOrigin, has_protected_label};
use canonry_github::outbox::{Act, Recheck, RecheckError, Ruling};
use canonry_github::{GitHub, GitHubError};
use canonry_store::{OutboxEntry, OutboxState, Repo, RepoAccess, Store, TriageActionKind};
use futures_util::future::BoxFuture;

use crate::close::live_item::is_gone;
use crate::corpus::identify::{IdentifyError, identify, remember};
use crate::online::live_settings::{live_settings, triage_mode};
use crate::online::posted_triage::is_ruling;

/// Checks an item on GitHub right before triage sends a comment, an edit or a label. Nothing is sent if the item is
/// closed, locked, gone or excluded by now, or if the repository's settings no longer want it. Withdrawals are always
/// sent.
#[derive(Debug, Clone)]
pub struct TriageRecheck {
    store: Store,
    github: GitHub,
}

impl TriageRecheck {
    pub fn new(store: Store, github: GitHub) -> Self {
        Self { store, github }
    }

    async fn rule(&self, entry: &OutboxEntry) -> Result<Ruling, RecheckError> {
        let refusal = match entry.kind {
            WriteKind::Comment | WriteKind::Label => self.refusal(entry).await?,
            WriteKind::EditComment if !self.takes_back(entry).await? => self.refusal(entry).await?,
            WriteKind::Close | WriteKind::Reopen => {
                return Err(format!("{} must be carried out by a person", entry.key).into());
            }
            _ => None,
        };
        Ok(refusal.map_or(Ruling::Proceed, |reason| Ruling::Refuse { reason: reason.to_owned() }))
    }

    /// Why a comment, an edit or a label is not sent, in one word.
    async fn refusal(&self, entry: &OutboxEntry) -> Result<Option<&'static str>, RecheckError> {
        let repo = &entry.repo;
        if self.store.repos().access(repo.id).await? != RepoAccess::Active {
            return Ok(Some("no_access"));
        }
        let settings = self.settings(repo).await?;
        if settings.as_ref().is_some_and(|settings| !triage_mode(settings).speaks()) {
            return Ok(Some("mode"));
        }
        if let Some(why) = self.overtaken(entry).await? {
            return Ok(Some(why));
        }
        let issue = match self.github.issue(&repo.name, entry.number).await {
            Ok(issue) => issue,
            Err(GitHubError::Moved { .. }) if self.has_other_name(entry).await? => {
                return Err("the repository has another name now".into());
            }
            Err(error) if is_gone(&error) => return Ok(Some("gone")),
            Err(error) => return Err(error.into()),
        };
        let excluded = settings.map(|settings| settings.config.triage.exclude_labels).unwrap_or_default();
        Ok(if issue.state != "open" {
            Some("closed")
        } else if issue.locked {
            Some("locked")
        } else if has_protected_label(
            &issue.labels.iter().map(|label| label.name.clone()).collect::<Vec<_>>(),
            &excluded,
        ) {
            Some("excluded_label")
        } else {
            None
        })
    }

    /// The repository's current settings; `None` if they were never read. Settings that are too old are fetched
    /// again, and while that fails nothing is posted: a push may have turned comments off.
    async fn settings(&self, repo: &Repo) -> Result<Option<ParsedSettings>, RecheckError> {
        if self.store.repos().settings(repo.id).await?.is_none() {
            return Ok(None);
        }
        let text = live_settings(&self.store, &self.github, repo).await?;
        Ok(Some(parse(&text.unwrap_or_default())))
    }

    /// Whether an edit withdraws the comment.
    async fn takes_back(&self, entry: &OutboxEntry) -> Result<bool, RecheckError> {
        // A cancelled close, or a person's ruling, is posted whatever the state of the item.
        if matches!(entry.source.origin, WriteOrigin::GraceCancelled | WriteOrigin::RulingEdit) {
            return Ok(true);
        }
        let Some(item_type) = entry.source.item_type else { return Ok(false) };
        let actions = self.store.duplicates().triage_actions_of(entry.repo.id, item_type, entry.number).await?;
        Ok(actions.iter().any(|stored| {
            stored.action.action == TriageActionKind::Withdrawn
                && entry.source.origin == WriteOrigin::TriageEdit
                && entry.source.record == Some(stored.action.triage_id)
        }))
    }

    /// Whether another write or a later decision has made this one obsolete.
    async fn overtaken(&self, entry: &OutboxEntry) -> Result<Option<&'static str>, RecheckError> {
        let Some(item_type) = entry.source.item_type else { return Ok(None) };
        let entries = self.store.outbox().of_item(entry.repo.id, entry.number).await?;
        if entries.iter().any(|one| one.id > entry.id && is_ruling(one)) {
            return Ok(Some("ruled_apart"));
        }
        if entry.kind != WriteKind::Label {
            let actions = self.store.duplicates().triage_actions_of(entry.repo.id, item_type, entry.number).await?;
            let latest = actions.iter().find(|stored| stored.action.action != TriageActionKind::Recorded);
            let is_withdrawn = latest.is_some_and(|stored| stored.action.action == TriageActionKind::Withdrawn);
            return Ok(is_withdrawn.then_some("withdrawn"));
        }
        // A label without the comment that explains it would confuse people.
        let comment = entries.iter().rev().find(|one| one.source.origin == WriteOrigin::TriageComment);
        let is_said = comment.is_some_and(|comment| comment.state == OutboxState::Sent);
        Ok((!is_said).then_some("not_commented"))
    }

    /// Whether the repository was renamed. Its new name is stored, and the next try uses it.
    async fn has_other_name(&self, entry: &OutboxEntry) -> Result<bool, RecheckError> {
        let name = &entry.repo.name;
        let identified = identify(&self.store, &self.github, name).await.map_err(plain)?;
        let repo = remember(&self.store, name, &identified, self.github.now()).await?;
        Ok(repo.id == entry.repo.id && repo.name.key() != name.key())
    }
}

impl Recheck for TriageRecheck {
    fn recheck<'a>(&'a self, entry: &'a OutboxEntry, _: Act) -> BoxFuture<'a, Result<Ruling, RecheckError>> {
        Box::pin(self.rule(entry))
    }
}

/// GitHub's own error, which the outbox looks for.
fn plain(error: IdentifyError) -> RecheckError {
    match error {
        IdentifyError::GitHub(error) => error.into(),
        error => error.into(),
    }
}
