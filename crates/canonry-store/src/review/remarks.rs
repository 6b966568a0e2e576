//! Comments of other reviewers on changes, and the records of bots that follow from them.

use canonry_boxed::boxed;
use std::collections::{BTreeMap, BTreeSet};

use canonry_domain::review::{BotRecord, RepoPath, ReviewRemark, ReviewSubject, remark_outcome};
use canonry_domain::{GithubId, Login, Share};
use jiff::Timestamp;

use crate::corpus::repos::RepoId;
use crate::engine::facets::FindingStore;
use crate::engine::row_values::{count, micros};
use crate::engine::rows::from_row;
use crate::engine::transaction::{StoreError, on_pool, on_tx};
use crate::review::runs::FindingId;

/// A remark and what it is a witness of.
#[derive(Debug, Clone, Copy)]
pub struct WitnessedRemark<'a> {
    pub remark: &'a ReviewRemark,
    /// Canonry's own finding of the same problem.
    pub finding: Option<FindingId>,
    /// How many others name the same problem.
    pub agreeing: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredRemark {
    pub comment: GithubId,
    pub author: Login,
    pub is_bot: bool,
    pub path: RepoPath,
    pub link: Option<String>,
    pub said_at: Option<Timestamp>,
}

from_row!(StoredRemark { comment: "comment_id", author, is_bot, path, link, said_at });

#[boxed]
impl FindingStore<'_> {
    /// Records the remarks on a subject as they are now. A repeated call changes nothing.
    ///
    /// `compared` are the findings that the remarks were compared with. A remark that named one of the others, such as a
    /// fixed finding, still does.
    pub async fn record_remarks(
        self,
        repo: RepoId,
        subject: &ReviewSubject,
        remarks: &[WitnessedRemark<'_>],
        compared: &BTreeSet<FindingId>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let upsert = "INSERT INTO remarks (repo_id, subject, comment_id, author, is_bot, path, line, link, said_at,
                finding_id, agreeing, outcome, seen_at)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
            ON CONFLICT (repo_id, comment_id) DO UPDATE SET is_bot = excluded.is_bot, line = excluded.line,
                finding_id = excluded.finding_id, agreeing = excluded.agreeing,
                outcome = excluded.outcome, seen_at = excluded.seen_at";
        let subject = subject.to_string();
        let mut tx = self.pool.begin().await?;
        tx.lock_items_of(repo).await?;
        let named = "SELECT comment_id, finding_id FROM remarks
            WHERE repo_id = $1 AND subject = $2 AND finding_id IS NOT NULL";
        let named: Vec<(i64, i64)> =
            on_tx!(&mut tx, |db| sqlx::query_as(named).bind(repo.0).bind(&subject).fetch_all(db).await?);
        let named: BTreeMap<i64, FindingId> =
            named.into_iter().map(|(comment, finding)| (comment, FindingId(finding))).collect();
        for WitnessedRemark { remark, finding, agreeing } in remarks {
            let before = || named.get(&remark.id.0).copied().filter(|before| !compared.contains(before));
            let finding = finding.or_else(before);
            let outcome = remark_outcome(remark.thread, remark.thumbs);
            on_tx!(&mut tx, |db| {
                let query = sqlx::query(upsert)
                    .bind(repo.0)
                    .bind(&subject)
                    .bind(remark.id.0)
                    .bind(remark.author.login.key())
                    .bind(remark.author.is_bot)
                    .bind(remark.path.as_str())
                    .bind(remark.lines.map(|lines| i64::from(lines.first)))
                    .bind(remark.link.as_deref())
                    .bind(remark.said_at.map(micros))
                    .bind(finding.map(|finding| finding.0))
                    .bind(*agreeing as i64)
                    .bind(outcome.map(|outcome| outcome.as_str()))
                    .bind(micros(now));
                query.execute(db).await?;
            });
        }
        tx.commit().await
    }

    /// The record of each bot in a repository, by login.
    pub async fn bot_records(self, repo: RepoId) -> Result<Vec<BotRecord>, StoreError> {
        let query = "SELECT author, outcome, agreeing > 0, count(*) FROM remarks WHERE repo_id = $1 AND is_bot
            GROUP BY author, outcome, agreeing > 0";
        let rows: Vec<(String, Option<String>, bool, i64)> =
            on_pool!(self.pool, |db| sqlx::query_as(query).bind(repo.0).fetch_all(db).await?);
        let mut records: BTreeMap<String, BotRecord> = BTreeMap::new();
        for (author, outcome, is_agreed, remarks) in rows {
            let login = author.parse().map_err(StoreError::damaged)?;
            let record = records.entry(author).or_insert_with(|| BotRecord {
                login,
                remarks: 0,
                agreed: 0,
                share: Share::default(),
            });
            let remarks = count(remarks)?;
            record.remarks += remarks;
            record.agreed += if is_agreed { remarks } else { 0 };
            match outcome.as_deref() {
                Some("right") => record.share.right += remarks,
                Some(_) => record.share.wrong += remarks,
                None => {}
            }
        }
        Ok(records.into_values().collect())
    }

    /// The remarks that name the same problem as a finding, oldest first.
    pub async fn remarks_of_finding(self, repo: RepoId, finding: FindingId) -> Result<Vec<StoredRemark>, StoreError> {
        let query = "SELECT comment_id, author, is_bot, path, link, said_at FROM remarks
            WHERE finding_id = $1 AND repo_id = $2 ORDER BY comment_id";
        Ok(on_pool!(self.pool, |db| sqlx::query_as(query).bind(finding.0).bind(repo.0).fetch_all(db).await?))
    }
}
