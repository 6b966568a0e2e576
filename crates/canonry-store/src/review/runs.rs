//! Review runs: decides, for all processes, which one may review a subject at a head.

use canonry_boxed::boxed;
use canonry_domain::review::{CommitSha, ReviewSubject};
use canonry_domain::{RepoName, text_enum};
use jiff::Timestamp;

use crate::corpus::repos::RepoId;
use crate::engine::facets::ReviewStore;
use crate::engine::ids::store_id;
use crate::engine::row_values::{micros, moment, storable, word};
use crate::engine::rows::from_row;
use crate::engine::transaction::{StoreError, Transaction, on_pool, on_tx};

store_id! {
    /// The number of a review run, and of its review.
    ReviewId
}

store_id! {
    /// The number of a finding of a subject, the same in all reviews.
    FindingId
}

text_enum! {
    pub enum ReviewState: "a state of a review" {
        Pending = "pending",
        Running = "running",
        Completed = "completed",
        Failed = "failed",
        /// A newer head, or a request, replaced it before it was completed.
        Superseded = "superseded",
    }
}

/// A request to review a subject at a head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReviewClaim<'a> {
    pub repo: RepoId,
    pub subject: &'a ReviewSubject,
    pub base: &'a CommitSha,
    /// The target branch of the merge, if known.
    pub base_branch: Option<&'a str>,
    pub head: &'a CommitSha,
    /// Whether a person asked for it; then it runs whatever was reviewed before.
    pub requested: bool,
    pub full: bool,
    /// When it was triggered, for example by a push: of two heads the one that was requested later is newer,
    /// whichever is claimed first.
    pub asked_at: Timestamp,
    pub owner: &'a str,
    /// No other process may take the run over before this time.
    pub until: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReviewRun {
    pub id: ReviewId,
    /// The head of the last completed review of the subject, before this claim.
    pub last_head: Option<CommitSha>,
    /// The number of attempts, with this one.
    pub attempts: u32,
    /// Whether to review everything, because this claim, or the crashed one that it continues, requires it.
    pub full: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClaimOutcome {
    Run(ReviewRun),
    Completed(ReviewId),
    Busy {
        run: ReviewId,
        /// When the run can be taken over if its owner has crashed.
        until: Timestamp,
    },
    /// Another head was requested after this one.
    Outdated {
        by: ReviewId,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredRun {
    pub id: ReviewId,
    pub subject: ReviewSubject,
    pub base: CommitSha,
    pub head: CommitSha,
    pub state: ReviewState,
    pub requested: bool,
    pub full: bool,
    pub attempts: u32,
    pub error: Option<String>,
    pub created_at: Timestamp,
    pub finished_at: Option<Timestamp>,
}

/// The last completed run of a subject, with its owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompletedRun {
    pub id: ReviewId,
    pub base: CommitSha,
    /// The target branch of the merge, if known.
    pub base_branch: Option<String>,
    pub head: CommitSha,
    /// The owner of the claim that completed it.
    pub owner: String,
}

#[boxed]
impl ReviewStore<'_> {
    /// Claims a review of a subject at a head, in one transaction under the repository's lock.
    ///
    /// A later request is newer: a claim replaces an unfinished run of another head, never changes a completed one,
    /// and yields to both if they were requested after it. A run with an expired lease continues under its number. A
    /// head that comes back, requested after another one, runs again whatever its earlier result was, because the
    /// current findings are those of the other head.
    pub async fn claim(self, claim: &ReviewClaim<'_>, now: Timestamp) -> Result<ClaimOutcome, StoreError> {
        let mut tx = self.pool.begin().await?;
        tx.lock_items_of(claim.repo).await?;
        // Before any write: the runs that a claim supersedes must not change which run was last completed.
        let last_head = last_completed_head(&mut tx, claim).await?;
        let own = latest_of_head(&mut tx, claim).await?;
        let newer = newer_than(&mut tx, claim, own.as_ref()).await?;
        let was_followed = match &own {
            Some(own) => has_later(&mut tx, claim, own.id).await?,
            None => false,
        };
        if let Some(own) = &own {
            // Also if there is nothing to do: another head that was requested before this one must not come after it.
            note_asked(&mut tx, own.id, claim).await?;
        }
        let (id, attempts, full) = match step(claim, own.as_ref(), newer, was_followed, micros(now))? {
            Step::End(claimed) => {
                match claimed {
                    ClaimOutcome::Outdated { .. } => tx.rollback().await?,
                    _ => tx.commit().await?,
                }
                return Ok(claimed);
            }
            Step::GoOn { id, attempts, full } => {
                go_on(&mut tx, claim, id, attempts, full).await?;
                (id, attempts, full)
            }
            Step::Begin { attempts } => (begin(&mut tx, claim, attempts, now).await?, attempts, claim.full),
        };
        tx.commit().await?;
        let attempts = u32::try_from(attempts).map_err(StoreError::damaged)?;
        Ok(ClaimOutcome::Run(ReviewRun { id: ReviewId(id), last_head, attempts, full }))
    }

    /// Extends the caller's own run. `false` if it no longer belongs to the caller, because it was superseded or
    /// taken over: then nothing more may be written for it.
    pub async fn renew_claim(self, run: ReviewId, owner: &str, until: Timestamp) -> Result<bool, StoreError> {
        let hold = "UPDATE review_runs SET lease_until = $3 WHERE id = $1 AND lease_owner = $2 AND state = 'running'";
        let held = on_pool!(self.pool, |db| {
            sqlx::query(hold).bind(run.0).bind(owner).bind(micros(until)).execute(db).await?.rows_affected()
        });
        Ok(held == 1)
    }

    /// Ends the caller's own run without a review; `false` if it no longer belongs to the caller.
    pub async fn fail(self, run: ReviewId, owner: &str, why: &str, now: Timestamp) -> Result<bool, StoreError> {
        let fail = "UPDATE review_runs SET state = 'failed', error = $3, finished_at = $4
            WHERE id = $1 AND lease_owner = $2 AND state = 'running'";
        let failed = on_pool!(self.pool, |db| {
            let query = sqlx::query(fail).bind(run.0).bind(owner).bind(storable(why)).bind(micros(now));
            query.execute(db).await?.rows_affected()
        });
        Ok(failed == 1)
    }

    /// Ends the unfinished runs of a subject at other heads than this: commits were pushed, and their workers may
    /// stop. Returns the number of ended runs.
    pub async fn supersede(
        self,
        repo: RepoId,
        subject: &ReviewSubject,
        head: &CommitSha,
        now: Timestamp,
    ) -> Result<u64, StoreError> {
        let supersede = "UPDATE review_runs SET state = 'superseded', finished_at = $4
            WHERE repo_id = $1 AND subject = $2 AND head_sha <> $3 AND state IN ('pending', 'running')";
        Ok(on_pool!(self.pool, |db| {
            let query = sqlx::query(supersede).bind(repo.0).bind(subject.to_string()).bind(head.as_str());
            query.bind(micros(now)).execute(db).await?.rows_affected()
        }))
    }

    pub async fn last_completed_run(
        self,
        repo: RepoId,
        subject: &ReviewSubject,
    ) -> Result<Option<CompletedRun>, StoreError> {
        self.last_completed(repo, subject, None).await
    }

    /// Returns the last completed run of a subject at a head.
    pub async fn last_completed_run_of_head(
        self,
        repo: RepoId,
        subject: &ReviewSubject,
        head: &CommitSha,
    ) -> Result<Option<CompletedRun>, StoreError> {
        self.last_completed(repo, subject, Some(head)).await
    }

    async fn last_completed(
        self,
        repo: RepoId,
        subject: &ReviewSubject,
        head: Option<&CommitSha>,
    ) -> Result<Option<CompletedRun>, StoreError> {
        let of_any = "SELECT id, base_sha, base_branch, head_sha, lease_owner FROM review_runs
            WHERE repo_id = $1 AND subject = $2 AND state = 'completed' ORDER BY id DESC LIMIT 1";
        let of_head = "SELECT id, base_sha, base_branch, head_sha, lease_owner FROM review_runs
            WHERE repo_id = $1 AND subject = $2 AND head_sha = $3 AND state = 'completed' ORDER BY id DESC LIMIT 1";
        let row: Option<CompletedRow> = on_pool!(self.pool, |db| {
            let query = sqlx::query_as(if head.is_some() { of_head } else { of_any });
            let query = query.bind(repo.0).bind(subject.to_string());
            let query = if let Some(head) = head { query.bind(head.as_str()) } else { query };
            query.fetch_optional(db).await?
        });
        let read = |row: CompletedRow| {
            Ok(CompletedRun {
                id: ReviewId(row.id),
                base: word(&row.base_sha)?,
                base_branch: row.base_branch,
                head: word(&row.head_sha)?,
                owner: row.lease_owner.unwrap_or_default(),
            })
        };
        row.map(read).transpose()
    }

    /// Returns the subjects whose review ever began at a head.
    pub async fn subjects_of_head(self, repo: RepoId, head: &CommitSha) -> Result<Vec<ReviewSubject>, StoreError> {
        let query = "SELECT DISTINCT subject FROM review_runs WHERE repo_id = $1 AND head_sha = $2 ORDER BY subject";
        let subjects: Vec<String> =
            on_pool!(self.pool, |db| sqlx::query_scalar(query).bind(repo.0).bind(head.as_str()).fetch_all(db).await?);
        subjects.iter().map(|subject| word(subject)).collect()
    }

    /// Counts the ended runs of each repository by state.
    pub async fn counts(self) -> Result<Vec<(RepoName, ReviewState, u64)>, StoreError> {
        let query = "SELECT r.name, v.state, count(*) FROM review_runs v JOIN repos r ON r.id = v.repo_id
            WHERE v.state IN ('completed', 'failed', 'superseded') GROUP BY r.name, v.state ORDER BY r.name, v.state";
        let rows: Vec<(String, String, i64)> = on_pool!(self.pool, |db| sqlx::query_as(query).fetch_all(db).await?);
        let counted = rows.into_iter().map(|(name, state, count)| {
            Ok((word(&name)?, word(&state)?, u64::try_from(count).map_err(StoreError::damaged)?))
        });
        counted.collect()
    }

    /// Returns the runs of a repository, or of one subject, in any state, newest first.
    pub async fn runs(
        self,
        repo: RepoId,
        subject: Option<&ReviewSubject>,
        limit: u32,
    ) -> Result<Vec<StoredRun>, StoreError> {
        let of_repo = "SELECT id, subject, base_sha, head_sha, state, requested, full_requested, attempts, error, created_at, finished_at
            FROM review_runs WHERE repo_id = $1 ORDER BY id DESC LIMIT $2";
        let of_subject = "SELECT id, subject, base_sha, head_sha, state, requested, full_requested, attempts, error, created_at, finished_at
            FROM review_runs WHERE repo_id = $1 AND subject = $3 ORDER BY id DESC LIMIT $2";
        Ok(on_pool!(self.pool, |db| {
            match subject {
                None => sqlx::query_as(of_repo).bind(repo.0).bind(i64::from(limit)).fetch_all(db).await?,
                Some(subject) => {
                    let query = sqlx::query_as(of_subject).bind(repo.0).bind(i64::from(limit));
                    query.bind(subject.to_string()).fetch_all(db).await?
                }
            }
        }))
    }
}

/// What a claim leads to.
enum Step {
    End(ClaimOutcome),
    /// Continues the existing run under a new lease.
    GoOn {
        id: i64,
        attempts: i64,
        full: bool,
    },
    Begin {
        attempts: i64,
    },
}

/// The latest run of the claimed base and head.
#[derive(sqlx::FromRow)]
struct OwnRow {
    id: i64,
    state: String,
    lease_owner: Option<String>,
    lease_until: Option<i64>,
    full_requested: bool,
    attempts: i64,
}

/// Decides what a claim leads to, from the latest run of its base and head (`own`), a run of another base or head
/// that was requested after it (`newer`), and whether a later run began after the own one.
fn step(
    claim: &ReviewClaim<'_>,
    own: Option<&OwnRow>,
    newer: Option<i64>,
    was_followed: bool,
    now: i64,
) -> Result<Step, StoreError> {
    let outdated = newer.filter(|_| !claim.requested).map(|by| Step::End(ClaimOutcome::Outdated { by: ReviewId(by) }));
    let Some(own) = own else { return Ok(outdated.unwrap_or(Step::Begin { attempts: 1 })) };
    let state: ReviewState = word(&own.state)?;
    let is_unfinished = matches!(state, ReviewState::Pending | ReviewState::Running);
    let full = own.full_requested || claim.full;
    if is_unfinished && own.lease_owner.as_deref() == Some(claim.owner) {
        // The answer to the same claim was lost.
        return Ok(Step::GoOn { id: own.id, attempts: own.attempts, full });
    }
    if claim.requested {
        return Ok(Step::Begin { attempts: 1 });
    }
    if is_unfinished {
        return Ok(match own.lease_until.filter(|until| *until > now) {
            Some(until) => Step::End(ClaimOutcome::Busy { run: ReviewId(own.id), until: moment(until)? }),
            None => Step::GoOn { id: own.id, attempts: own.attempts + 1, full },
        });
    }
    Ok(match (outdated, state) {
        (Some(outdated), _) => outdated,
        (None, ReviewState::Completed) if !was_followed => Step::End(ClaimOutcome::Completed(ReviewId(own.id))),
        (None, ReviewState::Failed) if !was_followed => Step::Begin { attempts: own.attempts + 1 },
        (None, _) => Step::Begin { attempts: 1 },
    })
}

async fn last_completed_head(tx: &mut Transaction, claim: &ReviewClaim<'_>) -> Result<Option<CommitSha>, StoreError> {
    let query = "SELECT head_sha FROM review_runs
        WHERE repo_id = $1 AND subject = $2 AND state = 'completed' ORDER BY id DESC LIMIT 1";
    let head: Option<String> = on_tx!(tx, |db| {
        sqlx::query_scalar(query).bind(claim.repo.0).bind(claim.subject.to_string()).fetch_optional(db).await?
    });
    head.as_deref().map(word).transpose()
}

async fn latest_of_head(tx: &mut Transaction, claim: &ReviewClaim<'_>) -> Result<Option<OwnRow>, StoreError> {
    let query = "SELECT id, state, lease_owner, lease_until, full_requested, attempts FROM review_runs
        WHERE repo_id = $1 AND subject = $2 AND base_sha = $3 AND head_sha = $4 ORDER BY id DESC LIMIT 1";
    Ok(on_tx!(tx, |db| {
        let query = sqlx::query_as(query).bind(claim.repo.0).bind(claim.subject.to_string());
        query.bind(claim.base.as_str()).bind(claim.head.as_str()).fetch_optional(db).await?
    }))
}

/// Returns the last requested run of another base or head, if it was requested after the claim; for equal times, if
/// it began after the claim's own run.
async fn newer_than(
    tx: &mut Transaction,
    claim: &ReviewClaim<'_>,
    own: Option<&OwnRow>,
) -> Result<Option<i64>, StoreError> {
    let query =
        "SELECT id FROM review_runs WHERE repo_id = $1 AND subject = $2 AND NOT (base_sha = $3 AND head_sha = $4)
        AND state IN ('pending', 'running', 'completed') AND (asked_at > $5 OR (asked_at = $5 AND id > $6))
        ORDER BY asked_at DESC, id DESC LIMIT 1";
    Ok(on_tx!(tx, |db| {
        let query = sqlx::query_scalar(query).bind(claim.repo.0).bind(claim.subject.to_string());
        let query = query.bind(claim.base.as_str()).bind(claim.head.as_str()).bind(micros(claim.asked_at));
        query.bind(own.map_or(i64::MAX, |own| own.id)).fetch_optional(db).await?
    }))
}

/// Whether an unfinished or completed run began after this one.
async fn has_later(tx: &mut Transaction, claim: &ReviewClaim<'_>, after: i64) -> Result<bool, StoreError> {
    let query = "SELECT EXISTS (SELECT 1 FROM review_runs WHERE repo_id = $1 AND subject = $2 AND id > $3
        AND state IN ('pending', 'running', 'completed'))";
    Ok(on_tx!(tx, |db| {
        let query = sqlx::query_scalar(query).bind(claim.repo.0).bind(claim.subject.to_string()).bind(after);
        query.fetch_one(db).await?
    }))
}

async fn note_asked(tx: &mut Transaction, run: i64, claim: &ReviewClaim<'_>) -> Result<(), StoreError> {
    let asked = "UPDATE review_runs SET asked_at = $2 WHERE id = $1 AND asked_at < $2";
    // The same two commits are the same change, whatever the name of the branch.
    let branch = "UPDATE review_runs SET base_branch = $2 WHERE id = $1";
    on_tx!(tx, |db| {
        sqlx::query(asked).bind(run).bind(micros(claim.asked_at)).execute(&mut *db).await?;
        if let Some(name) = claim.base_branch {
            sqlx::query(branch).bind(run).bind(storable(name)).execute(db).await?;
        }
    });
    Ok(())
}

async fn go_on(
    tx: &mut Transaction,
    claim: &ReviewClaim<'_>,
    id: i64,
    attempts: i64,
    full: bool,
) -> Result<(), StoreError> {
    let update = "UPDATE review_runs SET state = 'running', lease_owner = $2, lease_until = $3, attempts = $4,
        full_requested = $5 WHERE id = $1";
    on_tx!(tx, |db| {
        let query = sqlx::query(update).bind(id).bind(claim.owner).bind(micros(claim.until));
        query.bind(attempts).bind(full).execute(db).await?;
    });
    Ok(())
}

async fn begin(
    tx: &mut Transaction,
    claim: &ReviewClaim<'_>,
    attempts: i64,
    now: Timestamp,
) -> Result<i64, StoreError> {
    let supersede = "UPDATE review_runs SET state = 'superseded', finished_at = $3
        WHERE repo_id = $1 AND subject = $2 AND state IN ('pending', 'running')";
    let insert = "INSERT INTO review_runs (repo_id, subject, base_sha, head_sha, state, lease_owner, lease_until, requested, full_requested, attempts, asked_at, created_at, base_branch)
        VALUES ($1, $2, $3, $4, 'running', $5, $6, $7, $8, $9, $10, $11, $12) RETURNING id";
    let subject = claim.subject.to_string();
    Ok(on_tx!(tx, |db| {
        sqlx::query(supersede).bind(claim.repo.0).bind(&subject).bind(micros(now)).execute(&mut *db).await?;
        sqlx::query_scalar(insert)
            .bind(claim.repo.0)
            .bind(&subject)
            .bind(claim.base.as_str())
            .bind(claim.head.as_str())
            .bind(claim.owner)
            .bind(micros(claim.until))
            .bind(claim.requested)
            .bind(claim.full)
            .bind(attempts)
            .bind(micros(claim.asked_at))
            .bind(micros(now))
            .bind(claim.base_branch.map(storable))
            .fetch_one(db)
            .await?
    }))
}

#[derive(sqlx::FromRow)]
struct CompletedRow {
    id: i64,
    base_sha: String,
    base_branch: Option<String>,
    head_sha: String,
    lease_owner: Option<String>,
}

from_row! {
    StoredRun {
        id, subject, base: "base_sha", head: "head_sha", state, requested, full: "full_requested", attempts, error,
        created_at, finished_at,
    }
}
