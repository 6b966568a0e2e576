//! Asks `check` about the duplicates of the public sets as if each were a draft, against everything that existed before it
//! was filed, and about other items; prints how often it warned, as Markdown.
//!
//! `check_replay --vectors FOLDER [--others N] [--features FILE] [--wrong FILE] [SET.TYPE…]`. `--others` is the number of items
//! without an earlier duplicate, 1,500 by default. `--features` writes a line for each compared pair of changes, to which
//! `training/fit_change_match.py` fits. `--wrong` writes the warnings that nobody linked, so that they can be read.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "the table is what this program is for")]

#[path = "../judge_replay/sets.rs"]
mod sets;

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::time::Instant;

use canonry_domain::{
    ChangeOverlap, DraftAnswer, ItemNumber, ItemRecord, ItemType, Probability, Similarity, merge_record,
};
use canonry_models::{Embedder as _, LocalEmbedder};
use canonry_retrieval::{RetrievalMode, wilson};
use canonry_store::{EmbeddingKey, NewEmbedding, Repo, Store};
use canonry_triage::{CheckOptions, Detectors, Draft, DraftCheck, IndexCache, Judge, check_draft, check_thresholds};
use jiff::Timestamp;
use serde_json::json;
use sets::{SetItem, folder, load};
use tempfile::TempDir;

const SETS: [&str; 3] = ["rust.pr", "rails.pr", "rust.issue"];
const OTHERS: &str = "1500";
/// As the command line shows by default.
const SHOWN: usize = 5;
/// Before a tenth of a set there is little to be warned of.
const SKIPPED_SHARE: usize = 10;
const BATCH: usize = 1_000;
/// The largest index here takes 200 MB.
const INDEX_BYTES: usize = 1_000_000_000;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut options: BTreeMap<String, String> = BTreeMap::new();
    let mut wanted = Vec::new();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.strip_prefix("--") {
            Some(name) => {
                options.insert(name.to_owned(), arguments.next().ok_or("an option without its value")?);
            }
            None => wanted.push(argument),
        }
    }
    let vectors = options.get("vectors").ok_or("which folder of vectors? --vectors FOLDER")?;
    let others: usize = options.get("others").map_or(OTHERS, String::as_str).parse()?;
    let mut features = options.get("features").map(File::create).transpose()?.map(BufWriter::new);
    if let Some(out) = &mut features {
        writeln!(out, "set\tsource\tcandidate\tquery\tduplicate\town\tsame\t{}", ChangeOverlap::FEATURES.join("\t"))?;
    }
    let mut wrong = options.get("wrong").map(File::create).transpose()?.map(BufWriter::new);
    let folder = folder()?;
    let embedder = LocalEmbedder::load()?;
    if wanted.is_empty() {
        wanted = SETS.map(str::to_owned).to_vec();
    }
    println!("{HEADER}");
    for name in wanted {
        let (set, item_type) = name.rsplit_once('.').ok_or("a set is named like rust.issue")?;
        let item_type: ItemType = item_type.parse()?;
        let items = load(&folder, set, item_type, Some(vectors.as_ref()))?;
        let asked = asked(&items, others);
        let authors: &[bool] =
            if items.iter().any(|item| item.record.author.is_some()) { &[false, true] } else { &[false] };
        let links = links_by_time(&items);
        let mut milliseconds = Vec::new();
        for are_linked in [false, true] {
            if are_linked && links.is_empty() {
                continue;
            }
            let mut tallies = vec![Tally::default(); authors.len()];
            let mut replay = Replay::new(&embedder, if are_linked { &links } else { &[] }).await?;
            for at in &asked {
                let item = &items[*at];
                replay.store_until(&items, *at).await?;
                replay.link_until(item).await?;
                for (tally, author) in tallies.iter_mut().zip(authors) {
                    let began = Instant::now();
                    let checked = replay.check(item, *author).await?;
                    milliseconds.push(began.elapsed().as_secs_f64() * 1e3);
                    tally.count(item, &checked);
                    let is_written = !author && !are_linked;
                    if let Some(out) = features.as_mut().filter(|_| is_written) {
                        write_features(&name, &items, item, &checked, out)?;
                    }
                    if let Some(out) = wrong.as_mut().filter(|_| is_written && is_wrong(item, &checked)) {
                        write_wrong(&name, &items, item, &checked, out)?;
                    }
                }
            }
            for (tally, author) in tallies.iter().zip(authors) {
                tally.print(&name, *author, are_linked);
            }
        }
        milliseconds.sort_by(f64::total_cmp);
        eprintln!(
            "{name}: {} checks, the median took {:.0} ms",
            milliseconds.len(),
            milliseconds[milliseconds.len() / 2]
        );
    }
    Ok(())
}

/// The positions of the duplicates, and of other items evenly over the set.
fn asked(items: &[SetItem], others: usize) -> Vec<usize> {
    let is_other = |at: &usize| earlier(&items[*at]).next().is_none() && items[*at].vector.is_some();
    let other: Vec<usize> = (items.len() / SKIPPED_SHARE..items.len()).filter(is_other).collect();
    let others = others.min(other.len());
    let mut asked: Vec<usize> = (0..others).map(|at| other[at * other.len() / others]).collect();
    asked.extend((0..items.len()).filter(|at| items[*at].is_query));
    asked.sort_unstable();
    asked
}

/// The duplicates of an item that were filed before it.
fn earlier(item: &SetItem) -> impl Iterator<Item = &ItemNumber> {
    item.cluster.range(..item.number)
}

/// A duplicate and what people linked it with, known since it was closed.
struct Link {
    known_from: Timestamp,
    duplicate: ItemNumber,
    original: ItemNumber,
}

/// The links of a set, the one that was known first first; none if the set has no dates.
fn links_by_time(items: &[SetItem]) -> Vec<Link> {
    let numbers: BTreeMap<ItemNumber, ItemNumber> = items.iter().map(|item| (item.named, item.number)).collect();
    let link = |item: &SetItem| {
        let original = numbers.get(&item.record.duplicate_of.flatten()?)?;
        item.record.created_at?;
        Some(Link { known_from: item.record.closed_at.flatten()?, duplicate: item.number, original: *original })
    };
    let mut links: Vec<Link> = items.iter().filter_map(link).collect();
    links.sort_by_key(|link| link.known_from);
    links
}

/// The items of a set as they were when one of them was filed.
struct Replay<'a> {
    embedder: &'a LocalEmbedder,
    /// The links that are not known yet.
    links: &'a [Link],
    store: Store,
    repo: Repo,
    key: EmbeddingKey,
    indexes: IndexCache,
    stored: usize,
    _place: TempDir,
}

impl<'a> Replay<'a> {
    async fn new(embedder: &'a LocalEmbedder, links: &'a [Link]) -> Result<Self, Box<dyn Error>> {
        let place = tempfile::tempdir()?;
        let url = format!("sqlite:{}", place.path().join("canonry.db").display()).parse()?;
        let store = Store::open(&url, Timestamp::UNIX_EPOCH).await?;
        let repo = store.repos().ensure(&"octo/cat".parse()?, Timestamp::UNIX_EPOCH).await?;
        let (key, indexes) = (EmbeddingKey::raw(embedder.model_id()), IndexCache::new(INDEX_BYTES));
        Ok(Self { embedder, links, store, repo, key, indexes, stored: 0, _place: place })
    }

    async fn store_until(&mut self, items: &[SetItem], until: usize) -> Result<(), Box<dyn Error>> {
        while self.stored < until {
            let batch = &items[self.stored..until.min(self.stored + BATCH)];
            let records: Vec<ItemRecord> = batch.iter().map(record_when_filed).collect();
            let embeddings = batch.iter().zip(&records).filter_map(|(item, record)| {
                Some(NewEmbedding {
                    item_type: record.item_type,
                    number: record.number,
                    embedded_hash: merge_record(None, record.clone()).item.content_hash,
                    vector: item.vector.clone()?,
                    tokens: item.tokens.clone(),
                })
            });
            let embeddings: Vec<NewEmbedding> = embeddings.collect();
            self.store.corpus().upsert_items(&self.repo, records, Timestamp::UNIX_EPOCH).await?;
            let written =
                self.store.corpus().write_embeddings(self.repo.id, &self.key, &embeddings, Timestamp::UNIX_EPOCH);
            written.await?;
            self.stored += batch.len();
        }
        Ok(())
    }

    /// Stores the links that were known when the item was filed.
    async fn link_until(&mut self, item: &SetItem) -> Result<(), Box<dyn Error>> {
        let Some(filed_at) = item.record.created_at else { return Ok(()) };
        let known = self.links.partition_point(|link| link.known_from <= filed_at);
        let (now_known, later) = self.links.split_at(known);
        for link in now_known {
            let items =
                self.store.corpus().items_by_number(self.repo.id, item.record.item_type, &[link.duplicate]).await?;
            let Some(stored) = items.first() else { continue };
            let record = ItemRecord {
                duplicate_of: Some(Some(link.original)),
                ..ItemRecord::new(stored.item_type, stored.number, &stored.title)
            };
            self.store.corpus().upsert_items(&self.repo, vec![record], Timestamp::UNIX_EPOCH).await?;
        }
        self.links = later;
        Ok(())
    }

    async fn check(&self, item: &SetItem, with_author: bool) -> Result<DraftCheck, Box<dyn Error>> {
        let record = &item.record;
        let draft = Draft {
            title: record.title.clone(),
            body: record.body.clone().unwrap_or_default(),
            author: record.author.clone().filter(|_| with_author),
            changes: record.changes.clone(),
        };
        let with = Detectors {
            github: None,
            embedder: self.embedder,
            extractor: None,
            judge: Judge::Local,
            snapshots: None,
            indexes: Some(&self.indexes),
        };
        let thresholds = check_thresholds(Similarity::new(0.75)?, Probability::new(0.85)?);
        let options = CheckOptions { k: SHOWN, thresholds, mode: RetrievalMode::Hybrid };
        let now = record.created_at.unwrap_or(Timestamp::UNIX_EPOCH);
        Ok(check_draft(&self.store, &self.repo, &draft, with, &options, now).await?)
    }
}

/// Labels, state, dates and links were set after filing, so they are not known.
fn record_when_filed(item: &SetItem) -> ItemRecord {
    let known = &item.record;
    ItemRecord {
        body: known.body.clone(),
        author: known.author.clone(),
        created_at: known.created_at,
        changes: known.changes.clone(),
        ..ItemRecord::new(known.item_type, item.number, &known.title)
    }
}

fn is_wrong(item: &SetItem, checked: &DraftCheck) -> bool {
    checked.matched.is_some_and(|matched| !item.cluster.contains(&matched))
}

#[derive(Debug, Clone, Default)]
struct Tally {
    duplicates: usize,
    /// Duplicates about which it warned; those where it named an earlier one of them; those with an earlier one among the
    /// first, the first three and all that are shown.
    warned: usize,
    named: usize,
    shown: [usize; 3],
    others: usize,
    /// Other items about which it warned, and those whose named item changes the same lines.
    warned_others: usize,
    same_lines: usize,
}

impl Tally {
    fn count(&mut self, item: &SetItem, checked: &DraftCheck) {
        let is_warning = checked.answer != DraftAnswer::New;
        if !item.is_query {
            self.others += 1;
            self.warned_others += usize::from(is_warning);
            self.same_lines += usize::from(checked.has_same_lines);
            return;
        }
        self.duplicates += 1;
        self.warned += usize::from(is_warning);
        self.named += usize::from(checked.matched.is_some_and(|matched| item.cluster.contains(&matched)));
        let similar = checked.similar.iter().map(|one| one.number).filter(|number| Some(*number) != checked.matched);
        let shown: Vec<ItemNumber> = checked.matched.into_iter().chain(similar).collect();
        for (count, first) in self.shown.iter_mut().zip([1, 3, SHOWN]) {
            *count += usize::from(shown.iter().take(first).any(|number| item.cluster.contains(number)));
        }
    }

    fn print(&self, name: &str, with_author: bool, are_linked: bool) {
        let share = |right: usize, all: usize| {
            let share = wilson(right, all.max(1));
            format!("{:.3} ({:.3}–{:.3})", share.value, share.low, share.high)
        };
        let of = |right: usize| share(right, self.duplicates);
        println!(
            "| {name} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} of these |",
            if with_author { "known" } else { "unknown" },
            if are_linked { "known" } else { "unknown" },
            self.duplicates,
            of(self.warned),
            of(self.named),
            of(self.shown[0]),
            of(self.shown[1]),
            of(self.shown[2]),
            share(self.warned_others, self.others),
            self.same_lines,
        );
    }
}

const HEADER: &str = "| set | author | earlier links | duplicates | warned | and named one of them | first | among three | among five | other items warned | same lines |\n\
    |---|---|---|---:|---:|---:|---:|---:|---:|---:|---:|";

/// A line for each pull request that the item's change was compared with.
fn write_features(
    set: &str,
    items: &[SetItem],
    item: &SetItem,
    checked: &DraftCheck,
    out: &mut impl Write,
) -> Result<(), Box<dyn Error>> {
    for (number, overlap) in &checked.compared_changes {
        let other = &items[usize::try_from(number.get() - 1)?].record;
        let is_duplicate = item.cluster.contains(number);
        let is_own = item.record.author.is_some() && item.record.author == other.author;
        let is_same =
            item.record.changes.as_ref().zip(other.changes.as_ref()).is_some_and(|(one, two)| one.is_same_change(two));
        let flags = [item.is_query, is_duplicate, is_own, is_same].map(|is| u8::from(is).to_string()).join("\t");
        let features = overlap.features().map(|feature| format!("{feature:.4}")).join("\t");
        writeln!(out, "{set}\t{}\t{number}\t{flags}\t{features}", item.number)?;
    }
    Ok(())
}

fn write_wrong(
    set: &str,
    items: &[SetItem],
    item: &SetItem,
    checked: &DraftCheck,
    out: &mut impl Write,
) -> Result<(), Box<dyn Error>> {
    let shown = |item: &SetItem| {
        let changes = item.record.changes.as_ref();
        json!({
            "number": item.named, "title": item.record.title, "body": item.record.body, "author": item.record.author,
            "files": changes.map(|changes| &changes.files), "diff": changes.map(|changes| &changes.diff),
        })
    };
    let matched = checked.matched.and_then(|matched| items.get(usize::try_from(matched.get() - 1).ok()?));
    let line = json!({
        "set": set, "duplicate": item.is_query, "reason": checked.reason, "same_lines": checked.has_same_lines,
        "draft": shown(item), "named": matched.map(shown),
    });
    Ok(writeln!(out, "{line}")?)
}
