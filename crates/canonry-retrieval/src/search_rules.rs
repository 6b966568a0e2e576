//! The rules of `search`: include terms, exclude terms, the minimum score, the limit.

use canonry_domain::{ItemNumber, Similarity};

/// What include terms add to a hit that contains all of them; several terms share it.
pub const INCLUDE_BOOST: f64 = 0.15;
/// The share of a term's words that an item must contain to match the term.
pub const TERM_THRESHOLD: f64 = 0.20;
/// The maximum number of hits per search.
pub const SEARCH_LIMIT: usize = 50;

#[derive(Debug, Clone, PartialEq)]
pub struct SearchHit {
    pub number: ItemNumber,
    /// The position before the rules, from 1.
    pub rank: usize,
    pub score: Similarity,
    /// The share of each include term that it contains, 0..1.
    pub includes: Vec<f64>,
    /// The share of each exclude term that it contains, 0..1.
    pub excludes: Vec<f64>,
}

/// Filters, raises, orders and truncates hits.
///
/// A hit that matches any exclude term is dropped. A hit that matches include terms gains [`INCLUDE_BOOST`] times the
/// share of terms that it matches, up to a score of 1. Hits with at least `min_score` then remain, ordered by score,
/// and by their former rank if the scores are equal.
pub fn apply_search_rules(hits: Vec<SearchHit>, min_score: Similarity, limit: usize) -> Vec<SearchHit> {
    let holds = |share: &f64| *share >= TERM_THRESHOLD;
    let mut kept: Vec<SearchHit> = hits
        .into_iter()
        .filter(|hit| !hit.excludes.iter().any(holds))
        .map(|mut hit| {
            if !hit.includes.is_empty() {
                let held = hit.includes.iter().filter(|share| holds(share)).count();
                let boost = INCLUDE_BOOST * held as f64 / hit.includes.len() as f64;
                hit.score = Similarity::clamped(hit.score.get() + boost).unwrap_or(hit.score);
            }
            hit
        })
        .filter(|hit| hit.score >= min_score)
        .collect();
    kept.sort_by(|one, other| other.score.cmp(&one.score).then(one.rank.cmp(&other.rank)));
    kept.truncate(limit.min(SEARCH_LIMIT));
    kept
}

#[cfg(test)]
mod tests {
    use canonry_domain::{ItemNumber, Similarity};
    use proptest::prelude::{prop, prop_assert, proptest};

    use super::{SEARCH_LIMIT, SearchHit, apply_search_rules};

    fn hit(number: i64, score: f64, includes: &[f64], excludes: &[f64]) -> SearchHit {
        SearchHit {
            number: ItemNumber::new(number).expect("a number"),
            rank: usize::try_from(number).expect("a rank"),
            score: similarity(score),
            includes: includes.to_vec(),
            excludes: excludes.to_vec(),
        }
    }

    fn similarity(score: f64) -> Similarity {
        Similarity::new(score).expect("a score")
    }

    fn ruled(hits: Vec<SearchHit>, min_score: f64, limit: usize) -> Vec<(i64, f64)> {
        let hits = apply_search_rules(hits, similarity(min_score), limit);
        hits.into_iter().map(|hit| (hit.number.get(), hit.score.get())).collect()
    }

    #[test]
    fn include_terms_lift_and_exclude_terms_drop() {
        let hits = vec![
            hit(1, 0.50, &[0.0], &[0.0]),
            hit(2, 0.40, &[0.2], &[0.19]),
            hit(3, 0.90, &[1.0], &[0.2]),
            hit(4, 0.20, &[1.0], &[0.0]),
            hit(5, 0.14, &[1.0], &[0.0]),
        ];
        assert_eq!(ruled(hits, 0.30, 10), [(2, 0.55), (1, 0.5), (4, 0.35)]);
    }

    #[test]
    fn several_include_terms_share_the_boost_and_a_score_stops_at_one() {
        let hits = vec![hit(1, 0.40, &[1.0, 0.0, 0.0], &[]), hit(2, 0.95, &[1.0, 1.0, 1.0], &[])];
        assert_eq!(ruled(hits, 0.30, 10), [(2, 1.0), (1, 0.45)]);
    }

    #[test]
    fn equals_keep_their_rank_and_the_limit_is_the_last_word() {
        let hits: Vec<SearchHit> = (1..=80).map(|number| hit(number, 0.5, &[], &[])).collect();
        assert_eq!(ruled(hits.clone(), 0.30, 2), [(1, 0.5), (2, 0.5)]);
        assert_eq!(ruled(hits, 0.30, 500).len(), SEARCH_LIMIT);
    }

    proptest! {
        #[test]
        fn what_stays_is_in_order_and_lost_nothing(
            scores in prop::collection::vec((0.0..=1.0_f64, 0.0..=1.0_f64, 0.0..=1.0_f64), 0..30),
        ) {
            let hits: Vec<SearchHit> = (1_i64..)
                .zip(&scores)
                .map(|(number, &(score, include, exclude))| hit(number, score, &[include], &[exclude]))
                .collect();
            let kept = apply_search_rules(hits.clone(), similarity(0.3), 50);
            prop_assert!(kept.is_sorted_by(|one, other| one.score >= other.score));
            for hit in hits {
                let stays = hit.excludes[0] < 0.2 && kept.iter().any(|other| other.number == hit.number);
                let lifted = hit.score.get() + if hit.includes[0] >= 0.2 { 0.15 } else { 0.0 };
                prop_assert!(stays == (hit.excludes[0] < 0.2 && similarity(lifted.min(1.0)).get() >= 0.3));
            }
        }
    }
}
