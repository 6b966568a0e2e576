//! The pull request on GitHub on which a review from the command line is published.

use std::path::Path;

use anyhow::{Context as _, Result, anyhow, bail};
use canonry_domain::review::CommitSha;
use canonry_domain::{ItemNumber, Login, RepoName, counted};
use canonry_github::outbox::Outbox;
use canonry_github::{GitHub, GitHubError};
use canonry_review::{
    FetchedRepository, HeardRemarks, Publication, PublicationRecheck, PublicationResult, PullDescription, Remote,
    Repository, ReviewReport, remarks_of_pull,
};
use canonry_store::{BrakeKind, Repo, Store};
use canonry_triage::{identify, is_service_listening};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::output::exit::{Exit, Refused};
use crate::output::moments::date_and_time;
use crate::session::console_secrets::secret_of;
use crate::session::local_clone::LocalClone;

/// The variable with the secret that signs markers instead of the secret in the database, if others can read the
/// database.
pub(crate) const MARKER_SECRET: &str = "CANONRY_MARKER_SECRET";

/// An open pull request, with the client that writes to it.
pub(crate) struct PublishedPull {
    pub(crate) repo: Repo,
    pub(crate) base: CommitSha,
    pub(crate) base_branch: String,
    pub(crate) head: CommitSha,
    pub(crate) author: Option<Login>,
    pub(crate) description: PullDescription,
    number: ItemNumber,
    store: Store,
    github: GitHub,
    outbox: Outbox,
    recheck: PublicationRecheck,
}

/// What was written, as text and as JSON.
pub(crate) struct WhatWasPublished {
    pub(crate) words: String,
    pub(crate) json: Value,
    /// The exit status if something could not be written.
    pub(crate) exit: Exit,
}

impl PublishedPull {
    pub(crate) async fn find(
        store: &Store,
        github: GitHub,
        name: &RepoName,
        number: ItemNumber,
        now: Timestamp,
    ) -> Result<Self> {
        let identified = identify(store, &github, name).await?;
        let known = match identified.known {
            Some(known) => known,
            None => store.repos().ensure(&identified.name, now).await?,
        };
        let repo = store.repos().identify(known.id, identified.github_id, &identified.name).await?;
        let repo = repo.with_context(|| format!("the database has another repository under the name {name}"))?;
        if let Some(pause) = store.close().brake_in_force(repo.id, BrakeKind::Pause).await? {
            bail!(Refused(format!(
                "Canonry is paused in {} since {}; run `canonry resume --repo {}`, or review with --no-publish",
                repo.name,
                date_and_time(pause.set_at),
                repo.name
            )));
        }
        let pull = github.pull(&repo.name, number).await?;
        if pull.state != "open" {
            bail!("{} #{number} is closed, so nothing is published; review it with --no-publish", repo.name);
        }
        let sha =
            |text: &str| text.parse::<CommitSha>().map_err(|error| anyhow!("GitHub's answer about #{number}: {error}"));
        let outbox = match secret_of(MARKER_SECRET) {
            Some(secret) => Outbox::open_with_secret(store.clone(), github.clone(), secret).await?,
            None => Outbox::open(store.clone(), github.clone(), rand::random()).await?,
        };
        Ok(Self {
            base: sha(&pull.base.sha)?,
            base_branch: pull.base.branch,
            head: sha(&pull.head.sha)?,
            author: pull.user.as_ref().and_then(canonry_github::api::RestUser::to_login),
            description: PullDescription { title: pull.title, body: pull.body.unwrap_or_default() },
            number,
            repo,
            outbox,
            recheck: PublicationRecheck { store: store.clone(), github: github.clone() },
            store: store.clone(),
            github,
        })
    }

    /// The repository that contains the two commits: the clone if it has both and their merge base, else a folder
    /// into which they are fetched.
    pub(crate) async fn repository(
        &self,
        clone: Option<&LocalClone>,
        base: &CommitSha,
        folder: &Path,
    ) -> Result<Repository> {
        if let Some(clone) = clone {
            let git = clone.git();
            let has = git.has_commit(base).await.unwrap_or(false) && git.has_commit(&self.head).await.unwrap_or(false);
            if has && matches!(git.merge_base(base, &self.head).await, Ok(Some(_))) {
                return Ok(Repository::Local(git.clone()));
            }
        }
        let token = self.github.git_token(&self.repo.name).await?;
        let remote = Remote::new(&self.github.clone_url(&self.repo.name), Some(token.expose()))?;
        let fetched = FetchedRepository::fetch(folder, &remote, base, &self.head).await;
        Ok(Repository::Fetched(fetched.map_err(|error| anyhow!("failed to {error}"))?))
    }

    fn publication<'a>(&'a self, handle: Option<&'a str>) -> Publication<'a> {
        Publication {
            store: &self.store,
            github: &self.github,
            outbox: &self.outbox,
            repo: &self.repo,
            number: self.number,
            check_runs: self.github.is_app(),
            recheck: &self.recheck,
            handle,
        }
    }

    /// The repository's page on GitHub.
    pub(crate) fn web_url(&self) -> String {
        let url = self.github.clone_url(&self.repo.name);
        url.strip_suffix(".git").unwrap_or(&url).to_owned()
    }

    /// The comments of other reviewers.
    pub(crate) async fn remarks(&self, bots: &[String]) -> Result<HeardRemarks, GitHubError> {
        remarks_of_pull(&self.github, self.outbox.own_login(), &self.repo.name, self.number, bots).await
    }

    /// Whether a service hears commands in this pull request.
    pub(crate) async fn is_heard(&self) -> Result<bool> {
        Ok(is_service_listening(&self.store, &self.repo, self.github.now()).await?)
    }

    pub(crate) async fn begin(&self, handle: Option<&str>) -> Result<()> {
        Ok(self.publication(handle).begin(&self.head, false).await?)
    }

    /// Shows on the pull request that the review failed. The caller reports its own error; an error here is only
    /// logged.
    pub(crate) async fn could_not(&self, handle: Option<&str>, why: &str, attempt: &str) {
        if let Err(error) = self.publication(handle).could_not(&self.head, why, attempt).await {
            tracing::warn!(%error, "could not show on the pull request that the review failed");
        }
    }

    pub(crate) async fn publish(&self, handle: Option<&str>, report: &ReviewReport) -> Result<WhatWasPublished> {
        let published = self.publication(handle).publish(report).await.map_err(|error| anyhow!("failed to {error}"))?;
        let place = format!("{} #{}", self.repo.name, self.number);
        Ok(match published {
            PublicationResult::Superseded => bail!(
                "{place} got a newer commit or review before this review was published. The review is stored; run the command again"
            ),
            PublicationResult::Waiting { until, reason } => WhatWasPublished {
                words: format!(
                    "Not everything is posted on {place} yet ({reason}). Run the command again after {}: it continues from there.",
                    date_and_time(until)
                ),
                json: json!({ "waiting_until": until, "reason": reason }),
                exit: Exit::SomeFailed,
            },
            PublicationResult::Done { inline, wrote_summary, settled, refused } => WhatWasPublished {
                words: done_in_words(&place, inline, wrote_summary, settled, &refused),
                exit: if refused.is_empty() { Exit::Done } else { Exit::SomeFailed },
                json: json!({ "comments": inline, "summary": wrote_summary, "threads": settled, "refused": refused }),
            },
        })
    }
}

fn done_in_words(place: &str, inline: usize, summary: bool, threads: usize, refused: &[String]) -> String {
    let mut parts = Vec::new();
    if inline > 0 {
        parts.push(counted(inline as u64, "inline comment"));
    }
    if summary {
        parts.push("the summary".to_owned());
    }
    if threads > 0 {
        parts.push(format!("{} resolved", counted(threads as u64, "thread")));
    }
    let mut words = match parts.is_empty() {
        true => format!("Nothing new to post on {place}."),
        false => format!("Posted on {place}: {}.", parts.join(", ")),
    };
    for reason in refused {
        words += &format!("\nNot posted: {}.", crate::output::printable::one_line(reason));
    }
    words
}

#[cfg(test)]
mod tests {
    use super::done_in_words;

    #[test]
    fn posts_are_listed() {
        assert_eq!(done_in_words("o/n #1", 0, false, 0, &[]), "Nothing new to post on o/n #1.");
        assert_eq!(
            done_in_words("o/n #1", 2, true, 1, &["the check run: no permission".to_owned()]),
            "Posted on o/n #1: 2 inline comments, the summary, 1 thread resolved.\nNot posted: the check run: no permission."
        );
    }
}
