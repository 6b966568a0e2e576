//! One cluster: its members, the edges that join them, and why its canonical stays open.

use std::collections::{BTreeMap, BTreeSet};

use askama::Template;
use axum::extract::{Path, Query};
use axum::response::{IntoResponse as _, Redirect};
use canonry_domain::{
    Cluster, Edge, Item, ItemNumber, ItemState, ItemType, Maintainers, Override, OverrideKind, PlanInput, PlanItem,
    clusters,
};
use canonry_store::{ClusterRow, Representation};
use jiff::Timestamp;

use crate::charts::Svg;
use crate::charts::edge_graph::{GraphEdge, GraphNode, edge_graph};
use crate::clusters::map::{PlanLink, canonicalize_command, cluster_link};
use crate::layout::errors::{PageError, PageResult};
use crate::layout::filters;
use crate::layout::form::{PathFields, QueryFields};
use crate::layout::formatting::{TimeLabel, counted, item_path, score, when};
use crate::layout::page::{NavSection, PageFrame, html, repo_path};
use crate::layout::paging::{PAGE, Pager, cut_page, word};
use crate::sign_in::visit::{ReaderOf, RepoVisit};

/// The largest cluster that a page recomputes: the reason for its canonical depends on all of its members.
const MOST_MEMBERS: u32 = 500;

#[derive(Template)]
#[template(path = "clusters/cluster_page.html")]
struct ClusterPage {
    page: PageFrame,
    path: String,
    type_word: &'static str,
    canonical: ItemNumber,
    title: String,
    is_open: bool,
    members: u64,
    members_words: String,
    open: u64,
    least: Option<String>,
    plan: Option<PlanLink>,
    /// `None` if a page cannot load all members.
    why: Option<CanonicalReason>,
    /// Whether the current edges make another cluster of it.
    falls_apart: bool,
    picture: Option<Svg>,
    lines: Vec<ClusterMemberLine>,
    pager: Pager,
    edges: Vec<EdgeLine>,
    can_maintain: bool,
}

#[derive(Debug, PartialEq, Eq)]
struct CanonicalReason {
    because: String,
    /// What the ranking alone says, if something else decided.
    ranking: Option<String>,
    ranked_first: Option<ItemNumber>,
}

struct ClusterMemberLine {
    number: ItemNumber,
    href: String,
    title: String,
    is_canonical: bool,
    is_open: bool,
    author: Option<String>,
    is_maintainer: bool,
    comments: u64,
    created: Option<TimeLabel>,
    since: TimeLabel,
}

struct EdgeLine {
    source: ItemNumber,
    source_href: String,
    target: ItemNumber,
    target_href: String,
    confidence: String,
    share: f64,
    by: &'static str,
    is_stale: bool,
}

/// Data about all members of the cluster, or about those that the page lists.
struct ClusterData {
    items: BTreeMap<ItemNumber, Item>,
    edges: Vec<Edge>,
    overrides: Vec<Override>,
    stored: BTreeMap<ItemNumber, ItemNumber>,
    earlier: Vec<canonry_domain::EarlierClose>,
    own_comments: BTreeMap<ItemNumber, u32>,
    maintainers: Maintainers,
}

pub(crate) async fn show(ReaderOf(at): ReaderOf, Path(parts): PathFields, Query(query): QueryFields) -> PageResult {
    let part = |name: &str| parts.get(name).map(String::as_str).unwrap_or_default();
    let item_type: ItemType = part("type").parse().map_err(|_| PageError::NotFound)?;
    let canonical: ItemNumber = part("canonical").parse().map_err(|_| PageError::NotFound)?;
    let source: Option<Representation> = word(&query, "source").parse().ok();
    let representation = source.unwrap_or(Representation::Raw);
    if let Some(mut row) =
        at.console.store.duplicates().cluster_row(at.repo.id, item_type, representation, canonical).await?
    {
        at.hide_titles(std::iter::once((row.canonical, &mut row.title))).await?;
        return page(&at, &row, representation, word(&query, "after").parse().ok()).await;
    }
    // The item may be a member of another cluster, or only its cards may be clustered.
    let others = source.map_or(vec![Representation::Raw, Representation::Intent], |source| vec![source]);
    for representation in others {
        let of =
            at.console.store.duplicates().canonicals_of(at.repo.id, item_type, representation, &[canonical]).await?;
        if let Some(canonical) = of.get(&canonical) {
            let href = cluster_link(&repo_path(&at.repo), item_type, *canonical, representation);
            return Ok(Redirect::to(&href).into_response());
        }
    }
    Err(PageError::NotFound)
}

async fn page(
    at: &RepoVisit,
    row: &ClusterRow,
    representation: Representation,
    after: Option<ItemNumber>,
) -> PageResult {
    let (store, repo, now, path) = (&at.console.store, at.repo.id, at.console.now(), repo_path(&at.repo));
    let (item_type, canonical) = (row.item_type, row.canonical);
    let mut listed =
        store.duplicates().cluster_members(repo, item_type, representation, canonical, after, PAGE + 1).await?;
    let next = cut_page(&mut listed, PAGE, |(number, _)| ("after", number.to_string()));
    let here: BTreeSet<ItemNumber> = listed.iter().map(|(number, _)| *number).collect();
    // A conclusion from some members may be wrong for all.
    let is_whole = row.members <= u64::from(MOST_MEMBERS);
    let all = match is_whole {
        true => {
            store.duplicates().cluster_members(repo, item_type, representation, canonical, None, MOST_MEMBERS).await?
        }
        false => listed.clone(),
    };
    let numbers: BTreeSet<ItemNumber> = all.iter().map(|(number, _)| *number).collect();
    let known = ClusterData::load(at, item_type, representation, canonical, &numbers, is_whole).await?;
    let (today, ranked) = match is_whole {
        true => (known.clusters(item_type, true), known.clusters(item_type, false)),
        false => (Vec::new(), Vec::new()),
    };
    let of_today = today.iter().find(|cluster| cluster.members().contains(&canonical));
    let source = if representation == Representation::Intent { "intent" } else { "" };
    let cluster_path = cluster_link(&path, item_type, canonical, Representation::Raw);
    let pager = Pager::new("Pages of members", &cluster_path, &[("source", source)], after.is_none(), next);
    let command = canonicalize_command(at, Some(item_type), representation);
    html(&ClusterPage {
        page: at.page(&format!("Cluster of #{canonical}"), NavSection::Clusters).cli(command),
        type_word: item_type.as_str(),
        canonical,
        title: row.title.clone(),
        is_open: row.state == ItemState::Open,
        members: row.members,
        members_words: counted(row.members, "item"),
        open: row.open,
        least: row.least_confidence.map(|least| score(least.get())),
        plan: PlanLink::of(&path, row, now),
        why: is_whole.then(|| why(canonical, of_today, ranked.iter().find(|one| one.members().contains(&canonical)))),
        falls_apart: is_whole
            && of_today.is_none_or(|cluster| cluster.canonical() != canonical || *cluster.members() != numbers),
        picture: if is_whole { known.picture(&path, item_type, canonical) } else { None },
        lines: member_lines(&path, &known, &listed, canonical, now),
        pager: pager.in_section("members"),
        edges: known.edge_lines(&path, item_type).into_iter().filter(|edge| here.contains(&edge.source)).collect(),
        can_maintain: at.can_maintain(),
        path,
    })
}

impl ClusterData {
    /// Loads data about some members. For a whole cluster, edges and rulings that lead out of it are dropped; for a
    /// part, the items that the part leads to are loaded too.
    async fn load(
        at: &RepoVisit,
        item_type: ItemType,
        representation: Representation,
        canonical: ItemNumber,
        numbers: &BTreeSet<ItemNumber>,
        is_whole: bool,
    ) -> Result<Self, PageError> {
        let (store, repo) = (&at.console.store, at.repo.id);
        let members: Vec<ItemNumber> = numbers.iter().copied().collect();
        let mut edges = store.duplicates().edges_from(repo, item_type, representation, &members).await?;
        let mut overrides = store.duplicates().overrides_naming(repo, item_type, &members).await?;
        if is_whole {
            edges.retain(|edge| numbers.contains(&edge.target));
            overrides.retain(|ruled| {
                numbers.contains(&ruled.item) && ruled.other.is_none_or(|other| numbers.contains(&other))
            });
        }
        let mut named: BTreeSet<ItemNumber> = numbers.clone();
        named.extend(edges.iter().map(|edge| edge.target));
        let items = at.items(item_type, &named.into_iter().collect::<Vec<_>>()).await?;
        let list = store.repos().maintainers(repo).await?;
        Ok(Self {
            items: items.into_iter().map(|item| (item.number, item)).collect(),
            edges,
            overrides,
            stored: members.iter().map(|number| (*number, canonical)).collect(),
            earlier: store.close().earlier_closes(repo, item_type, &members).await?,
            own_comments: store.outbox().own_comments(repo, None).await?,
            maintainers: list.map(|list| list.logins.into_iter().collect()).unwrap_or_default(),
        })
    }

    /// The clusters of these items by the current rules; `keeps` says whether earlier choices count.
    fn clusters(&self, item_type: ItemType, keeps: bool) -> Vec<Cluster> {
        let known = |(number, item)| {
            let own_comments = self.own_comments.get(number).copied().unwrap_or(0);
            (*number, PlanItem { item, has_content: true, reopened_at: None, fixed_by: None, own_comments })
        };
        let items: BTreeMap<ItemNumber, PlanItem<'_>> = self.items.iter().map(known).collect();
        let nothing = BTreeMap::new();
        let ruled: Vec<Override> =
            self.overrides.iter().filter(|one| keeps || one.kind != OverrideKind::Canonical).cloned().collect();
        clusters(&PlanInput {
            item_type,
            items: &items,
            edges: &self.edges,
            overrides: &ruled,
            stored: if keeps { &self.stored } else { &nothing },
            earlier: if keeps { &self.earlier } else { &[] },
            maintainers: &self.maintainers,
        })
    }

    fn is_stale(&self, edge: &Edge) -> bool {
        let version = |number: ItemNumber| self.items.get(&number).map(|item| item.content_version);
        !edge.human
            && (version(edge.source), version(edge.target)) != (Some(edge.source_version), Some(edge.target_version))
    }

    fn edge_lines(&self, path: &str, item_type: ItemType) -> Vec<EdgeLine> {
        let line = |source: ItemNumber, target: ItemNumber, share: f64, by, is_stale| EdgeLine {
            source,
            source_href: item_path(path, item_type, source),
            target,
            target_href: item_path(path, item_type, target),
            confidence: score(share),
            share,
            by,
            is_stale,
        };
        let judged = self.edges.iter().map(|edge| {
            let by = if edge.human { "a person" } else { "the judge" };
            line(edge.source, edge.target, edge.confidence.get(), by, self.is_stale(edge))
        });
        let is_edge = |one: ItemNumber, other: ItemNumber| {
            self.edges.iter().any(|edge| (edge.source, edge.target) == (one, other))
        };
        let ruled = self.overrides.iter().filter(|ruled| ruled.kind == OverrideKind::Duplicate);
        let ruled =
            ruled.filter_map(|ruled| Some((ruled.item, ruled.other?))).filter(|(one, other)| !is_edge(*one, *other));
        let ruled = ruled.map(|(source, target)| line(source, target, 1.0, "a person", false));
        judged.chain(ruled).collect()
    }

    fn picture(&self, path: &str, item_type: ItemType, canonical: ItemNumber) -> Option<Svg> {
        let others = self.items.values().filter(|item| item.number != canonical);
        let members: Vec<&Item> = self.items.get(&canonical).into_iter().chain(others).collect();
        let nodes: Vec<GraphNode> = members
            .iter()
            .map(|item| GraphNode {
                name: format!("#{}", item.number),
                description: format!("#{} {} ({})", item.number, item.title, item.state),
                href: item_path(path, item_type, item.number),
                is_open: item.state == ItemState::Open,
            })
            .collect();
        let place = |number: ItemNumber| members.iter().position(|item| item.number == number);
        let lines: Vec<GraphEdge> = self
            .edge_lines(path, item_type)
            .into_iter()
            .filter_map(|edge| {
                let (from, to) = (place(edge.source)?, place(edge.target)?);
                Some(GraphEdge { from, to, confidence: edge.share, words: edge.confidence, is_stale: edge.is_stale })
            })
            .collect();
        edge_graph(
            &format!("The cluster of #{canonical}: an arrow points from a duplicate to its target"),
            &nodes,
            &lines,
        )
    }
}

/// What decided, and what the ranking alone would say.
fn why(canonical: ItemNumber, today: Option<&Cluster>, ranked: Option<&Cluster>) -> CanonicalReason {
    let decided = today.filter(|cluster| cluster.canonical() == canonical).map(Cluster::because);
    let first = ranked.filter(|cluster| cluster.canonical() == canonical).map(Cluster::because);
    CanonicalReason {
        because: decided.unwrap_or("canonical since an earlier run").to_owned(),
        ranking: first.filter(|first| decided != Some(first)).map(str::to_owned),
        ranked_first: ranked.map(Cluster::canonical).filter(|number| *number != canonical),
    }
}

fn member_lines(
    path: &str,
    known: &ClusterData,
    since: &[(ItemNumber, Timestamp)],
    canonical: ItemNumber,
    now: Timestamp,
) -> Vec<ClusterMemberLine> {
    since
        .iter()
        .filter_map(|(number, since)| {
            let item = known.items.get(number)?;
            Some(ClusterMemberLine {
                number: *number,
                href: item_path(path, item.item_type, *number),
                title: item.title.clone(),
                is_canonical: *number == canonical,
                is_open: item.state == ItemState::Open,
                author: item.author.as_ref().map(ToString::to_string),
                is_maintainer: item.author.as_ref().is_some_and(|author| known.maintainers.contains(author)),
                comments: u64::from(item.comments) + u64::from(item.review_comments),
                created: item.created_at.map(|at| when(at, now)),
                since: when(*since, now),
            })
        })
        .collect()
}
