//! Finds the pull requests that may revert others.

use canonry_boxed::boxed;
use canonry_domain::ItemNumber;
use jiff::Timestamp;
use sqlx::QueryBuilder;

use crate::corpus::repos::RepoId;
use crate::engine::facets::CorpusStore;
use crate::engine::row_values::micros;
use crate::engine::rows::from_row;
use crate::engine::transaction::{StoreError, on_pool};

/// What a merged pull request says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergedPullText {
    pub number: ItemNumber,
    pub title: String,
    pub body: String,
    pub closed_at: Option<Timestamp>,
    pub base_branch: Option<String>,
}

from_row!(MergedPullText { number, title, body, closed_at, base_branch });

/// LIKE alone ignores case on SQLite and not on PostgreSQL.
macro_rules! says_revert {
    ($column:literal) => {
        concat!(
            "(lower(",
            $column,
            ") LIKE '%revert%' OR lower(",
            $column,
            ") LIKE '%reapply%' OR lower(",
            $column,
            ") LIKE '%re-apply%')"
        )
    };
}

#[boxed]
impl CorpusStore<'_> {
    /// One page of the pull requests that were merged since then and may revert one of these, ordered by number: the
    /// title says so, or the body does and may refer to one of the numbers (`#12`, `/12` or `GH-12`). A template that
    /// explains how to revert names none. The caller reads the texts.
    pub async fn possible_reverts(
        self,
        repo: RepoId,
        of: &[ItemNumber],
        since: Timestamp,
        after: Option<ItemNumber>,
        limit: u32,
    ) -> Result<Vec<MergedPullText>, StoreError> {
        Ok(on_pool!(self.pool, |db| {
            let mut query =
                QueryBuilder::new("SELECT number, title, body, closed_at, base_branch FROM items WHERE repo_id = ");
            query.push_bind(repo.0).push(" AND type = 'pr' AND gone IS NULL AND merged AND number > ");
            query.push_bind(after.map_or(0, ItemNumber::get)).push(" AND (closed_at IS NULL OR closed_at >= ");
            query.push_bind(micros(since)).push(concat!(") AND (", says_revert!("title"), " OR ((FALSE"));
            for number in of {
                for mark in ["#", "/", "-"] {
                    query.push(" OR body LIKE ").push_bind(format!("%{mark}{number}%"));
                }
            }
            query.push(concat!(") AND ", says_revert!("body"), ")) ORDER BY number LIMIT "));
            query.push_bind(i64::from(limit));
            query.build_query_as().fetch_all(db).await?
        }))
    }
}
