//! Thresholds: a repository's settings for them, their learned values, and their moves.
//!
//! After every transaction the stored value equals a recomputation from the log: every transaction that adds to the
//! log also learns, under the repository's lock.

use canonry_boxed::boxed;
use std::collections::BTreeMap;

use canonry_domain::{
    Component, CountedLessons, CurrentThreshold, LearningEntry, RepoName, ThresholdAdjusted, ThresholdRule,
    ThresholdSettings, ThresholdState, Thresholds, learn_from_counts, learn_thresholds, threshold_adjustments,
};
use jiff::Timestamp;
use sqlx::types::Json;

use crate::corpus::repos::RepoId;
use crate::engine::facets::LearningStore;
use crate::engine::row_values::{count, current_threshold, micros, optional_component, points, probability, word};
use crate::engine::rows::{from_row, read_row};
use crate::engine::transaction::{StoreError, Transaction, on_pool, on_tx};
use crate::learning::issue_outcomes::{derive, issues_with_events};
use crate::learning::rule_changes::LEARNING_RULES;

/// The effects of new data on the thresholds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LearningUpdate {
    /// Events that were not known before.
    pub new_events: u64,
    /// Thresholds that moved far enough to be reported.
    pub adjusted: Vec<ThresholdAdjusted>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct StoredAdjustment {
    /// A list continues from this key.
    pub id: i64,
    pub adjusted: ThresholdAdjusted,
    pub at: Timestamp,
}

/// The stored thresholds and those recomputed from the log, at the same time.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckedThresholds {
    pub stored: Thresholds,
    /// Recomputed from events, records and reactions.
    pub recomputed: Thresholds,
    /// Whether older rules made the stored ones; they are recomputed when the store is next opened for writing.
    pub older_rules: bool,
}

const READ_SETTINGS: &str = "SELECT rule, configured, wanted FROM threshold_settings WHERE repo_id = $1";
const READ_STATE: &str = "SELECT component, state FROM threshold_state WHERE repo_id = $1";
/// The repository's own row has no component; a component's name is never empty.
const REPOSITORY: &str = "";

type SettingsRow = (String, i64, f64);
type StateRow = (String, Json<ThresholdState>);
type LessonsRow = (String, Option<i64>, Option<String>, i64);

#[boxed]
impl LearningStore<'_> {
    /// Returns a repository's settings for its thresholds; the defaults until its configuration was read.
    pub async fn threshold_settings(self, repo: RepoId) -> Result<ThresholdSettings, StoreError> {
        let row: Option<SettingsRow> =
            on_pool!(self.pool, |db| sqlx::query_as(READ_SETTINGS).bind(repo.0).fetch_optional(db).await?);
        read_settings(row)
    }

    /// Stores a repository's settings for its thresholds, and relearns if they changed.
    pub async fn set_threshold_settings(
        self,
        repo: RepoId,
        settings: &ThresholdSettings,
        now: Timestamp,
    ) -> Result<LearningUpdate, StoreError> {
        // Called for each new item, and almost never a change.
        if self.threshold_settings(repo).await? == *settings {
            return Ok(LearningUpdate::default());
        }
        let upsert =
            "INSERT INTO threshold_settings (repo_id, rule, configured, wanted, updated_at) VALUES ($1, $2, $3, $4, $5)
            ON CONFLICT (repo_id) DO UPDATE SET rule = excluded.rule, configured = excluded.configured,
                wanted = excluded.wanted, updated_at = excluded.updated_at";
        let mut tx = self.pool.begin().await?;
        tx.lock_items_of(repo).await?;
        let before = stored_thresholds(&mut tx, repo).await?;
        on_tx!(&mut tx, |db| {
            sqlx::query(upsert)
                .bind(repo.0)
                .bind(settings.rule.as_str())
                .bind(i64::from(settings.configured.get()))
                .bind(settings.wanted.get())
                .bind(micros(now))
                .execute(db)
                .await?;
        });
        let adjusted = learn(&mut tx, repo, &before, now).await?;
        tx.commit().await?;
        log_adjustments(&adjusted);
        Ok(LearningUpdate { new_events: 0, adjusted })
    }

    /// Returns the stored thresholds of a repository and of its components.
    pub async fn thresholds(self, repo: RepoId) -> Result<Thresholds, StoreError> {
        let rows: Vec<StateRow> =
            on_pool!(self.pool, |db| sqlx::query_as(READ_STATE).bind(repo.0).fetch_all(db).await?);
        match read_state(rows)? {
            Some(thresholds) => Ok(thresholds),
            None => Ok(learn_thresholds(&self.threshold_settings(repo).await?, [])),
        }
    }

    /// Recomputes the thresholds from events, records and reactions; stores nothing.
    pub async fn recomputed_thresholds(self, repo: RepoId) -> Result<Thresholds, StoreError> {
        let mut tx = self.pool.begin_reading().await?;
        let recomputed = recomputed(&mut tx, repo).await?;
        tx.rollback().await?;
        Ok(recomputed)
    }

    /// Returns both in one snapshot, so that they can be compared while other processes learn.
    pub async fn checked_thresholds(self, repo: RepoId) -> Result<CheckedThresholds, StoreError> {
        let mut tx = self.pool.begin_reading().await?;
        let stored = stored_thresholds(&mut tx, repo).await?;
        let recomputed = recomputed(&mut tx, repo).await?;
        let rules = "SELECT learned_by FROM repos WHERE id = $1";
        let rules: i64 = on_tx!(&mut tx, |db| sqlx::query_scalar(rules).bind(repo.0).fetch_one(db).await?);
        tx.rollback().await?;
        Ok(CheckedThresholds { stored, recomputed, older_rules: rules < LEARNING_RULES })
    }

    /// Returns the moves of a repository's thresholds, latest first.
    pub async fn threshold_adjustments(self, repo: RepoId, limit: u32) -> Result<Vec<StoredAdjustment>, StoreError> {
        self.threshold_adjustment_pages(repo, None, None, limit).await
    }

    /// Returns one page of the moves of a repository's thresholds, or of one component's, latest first, older than
    /// the one with the key `before`.
    pub async fn threshold_adjustment_pages(
        self,
        repo: RepoId,
        component: Option<&Component>,
        before: Option<i64>,
        limit: u32,
    ) -> Result<Vec<StoredAdjustment>, StoreError> {
        let query =
            "SELECT a.id, r.name, a.component, a.previous_threshold, a.new_threshold, a.alpha, a.beta, a.sample_count,
                a.adjusted_at
            FROM threshold_adjustments a JOIN repos r ON r.id = a.repo_id
            WHERE a.repo_id = $1 AND a.id < $2 AND ($3 IS NULL OR a.component = $3) ORDER BY a.id DESC LIMIT $4";
        Ok(on_pool!(self.pool, |db| {
            let query = sqlx::query_as(query).bind(repo.0).bind(before.unwrap_or(i64::MAX));
            query.bind(component.map(Component::as_str)).bind(i64::from(limit)).fetch_all(db).await?
        }))
    }
}

/// Learns the thresholds from the stored lessons, inside a transaction that has the repository's lock.
pub(crate) async fn relearn_thresholds(
    tx: &mut Transaction,
    repo: RepoId,
    now: Timestamp,
) -> Result<Vec<ThresholdAdjusted>, StoreError> {
    let before = stored_thresholds(tx, repo).await?;
    learn(tx, repo, &before, now).await
}

/// Logs moves after they are stored.
pub(crate) fn log_adjustments(adjusted: &[ThresholdAdjusted]) {
    for adjusted in adjusted {
        tracing::info!(
            event = "threshold_adjusted",
            repo = %adjusted.repo,
            component = adjusted.component.as_ref().map(Component::as_str),
            previous_threshold = %adjusted.previous_threshold,
            new_threshold = %adjusted.new_threshold,
            alpha = adjusted.alpha,
            beta = adjusted.beta,
            sample_count = adjusted.sample_count,
            "a threshold moved"
        );
        if adjusted.new_threshold == CurrentThreshold::Silent {
            tracing::warn!(
                event = "fallen_silent",
                repo = %adjusted.repo,
                component = adjusted.component.as_ref().map(Component::as_str),
                sample_count = adjusted.sample_count,
                "Canonry stopped commenting here: too many of its suggestions were wrong, and it only records; \
                 `canonry thresholds --repo {}` shows why, and a lower triage.learning.targetPrecision or \
                 another triage.learning.rule in .canonry.yml makes it comment again",
                adjusted.repo
            );
        }
    }
}

async fn learn(
    tx: &mut Transaction,
    repo: RepoId,
    before: &Thresholds,
    now: Timestamp,
) -> Result<Vec<ThresholdAdjusted>, StoreError> {
    // Counted with an index that is sorted by these columns: this runs for each outcome while other writers wait.
    let lessons = "SELECT lesson_kind, level, component, count(*) FROM issue_outcomes
        WHERE repo_id = $1 AND lesson_kind <> 'unknown' GROUP BY component, lesson_kind, level";
    let (lessons, name): (Vec<LessonsRow>, String) = on_tx!(&mut *tx, |db| {
        let lessons = sqlx::query_as(lessons).bind(repo.0).fetch_all(&mut *db).await?;
        let name = sqlx::query_scalar("SELECT name FROM repos WHERE id = $1").bind(repo.0).fetch_one(db).await?;
        (lessons, name)
    });
    let mut counted = Vec::with_capacity(lessons.len());
    for (kind, level, component, times) in lessons {
        counted.push(CountedLessons {
            kind: word(&kind)?,
            level: level.map(u8::try_from).transpose().map_err(StoreError::damaged)?,
            component: optional_component(component)?,
            times: count(times)?,
        });
    }
    let after = learn_from_counts(&settings_of(tx, repo).await?, counted);
    write_state(tx, repo, &after, now).await?;
    let name: RepoName = word(&name)?;
    let adjusted = threshold_adjustments(&name, before, &after);
    for adjusted in &adjusted {
        write_adjustment(tx, repo, adjusted, now).await?;
    }
    Ok(adjusted)
}

async fn recomputed(tx: &mut Transaction, repo: RepoId) -> Result<Thresholds, StoreError> {
    let items = issues_with_events(tx, repo).await?;
    let derived = derive(tx, &items).await?.into_values();
    let log: Vec<LearningEntry> =
        derived.map(|derived| LearningEntry { lesson: derived.lesson, component: derived.component }).collect();
    Ok(learn_thresholds(&settings_of(tx, repo).await?, &log))
}

async fn settings_of(tx: &mut Transaction, repo: RepoId) -> Result<ThresholdSettings, StoreError> {
    let row: Option<SettingsRow> =
        on_tx!(tx, |db| sqlx::query_as(READ_SETTINGS).bind(repo.0).fetch_optional(db).await?);
    read_settings(row)
}

async fn stored_thresholds(tx: &mut Transaction, repo: RepoId) -> Result<Thresholds, StoreError> {
    let rows: Vec<StateRow> = on_tx!(&mut *tx, |db| sqlx::query_as(READ_STATE).bind(repo.0).fetch_all(db).await?);
    match read_state(rows)? {
        Some(thresholds) => Ok(thresholds),
        None => Ok(learn_thresholds(&settings_of(tx, repo).await?, [])),
    }
}

fn read_settings(row: Option<SettingsRow>) -> Result<ThresholdSettings, StoreError> {
    let Some((rule, configured, wanted)) = row else { return Ok(ThresholdSettings::default()) };
    let configured = current_threshold(Some(configured))?.threshold();
    Ok(ThresholdSettings {
        rule: word::<ThresholdRule>(&rule)?,
        configured: configured.ok_or_else(|| StoreError::damaged("no configured threshold"))?,
        wanted: probability(wanted)?,
    })
}

fn read_state(rows: Vec<StateRow>) -> Result<Option<Thresholds>, StoreError> {
    let (mut repository, mut components) = (None, BTreeMap::new());
    for (component, Json(state)) in rows {
        match optional_component(Some(component).filter(|name| name != REPOSITORY))? {
            None => repository = Some(state),
            Some(component) => {
                components.insert(component, state);
            }
        }
    }
    Ok(repository.map(|repository| Thresholds { repository, components }))
}

async fn write_state(
    tx: &mut Transaction,
    repo: RepoId,
    thresholds: &Thresholds,
    now: Timestamp,
) -> Result<(), StoreError> {
    let insert = "INSERT INTO threshold_state (repo_id, component, state, updated_at) VALUES ($1, $2, $3, $4)";
    let components = thresholds.components.iter().map(|(component, state)| (component.as_str(), state));
    let rows: Vec<(&str, &ThresholdState)> =
        std::iter::once((REPOSITORY, &thresholds.repository)).chain(components).collect();
    on_tx!(&mut *tx, |db| {
        sqlx::query("DELETE FROM threshold_state WHERE repo_id = $1").bind(repo.0).execute(&mut *db).await?;
        for (component, state) in rows {
            let insert = sqlx::query(insert).bind(repo.0).bind(component).bind(Json(state)).bind(micros(now));
            insert.execute(&mut *db).await?;
        }
    });
    Ok(())
}

async fn write_adjustment(
    tx: &mut Transaction,
    repo: RepoId,
    adjusted: &ThresholdAdjusted,
    now: Timestamp,
) -> Result<(), StoreError> {
    let insert =
        "INSERT INTO threshold_adjustments (repo_id, component, previous_threshold, new_threshold, alpha, beta,
            sample_count, adjusted_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
    on_tx!(tx, |db| {
        sqlx::query(insert)
            .bind(repo.0)
            .bind(adjusted.component.as_ref().map(Component::as_str))
            .bind(points(adjusted.previous_threshold))
            .bind(points(adjusted.new_threshold))
            .bind(adjusted.alpha)
            .bind(adjusted.beta)
            .bind(i64::try_from(adjusted.sample_count).unwrap_or(i64::MAX))
            .bind(micros(now))
            .execute(db)
            .await?;
    });
    Ok(())
}

from_row!(StoredAdjustment { id, adjusted: flatten, at: "adjusted_at" });
read_row!(ThresholdAdjusted { repo: "name", component, previous_threshold, new_threshold, alpha, beta, sample_count });
