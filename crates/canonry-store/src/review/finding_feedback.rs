//! People's reactions to findings: stored once, pooled by pattern, cleared by maintainers.

use canonry_boxed::boxed;
use std::collections::{BTreeMap, BTreeSet};

use canonry_domain::review::{Finding, Fingerprint, PatternFeedback, PatternKey, ReviewSubject, Vote, pool_votes};
use canonry_domain::{GithubId, ItemNumber, Login};
use jiff::Timestamp;
use sqlx::QueryBuilder;
use sqlx::types::Json;

use crate::corpus::items::NUMBERS_PER_STATEMENT;
use crate::corpus::repos::{Repo, RepoId};
use crate::engine::facets::FindingStore;
use crate::engine::lists::PushList as _;
use crate::engine::row_values::{beginning, micros, moment, optional_moment, word};
use crate::engine::rows::{Keyed, from_row};
use crate::engine::transaction::{StoreError, Transaction, on_pool, on_tx};
use crate::review::runs::FindingId;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewReaction<'a> {
    pub repo: RepoId,
    pub reaction: GithubId,
    pub finding: FindingId,
    pub by: &'a Login,
    pub up: bool,
    pub at: Timestamp,
    /// Whether it counts for the pattern; an author's reaction on their own pull request does not.
    pub teaches: bool,
}

/// A finding with one or more posted comments that people may react to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FindingAwaitingReactions {
    pub repo: Repo,
    pub number: ItemNumber,
    pub finding: FindingId,
    /// All of its comments, oldest first.
    pub comments: Vec<GithubId>,
    /// When the reactions to all of its comments were last fetched.
    pub heard_at: Option<Timestamp>,
}

/// The feedback of people on a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredPattern {
    pub key: PatternKey,
    pub fingerprint: Fingerprint,
    pub title: String,
    pub feedback: PatternFeedback,
    /// Whether any finding of the pattern was ever one that feedback must not hide.
    pub protected: bool,
}

#[boxed]
impl FindingStore<'_> {
    /// Stores a reaction once per id, and returns whether it was new. A reaction that was removed and is there again
    /// counts again, and `teaches` is updated to its last value. Only pull requests have comments to react to: for a
    /// finding of a branch, or an unknown finding, nothing is stored.
    pub async fn record_reaction(self, reaction: &NewReaction<'_>) -> Result<bool, StoreError> {
        let about = "SELECT subject, key FROM findings WHERE id = $1 AND repo_id = $2";
        let insert =
            "INSERT INTO feedback_reactions (repo_id, reaction_id, subject, finding_id, key, by_login, up, at, teaches)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (repo_id, reaction_id) DO NOTHING";
        let again = "UPDATE feedback_reactions SET removed_at = NULL, teaches = $3
            WHERE repo_id = $1 AND reaction_id = $2 AND (removed_at IS NOT NULL OR teaches <> $3)";
        let mut tx = self.pool.begin().await?;
        tx.lock_items_of(reaction.repo).await?;
        let about: Option<(String, String)> = on_tx!(&mut tx, |db| {
            sqlx::query_as(about).bind(reaction.finding.0).bind(reaction.repo.0).fetch_optional(db).await?
        });
        let Some((subject, key)) = about else { return Ok(false) };
        if word::<ReviewSubject>(&subject)?.pull().is_none() {
            return Ok(false);
        }
        let is_new = on_tx!(&mut tx, |db| {
            let kept = sqlx::query(insert)
                .bind(reaction.repo.0)
                .bind(reaction.reaction.0)
                .bind(subject)
                .bind(reaction.finding.0)
                .bind(key)
                .bind(reaction.by.as_str())
                .bind(reaction.up)
                .bind(micros(reaction.at))
                .bind(reaction.teaches)
                .execute(&mut *db)
                .await?
                .rows_affected();
            if kept == 0 {
                let query = sqlx::query(again).bind(reaction.repo.0).bind(reaction.reaction.0);
                query.bind(reaction.teaches).execute(db).await?;
            }
            kept == 1
        });
        tx.commit().await?;
        Ok(is_new)
    }

    /// Returns the findings with a comment posted since then, of all pull requests or of one, with all their
    /// comments: first those whose reactions were never fetched, then by the oldest fetch.
    pub async fn due_for_reactions(
        self,
        since: Timestamp,
        pull: Option<(RepoId, ItemNumber)>,
    ) -> Result<Vec<FindingAwaitingReactions>, StoreError> {
        let query = "SELECT p.repo_id, r.github_id, r.name, p.number, p.finding_id, p.comment_id AS key, p.heard_at
            FROM posted_findings p JOIN repos r ON r.id = p.repo_id
            WHERE p.finding_id IN (SELECT n.finding_id FROM posted_findings n WHERE n.posted_at >= $1)
                AND ($2 IS NULL OR (p.repo_id = $2 AND p.number = $3))
            ORDER BY p.id";
        let (of_repo, of_number) = pull.map(|(repo, number)| (repo.0, number.get())).unzip();
        let rows: Vec<Keyed<GithubId, FindingAwaitingReactions>> = on_pool!(self.pool, |db| {
            let query = sqlx::query_as(query).bind(micros(since)).bind(of_repo).bind(of_number);
            query.fetch_all(db).await?
        });
        let mut findings: BTreeMap<FindingId, FindingAwaitingReactions> = BTreeMap::new();
        for Keyed(comment, row) in rows {
            // While the reactions to one comment are not fetched, the feedback is not known.
            let known = findings.entry(row.finding).or_insert_with(|| row.clone());
            known.heard_at = known.heard_at.min(row.heard_at);
            known.comments.push(comment);
        }
        let mut findings: Vec<FindingAwaitingReactions> = findings.into_values().collect();
        findings.sort_by_key(|one| one.heard_at);
        Ok(findings)
    }

    /// Records that the reactions to all comments of a finding were fetched.
    pub async fn mark_reactions_fetched(self, finding: FindingId, now: Timestamp) -> Result<(), StoreError> {
        let update = "UPDATE posted_findings SET heard_at = $2 WHERE finding_id = $1";
        on_pool!(self.pool, |db| {
            sqlx::query(update).bind(finding.0).bind(micros(now)).execute(db).await?;
        });
        Ok(())
    }

    /// Marks the reactions to a finding that are not in `present` as removed, and returns how many.
    pub async fn remove_reactions_except(
        self,
        finding: FindingId,
        present: &[GithubId],
        now: Timestamp,
    ) -> Result<u64, StoreError> {
        let kept = "SELECT reaction_id FROM feedback_reactions WHERE finding_id = $1 AND removed_at IS NULL";
        let present: BTreeSet<i64> = present.iter().map(|id| id.0).collect();
        let mut tx = self.pool.begin().await?;
        let mut gone: Vec<i64> = on_tx!(&mut tx, |db| sqlx::query_scalar(kept).bind(finding.0).fetch_all(db).await?);
        gone.retain(|id| !present.contains(id));
        let mut removed = 0;
        for batch in gone.chunks(NUMBERS_PER_STATEMENT) {
            removed += on_tx!(&mut tx, |db| {
                let mut query = QueryBuilder::new("UPDATE feedback_reactions SET removed_at = ");
                query.push_bind(micros(now)).push(" WHERE finding_id = ").push_bind(finding.0);
                query.push(" AND removed_at IS NULL AND reaction_id IN (");
                query.push_list(batch.iter().copied());
                query.build().execute(db).await?.rows_affected()
            });
        }
        tx.commit().await?;
        Ok(removed)
    }

    /// Returns the feedback on each pattern of a repository that has counting votes, ordered by key.
    pub async fn pattern_feedback(self, repo: RepoId) -> Result<Vec<StoredPattern>, StoreError> {
        let mut tx = self.pool.begin_reading().await?;
        let pooled = pooled(&mut tx, repo, None).await?;
        let mut patterns = Vec::with_capacity(pooled.len());
        for (key, feedback) in pooled {
            let described = describe(&mut tx, repo, &key).await?;
            patterns.push(described.pattern(PatternKey::stored(key), feedback));
        }
        tx.commit().await?;
        Ok(patterns)
    }

    /// Clears the feedback on a pattern, or on all: only later reactions count. Returns how many patterns had
    /// counting votes before.
    pub async fn clear_feedback(
        self,
        repo: RepoId,
        pattern: Option<&Fingerprint>,
        by: &Login,
        now: Timestamp,
    ) -> Result<u64, StoreError> {
        let keys = "SELECT key FROM findings WHERE repo_id = $1 AND fingerprint = $2
            UNION SELECT r.key FROM findings f JOIN feedback_reactions r ON r.finding_id = f.id
            WHERE f.repo_id = $1 AND f.fingerprint = $2";
        let insert = "INSERT INTO feedback_clears (repo_id, key, by_login, at) VALUES ($1, $2, $3, $4)";
        let mut tx = self.pool.begin().await?;
        tx.lock_items_of(repo).await?;
        let pooled = pooled(&mut tx, repo, None).await?;
        let (cleared, count) = match pattern {
            None => (vec![None], pooled.len()),
            Some(pattern) => {
                let keys: Vec<String> = on_tx!(&mut tx, |db| {
                    sqlx::query_scalar(keys).bind(repo.0).bind(pattern.as_str()).fetch_all(db).await?
                });
                let counted = keys.iter().filter(|key| pooled.contains_key(*key)).count();
                (keys.into_iter().map(Some).collect(), counted)
            }
        };
        for key in cleared {
            on_tx!(&mut tx, |db| {
                let query = sqlx::query(insert).bind(repo.0).bind(key).bind(by.as_str()).bind(micros(now));
                query.execute(db).await?;
            });
        }
        tx.commit().await?;
        u64::try_from(count).map_err(StoreError::damaged)
    }

    /// Undoes a clear: the one with this id, or the newest in force. The cleared votes count again, unless another
    /// clear covers them. `None` if there was nothing to undo. A request made at `asked_at` that is processed twice
    /// undoes only one clear.
    pub async fn undo_feedback_clear(
        self,
        repo: RepoId,
        id: Option<i64>,
        by: &Login,
        asked_at: Timestamp,
        now: Timestamp,
    ) -> Result<Option<UndoneClear>, StoreError> {
        let heard = "SELECT EXISTS (SELECT 1 FROM feedback_clears
            WHERE repo_id = $1 AND undone_by = $2 AND undone_at >= $3)";
        let find = "SELECT at, by_login FROM feedback_clears WHERE repo_id = $1 AND undone_at IS NULL
            AND ($2 IS NULL OR id = $2) ORDER BY id DESC LIMIT 1";
        // One pattern may have several keys, which were cleared together.
        let undo = "UPDATE feedback_clears SET undone_at = $4, undone_by = $5
            WHERE repo_id = $1 AND at = $2 AND by_login = $3 AND undone_at IS NULL";
        let mut tx = self.pool.begin().await?;
        tx.lock_items_of(repo).await?;
        if id.is_none() {
            let heard: bool = on_tx!(&mut tx, |db| {
                sqlx::query_scalar(heard).bind(repo.0).bind(by.as_str()).bind(micros(asked_at)).fetch_one(db).await?
            });
            if heard {
                return Ok(None);
            }
        }
        let found: Option<(i64, String)> =
            on_tx!(&mut tx, |db| sqlx::query_as(find).bind(repo.0).bind(id).fetch_optional(db).await?);
        let Some((cleared_at, cleared_by)) = found else { return Ok(None) };
        let before = pooled(&mut tx, repo, None).await?.len();
        on_tx!(&mut tx, |db| {
            let query = sqlx::query(undo).bind(repo.0).bind(cleared_at).bind(&cleared_by);
            query.bind(micros(now)).bind(by.as_str()).execute(db).await?;
        });
        let after = pooled(&mut tx, repo, None).await?.len();
        tx.commit().await?;
        Ok(Some(UndoneClear {
            at: moment(cleared_at)?,
            by: word(&cleared_by)?,
            patterns: after.saturating_sub(before) as u64,
        }))
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndoneClear {
    pub at: Timestamp,
    pub by: Login,
    pub patterns: u64,
}

from_row!(FindingAwaitingReactions { repo: flatten, number, finding: "finding_id", comments: default, heard_at });

/// Returns the counting votes, of all patterns or of these, pooled by pattern; patterns without votes are skipped.
pub(crate) async fn pooled(
    tx: &mut Transaction,
    repo: RepoId,
    keys: Option<&[String]>,
) -> Result<BTreeMap<String, PatternFeedback>, StoreError> {
    if keys.is_some_and(<[String]>::is_empty) {
        return Ok(BTreeMap::new());
    }
    let clears = "SELECT key, max(at) FROM feedback_clears WHERE repo_id = $1 AND undone_at IS NULL GROUP BY key";
    let rows: Vec<(String, String, String, bool, i64)> = on_tx!(&mut *tx, |db| {
        let mut query =
            QueryBuilder::new("SELECT key, by_login, subject, up, at FROM feedback_reactions WHERE repo_id = ");
        query.push_bind(repo.0).push(" AND teaches AND removed_at IS NULL");
        if let Some(keys) = keys {
            query.push(" AND key IN (");
            query.push_list(keys.iter());
        }
        query.build_query_as().fetch_all(db).await?
    });
    let clears: Vec<(Option<String>, i64)> = on_tx!(tx, |db| sqlx::query_as(clears).bind(repo.0).fetch_all(db).await?);
    let clears: BTreeMap<Option<String>, i64> = clears.into_iter().collect();
    let mut votes: BTreeMap<String, Vec<Vote>> = BTreeMap::new();
    for (key, login, subject, up, at) in rows {
        let Some(pull) = word::<ReviewSubject>(&subject)?.pull() else { continue };
        votes.entry(key).or_default().push(Vote { by: word(&login)?, pull, up, at: moment(at)? });
    }
    let mut pooled = BTreeMap::new();
    for (key, votes) in votes {
        let key = Some(key);
        let cleared = optional_moment(clears.get(&None).max(clears.get(&key)).copied())?;
        let feedback = pool_votes(&votes, cleared);
        if let Some(key) = key.filter(|_| feedback.reactors > 0) {
            pooled.insert(key, feedback);
        }
    }
    Ok(pooled)
}

/// The description of a pattern, without its feedback.
pub(crate) struct Described {
    fingerprint: Fingerprint,
    title: String,
    protected: bool,
}

impl Described {
    pub(crate) fn pattern(self, key: PatternKey, feedback: PatternFeedback) -> StoredPattern {
        StoredPattern { key, fingerprint: self.fingerprint, title: self.title, feedback, protected: self.protected }
    }
}

/// Returns the fingerprint and title of a pattern's latest finding, and whether the pattern is protected.
pub(crate) async fn describe(tx: &mut Transaction, repo: RepoId, key: &str) -> Result<Described, StoreError> {
    let latest = "SELECT fingerprint, latest FROM findings
        WHERE repo_id = $1 AND substr(key, 1, 200) = $3 AND key || '' = $2 ORDER BY id DESC LIMIT 1";
    let protected = "SELECT EXISTS (SELECT 1 FROM findings
        WHERE repo_id = $1 AND substr(key, 1, 200) = $3 AND key || '' = $2 AND protected)";
    // The key of a finding may have changed since the reaction.
    let reacted = "SELECT f.fingerprint, f.latest FROM feedback_reactions r JOIN findings f ON f.id = r.finding_id
        WHERE r.repo_id = $1 AND r.key = $2 ORDER BY f.id DESC LIMIT 1";
    type Row = (String, Json<Finding>);
    on_tx!(tx, |db| {
        let mut row: Option<Row> =
            sqlx::query_as(latest).bind(repo.0).bind(key).bind(beginning(key)).fetch_optional(&mut *db).await?;
        if row.is_none() {
            row = sqlx::query_as(reacted).bind(repo.0).bind(key).fetch_optional(&mut *db).await?;
        }
        let protected: bool =
            sqlx::query_scalar(protected).bind(repo.0).bind(key).bind(beginning(key)).fetch_one(db).await?;
        let (fingerprint, Json(finding)) =
            row.ok_or_else(|| StoreError::Damaged(format!("the pattern {key:?} has no finding")))?;
        Ok(Described { fingerprint: word(&fingerprint)?, title: finding.title, protected })
    })
}
