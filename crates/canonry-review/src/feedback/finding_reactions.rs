//! Polls reactions to comments of findings: GitHub sends no webhook for them.

use canonry_boxed::boxed;
use std::collections::{BTreeMap, BTreeSet};

use canonry_domain::review::may_teach;
use canonry_domain::{GithubId, ItemNumber, ItemType, Login, Maintainers, RepoName};
use canonry_github::api::{ReactionSubject, RestReaction};
use canonry_github::{GitHub, GitHubError};
use canonry_store::{FindingAwaitingReactions, NewReaction, Repo, RepoAccess, RepoId, Store, StoreError};
use jiff::{SignedDuration, Timestamp};

use crate::feedback::maintainership::{MaintainershipError, is_maintainer};

/// How long the reactions to a comment are polled.
const ASKED_FOR: SignedDuration = SignedDuration::from_hours(30 * 24);

/// How long polled reactions stay valid. This is shorter than the time between two rounds: a round that GitHub's limit
/// interrupted continues with the rest when it starts again.
const HOLDS: SignedDuration = SignedDuration::from_hours(3);

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FindingReactionsReport {
    pub asked: u64,
    /// Asked comments that were deleted, and their reactions with them.
    pub gone: u64,
    pub kept: u64,
    pub removed: u64,
    /// Repositories or comments for which GitHub refused an answer, and why.
    pub failed: Vec<(RepoName, String)>,
    /// When to poll the rest, if GitHub's limit prevented some requests.
    pub retry_at: Option<Timestamp>,
}

/// Reads people's thumbs on every finding with a comment of the last 30 days, as they are now: a removed thumb no
/// longer counts. The findings polled longest ago come first; those polled within the last hours are left out. A
/// repository or a comment that fails does not prevent the others from being polled.
#[boxed]
pub async fn poll_finding_reactions(
    store: &Store,
    github: &GitHub,
    own: &Login,
    now: Timestamp,
) -> Result<FindingReactionsReport, StoreError> {
    let mut findings = store.findings().due_for_reactions(now - ASKED_FOR, None).await?;
    findings.retain(|one| one.heard_at.is_none_or(|at| now.duration_since(at) >= HOLDS));
    ReactionPoll::new(store, github, own, now).hear(findings).await
}

/// Polls one pull request, whenever its reactions were last read: its next review must count all reactions so far.
#[boxed]
pub async fn poll_reactions_of_pull(
    store: &Store,
    github: &GitHub,
    own: &Login,
    repo: &Repo,
    number: ItemNumber,
    now: Timestamp,
) -> Result<FindingReactionsReport, StoreError> {
    let findings = store.findings().due_for_reactions(now - ASKED_FOR, Some((repo.id, number))).await?;
    ReactionPoll::new(store, github, own, now).hear(findings).await
}

struct ReactionPoll<'a> {
    store: &'a Store,
    github: &'a GitHub,
    own: &'a Login,
    now: Timestamp,
    authors: BTreeMap<(RepoId, ItemNumber), Option<Login>>,
    maintain: BTreeMap<(RepoId, Login), bool>,
    report: FindingReactionsReport,
}

impl<'a> ReactionPoll<'a> {
    fn new(store: &'a Store, github: &'a GitHub, own: &'a Login, now: Timestamp) -> Self {
        let (authors, maintain) = (BTreeMap::new(), BTreeMap::new());
        Self { store, github, own, now, authors, maintain, report: FindingReactionsReport::default() }
    }

    async fn hear(mut self, findings: Vec<FindingAwaitingReactions>) -> Result<FindingReactionsReport, StoreError> {
        let mut left_out: BTreeSet<RepoId> = BTreeSet::new();
        for one in findings {
            let repo = &one.repo;
            if left_out.contains(&repo.id) {
                continue;
            }
            if self.store.repos().access(repo.id).await? != RepoAccess::Active {
                left_out.insert(repo.id);
                continue;
            }
            let error = match self.hear_one(&one).await {
                Ok(()) => continue,
                Err(MaintainershipError::Store(error)) => return Err(error),
                Err(MaintainershipError::GitHub(error)) => error,
            };
            match error {
                // Other repositories may have a budget of their own.
                GitHubError::RateLimited { until } => {
                    left_out.insert(repo.id);
                    self.report.retry_at = Some(self.report.retry_at.map_or(until, |earlier| earlier.min(until)));
                }
                error => {
                    // An answer that cannot be understood concerns only that comment.
                    if !matches!(error, GitHubError::BadAnswer { .. } | GitHubError::Refused { .. }) {
                        left_out.insert(repo.id);
                    }
                    self.report.failed.push((repo.name.clone(), error.to_string()));
                }
            }
        }
        Ok(self.report)
    }

    /// Reads all comments of a finding together: a removed reaction is known only after each comment was read.
    async fn hear_one(&mut self, one: &FindingAwaitingReactions) -> Result<(), MaintainershipError> {
        let (mut asked, mut gone, mut thumbs) = (0, 0, Vec::new());
        for comment in &one.comments {
            asked += 1;
            match self.reactions(&one.repo.name, *comment).await? {
                Some(reactions) => thumbs.extend(reactions.iter().filter_map(|reaction| Thumb::of(reaction, self.own))),
                None => gone += 1,
            }
        }
        let mut kept = 0;
        for thumb in &thumbs {
            let reaction = NewReaction {
                repo: one.repo.id,
                reaction: thumb.id,
                finding: one.finding,
                by: &thumb.by,
                up: thumb.up,
                at: thumb.at.unwrap_or(self.now),
                teaches: self.teaches(one, &thumb.by).await?,
            };
            kept += u64::from(self.store.findings().record_reaction(&reaction).await?);
        }
        let present: Vec<GithubId> = thumbs.iter().map(|thumb| thumb.id).collect();
        self.report.removed += self.store.findings().remove_reactions_except(one.finding, &present, self.now).await?;
        self.store.findings().mark_reactions_fetched(one.finding, self.now).await?;
        self.report.asked += asked;
        self.report.gone += gone;
        self.report.kept += kept;
        Ok(())
    }

    /// The reactions to a comment; `None` if it was deleted.
    async fn reactions(&self, repo: &RepoName, comment: GithubId) -> Result<Option<Vec<RestReaction>>, GitHubError> {
        match self.github.reactions(repo, ReactionSubject::ReviewComment(comment)).all().await {
            Ok(reactions) => Ok(Some(reactions)),
            Err(GitHubError::NotFound { .. } | GitHubError::Gone { .. }) => {
                // A repository that we cannot access gives the same answer for each of its comments.
                self.github.repo(repo).await?;
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Whether a person's thumb counts for the pattern. This is checked each time: people become maintainers and stop
    /// being maintainers.
    async fn teaches(&mut self, one: &FindingAwaitingReactions, by: &Login) -> Result<bool, MaintainershipError> {
        let author = self.author(&one.repo, one.number).await?;
        let mut maintainers = Maintainers::default();
        if author.as_ref() == Some(by) && self.maintains(&one.repo, by).await? {
            maintainers = std::iter::once(by).collect();
        }
        Ok(may_teach(by, author.as_ref(), &maintainers))
    }

    async fn author(&mut self, repo: &Repo, number: ItemNumber) -> Result<Option<Login>, MaintainershipError> {
        if let Some(author) = self.authors.get(&(repo.id, number)) {
            return Ok(author.clone());
        }
        let stored = self.store.corpus().item(repo.id, ItemType::Pr, number).await?.and_then(|item| item.author);
        let author = match stored {
            Some(author) => Some(author),
            None => self.github.pull(&repo.name, number).await?.user.and_then(|user| user.to_login()),
        };
        self.authors.insert((repo.id, number), author.clone());
        Ok(author)
    }

    /// Whether a person maintains a repository. If GitHub does not answer, the person counts as no maintainer for now,
    /// and the next round asks again.
    async fn maintains(&mut self, repo: &Repo, by: &Login) -> Result<bool, MaintainershipError> {
        let key = (repo.id, by.clone());
        if let Some(known) = self.maintain.get(&key) {
            return Ok(*known);
        }
        let maintains = match is_maintainer(self.store, Some(self.github), repo, by).await {
            Ok(maintains) => maintains,
            Err(MaintainershipError::GitHub(error)) if !matches!(error, GitHubError::RateLimited { .. }) => {
                tracing::info!(repo = %repo.name, login = %by, %error, "GitHub did not say whether they maintain the repository");
                false
            }
            Err(error) => return Err(error),
        };
        self.maintain.insert(key, maintains);
        Ok(maintains)
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Thumb {
    id: GithubId,
    by: Login,
    up: bool,
    at: Option<Timestamp>,
}

impl Thumb {
    /// Bots, our own account, deleted accounts and reactions other than thumbs do not count.
    fn of(reaction: &RestReaction, own: &Login) -> Option<Self> {
        let up = match reaction.content.as_str() {
            "+1" => true,
            "-1" => false,
            _ => return None,
        };
        let person = reaction.user.as_ref().filter(|user| !user.is_bot())?;
        let by = person.to_login().filter(|by| by != own)?;
        Some(Self { id: GithubId(reaction.id), by, up, at: reaction.created_at })
    }
}

#[cfg(test)]
mod tests {
    use canonry_github::api::RestReaction;
    use serde_json::json;

    use super::Thumb;

    #[test]
    fn only_thumbs_of_people_count() {
        let own = "canonry-bot".parse().expect("a login");
        let thumb = |content: &str, user: serde_json::Value| {
            let reaction = json!({ "id": 7, "content": content, "user": user, "created_at": "2026-02-01T00:00:00Z" });
            let reaction: RestReaction = serde_json::from_value(reaction).expect("a reaction");
            Thumb::of(&reaction, &own).map(|thumb| (thumb.by.to_string(), thumb.up))
        };
        assert_eq!(thumb("+1", json!({ "login": "ada" })), Some(("ada".to_owned(), true)));
        assert_eq!(thumb("-1", json!({ "login": "ada", "type": "User" })), Some(("ada".to_owned(), false)));
        for (content, user) in [
            ("heart", json!({ "login": "ada" })),
            ("confused", json!({ "login": "ada" })),
            ("-1", json!({ "login": "stale[bot]" })),
            ("-1", json!({ "login": "helper", "type": "Bot" })),
            ("+1", json!({ "login": "Canonry-Bot" })),
            ("-1", json!(null)),
        ] {
            assert_eq!(thumb(content, user), None, "{content}");
        }
    }
}
