//! The fitted weights of the local judge.
//!
//! Logistic regression by `training/fit_judge.py` over the pairs that retrieval offers (up to eight earlier items for every
//! item, score at least .75): issues of rust, gitbugs_hadoop, gitbugs_seamonkey and openoffice (which counts a tenth: its
//! text is stripped, and all of it are duplicates), pull requests of rust and rails. The label is what people linked, so
//! copies that nobody linked count as others; the rules in `local_judge.rs` mend that. The intercept belongs to a
//! repository in which half of the issues (a quarter of the pull requests) have an earlier duplicate; moved there, the
//! intercepts of the four sets of issues lie between -3.6 and -3.0, which is why one can stand for all.

use canonry_domain::ItemType;

use crate::local_judge_features::FEATURES;

/// How likely a pair is a duplicate by what it shares, from 0 to 1.
pub(crate) fn probability(item_type: ItemType, features: &[f64; FEATURES.len()]) -> f64 {
    let (intercept, weights) = match item_type {
        ItemType::Issue => (ISSUE_INTERCEPT, &ISSUE_WEIGHTS),
        ItemType::Pr => (PULL_INTERCEPT, &PULL_WEIGHTS),
    };
    let sum: f64 = weights.iter().zip(features).map(|(weight, feature)| weight * feature).sum();
    1.0 / (1.0 + (-(intercept + sum)).exp())
}

const ISSUE_INTERCEPT: f64 = -3.226;
const ISSUE_WEIGHTS: [f64; FEATURES.len()] = [
    2.980,  // score
    1.096,  // lexical
    0.237,  // evidence
    -0.840, // title_overlap
    -0.718, // title_one_word_differs
    -0.107, // title_each_own
    -0.507, // title_names_differ
    -0.699, // title_numbers_differ
    -0.946, // triples
    0.982,  // contained
    3.250,  // titles_in_texts
    1.404,  // error_shared
    0.439,  // frames_shared
    -0.888, // places_differ
    -1.734, // same_author
    -1.136, // same_author_within_hour
    -2.504, // far_in_time
    0.667,  // best_words
    0.097,  // best_score
    -1.797, // behind_words
    -1.270, // crowd
    0.138,  // short
    0.474,  // distinct
    0.000,  // paths
    0.000,  // diff
];

const PULL_INTERCEPT: f64 = -4.951;
const PULL_WEIGHTS: [f64; FEATURES.len()] = [
    0.461,  // score
    0.984,  // lexical
    0.759,  // evidence
    -0.700, // title_overlap
    -0.248, // title_one_word_differs
    0.982,  // title_each_own
    0.064,  // title_names_differ
    -0.241, // title_numbers_differ
    -1.872, // triples
    -0.496, // contained
    0.706,  // titles_in_texts
    -0.140, // error_shared
    -0.001, // frames_shared
    -0.012, // places_differ
    -1.554, // same_author
    -0.218, // same_author_within_hour
    -2.638, // far_in_time
    0.600,  // best_words
    -0.098, // best_score
    -0.985, // behind_words
    -1.304, // crowd
    0.150,  // short
    0.531,  // distinct
    2.008,  // paths
    3.404,  // diff
];
