//! The weights of the ranker, as `training/fit_ranker.py` wrote them.

use canonry_domain::ItemType;

use crate::ranker::{RANKER_FEATURES, RankerFeatures};

/// The weights for issues or pull requests, with or without token vectors.
pub(crate) fn weights(item_type: ItemType, late: bool) -> &'static RankerFeatures {
    match (item_type, late) {
        (ItemType::Issue, true) => &ISSUES,
        (ItemType::Issue, false) => &ISSUES_WITHOUT_LATE,
        (ItemType::Pr, true) => &PULLS,
        (ItemType::Pr, false) => &PULLS_WITHOUT_LATE,
    }
}

// <weights>
const ISSUES: [f64; RANKER_FEATURES.len()] = [
    5.234,  // dense
    0.533,  // late
    2.923,  // lexical
    1.868,  // words_back
    2.698,  // title_within
    1.777,  // title_within_back
    1.652,  // evidence
    0.000,  // paths
    0.000,  // diff
    0.000,  // diff_back
    4.587,  // near
    -0.941, // same_author
    -0.950, // sibling
    -0.694, // series
];
const ISSUES_WITHOUT_LATE: [f64; RANKER_FEATURES.len()] = [
    5.756,  // dense
    0.000,  // late
    2.953,  // lexical
    1.954,  // words_back
    2.730,  // title_within
    1.824,  // title_within_back
    1.640,  // evidence
    0.000,  // paths
    0.000,  // diff
    0.000,  // diff_back
    4.584,  // near
    -0.934, // same_author
    -0.946, // sibling
    -0.678, // series
];
const PULLS: [f64; RANKER_FEATURES.len()] = [
    1.834,  // dense
    0.078,  // late
    0.802,  // lexical
    0.000,  // words_back
    0.000,  // title_within
    1.796,  // title_within_back
    0.000,  // evidence
    2.798,  // paths
    3.113,  // diff
    2.146,  // diff_back
    4.649,  // near
    -0.835, // same_author
    0.000,  // sibling
    0.000,  // series
];
const PULLS_WITHOUT_LATE: [f64; RANKER_FEATURES.len()] = [
    1.926,  // dense
    0.000,  // late
    0.814,  // lexical
    0.000,  // words_back
    0.000,  // title_within
    1.804,  // title_within_back
    0.000,  // evidence
    2.797,  // paths
    3.111,  // diff
    2.151,  // diff_back
    4.645,  // near
    -0.835, // same_author
    0.000,  // sibling
    0.000,  // series
];
// </weights>
