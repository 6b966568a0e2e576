//! Candidates of a bench item as the product compares them: with tokens, authors and times.

use canonry_domain::Similarity;
use canonry_retrieval::{Ask, CandidatePool, Entry, ItemIndex, LateQuery, Query, RetrievalMode, SHORTLIST};

use crate::bench_data::BenchItem;

pub(crate) fn query(item: &BenchItem) -> Query {
    let mut query = Query::new(&item.title, &item.body).for_item(item.number);
    if let Some(changes) = &item.changes {
        query = query.with_changes(changes);
    }
    if let Some(vector) = &item.vector {
        query = query.with_vector(vector.clone());
    }
    query
}

/// The hundred candidates that are compared closely, with everything known about them.
pub(crate) fn looked_at(index: &ItemIndex, items: &[BenchItem], item: &BenchItem) -> CandidatePool {
    let mode = if item.vector.is_some() { RetrievalMode::Hybrid } else { RetrievalMode::Lexical };
    let ask = Ask { mode, k: SHORTLIST, min_score: Similarity::ZERO, calibrate: &f64::from, filter: &|_| true };
    let mut pool = index.candidates(&query(item), &ask).expect("a query with its vector");
    let tokens = item.tokens.as_ref().and_then(LateQuery::of);
    for candidate in &mut pool.candidates {
        let place = usize::try_from(candidate.number.get() - 1).expect("positions count from 1");
        let other = &items[place];
        candidate.late = tokens.as_ref().zip(other.tokens.as_ref()).and_then(|(tokens, other)| tokens.compare(other));
        candidate.same_author = item.author.as_ref().zip(other.author.as_ref()).map(|(one, other)| one == other);
        let apart = |(one, other): (jiff::Timestamp, jiff::Timestamp)| one.duration_since(other).as_secs_f64().abs();
        candidate.hours_apart = item.created_at.zip(other.created_at).map(apart).map(|seconds| seconds / 3_600.0);
    }
    pool
}

pub(crate) fn add(index: &mut ItemIndex, item: &BenchItem) {
    let entry = Entry {
        title: &item.title,
        body: &item.body,
        vector: item.vector.as_deref(),
        changes: item.changes.as_ref(),
        stamp: 0,
    };
    index.upsert(item.number, entry).expect("bench items can be indexed");
}
