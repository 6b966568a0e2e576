//! The duplicate map: every cluster as a tile, or as a line of a list.

use std::collections::HashMap;
use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::extract::Query;
use axum::routing::{get, post};
use canonry_domain::{ItemNumber, ItemState, ItemType, is_too_old};
use canonry_server::queue_canonicalize;
use canonry_store::{ClusterFilter, ClusterKey, ClusterRow, Representation};
use jiff::Timestamp;

use crate::charts::Svg;
use crate::charts::treemap::{TreemapRest, TreemapTile, treemap};
use crate::clusters::cluster_page;
use crate::console::Console;
use crate::layout::errors::PageResult;
use crate::layout::filters;
use crate::layout::form::{Form, QueryFields};
use crate::layout::formatting::{TimeLabel, counted, item_path, score, thousands, when};
use crate::layout::page::{NavSection, PageFrame, back_to, html, repo_path};
use crate::layout::paging::{PAGE, Pager, cut_page, link};
use crate::sign_in::visit::{MaintainerOf, ReaderOf, RepoVisit};

/// Tiles of the map: more of them are too small to be read.
const TILES: u32 = 200;

pub(crate) fn routes() -> Router<Arc<Console>> {
    Router::new()
        .route("/r/{owner}/{name}/clusters", get(show))
        .route("/r/{owner}/{name}/clusters/recompute", post(recompute))
        .route("/r/{owner}/{name}/clusters/{type}/{canonical}", get(cluster_page::show))
}

struct ClusterQuery {
    is_list: bool,
    filter: ClusterFilter,
    /// Whether the address itself says what was compared.
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
    /// Its row for the cluster, where that can still be carried out; else the plan.
    pub(crate) href: String,
    /// Whether something of the cluster can still be closed by it.
    pub(crate) is_live: bool,
    /// How it stands: `plan 7 would close its duplicates`.
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
            Some(_) => (format!("{path}/plans/{}", plan.id), "is too old to apply"),
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
    /// What cannot be understood is not asked for.
    fn read(query: &HashMap<String, String>) -> Self {
        let of = |name: &str| query.get(name).map(String::as_str).unwrap_or_default();
        let source = of("source").parse::<Representation>();
        Self {
            is_list: of("view") == "list",
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

    /// What a link to the same clusters says.
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
        let pairs = self.pairs("list");
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
        // Whoever compares cards and nothing else finds their clusters without knowing the word for it.
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
    let (map_link, list_link) = (asked.link(&path, "map"), asked.link(&path, "list"));
    let rest = next.is_some().then(|| rest_of(&asked, totals.clusters, found.len(), &list_link));
    let chart = (!asked.is_list && !found.is_empty()).then(|| {
        let tiles: Vec<TreemapTile> = found.iter().zip(&lines).map(|(row, line)| tile(row, line)).collect();
        treemap("Clusters of duplicates, the largest first", &tiles, rest.as_ref())
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

/// How many there are in all is known only where nothing is left out.
fn rest_of(asked: &ClusterQuery, clusters: u64, shown: usize, list_link: &str) -> TreemapRest {
    let counts = !(asked.filter.min_size > 2 || asked.filter.with_open || asked.filter.unplanned);
    let words = match counts {
        true => format!(
            "and {} more, as a list (this strip is not to scale)",
            thousands(clusters.saturating_sub(shown as u64))
        ),
        false => "and more, as a list (this strip is not to scale)".to_owned(),
    };
    TreemapRest { words, href: list_link.to_owned() }
}

pub(crate) fn canonicalize_command(at: &RepoVisit, item_type: Option<ItemType>, source: Representation) -> String {
    let of_type = item_type.map(|item_type| format!(" --type {item_type}")).unwrap_or_default();
    format!("canonry canonicalize --repo {}{of_type} --source {}", at.repo.name, source.as_str())
}

/// A tile leads to what can be done about its cluster: to its row in a plan, or else to its page.
fn tile(row: &ClusterRow, line: &ClusterTileLine) -> TreemapTile {
    let plan = line.plan.as_ref().filter(|plan| plan.is_live);
    let (class, state) = match (row.state, row.open) {
        (ItemState::Closed, _) => ("closed", "its canonical is closed".to_owned()),
        (ItemState::Open, 0) => ("done", "no duplicate is open".to_owned()),
        (ItemState::Open, open) => ("open", format!("{} open", counted(open, "duplicate"))),
    };
    let leads =
        plan.map_or_else(|| "leads to the cluster".to_owned(), |plan| format!("leads to its row in plan {}", plan.id));
    let least = match row.least_confidence {
        Some(least) => format!("least confidence {}", score(least.get())),
        None => "joined by people".to_owned(),
    };
    let members = counted(row.members, "member");
    // Colour alone does not tell a tile that wants nothing any more from one that does.
    let mark = if class == "done" { " ✓" } else { "" };
    let told = format!("#{} {}: {members}, {state}, {least}; {leads}", row.canonical, row.title);
    TreemapTile {
        weight: row.members,
        name: format!("#{} ×{}{mark}", row.canonical, row.members),
        words: row.title.clone(),
        told,
        class,
        is_planned: plan.is_some(),
        band: row.least_confidence.map_or(1.0, |least| (least.get() - 0.8) / 0.2),
        href: plan.map_or_else(|| line.href.clone(), |plan| plan.href.clone()),
    }
}

async fn recompute(MaintainerOf(at): MaintainerOf, _form: Form) -> PageResult {
    let now = at.console.now();
    at.record("canonicalize", "all clusters").await?;
    queue_canonicalize(&at.console.store, &at.repo, None, at.visit.login(), now).await?;
    at.console.wake_worker.notify_one();
    let path = format!("{}/clusters", repo_path(&at.repo));
    Ok(back_to(&path, "The clusters are worked out anew; reload in a moment."))
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
        assert!(!asked.is_list && !asked.is_filtered() && asked.after.is_none());
        assert_eq!(asked.link("/r/a/b", "map"), "/r/a/b/clusters?view=map");
        let all =
            [("view", "list"), ("type", "pr"), ("min", "5"), ("open", "1"), ("unplanned", "1"), ("source", "intent")];
        let asked = ClusterQuery::read(&query(&all));
        assert!(asked.is_list && asked.filter.item_type == Some(ItemType::Pr));
        let pager = asked.pager("/r/a/b", read_key("3.7.pr"));
        let all = "/r/a/b/clusters?view=list&type=pr&min=5&open=1&unplanned=1&source=intent&after=3.7.pr";
        assert_eq!((pager.first, pager.next.as_deref()), (None, Some(all)));
    }

    #[test]
    fn a_place_is_read_as_it_was_written() {
        let key = read_key("12.7.issue").expect("a place");
        assert_eq!(written_key(key), "12.7.issue");
        assert_eq!((read_key("12.0.issue"), read_key("12.7"), read_key("")), (None, None, None));
    }
}
