//! Finds items and findings by number or by words, for the search of the console.

use canonry_boxed::boxed;
use canonry_domain::review::{Finding, FindingStatus};
use canonry_domain::{ItemNumber, ItemState, ItemType};
use sqlx::QueryBuilder;

use crate::console::attention::RepoScope;
use crate::corpus::repos::{Repo, RepoId};
use crate::engine::facets::ConsoleStore;
use crate::engine::like_patterns::{pattern, patterns};
use crate::engine::lists::PushList as _;
use crate::engine::rows::from_row;
use crate::engine::transaction::{StoreError, on_pool};
use crate::review::runs::FindingId;

/// How many findings are read whose stored JSON contains every word. Each is then checked again, because some contain a
/// word only in fields that the search ignores.
const CANDIDATES: u32 = 200;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MatchingItem {
    pub repo: Repo,
    pub item_type: ItemType,
    pub number: ItemNumber,
    pub title: String,
    pub state: ItemState,
    pub merged: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct FoundFinding {
    pub repo: Repo,
    pub id: FindingId,
    pub finding: Finding,
    pub status: FindingStatus,
}

impl FoundFinding {
    /// Whether the title, the path or a rule contains each of these words, ignoring case.
    fn has(&self, words: &[String]) -> bool {
        let rules = self.finding.witnesses.iter().filter_map(|witness| witness.rule.as_deref());
        let texts = [self.finding.title.as_str(), self.finding.path.as_str()].into_iter().chain(rules);
        let texts: Vec<String> = texts.map(str::to_lowercase).collect();
        words.iter().all(|word| texts.iter().any(|text| text.contains(word)))
    }
}

#[boxed]
impl ConsoleStore<'_> {
    /// Returns the items with this number, ordered by repository name.
    pub async fn items_numbered(
        self,
        scope: RepoScope<'_>,
        number: ItemNumber,
        limit: u32,
    ) -> Result<Vec<MatchingItem>, StoreError> {
        Ok(on_pool!(self.pool, |db| {
            let mut query = QueryBuilder::new(
                "SELECT r.id AS repo_id, r.github_id, r.name, i.type, i.number, i.title, i.state, i.merged
                FROM repos r CROSS JOIN items i WHERE i.repo_id = r.id AND i.gone IS NULL AND i.number = ",
            );
            query.push_bind(number.get());
            if let Some(repos) = scope.keys() {
                query.push(" AND r.id IN (").push_list(repos);
            }
            query.push(" ORDER BY r.name_key, i.type LIMIT ").push_bind(i64::from(limit));
            query.build_query_as().fetch_all(db).await?
        }))
    }

    /// Returns items of a repository with each of these words in the title, among its newest `looked_at`.
    pub async fn items_titled(
        self,
        repo: RepoId,
        words: &str,
        looked_at: u32,
        limit: u32,
    ) -> Result<Vec<MatchingItem>, StoreError> {
        let words = patterns(words);
        Ok(on_pool!(self.pool, |db| {
            let mut query = QueryBuilder::new(
                "SELECT r.id AS repo_id, r.github_id, r.name, i.type, i.number, i.title, i.state, i.merged
                FROM (SELECT id FROM items WHERE repo_id = ",
            );
            query.push_bind(repo.0).push(" ORDER BY number DESC LIMIT ").push_bind(i64::from(looked_at));
            query.push(
                ") newest JOIN items i ON i.id = newest.id JOIN repos r ON r.id = i.repo_id WHERE i.gone IS NULL",
            );
            for word in &words {
                query.push(" AND lower(i.title) LIKE lower(").push_bind(word).push(") ESCAPE '\\'");
            }
            query.push(" ORDER BY i.number DESC LIMIT ").push_bind(i64::from(limit));
            query.build_query_as().fetch_all(db).await?
        }))
    }

    /// Returns findings of a repository with each of these words in title, path or rule, among its newest
    /// `looked_at`.
    pub async fn findings_with(
        self,
        repo: RepoId,
        words: &str,
        looked_at: u32,
        limit: u32,
    ) -> Result<Vec<FoundFinding>, StoreError> {
        // Findings are stored as JSON, which escapes some characters of a word.
        let in_json = |word: &str| pattern(serde_json::Value::from(word).to_string().trim_matches('"'));
        let words: Vec<String> = words.split_whitespace().take(patterns(words).len()).map(str::to_lowercase).collect();
        let mut found: Vec<FoundFinding> = on_pool!(self.pool, |db| {
            let mut query = QueryBuilder::new(
                "SELECT r.id AS repo_id, r.github_id, r.name, f.id, f.latest, f.status
                FROM (SELECT id FROM findings WHERE repo_id = ",
            );
            query.push_bind(repo.0).push(" ORDER BY id DESC LIMIT ").push_bind(i64::from(looked_at));
            query.push(") newest JOIN findings f ON f.id = newest.id JOIN repos r ON r.id = f.repo_id WHERE 1 = 1");
            for word in &words {
                query.push(" AND lower(CAST(f.latest AS TEXT)) LIKE lower(");
                query.push_bind(in_json(word)).push(") ESCAPE '\\'");
            }
            query.push(" ORDER BY f.id DESC LIMIT ").push_bind(i64::from(CANDIDATES));
            query.build_query_as().fetch_all(db).await?
        });
        found.retain(|found| found.has(&words));
        found.truncate(limit as usize);
        Ok(found)
    }
}

from_row!(MatchingItem { repo: flatten, item_type: "type", number, title, state, merged });
from_row!(FoundFinding { repo: flatten, id, finding: "latest", status });
