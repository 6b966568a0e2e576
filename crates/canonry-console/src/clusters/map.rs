//! Clusters of duplicates: a list, and a map with a tile for each.

use std::collections::HashMap;
use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::extract::Query;
use axum::routing::{get, post};
use canonry_domain::{ItemNumber, ItemState, ItemType, Probability, is_too_old};
use canonry_server::queue_canonicalize;
use canonry_store::{ClusterFilter, ClusterKey, ClusterRow, Representation};
use jiff::Timestamp;

use crate::charts::Svg;
use crate::charts::treemap::{TreemapRest, TreemapTile, tiles_with_labels, treemap};
use crate::clusters::cluster_page;
use crate::console::Console;
use crate::layout::errors::PageResult;
use crate::layout::filters;
use crate::layout::form::{Form, QueryFields};
use crate::layout::formatting::{TimeLabel, counted, item_path, score, thousands, when};
use crate::layout::page::{NavSection, PageFrame, back_to, html, repo_path};
use crate::layout::paging::{PAGE, Pager, cut_page, link};
use crate::sign_in::visit::{MaintainerOf, ReaderOf, RepoVisit};

/// Clusters that the map tries to fit; those without room for a label are only in the list.
const TILES: u32 = 120;

pub(crate) fn routes() -> Router<Arc<Console>> {
    Router::new()
        .route("/r/{owner}/{name}/clusters", get(show))
        .route("/r/{owner}/{name}/clusters/recompute", post(recompute))
        .route("/r/{owner}/{name}/clusters/{type}/{canonical}", get(cluster_page::show))
}

struct ClusterQuery {
    is_list: bool,
    filter: ClusterFilter,
    /// Whether the address names the compared representation.
    names_source: bool,
    after: Option<ClusterKey>,
}

#[derive(Template)]
#[template(path = "clusters/map.html")]
struct ClustersPage {
    page: PageFrame,
    path: String,
    repo: String,
    asked: ClusterQuery,
    clusters: String,
    members: String,
    as_of: Option<TimeLabel>,
    lacking: u64,
    can_maintain: bool,
    knows_maintainers: bool,
    chart: Option<Svg>,
    rows: Vec<ClusterTileLine>,
    pager: Pager,
    map_link: String,
    list_link: String,
}

pub(crate) struct ClusterTileLine {
    pub(crate) href: String,
    pub(crate) is_pull: bool,
    pub(crate) number: ItemNumber,
    pub(crate) title: String,
    pub(crate) is_open: bool,
    pub(crate) members: u64,
    pub(crate) open: u64,
    pub(crate) least: Option<String>,
    pub(crate) newest: ItemNumber,
    pub(crate) newest_href: String,
    pub(crate) newest_at: Option<TimeLabel>,
    pub(crate) plan: Option<PlanLink>,
}

pub(crate) struct PlanLink {
    pub(crate) id: i64,
    /// The cluster's row if it can still be applied; else the plan.
    pub(crate) href: String,
    /// Whether the plan can still close an item of the cluster.
    pub(crate) is_live: bool,
    /// The plan's state: `plan 7 would close its duplicates`.
    pub(crate) words: &'static str,
}

impl PlanLink {
    pub(crate) fn of(path: &str, row: &ClusterRow, now: Timestamp) -> Option<Self> {
        let plan = row.plan?;
        let is_old = is_too_old(plan.made_at, now);
        let (href, words) = match plan.left {
            Some(item) if !is_old => {
                (format!("{path}/plans/{}/rows/{}/{item}", plan.id, row.item_type), "would close its duplicates")
            }
            Some(_) => (format!("{path}/plans/{}", plan.id), "has expired"),
            None => (format!("{path}/plans/{}", plan.id), "has nothing left to close here"),
        };
        Some(Self { id: plan.id.get(), href, is_live: plan.left.is_some() && !is_old, words })
    }
}

impl ClusterTileLine {
    fn of(path: &str, row: &ClusterRow, representation: Representation, now: Timestamp) -> Self {
        Self {
            href: cluster_link(path, row.item_type, row.canonical, representation),
            is_pull: row.item_type == ItemType::Pr,
            number: row.canonical,
            title: row.title.clone(),
            is_open: row.state == ItemState::Open,
            members: row.members,
            open: row.open,
            least: row.least_confidence.map(|least| score(least.get())),
            newest: row.newest,
            newest_href: item_path(path, row.item_type, row.newest),
            newest_at: row.newest_at.map(|at| when(at, now)),
            plan: PlanLink::of(path, row, now),
        }
    }
}

pub(crate) fn cluster_link(
    path: &str,
    item_type: ItemType,
    canonical: ItemNumber,
    representation: Representation,
) -> String {
    let source = if representation == Representation::Intent { "intent" } else { "" };
    link(&format!("{path}/clusters/{item_type}/{canonical}"), &[("source", source)])
}

impl ClusterQuery {
    /// Ignores parameters that cannot be parsed.
    fn read(query: &HashMap<String, String>) -> Self {
        let of = |name: &str| query.get(name).map(String::as_str).unwrap_or_default();
        let source = of("source").parse::<Representation>();
        Self {
            is_list: of("view") != "map",
            filter: ClusterFilter {
                item_type: of("type").parse().ok(),
                min_size: of("min").parse().unwrap_or(2).max(2),
                with_open: of("open") == "1",
                unplanned: of("unplanned") == "1",
                ..ClusterFilter::all(source.clone().unwrap_or(Representation::Raw))
            },
            names_source: source.is_ok(),
            after: read_key(of("after")),
        }
    }

    /// The parameters of a link to the same clusters.
    fn pairs(&self, view: &'static str) -> [(&'static str, String); 6] {
        let min = if self.filter.min_size > 2 { self.filter.min_size.to_string() } else { String::new() };
        let yes = |is: bool| if is { "1".to_owned() } else { String::new() };
        [
            ("view", view.to_owned()),
            ("type", self.type_word().to_owned()),
            ("min", min),
            ("open", yes(self.filter.with_open)),
            ("unplanned", yes(self.filter.unplanned)),
            ("source", if self.names_source || self.is_intent() { self.source().to_owned() } else { String::new() }),
        ]
    }

    fn link(&self, path: &str, view: &'static str) -> String {
        let pairs = self.pairs(view);
        link(&format!("{path}/clusters"), &pairs.each_ref().map(|(name, value)| (*name, value.as_str())))
    }

    fn pager(&self, path: &str, next: Option<ClusterKey>) -> Pager {
        let pairs = self.pairs("");
        let kept = pairs.each_ref().map(|(name, value)| (*name, value.as_str()));
        let next = next.map(|key| ("after", written_key(key)));
        Pager::new("Pages of clusters", &format!("{path}/clusters"), &kept, self.after.is_none(), next)
    }

    fn is_intent(&self) -> bool {
        self.filter.representation == Representation::Intent
    }

    fn source(&self) -> &'static str {
        self.filter.representation.as_str()
    }

    fn type_word(&self) -> &'static str {
        self.filter.item_type.map_or("", ItemType::as_str)
    }

    fn is_filtered(&self) -> bool {
        self.filter != ClusterFilter::all(self.filter.representation)
    }
}

fn read_key(text: &str) -> Option<ClusterKey> {
    let mut parts = text.splitn(3, '.');
    let members = parts.next()?.parse().ok()?;
    let canonical = parts.next()?.parse().ok()?;
    Some(ClusterKey { members, canonical, item_type: parts.next()?.parse().ok()? })
}

fn written_key(key: ClusterKey) -> String {
    format!("{}.{}.{}", key.members, key.canonical, key.item_type)
}

async fn show(ReaderOf(at): ReaderOf, Query(query): QueryFields) -> PageResult {
    let (store, repo, now) = (&at.console.store, at.repo.id, at.console.now());
    let mut asked = ClusterQuery::read(&query);
    let mut totals =
        store.duplicates().cluster_totals(repo, asked.filter.item_type, asked.filter.representation).await?;
    if totals.clusters == 0 && !asked.names_source {
        // If only cards are compared, their clusters are shown by default.
        let by_cards = store.duplicates().cluster_totals(repo, asked.filter.item_type, Representation::Intent).await?;
        if by_cards.clusters > 0 {
            (asked.filter.representation, totals) = (Representation::Intent, by_cards);
        }
    }
    let path = repo_path(&at.repo);
    let limit = if asked.is_list { PAGE } else { TILES };
    let after = asked.after.filter(|_| asked.is_list);
    let mut found = store.duplicates().cluster_pages(repo, asked.filter, after, limit + 1).await?;
    let next = cut_page(&mut found, limit, ClusterRow::key);
    at.hide_titles(found.iter_mut().map(|row| (row.canonical, &mut row.title))).await?;
    let lines: Vec<ClusterTileLine> =
        found.iter().map(|row| ClusterTileLine::of(&path, row, asked.filter.representation, now)).collect();
    let (map_link, list_link) = (asked.link(&path, "map"), asked.link(&path, ""));
    let chart = (!asked.is_list && !found.is_empty()).then(|| {
        let mut tiles: Vec<TreemapTile> = found.iter().zip(&lines).map(|(row, line)| tile(row, line)).collect();
        tiles.truncate(tiles_with_labels(&tiles));
        let is_cut = next.is_some() || tiles.len() < found.len();
        let rest = is_cut.then(|| rest_of(&asked, totals.clusters, tiles.len(), &list_link));
        treemap("Clusters of duplicates, largest first", &tiles, rest.as_ref())
    });
    let command = canonicalize_command(&at, asked.filter.item_type, asked.filter.representation);
    html(&ClustersPage {
        page: at.page("Duplicates", NavSection::Clusters).cli(command),
        can_maintain: at.can_maintain(),
        knows_maintainers: totals.clusters > 0 || store.repos().maintainers(repo).await?.is_some(),
        lacking: store.duplicates().edges_not_in_clusters(repo, asked.filter.representation).await?,
        repo: at.repo.name.to_string(),
        clusters: thousands(totals.clusters),
        members: thousands(totals.members),
        as_of: totals.as_of.map(|at| when(at, now)),
        rows: lines,
        pager: asked.pager(&path, next),
        path,
        asked,
        chart,
        map_link,
        list_link,
    })
}

/// The total is known only if no filter is set.
fn rest_of(asked: &ClusterQuery, clusters: u64, shown: usize, list_link: &str) -> TreemapRest {
    let counts = !(asked.filter.min_size > 2 || asked.filter.with_open || asked.filter.unplanned);
    let words = match counts {
        true => format!("{} smaller clusters are in the list", thousands(clusters.saturating_sub(shown as u64))),
        false => "Smaller clusters are in the list".to_owned(),
    };
    TreemapRest { words, href: list_link.to_owned() }
}

pub(crate) fn canonicalize_command(at: &RepoVisit, item_type: Option<ItemType>, source: Representation) -> String {
    let of_type = item_type.map(|item_type| format!(" --type {item_type}")).unwrap_or_default();
    format!("canonry canonicalize --repo {}{of_type} --source {}", at.repo.name, source.as_str())
}

/// A tile links to its cluster's row in a plan, or else to the cluster's page.
fn tile(row: &ClusterRow, line: &ClusterTileLine) -> TreemapTile {
    let plan = line.plan.as_ref().filter(|plan| plan.is_live);
    let is_closed = row.state == ItemState::Closed;
    let state = match row.open {
        _ if is_closed => "canonical is closed".to_owned(),
        0 => "no open duplicates".to_owned(),
        open => counted(open, "open duplicate"),
    };
    let opens =
        plan.map_or_else(|| "opens the cluster".to_owned(), |plan| format!("opens its row in plan {}", plan.id));
    let (class, confidence) = match row.least_confidence.map(Probability::get) {
        None => ("conf-people", "people".to_owned()),
        Some(least) if (least * 100.0).round() >= 95.0 => ("conf-high", score(least)),
        Some(least) if (least * 100.0).round() >= 90.0 => ("conf-mid", score(least)),
        Some(least) => ("conf-low", score(least)),
    };
    let lowest = if row.least_confidence.is_some() { "lowest confidence" } else { "joined by" };
    let members = counted(row.members, "member");
    // Colour alone must not mark a cluster without open duplicates.
    let mark = if row.open == 0 && !is_closed { " ✓" } else { "" };
    TreemapTile {
        weight: row.members,
        number: format!("#{}", row.canonical),
        name: format!("#{} ×{}{mark}", row.canonical, row.members),
        description: format!("#{} {}: {members}, {state}, {lowest} {confidence}; {opens}", row.canonical, row.title),
        confidence,
        words: row.title.clone(),
        class,
        is_closed,
        is_planned: plan.is_some(),
        href: plan.map_or_else(|| line.href.clone(), |plan| plan.href.clone()),
    }
}

async fn recompute(MaintainerOf(at): MaintainerOf, _form: Form) -> PageResult {
    let now = at.console.now();
    at.record("canonicalize", "all clusters").await?;
    queue_canonicalize(&at.console.store, &at.repo, None, at.visit.login(), now).await?;
    at.console.wake_worker.notify_one();
    let path = format!("{}/clusters", repo_path(&at.repo));
    Ok(back_to(&path, "Recomputing the clusters. Reload in a moment."))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use canonry_domain::ItemType;

    use super::{ClusterQuery, read_key, written_key};

    #[test]
    fn an_address_says_what_is_asked_for_and_nothing_else() {
        let query = |pairs: &[(&str, &str)]| -> HashMap<String, String> {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let nonsense = [("type", "x"), ("min", "-3"), ("after", "9"), ("open", "yes"), ("view", "?")];
        let asked = ClusterQuery::read(&query(&nonsense));
        assert!(asked.is_list && !asked.is_filtered() && asked.after.is_none());
        assert_eq!(asked.link("/r/a/b", "map"), "/r/a/b/clusters?view=map");
        let all =
            [("view", "list"), ("type", "pr"), ("min", "5"), ("open", "1"), ("unplanned", "1"), ("source", "intent")];
        let asked = ClusterQuery::read(&query(&all));
        assert!(asked.is_list && asked.filter.item_type == Some(ItemType::Pr));
        let pager = asked.pager("/r/a/b", read_key("3.7.pr"));
        let all = "/r/a/b/clusters?type=pr&min=5&open=1&unplanned=1&source=intent&after=3.7.pr";
        assert_eq!((pager.first, pager.next.as_deref()), (None, Some(all)));
    }

    #[test]
    fn a_place_is_read_as_it_was_written() {
        let key = read_key("12.7.issue").expect("a place");
        assert_eq!(written_key(key), "12.7.issue");
        assert_eq!((read_key("12.0.issue"), read_key("12.7"), read_key("")), (None, None, None));
    }
}
