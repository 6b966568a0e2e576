//! Sampled verdicts that people confirm or refute.

use canonry_boxed::boxed;
use std::collections::{BTreeMap, HashSet};

use canonry_domain::{
    AdjudicatedAnswer, AdjudicationCase, CountedAnswers, ItemNumber, ItemType, Login, Similarity, Verdict,
    adjudication_sample,
};
use jiff::Timestamp;
use sqlx::QueryBuilder;
use sqlx::types::Json;

use crate::corpus::repos::RepoId;
use crate::duplicates::judge_decisions::DecidedCandidate;
use crate::engine::facets::JudgeStore;
use crate::engine::ids::store_id;
use crate::engine::row_values::{micros, number, similarity, word};
use crate::engine::rows::{Read, StoreRow, from_row, read_row, unwrap_all};
use crate::engine::transaction::{StoreError, Transaction, on_pool, on_tx};

/// How many of the newest verdicts a sample is drawn from: older ones say little about Canonry today, and a page must
/// not wait for all of them.
const NEWEST: i64 = 5_000;

/// The kind of verdict that a sample is drawn from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AdjudicationKind {
    Triage,
    Edge,
    /// What a backtest would have said.
    Backtest,
}

impl AdjudicationKind {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Triage => "triage",
            Self::Edge => "edge",
            Self::Backtest => "backtest",
        }
    }
}

/// Selects sampled verdicts. It does not contain Canonry's verdict, so that people do not see it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AdjudicationFilter {
    pub seed: Option<i64>,
    pub kind: Option<AdjudicationKind>,
}

store_id! {
    /// The store's own key of a sampled verdict.
    AdjudicationId
}

#[derive(Debug, Clone, PartialEq)]
pub struct Adjudication {
    pub id: AdjudicationId,
    pub case: AdjudicationCase,
    pub kind: AdjudicationKind,
    pub seed: i64,
    pub drawn_at: Timestamp,
    /// A person's answer; `None` while there is none.
    pub answer: Option<CaseAnswer>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaseAnswer {
    pub word: AdjudicatedAnswer,
    /// `None` for the operator of the console, who has no account.
    pub by: Option<Login>,
    pub at: Timestamp,
}

/// A sample, and how many of its cases are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampleProgress {
    pub seed: i64,
    pub drawn_at: Timestamp,
    pub cases: u64,
    pub answered: u64,
    /// The newest case of the sample; the next page of samples starts after it.
    pub newest: AdjudicationId,
}

macro_rules! adjudications {
    ($rest:literal) => {
        concat!(
            "SELECT id, item_type, number, triage_id, decision_id, seed, drawn_at, verdict, score, target, word, by_login, at
            FROM adjudications WHERE repo_id = $1 AND ",
            $rest
        )
    };
}

#[boxed]
impl JudgeStore<'_> {
    /// Draws verdicts for people to check, and returns the number of new ones.
    ///
    /// The sample depends on the seed and on the verdicts to draw from: drawing it again adds nothing, and a larger
    /// size only adds cases. Verdicts in another sample are skipped, so that nobody is asked twice.
    pub async fn draw_adjudications(
        self,
        repo: RepoId,
        kind: AdjudicationKind,
        seed: i64,
        size: usize,
        now: Timestamp,
    ) -> Result<u64, StoreError> {
        let mut tx = self.pool.begin().await?;
        tx.lock_items_of(repo).await?;
        let (drawn, elsewhere) = drawn_before(&mut tx, repo, kind, seed).await?;
        let mut drawable = match kind {
            AdjudicationKind::Triage => triaged(&mut tx, repo).await?,
            AdjudicationKind::Edge => accepted(&mut tx, repo).await?,
            AdjudicationKind::Backtest => Vec::new(),
        };
        drawable.retain(|(key, _)| !elsewhere.contains(key));
        let cases: Vec<AdjudicationCase> = drawable.iter().map(|(_, case)| *case).collect();
        let sample = adjudication_sample(&cases, seed, size);
        let fresh: Vec<&(i64, AdjudicationCase)> =
            sample.into_iter().map(|index| &drawable[index]).filter(|(key, _)| !drawn.contains(key)).collect();
        for batch in fresh.chunks(ROWS_PER_STATEMENT) {
            on_tx!(&mut tx, |db| {
                let mut query = QueryBuilder::new(
                    "INSERT INTO adjudications (repo_id, item_type, number, triage_id, decision_id, seed, drawn_at, \
                    verdict, score, target) ",
                );
                query.push_values(batch, |mut row, (key, case)| {
                    let (triage, decision) = match kind {
                        AdjudicationKind::Triage => (Some(*key), None),
                        AdjudicationKind::Edge => (None, Some(*key)),
                        AdjudicationKind::Backtest => (None, None),
                    };
                    row.push_bind(repo.0)
                        .push_bind(case.item_type.as_str())
                        .push_bind(case.number.get())
                        .push_bind(triage)
                        .push_bind(decision)
                        .push_bind(seed)
                        .push_bind(micros(now))
                        .push_bind(case.verdict.as_str())
                        .push_bind(case.score.map(Similarity::get))
                        .push_bind(case.target.get());
                });
                query.build().execute(db).await?;
            });
        }
        tx.commit().await?;
        Ok(fresh.len() as u64)
    }

    /// Returns the next case without an answer, after a case that was skipped; `None` if none is left after it.
    pub async fn next_adjudication(
        self,
        repo: RepoId,
        after: Option<AdjudicationId>,
    ) -> Result<Option<Adjudication>, StoreError> {
        self.next_adjudication_of(repo, AdjudicationFilter::default(), after).await
    }

    /// The same for the cases that pass a filter.
    pub async fn next_adjudication_of(
        self,
        repo: RepoId,
        filter: AdjudicationFilter,
        after: Option<AdjudicationId>,
    ) -> Result<Option<Adjudication>, StoreError> {
        let query = adjudications!(
            "word IS NULL AND id > $2 AND ($3 IS NULL OR seed = $3) AND ($4 IS NULL OR $4 =
                CASE WHEN triage_id IS NOT NULL THEN 'triage' WHEN decision_id IS NOT NULL THEN 'edge' ELSE 'backtest' END)
            ORDER BY id LIMIT 1"
        );
        Ok(on_pool!(self.pool, |db| {
            sqlx::query_as(query)
                .bind(repo.0)
                .bind(after.map_or(0, AdjudicationId::get))
                .bind(filter.seed)
                .bind(filter.kind.map(AdjudicationKind::as_str))
                .fetch_optional(db)
                .await?
        }))
    }

    /// Adds what a backtest would have said, for people to read, and returns the number of new cases. A pair is added
    /// once, whatever is said about it later.
    pub async fn add_backtest_cases(
        self,
        repo: RepoId,
        seed: i64,
        cases: &[AdjudicationCase],
        now: Timestamp,
    ) -> Result<u64, StoreError> {
        let mut tx = self.pool.begin().await?;
        let mut added = 0;
        for batch in cases.chunks(ROWS_PER_STATEMENT) {
            added += on_tx!(&mut tx, |db| {
                let mut query = QueryBuilder::new(
                    "INSERT INTO adjudications (repo_id, item_type, number, seed, drawn_at, verdict, score, target) ",
                );
                query.push_values(batch, |mut row, case| {
                    row.push_bind(repo.0)
                        .push_bind(case.item_type.as_str())
                        .push_bind(case.number.get())
                        .push_bind(seed)
                        .push_bind(micros(now))
                        .push_bind(case.verdict.as_str())
                        .push_bind(case.score.map(Similarity::get))
                        .push_bind(case.target.get());
                });
                query.push(" ON CONFLICT DO NOTHING");
                query.build().execute(db).await?.rows_affected()
            });
        }
        tx.commit().await?;
        Ok(added)
    }

    /// Returns the oldest cases without an answer.
    pub async fn waiting_adjudications(self, repo: RepoId) -> Result<Vec<Adjudication>, StoreError> {
        let query = adjudications!("word IS NULL ORDER BY id LIMIT $2");
        Ok(on_pool!(self.pool, |db| sqlx::query_as(query).bind(repo.0).bind(NEWEST).fetch_all(db).await?))
    }

    pub async fn adjudication(self, repo: RepoId, id: AdjudicationId) -> Result<Option<Adjudication>, StoreError> {
        let query = adjudications!("id = $2");
        Ok(on_pool!(self.pool, |db| sqlx::query_as(query).bind(repo.0).bind(id.0).fetch_optional(db).await?))
    }

    /// Stores a person's answer about a case. The same person may change the answer. `false` if the case does not
    /// exist or another person answered it.
    pub async fn adjudicate(
        self,
        repo: RepoId,
        id: AdjudicationId,
        word: AdjudicatedAnswer,
        by: Option<&Login>,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let update = "UPDATE adjudications SET word = $3, by_login = $4, at = $5
            WHERE repo_id = $1 AND id = $2 AND (word IS NULL OR COALESCE(by_login, '') = COALESCE($4, ''))";
        let updated = on_pool!(self.pool, |db| {
            sqlx::query(update)
                .bind(repo.0)
                .bind(id.0)
                .bind(word.as_str())
                .bind(by.map(Login::as_str))
                .bind(micros(now))
                .execute(db)
                .await?
                .rows_affected()
        });
        Ok(updated == 1)
    }

    /// Returns the pairs of items that people called the same or different, with the last answer about each.
    pub async fn adjudicated_pairs(
        self,
        repo: RepoId,
    ) -> Result<BTreeMap<(ItemType, ItemNumber, ItemNumber), bool>, StoreError> {
        let query = "SELECT item_type, number, target, word = 'same' FROM adjudications
            WHERE repo_id = $1 AND word IN ('same', 'different') AND target IS NOT NULL ORDER BY at, id";
        let rows: Vec<Read<(ItemType, ItemNumber, ItemNumber, bool)>> =
            on_pool!(self.pool, |db| sqlx::query_as(query).bind(repo.0).fetch_all(db).await?);
        Ok(rows
            .into_iter()
            .map(|Read((item_type, source, target, same))| ((item_type, source, target), same))
            .collect())
    }

    /// Counts the answers of a repository by verdict, score and answer.
    pub async fn adjudication_totals(self, repo: RepoId) -> Result<Vec<CountedAnswers>, StoreError> {
        let query = "SELECT verdict, score, word, count(*) AS times FROM adjudications WHERE repo_id = $1
            GROUP BY verdict, score, word ORDER BY verdict, score, word";
        Ok(unwrap_all(on_pool!(self.pool, |db| sqlx::query_as(query).bind(repo.0).fetch_all(db).await?)))
    }

    /// Returns the samples of a repository, latest first, after the one whose newest case is `before`.
    pub async fn adjudication_samples(
        self,
        repo: RepoId,
        before: Option<AdjudicationId>,
        limit: u32,
    ) -> Result<Vec<SampleProgress>, StoreError> {
        let query =
            "SELECT seed, min(drawn_at) AS drawn_at, count(*) AS cases, count(word) AS answered, max(id) AS newest
            FROM adjudications WHERE repo_id = $1
            GROUP BY seed HAVING max(id) < $3 ORDER BY max(id) DESC LIMIT $2";
        Ok(on_pool!(self.pool, |db| {
            let query = sqlx::query_as(query).bind(repo.0).bind(i64::from(limit));
            query.bind(before.map_or(i64::MAX, AdjudicationId::get)).fetch_all(db).await?
        }))
    }
}

/// 10 columns a row; SQLite accepts at most 32,766 values in a statement.
const ROWS_PER_STATEMENT: usize = 1_000;

/// Returns the keys of records or decisions that were already drawn: in this sample, and in others.
async fn drawn_before(
    tx: &mut Transaction,
    repo: RepoId,
    kind: AdjudicationKind,
    seed: i64,
) -> Result<(HashSet<i64>, HashSet<i64>), StoreError> {
    let query = match kind {
        AdjudicationKind::Triage => {
            "SELECT triage_id, seed FROM adjudications WHERE repo_id = $1 AND triage_id IS NOT NULL"
        }
        AdjudicationKind::Edge => {
            "SELECT decision_id, seed FROM adjudications WHERE repo_id = $1 AND decision_id IS NOT NULL"
        }
        AdjudicationKind::Backtest => return Ok(Default::default()),
    };
    let rows: Vec<(i64, i64)> = on_tx!(tx, |db| sqlx::query_as(query).bind(repo.0).fetch_all(db).await?);
    let (here, elsewhere): (Vec<_>, Vec<_>) = rows.into_iter().partition(|(_, of)| *of == seed);
    let keys = |rows: Vec<(i64, i64)>| rows.into_iter().map(|(key, _)| key).collect();
    Ok((keys(here), keys(elsewhere)))
}

type TriagedRow = (i64, String, i64, String, Option<i64>, Option<f64>, Option<i64>, Option<f64>);

/// Returns the newest verdict about each item that has a target, or whose nearest neighbour could have been one.
async fn triaged(tx: &mut Transaction, repo: RepoId) -> Result<Vec<(i64, AdjudicationCase)>, StoreError> {
    let query = "SELECT d.id, i.type, i.number, d.verdict, t.number, d.target_score, n.number, c.score
        FROM (SELECT id, item_id, verdict, target_item_id, target_score FROM triage_records
            WHERE repo_id = $1 AND reason <> 'override' ORDER BY id DESC LIMIT $2) d
        JOIN items i ON i.id = d.item_id LEFT JOIN items t ON t.id = d.target_item_id
        LEFT JOIN triage_candidates c ON c.triage_id = d.id AND c.rank = 1 LEFT JOIN items n ON n.id = c.item_id
        WHERE i.gone IS NULL ORDER BY d.id";
    let rows: Vec<TriagedRow> = on_tx!(tx, |db| sqlx::query_as(query).bind(repo.0).bind(NEWEST).fetch_all(db).await?);
    let mut newest: BTreeMap<(String, i64), (i64, AdjudicationCase)> = BTreeMap::new();
    for (id, item_type, of, verdict, target, target_score, nearest, nearest_score) in rows {
        let verdict: Verdict = word(&verdict)?;
        let (target, score) = match (verdict, target) {
            (Verdict::NotDuplicate, _) => (nearest, nearest_score),
            (_, target) => (target, target_score),
        };
        let Some(target) = target else { continue };
        let case = AdjudicationCase {
            item_type: word(&item_type)?,
            number: number(of)?,
            verdict,
            target: number(target)?,
            score: score.map(similarity).transpose()?,
        };
        newest.insert((item_type, of), (id, case));
    }
    Ok(newest.into_values().collect())
}

type AcceptedRow = (i64, String, i64, i64, Json<Vec<DecidedCandidate>>);

/// Returns the newest edges in force that a judge accepted.
async fn accepted(tx: &mut Transaction, repo: RepoId) -> Result<Vec<(i64, AdjudicationCase)>, StoreError> {
    let query = "SELECT d.id, i.type, i.number, t.number, d.candidates FROM judge_decisions d
        JOIN items i ON i.id = d.item_id JOIN items t ON t.id = d.target_item_id
        WHERE d.repo_id = $1 AND d.status = 'accepted' AND d.superseded_at IS NULL AND d.origin <> 'override'
            AND i.gone IS NULL ORDER BY d.id DESC LIMIT $2";
    let rows: Vec<AcceptedRow> = on_tx!(tx, |db| sqlx::query_as(query).bind(repo.0).bind(NEWEST).fetch_all(db).await?);
    rows.into_iter()
        .map(|(id, item_type, of, target, Json(candidates))| {
            let (item_type, target): (ItemType, ItemNumber) = (word(&item_type)?, number(target)?);
            let score = candidates.iter().find(|candidate| candidate.number == target).map(|found| found.score);
            Ok((id, AdjudicationCase { item_type, number: number(of)?, verdict: Verdict::Duplicate, target, score }))
        })
        .collect()
}

from_row!(Adjudication { id, case: flatten, kind: (read_kind), seed, drawn_at, answer: (read_answer) });
from_row!(SampleProgress { seed, drawn_at, cases, answered, newest });
read_row!(AdjudicationCase { item_type, number, verdict, target, score });
read_row!(CountedAnswers { verdict, score, word, times });

fn read_kind(row: &impl StoreRow) -> Result<AdjudicationKind, sqlx::Error> {
    let (triage, decision): (Option<i64>, Option<i64>) = (row.column("triage_id")?, row.column("decision_id")?);
    Ok(match (triage, decision) {
        (Some(_), _) => AdjudicationKind::Triage,
        (None, Some(_)) => AdjudicationKind::Edge,
        (None, None) => AdjudicationKind::Backtest,
    })
}

fn read_answer(row: &impl StoreRow) -> Result<Option<CaseAnswer>, sqlx::Error> {
    let (word, by): (Option<AdjudicatedAnswer>, _) = (row.column("word")?, row.column("by_login")?);
    Ok(word.zip(row.column("at")?).map(|(word, at)| CaseAnswer { word, by, at }))
}
