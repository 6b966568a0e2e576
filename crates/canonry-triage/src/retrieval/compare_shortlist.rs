//! Ranks a shortlist by a closer comparison: the authors and dates of the items, and their texts token by token.

use std::collections::HashMap;
use std::sync::Arc;

use canonry_domain::{ItemNumber, TokenVectors};
use canonry_retrieval::{Candidate, CandidatePool, Hit, LateQuery, RetrievalMode, SHORTLIST, rank};
use canonry_store::IndexRow;

use crate::retrieval::neighbourhood::{NeighbourQuery, Neighbourhood, RetrievalError};

/// A query and the candidates that were found for it.
pub(crate) struct RankingQuery {
    /// The item of the query, if it is one.
    pub(crate) item: Option<ItemNumber>,
    /// The vectors of the query's tokens; those of an item are read from the store.
    pub(crate) tokens: Option<Arc<TokenVectors>>,
    pub(crate) pool: CandidatePool,
}

/// How many queries are processed together. The tokens of their candidates are in memory at once: 3 MB at 60 tokens
/// each, if all candidates are different.
const TOGETHER: usize = 16;

type Tokens = HashMap<ItemNumber, Arc<TokenVectors>>;

impl Neighbourhood {
    /// The candidates of each query, ranked, best first.
    pub(crate) async fn ranked(
        &self,
        asked: Vec<RankingQuery>,
        wanted: NeighbourQuery,
    ) -> Result<Vec<Vec<Hit>>, RetrievalError> {
        let mut ranked = Vec::with_capacity(asked.len());
        for together in asked.chunks(TOGETHER) {
            let tokens = match wanted.mode {
                RetrievalMode::Hybrid => self.tokens_for(together).await?,
                // These modes rank only by vectors, or only by words.
                RetrievalMode::Dense | RetrievalMode::Lexical => Tokens::new(),
            };
            ranked.extend(on_all_cores(together, |asked| self.rank(asked, &tokens, wanted)));
        }
        Ok(ranked)
    }

    fn rank(&self, asked: &RankingQuery, tokens: &Tokens, wanted: NeighbourQuery) -> Vec<Hit> {
        let own = asked.item.and_then(|number| self.rows().get(&number));
        let own_tokens = asked.tokens.as_ref().or_else(|| tokens.get(&asked.item?));
        let query = own_tokens.and_then(|tokens| LateQuery::of(tokens));
        let looked_at = |(at, candidate): (usize, &Candidate)| {
            let mut candidate = *candidate;
            if let (Some(own), Some(row)) = (own, self.rows().get(&candidate.number)) {
                candidate.same_author = same_author(own, row);
                candidate.hours_apart = hours_apart(own, row);
            }
            // Only the shortlist is compared: a caller that asks for more than a hundred candidates orders them by
            // another criterion in the end, and waits for the answer.
            let other = tokens.get(&candidate.number).filter(|_| at < SHORTLIST);
            candidate.late = query.as_ref().zip(other).and_then(|(one, other)| one.compare(other));
            candidate
        };
        let candidates: Vec<Candidate> = asked.pool.candidates.iter().enumerate().map(looked_at).collect();
        let calibrate = |cosine| self.calibration().similarity(cosine).get();
        rank(self.item_type(), wanted.mode, &candidates, asked.pool.spread, calibrate, wanted.k)
    }

    /// The available token vectors of the queries' items and of their candidates.
    async fn tokens_for(&self, asked: &[RankingQuery]) -> Result<Tokens, RetrievalError> {
        // Typed words without token vectors are not compared by tokens.
        let compared = || asked.iter().filter(|asked| asked.tokens.is_some() || asked.item.is_some());
        let own = compared().filter(|asked| asked.tokens.is_none()).filter_map(|asked| asked.item);
        let others = compared().flat_map(|asked| asked.pool.candidates.iter().take(SHORTLIST));
        let mut numbers: Vec<ItemNumber> = own.chain(others.map(|candidate| candidate.number)).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let mut found = Tokens::with_capacity(numbers.len());
        {
            let mut cache = self.tokens();
            numbers.retain(|&number| match cache.get(number) {
                Some(tokens) => {
                    found.insert(number, tokens);
                    false
                }
                None => true,
            });
        }
        let read = self.store.corpus().token_vectors(self.repo.id, &self.key, self.item_type(), &numbers).await?;
        let mut cache = self.tokens();
        for (number, tokens) in read {
            let tokens = Arc::new(tokens);
            cache.put(number, Arc::clone(&tokens));
            found.insert(number, tokens);
        }
        Ok(found)
    }
}

/// `None` if one of the two is unknown: all deleted accounts look the same.
fn same_author(one: &IndexRow, other: &IndexRow) -> Option<bool> {
    Some(one.author.as_ref()? == other.author.as_ref()?)
}

fn hours_apart(one: &IndexRow, other: &IndexRow) -> Option<f64> {
    let seconds = one.created_at?.as_second().abs_diff(other.created_at?.as_second());
    Some(seconds as f64 / 3_600.0)
}

/// Applies a function to each element, in order, on as many threads as there are cores.
pub(crate) fn on_all_cores<One: Sync, Made: Send>(all: &[One], each: impl Fn(&One) -> Made + Sync) -> Vec<Made> {
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let portion = all.len().div_ceil(threads).max(1);
    if portion >= all.len() {
        return all.iter().map(each).collect();
    }
    std::thread::scope(|scope| {
        let each = &each;
        let work = |part| scope.spawn(move || <[One]>::iter(part).map(each).collect::<Vec<Made>>());
        let spawned: Vec<_> = all.chunks(portion).map(work).collect();
        spawned.into_iter().flat_map(|thread| thread.join().expect("invariant: a search does not panic")).collect()
    })
}
