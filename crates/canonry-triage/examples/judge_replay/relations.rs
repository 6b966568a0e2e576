//! Counts the pairs that are related and no duplicates, among linked pairs and among the nearest items by words.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::Write;
use std::path::Path;

use canonry_domain::{ItemType, JudgedItem, PairRelation, Similarity, pair_relation};
use canonry_retrieval::{Ask, Entry, ItemIndex, Query, RetrievalMode};

use crate::sets::{SetItem, load};
use crate::{NEIGHBOURS, body, judged};

/// One item in so many is compared with its neighbours; all linked pairs are compared.
const ONE_IN: usize = 10;

/// Prints a row for each relation, and writes every pair that has one to `out`.
pub(crate) fn count(folder: &Path, name: &str, out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let (set, item_type) = name.rsplit_once('.').ok_or("a set is named like rust.issue")?;
    let item_type: ItemType = item_type.parse()?;
    let items = load(folder, set, item_type, None)?;
    let at = |position: i64| &items[usize::try_from(position - 1).expect("positions count from 1")];
    let (mut linked, mut lost) = (0_usize, 0_usize);
    for item in &items {
        for other in item.cluster.iter().filter(|other| **other < item.number) {
            linked += 1;
            let found = pair_relation(&named(item), &named(at(other.get())), [].iter());
            lost += usize::from(found.is_some());
            if let Some(relation) = found {
                write(name, "linked", relation, item, at(other.get()), out)?;
            }
        }
    }
    let mut index = ItemIndex::new(item_type, "bench");
    let (mut compared, mut counts): (usize, BTreeMap<PairRelation, (usize, usize)>) = (0, BTreeMap::new());
    for (place, item) in items.iter().enumerate() {
        if place % ONE_IN == 0 {
            let mut query = Query::new(&item.record.title, body(item)).for_item(item.number);
            if let Some(changes) = &item.record.changes {
                query = query.with_changes(changes);
            }
            let ask = Ask {
                mode: RetrievalMode::Lexical,
                k: NEIGHBOURS,
                min_score: Similarity::ZERO,
                calibrate: &|cosine| f64::from(cosine),
                filter: &|_| true,
            };
            let near: Vec<&SetItem> = index.neighbours(&query, &ask)?.iter().map(|hit| at(hit.number.get())).collect();
            let others: Vec<JudgedItem<'_>> = near.iter().map(|other| named(other)).collect();
            for (other, judged) in near.iter().zip(&others) {
                compared += 1;
                let Some(relation) = pair_relation(&named(item), judged, others.iter()) else { continue };
                let is_linked = item.cluster.contains(&other.number);
                let count = counts.entry(relation).or_default();
                *count = (count.0 + 1, count.1 + usize::from(is_linked));
                write(name, "near", relation, item, other, out)?;
            }
        }
        let changes = item.record.changes.as_ref();
        let entry = Entry { title: &item.record.title, body: body(item), vector: None, changes, stamp: 0 };
        index.upsert(item.number, entry)?;
    }
    println!("| {name} | linked pairs: {lost} of {linked} refused | near pairs: {compared} |");
    for (relation, (fired, right)) in counts {
        println!("| {name} | `{relation}` | {fired} | linked: {right} |");
    }
    Ok(())
}

/// With the number by which texts cite it.
fn named(item: &SetItem) -> JudgedItem<'_> {
    JudgedItem { number: item.named, ..judged(item) }
}

fn write(
    set: &str,
    how: &str,
    relation: PairRelation,
    item: &SetItem,
    other: &SetItem,
    out: &mut impl Write,
) -> std::io::Result<()> {
    let title = |item: &SetItem| item.record.title.replace(['\t', '\n'], " ");
    writeln!(out, "{set}\t{how}\t{relation}\t{}\t{}\t{}\t{}", item.named, other.named, title(item), title(other))
}
