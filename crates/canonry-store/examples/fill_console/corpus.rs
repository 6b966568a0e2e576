//! Issues and pull requests with texts of typical length.

use canonry_domain::{GithubId, ItemRecord, ItemState, ItemType, StateReason};

use crate::{BATCH, Failure, Filling, number};

const WORDS: [&str; 24] = [
    "tide", "table", "stops", "at", "noon", "with", "error", "when", "the", "cache", "is", "full", "after", "update",
    "window", "panics", "on", "start", "without", "network", "release", "build", "fails", "again",
];

pub(crate) async fn fill(filling: &Filling) -> Result<(), Failure> {
    let Filling { store, repo, now, items } = filling;
    let numbers: Vec<i64> = (1..=*items).collect();
    for batch in numbers.chunks(BATCH) {
        let records = batch.iter().map(|of| record(filling, *of)).collect();
        store.corpus().upsert_items(repo, records, *now).await?;
    }
    Ok(())
}

fn record(filling: &Filling, of: i64) -> ItemRecord {
    let item_type = if of <= filling.issues() { ItemType::Issue } else { ItemType::Pr };
    let state = if of % 3 == 0 { ItemState::Closed } else { ItemState::Open };
    let opened = filling.ago((filling.items - of) / 6 + 1);
    let words = |from: i64, count: i64| {
        let word = |at: i64| WORDS[usize::try_from((from + at * 7 + at * at) % 24).unwrap_or_default()];
        (0..count).map(word).collect::<Vec<_>>().join(" ")
    };
    let trace =
        format!("thread 'main' panicked at src/tide/table.rs:{}:{}:\nerror[E{:04}]", of % 900, of % 70, of % 800);
    ItemRecord {
        github_id: Some(GithubId(1_000_000 + of)),
        body: Some(format!("{}\n\n```\n{trace}\n```\n\n{}", words(of, 90), words(of * 3, 60))),
        state: Some(state),
        state_reason: (state == ItemState::Closed && item_type == ItemType::Issue)
            .then_some(Some(StateReason::Completed)),
        author: format!("person-{}", of % 4_000).parse().ok(),
        labels: Some(vec!["bug".to_owned(), format!("area/{}", WORDS[usize::try_from(of % 12).unwrap_or_default()])]),
        comments: Some(u32::try_from(of % 9).unwrap_or_default()),
        created_at: Some(opened),
        updated_at: Some(opened),
        closed_at: (state == ItemState::Closed).then_some(Some(opened)),
        synced_at: Some(filling.now),
        ..ItemRecord::new(item_type, number(of), format!("{} ({of})", words(of, 7)))
    }
}
