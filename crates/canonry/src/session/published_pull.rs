//! The pull request on GitHub that a review from the command line is published on.

use std::path::Path;

use anyhow::{Context as _, Result, anyhow, bail};
use canonry_domain::review::CommitSha;
use canonry_domain::{ItemNumber, Login, RepoName, counted};
use canonry_github::GitHub;
use canonry_github::outbox::Outbox;
use canonry_review::{
    FetchedRepository, Publication, PublicationRecheck, PublicationResult, Remote, Repository, ReviewReport,
};
use canonry_store::{BrakeKind, Repo, Store};
use canonry_triage::identify;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::output::exit::{Exit, Refused};
use crate::session::console_secrets::secret_of;
use crate::session::local_clone::LocalClone;

/// Signs what is written instead of the secret in the database, where others can read that.
const MARKER_SECRET: &str = "CANONRY_MARKER_SECRET";

/// An open pull request, and the way to write to it.
pub(crate) struct PublishedPull {
    pub(crate) repo: Repo,
    pub(crate) base: CommitSha,
    pub(crate) base_branch: String,
    pub(crate) head: CommitSha,
    pub(crate) author: Option<Login>,
    number: ItemNumber,
    store: Store,
    github: GitHub,
    outbox: Outbox,
    recheck: PublicationRecheck,
}

/// What was written, for a person and for a program.
pub(crate) struct WhatWasPublished {
    pub(crate) words: String,
    pub(crate) json: Value,
    /// The status where something could not be written.
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
                "Canonry is paused in {} since {} and writes nothing there; `canonry resume --repo {}` ends that, and \
                 --no-publish reviews without writing",
                repo.name, pause.set_at, repo.name
            )));
        }
        let pull = github.pull(&repo.name, number).await?;
        if pull.state != "open" {
            bail!(
                "{} #{number} is closed, and nothing is published there; --no-publish reviews it all the same",
                repo.name
            );
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
            number,
            repo,
            outbox,
            recheck: PublicationRecheck { store: store.clone(), github: github.clone() },
            store: store.clone(),
            github,
        })
    }

    /// Where git is asked about the two commits: in the clone if both are there together with where they part, else in a
    /// folder that they are fetched into.
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

    fn publication<'a>(&'a self, handle: &'a str) -> Publication<'a> {
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

    pub(crate) async fn begin(&self, handle: &str) -> Result<()> {
        Ok(self.publication(handle).begin(&self.head, false).await?)
    }

    /// Tells on the pull request that there is no review. The caller has its own error to tell; this one is only logged.
    pub(crate) async fn could_not(&self, handle: &str, why: &str, attempt: &str) {
        if let Err(error) = self.publication(handle).could_not(&self.head, why, attempt).await {
            tracing::warn!(%error, "the pull request is not told that the review failed");
        }
    }

    pub(crate) async fn publish(&self, handle: &str, report: &ReviewReport) -> Result<WhatWasPublished> {
        let published = self.publication(handle).publish(report).await.map_err(|error| anyhow!("failed to {error}"))?;
        let place = format!("{} #{}", self.repo.name, self.number);
        Ok(match published {
            PublicationResult::Superseded => bail!(
                "a newer commit or review of {place} came before this one was published; nothing more of this one is \
                 written, and it is stored: run it again to review what is there now"
            ),
            PublicationResult::Waiting { until, reason } => WhatWasPublished {
                words: format!(
                    "Not everything is written on {place} yet ({reason}). Run it again after {until}: it goes on from there."
                ),
                json: json!({ "waiting_until": until, "reason": reason }),
                exit: Exit::SomeFailed,
            },
            PublicationResult::Done { inline, edited_summary, settled, refused } => WhatWasPublished {
                words: done_in_words(&place, inline, edited_summary, settled, &refused),
                exit: if refused.is_empty() { Exit::Done } else { Exit::SomeFailed },
                json: json!({ "comments": inline, "summary": edited_summary, "threads": settled, "refused": refused }),
            },
        })
    }
}

fn done_in_words(place: &str, inline: usize, summary: bool, threads: usize, refused: &[String]) -> String {
    let mut parts = Vec::new();
    if inline > 0 {
        parts.push(if inline == 1 {
            "1 finding at its line".to_owned()
        } else {
            format!("{} at their lines", counted(inline as u64, "finding"))
        });
    }
    if summary {
        parts.push("the summary".to_owned());
    }
    if threads > 0 {
        parts.push(format!("the end of {}", counted(threads as u64, "thread")));
    }
    let mut words = match parts.is_empty() {
        true => format!("{place} says all of it already."),
        false => format!("Written on {place}: {}.", parts.join(", ")),
    };
    for reason in refused {
        words += &format!("\nNot written: {}.", crate::output::printable::one_line(reason));
    }
    words
}

#[cfg(test)]
mod tests {
    use super::done_in_words;

    #[test]
    fn what_was_written_is_told() {
        assert_eq!(done_in_words("o/n #1", 0, false, 0, &[]), "o/n #1 says all of it already.");
        assert_eq!(
            done_in_words("o/n #1", 2, true, 1, &["the check run: no permission".to_owned()]),
            "Written on o/n #1: 2 findings at their lines, the summary, the end of 1 thread.\nNot written: the check run: no permission."
        );
    }
}
