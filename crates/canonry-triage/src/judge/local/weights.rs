//! The fitted weights of the local judge.
//!
//! Logistic regression by `training/fit_judge.py` over the pairs that retrieval offers (up to eight earlier items for
//! every item, score at least .75, in the order of the ranker), with vectors of models that had not seen the
//! duplicates: issues of rust before July 2014, gitbugs_hadoop, gitbugs_seamonkey and openoffice (weighted by a
//! tenth: its text is stripped, and all of its items are duplicates), pull requests of rust and rails. The labels are
//! the links that people made, so copies that nobody linked count as non-duplicates; the rules in `answer.rs` correct
//! that. The intercept is for a repository in which half of the issues (a quarter of the pull requests) have an
//! earlier duplicate. Adjusted to that share, the intercepts of the four sets of issues lie between -3.7 and -2.9, so
//! one value can be used for all.

use canonry_domain::ItemType;

use crate::judge::local::features::FEATURES;

/// The probability that a pair with these features is a duplicate.
pub(crate) fn probability(item_type: ItemType, features: &[f64; FEATURES.len()]) -> f64 {
    let (intercept, weights) = match item_type {
        ItemType::Issue => (ISSUE_INTERCEPT, &ISSUE_WEIGHTS),
        ItemType::Pr => (PULL_INTERCEPT, &PULL_WEIGHTS),
    };
    let sum: f64 = weights.iter().zip(features).map(|(weight, feature)| weight * feature).sum();
    1.0 / (1.0 + (-(intercept + sum)).exp())
}

const ISSUE_INTERCEPT: f64 = -3.351;
const ISSUE_WEIGHTS: [f64; FEATURES.len()] = [
    3.245,  // score
    1.223,  // lexical
    0.238,  // evidence
    -0.688, // title_overlap
    -0.574, // title_one_word_differs
    -0.384, // title_each_own
    -0.656, // title_names_differ
    -0.348, // title_numbers_differ
    -1.190, // triples
    0.263,  // contained
    1.480,  // titles_in_texts
    1.171,  // error_shared
    0.752,  // frames_shared
    -0.120, // places_differ
    -1.667, // same_author
    -0.690, // same_author_within_hour
    -1.448, // far_in_time
    -0.225, // behind_words
    -0.597, // crowd
    -0.461, // short
    0.598,  // distinct
    0.000,  // paths
    0.000,  // diff
    0.269,  // late
    0.163,  // ranker
    1.584,  // ahead_by_ranker
    -0.896, // behind_by_ranker
];

const PULL_INTERCEPT: f64 = -5.869;
const PULL_WEIGHTS: [f64; FEATURES.len()] = [
    0.402,  // score
    0.156,  // lexical
    0.639,  // evidence
    -0.923, // title_overlap
    -0.259, // title_one_word_differs
    0.919,  // title_each_own
    0.113,  // title_names_differ
    -0.236, // title_numbers_differ
    -1.820, // triples
    -0.401, // contained
    0.382,  // titles_in_texts
    -0.084, // error_shared
    -0.001, // frames_shared
    -0.010, // places_differ
    -1.652, // same_author
    -0.311, // same_author_within_hour
    -2.848, // far_in_time
    -0.369, // behind_words
    -1.063, // crowd
    -0.094, // short
    -0.073, // distinct
    1.074,  // paths
    2.087,  // diff
    0.090,  // late
    2.726,  // ranker
    1.203,  // ahead_by_ranker
    -0.522, // behind_by_ranker
];
