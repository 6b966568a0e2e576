//! Computes the scores of a ranked list that are shown to people: they never contradict the order.

/// The similarities of a list, best rank first, adjusted so that none is greater than the one before it.
///
/// Neighbours are ranked by all available signals; gates compare only the similarity of the texts, which may be lower
/// for a better rank. Ranking by that number instead would cost 9 points of recall at 1 and 11 at 5 on the issues of
/// rust (.404 and .626 against .496 and .736, `docs/benchmarks.md`). So neighbours that contradict the order share the
/// mean of their similarities: the nearest falling sequence by least squares, within the bounds of the similarities.
/// If nothing contradicts the order, a score is the similarity.
pub fn ordered_scores(similarities: &[f64]) -> Vec<f64> {
    // The sum and the count of neighbours that share a score.
    let mut shared: Vec<(f64, usize)> = Vec::with_capacity(similarities.len());
    for similarity in similarities {
        shared.push((*similarity, 1));
        while let [.., (above, above_count), (below, below_count)] = shared[..]
            && above / (above_count as f64) < below / (below_count as f64)
        {
            shared.truncate(shared.len() - 2);
            shared.push((above + below, above_count + below_count));
        }
    }
    // Scores have four decimals.
    let mean = |(sum, count): (f64, usize)| ((sum / count as f64) * 10_000.0).round() / 10_000.0;
    shared.into_iter().flat_map(|one| std::iter::repeat_n(mean(one), one.1)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{Strategy, prop, prop_assert, prop_assert_eq, proptest};

    use super::ordered_scores;

    #[test]
    fn what_contradicts_the_order_shares_its_mean() {
        assert_eq!(ordered_scores(&[0.95, 0.9, 0.8]), [0.95, 0.9, 0.8]);
        assert_eq!(ordered_scores(&[0.75, 0.98]), [0.865, 0.865]);
        assert_eq!(ordered_scores(&[0.9, 0.8, 0.85, 0.7]), [0.9, 0.825, 0.825, 0.7]);
        assert_eq!(ordered_scores(&[0.7, 0.8, 0.9]), [0.8, 0.8, 0.8]);
        assert!(ordered_scores(&[]).is_empty());
    }

    proptest! {
        #[test]
        fn shown_scores_fall_and_stay_within_the_similarities(
            similarities in prop::collection::vec((0_u32..=10_000).prop_map(|score| f64::from(score) / 10_000.0), 0..12),
        ) {
            let shown = ordered_scores(&similarities);
            prop_assert_eq!(shown.len(), similarities.len());
            prop_assert!(shown.is_sorted_by(|one, other| one >= other), "{:?}", shown);
            let least = similarities.iter().copied().fold(f64::INFINITY, f64::min);
            let most = similarities.iter().copied().fold(0.0, f64::max);
            prop_assert!(shown.iter().all(|score| (least..=most).contains(score)), "{:?}", shown);
            prop_assert_eq!(&ordered_scores(&shown), &shown);
            if similarities.is_sorted_by(|one, other| one >= other) {
                prop_assert_eq!(shown, similarities);
            }
        }
    }
}
