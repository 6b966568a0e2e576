//! Pages of stored clusters, and how many known edges they do not contain.

use canonry_boxed::boxed;
use std::collections::HashMap;

use canonry_domain::{ItemNumber, ItemState, ItemType, Probability};
use jiff::Timestamp;
use sqlx::QueryBuilder;

use crate::close::runs::CloseRunId;
use crate::corpus::repos::RepoId;
use crate::duplicates::candidate_sets::Representation;
use crate::engine::facets::DuplicateStore;
use crate::engine::lists::PushList as _;
use crate::engine::row_values::count;
use crate::engine::rows::{Keyed, Read, from_row, keyed, unwrap_all};
use crate::engine::transaction::{StoreError, on_pool};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClusterFilter {
    /// `None` means both types.
    pub item_type: Option<ItemType>,
    pub representation: Representation,
    /// The smallest number of members.
    pub min_size: u32,
    /// Only clusters with an open duplicate.
    pub with_open: bool,
    /// Only clusters for which no plan closes anything.
    pub unplanned: bool,
}

impl ClusterFilter {
    /// All clusters of this representation.
    pub const fn all(representation: Representation) -> Self {
        Self { item_type: None, representation, min_size: 2, with_open: false, unplanned: false }
    }
}

/// Where a page of clusters ended; the next page starts after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClusterKey {
    pub members: u64,
    pub canonical: ItemNumber,
    pub item_type: ItemType,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ClusterRow {
    pub item_type: ItemType,
    pub canonical: ItemNumber,
    pub title: String,
    pub state: ItemState,
    /// The number of members, with the canonical.
    pub members: u64,
    pub open: u64,
    /// The lowest confidence of the accepted decisions about its members; `None` if only people joined them.
    pub least_confidence: Option<Probability>,
    /// The member with the greatest number, which was opened last.
    pub newest: ItemNumber,
    pub newest_at: Option<Timestamp>,
    /// The newest plan that closes duplicates of this cluster.
    pub plan: Option<NewestClusterPlan>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewestClusterPlan {
    pub id: CloseRunId,
    pub made_at: Timestamp,
    /// The lowest-numbered item of the plan in this cluster that is still to be closed.
    pub left: Option<ItemNumber>,
}

impl ClusterRow {
    /// The end of a page whose last cluster is this one.
    pub const fn key(&self) -> ClusterKey {
        ClusterKey { members: self.members, canonical: self.canonical, item_type: self.item_type }
    }
}

/// Totals of the stored clusters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClusterTotals {
    pub clusters: u64,
    pub members: u64,
    /// When a member was last assigned to its canonical.
    pub as_of: Option<Timestamp>,
}

/// How many of the newest edges, and of the newest rulings, are compared with the clusters: enough to detect an
/// outdated mapping, and few enough for a page.
const EDGES_LOOKED_AT: i64 = 1_000;

#[boxed]
impl DuplicateStore<'_> {
    /// Returns one page of clusters after `after`, largest first; for equal sizes the greater canonical first.
    ///
    /// The mapping's own index finds the clusters of the page; items are read only for those.
    pub async fn cluster_pages(
        self,
        repo: RepoId,
        filter: ClusterFilter,
        after: Option<ClusterKey>,
        limit: u32,
    ) -> Result<Vec<ClusterRow>, StoreError> {
        let found: Vec<FoundCluster> = on_pool!(self.pool, |db| {
            let mut query = QueryBuilder::new(
                "SELECT g.type, g.canonical_number, g.members, g.newest FROM (SELECT c.type, c.canonical_number,
                    count(*) AS members, max(c.item_number) AS newest FROM canonicals c WHERE c.repo_id = ",
            );
            query.push_bind(repo.0);
            match filter.item_type {
                Some(item_type) => query.push(" AND c.type = ").push_bind(item_type.as_str()),
                None => query.push(" AND c.type IN ('issue', 'pr')"),
            };
            query.push(" AND c.representation = ").push_bind(filter.representation.as_str());
            query.push(" GROUP BY c.type, c.canonical_number HAVING count(*) >= ");
            query.push_bind(i64::from(filter.min_size.max(2))).push(") g WHERE ");
            match after {
                None => query.push("1 = 1"),
                Some(key) => {
                    let members = i64::try_from(key.members).unwrap_or(i64::MAX);
                    query.push("(g.members < ").push_bind(members).push(" OR (g.members = ").push_bind(members);
                    query.push(" AND (g.canonical_number < ").push_bind(key.canonical.get());
                    query.push(" OR (g.canonical_number = ").push_bind(key.canonical.get());
                    query.push(" AND g.type < ").push_bind(key.item_type.as_str()).push("))))")
                }
            };
            if filter.with_open {
                query.push(
                    " AND EXISTS (SELECT 1 FROM canonicals m JOIN items i ON i.repo_id = m.repo_id AND i.type = m.type
                        AND i.number = m.item_number AND i.state = 'open' AND i.gone IS NULL
                    WHERE m.repo_id = ",
                );
                query.push_bind(repo.0).push(" AND m.type = g.type AND m.representation = ");
                query.push_bind(filter.representation.as_str());
                query.push(" AND m.canonical_number = g.canonical_number AND m.item_number <> m.canonical_number)");
            }
            if filter.unplanned {
                query.push(
                    " AND NOT EXISTS (SELECT 1 FROM items t JOIN close_run_items c ON c.target_item_id = t.id
                        JOIN close_runs r ON r.id = c.run_id
                    WHERE t.type = g.type AND t.number = g.canonical_number AND c.action = 'close' AND r.mode = 'plan'
                        AND t.repo_id = ",
                );
                query.push_bind(repo.0).push(")");
            }
            query
                .push(" ORDER BY g.members DESC, g.canonical_number DESC, g.type DESC LIMIT ")
                .push_bind(i64::from(limit));
            query.build_query_as().fetch_all(db).await?
        });
        self.cluster_rows(repo, filter.representation, &found).await
    }

    pub async fn cluster_row(
        self,
        repo: RepoId,
        item_type: ItemType,
        representation: Representation,
        canonical: ItemNumber,
    ) -> Result<Option<ClusterRow>, StoreError> {
        let query = "SELECT count(*), max(item_number) FROM canonicals
            WHERE repo_id = $1 AND type = $2 AND representation = $3 AND canonical_number = $4";
        let Read((members, newest)): Read<(u64, Option<ItemNumber>)> = on_pool!(self.pool, |db| {
            let query = sqlx::query_as(query).bind(repo.0).bind(item_type.as_str()).bind(representation.as_str());
            query.bind(canonical.get()).fetch_one(db).await?
        });
        let Some(newest) = newest else { return Ok(None) };
        let found = FoundCluster { item_type, canonical, members, newest };
        Ok(self.cluster_rows(repo, representation, &[found]).await?.pop())
    }

    /// Counts the clusters and their members, with the time of the last assignment.
    pub async fn cluster_totals(
        self,
        repo: RepoId,
        item_type: Option<ItemType>,
        representation: Representation,
    ) -> Result<ClusterTotals, StoreError> {
        let query = "SELECT count(DISTINCT canonical_number), count(*), max(since) FROM canonicals
            WHERE repo_id = $1 AND type = $2 AND representation = $3";
        let mut totals = ClusterTotals::default();
        for item_type in ItemType::one_or_all(item_type) {
            let Read((clusters, members, since)): Read<(u64, u64, Option<Timestamp>)> = on_pool!(self.pool, |db| {
                let query = sqlx::query_as(query).bind(repo.0).bind(item_type.as_str());
                query.bind(representation.as_str()).fetch_one(db).await?
            });
            totals.clusters += clusters;
            totals.members += members;
            totals.as_of = totals.as_of.max(since);
        }
        Ok(totals)
    }

    /// Counts how many of the newest edges and rulings join two items that the stored clusters do not join: what
    /// would change if the clusters were recomputed. Edges that would not count are skipped.
    pub async fn edges_not_in_clusters(self, repo: RepoId, representation: Representation) -> Result<u64, StoreError> {
        // The limit of the inner query prevents a search for rulings about edges that the clusters already contain:
        // with a thousand of both that took 190 ms.
        let judged = "SELECT count(*) FROM (SELECT s.type, s.number AS one, t.number AS other FROM
                (SELECT item_id, target_item_id, source_version, target_version, origin
                FROM judge_decisions WHERE repo_id = $1 AND representation = $2 AND status = 'accepted'
                AND superseded_at IS NULL ORDER BY id DESC LIMIT $3) d
            JOIN items s ON s.id = d.item_id JOIN items t ON t.id = d.target_item_id
            LEFT JOIN canonicals a ON a.repo_id = $1 AND a.type = s.type AND a.representation = $2 AND a.item_number = s.number
            LEFT JOIN canonicals b ON b.repo_id = $1 AND b.type = t.type AND b.representation = $2 AND b.item_number = t.number
            WHERE (a.canonical_number IS NULL OR b.canonical_number IS NULL OR a.canonical_number <> b.canonical_number)
            AND s.gone IS NULL AND t.gone IS NULL AND (d.origin = 'override'
                OR (d.source_version = s.content_version AND d.target_version = t.content_version))
            LIMIT $3) e
            WHERE NOT EXISTS (SELECT 1 FROM overrides o WHERE o.repo_id = $1 AND o.type = e.type AND o.removed_at IS NULL
                AND o.kind = 'not_duplicate' AND ((o.item_number = e.one AND o.other_number = e.other)
                    OR (o.item_number = e.other AND o.other_number = e.one)))";
        // A ruling that a judge has applied is also an edge, and is counted there.
        let ruled = "SELECT count(*) FROM (SELECT repo_id, type, item_number, other_number FROM overrides
                WHERE repo_id = $1 AND kind = 'duplicate' AND removed_at IS NULL ORDER BY id DESC LIMIT $3) o
            JOIN items s ON s.repo_id = o.repo_id AND s.type = o.type AND s.number = o.item_number
            JOIN items t ON t.repo_id = o.repo_id AND t.type = o.type AND t.number = o.other_number
            LEFT JOIN canonicals a ON a.repo_id = $1 AND a.type = o.type AND a.representation = $2 AND a.item_number = o.item_number
            LEFT JOIN canonicals b ON b.repo_id = $1 AND b.type = o.type AND b.representation = $2 AND b.item_number = o.other_number
            WHERE s.gone IS NULL AND t.gone IS NULL
            AND (a.canonical_number IS NULL OR b.canonical_number IS NULL OR a.canonical_number <> b.canonical_number)
            AND NOT EXISTS (SELECT 1 FROM judge_decisions d WHERE d.item_id = s.id AND d.target_item_id = t.id
                AND d.representation = $2 AND d.status = 'accepted' AND d.superseded_at IS NULL)";
        let (judged, ruled): (i64, i64) = on_pool!(self.pool, |db| {
            let asked =
                |query| sqlx::query_scalar(query).bind(repo.0).bind(representation.as_str()).bind(EDGES_LOOKED_AT);
            (asked(judged).fetch_one(db).await?, asked(ruled).fetch_one(db).await?)
        });
        count(judged + ruled)
    }

    /// Returns the displayed data of a page's clusters.
    async fn cluster_rows(
        self,
        repo: RepoId,
        representation: Representation,
        found: &[FoundCluster],
    ) -> Result<Vec<ClusterRow>, StoreError> {
        let mut rows = Vec::with_capacity(found.len());
        let mut details: HashMap<ItemType, ClusterDetails> = HashMap::new();
        for item_type in ItemType::ALL {
            let of_type: Vec<&FoundCluster> = found.iter().filter(|one| one.item_type == *item_type).collect();
            if !of_type.is_empty() {
                details.insert(*item_type, self.cluster_details(repo, *item_type, representation, &of_type).await?);
            }
        }
        for one in found {
            let details = details.entry(one.item_type).or_default();
            let (title, state) =
                details.canonicals.remove(&one.canonical).unwrap_or((String::new(), ItemState::Closed));
            let (open, least_confidence) = details.members.get(&one.canonical).copied().unwrap_or_default();
            rows.push(ClusterRow {
                item_type: one.item_type,
                canonical: one.canonical,
                title,
                state,
                members: one.members,
                open,
                least_confidence,
                newest: one.newest,
                newest_at: details.newest.get(&one.newest).copied().flatten(),
                plan: details.plans.get(&one.canonical).copied(),
            });
        }
        Ok(rows)
    }

    async fn cluster_details(
        self,
        repo: RepoId,
        item_type: ItemType,
        representation: Representation,
        found: &[&FoundCluster],
    ) -> Result<ClusterDetails, StoreError> {
        let mut details = ClusterDetails::default();
        let canonicals: Vec<i64> = found.iter().map(|one| one.canonical.get()).collect();
        let newest: Vec<i64> = found.iter().map(|one| one.newest.get()).collect();
        let items: Vec<Read<(ItemNumber, String, ItemState)>> = on_pool!(self.pool, |db| {
            let mut query = QueryBuilder::new("SELECT number, title, state FROM items WHERE repo_id = ");
            query.push_bind(repo.0).push(" AND type = ").push_bind(item_type.as_str()).push(" AND number IN (");
            query.push_list(canonicals.iter().copied());
            query.build_query_as().fetch_all(db).await?
        });
        details.canonicals =
            items.into_iter().map(|Read((canonical, title, state))| (canonical, (title, state))).collect();
        let opened: Vec<Read<(ItemNumber, Option<Timestamp>)>> = on_pool!(self.pool, |db| {
            let mut query = QueryBuilder::new("SELECT number, created_at FROM items WHERE repo_id = ");
            query.push_bind(repo.0).push(" AND type = ").push_bind(item_type.as_str()).push(" AND number IN (");
            query.push_list(newest.iter().copied());
            query.build_query_as().fetch_all(db).await?
        });
        details.newest.extend(unwrap_all(opened));
        let members: Vec<Read<(ItemNumber, u64, Option<Probability>)>> = on_pool!(self.pool, |db| {
            let mut query = QueryBuilder::new(
                "SELECT m.canonical_number,
                    count(CASE WHEN i.state = 'open' AND i.gone IS NULL AND m.item_number <> m.canonical_number THEN 1 END),
                    min(d.confidence)
                FROM canonicals m JOIN items i ON i.repo_id = m.repo_id AND i.type = m.type AND i.number = m.item_number
                LEFT JOIN judge_decisions d ON d.item_id = i.id AND d.representation = m.representation
                    AND d.status = 'accepted' AND d.superseded_at IS NULL
                WHERE m.repo_id = ",
            );
            query.push_bind(repo.0).push(" AND m.type = ").push_bind(item_type.as_str());
            query.push(" AND m.representation = ").push_bind(representation.as_str());
            query.push(" AND m.canonical_number IN (");
            query.push_list(canonicals.iter().copied()).push(" GROUP BY m.canonical_number");
            query.build_query_as().fetch_all(db).await?
        });
        details.members =
            members.into_iter().map(|Read((canonical, open, least))| (canonical, (open, least))).collect();
        let plans: Vec<Keyed<ItemNumber, NewestClusterPlan>> = on_pool!(self.pool, |db| {
            // The result of a row is stored in the run that applies its plan.
            let mut query = QueryBuilder::new(
                "SELECT n.canonical AS key, n.plan, p.created_at, min(CASE WHEN c.approved IS NOT FALSE AND NOT EXISTS (
                    SELECT 1 FROM close_runs a JOIN close_run_items d ON d.run_id = a.id AND d.item_id = c.item_id
                    WHERE a.plan_id = n.plan AND a.mode = 'apply' AND d.result IS NOT NULL) THEN i.number END) AS left_over
                FROM (SELECT t.id AS target, t.number AS canonical, max(c.run_id) AS plan
                    FROM items t JOIN close_run_items c ON c.target_item_id = t.id JOIN close_runs r ON r.id = c.run_id
                    WHERE c.action = 'close' AND r.mode = 'plan' AND t.repo_id = ",
            );
            query.push_bind(repo.0).push(" AND t.type = ").push_bind(item_type.as_str()).push(" AND t.number IN (");
            query.push_list(canonicals.iter().copied()).push(
                " GROUP BY t.id, t.number) n JOIN close_runs p ON p.id = n.plan
                JOIN close_run_items c ON c.run_id = n.plan AND COALESCE(c.target_item_id, 0) = n.target AND c.action = 'close'
                JOIN items i ON i.id = c.item_id GROUP BY n.canonical, n.plan, p.created_at",
            );
            query.build_query_as().fetch_all(db).await?
        });
        details.plans.extend(keyed(plans));
        Ok(details)
    }
}

/// A cluster of a page, with data of the mapping only.
struct FoundCluster {
    item_type: ItemType,
    canonical: ItemNumber,
    members: u64,
    newest: ItemNumber,
}

from_row!(FoundCluster { item_type: "type", canonical: "canonical_number", members, newest });
from_row!(NewestClusterPlan { id: "plan", made_at: "created_at", left: "left_over" });

/// Further data about the clusters of one type.
#[derive(Default)]
struct ClusterDetails {
    canonicals: HashMap<ItemNumber, (String, ItemState)>,
    newest: HashMap<ItemNumber, Option<Timestamp>>,
    members: HashMap<ItemNumber, (u64, Option<Probability>)>,
    plans: HashMap<ItemNumber, NewestClusterPlan>,
}
