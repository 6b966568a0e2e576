//! Which remarks name the same problem.

use std::collections::BTreeSet;

use crate::review::LineRange;

/// How much the share of common words adds to the cosine. Of 0, 0.5 and 1, the weight with the best pairs on the judged
/// comments of docs/benchmarks.md ("Referee").
const WORDS: f64 = 1.0;

/// The likeness from which two groups of remarks are one problem: the value with the best balance of right and missed
/// pairs on the same comments.
pub const AT_LEAST_ALIKE: f64 = 0.9;

/// Without vectors only words are compared; this share of common words is nearly the same sentence.
const WORDS_ALONE: f64 = 0.5;

/// The lines between two remarks about one problem: a bot names the call, another the function around it.
const NEAR: u32 = 10;

/// A remark, or a finding of Canonry, with what it is compared by.
#[derive(Debug, Clone)]
pub struct GroupedRemark<'a> {
    pub path: &'a str,
    pub lines: Option<LineRange>,
    pub words: &'a BTreeSet<String>,
    /// The vector of its text; `None` if no model is available.
    pub vector: Option<&'a [f32]>,
}

/// The words by which remarks are compared.
pub fn remark_words(text: &str) -> BTreeSet<String> {
    let parts = text.split(|c: char| !c.is_alphanumeric() && c != '_');
    parts.filter(|word| word.chars().count() > 2).map(str::to_lowercase).collect()
}

/// How alike two remarks are: the cosine of their vectors and the share of their common words. Zero for remarks at
/// different places.
pub fn likeness(one: &GroupedRemark<'_>, other: &GroupedRemark<'_>) -> f64 {
    if one.path != other.path || !are_near(one.lines, other.lines) {
        return 0.0;
    }
    let all = one.words.union(other.words).count();
    let common = one.words.intersection(other.words).count();
    let common = if all == 0 { 0.0 } else { common as f64 / all as f64 };
    match (one.vector, other.vector) {
        (Some(one), Some(other)) => cosine(one, other) + WORDS * common,
        _ => common * AT_LEAST_ALIKE / WORDS_ALONE,
    }
}

/// The groups of remarks that name one problem, by position; each remark is in one group. Two groups become one while
/// the mean likeness between their members is at least `at_least`, the most alike first. The mean keeps a chain of
/// half-alike remarks from becoming one problem.
pub fn group_remarks(remarks: &[GroupedRemark<'_>], at_least: f64) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = (0..remarks.len()).map(|at| vec![at]).collect();
    let mut alike: Vec<Vec<f64>> =
        remarks.iter().map(|one| remarks.iter().map(|other| likeness(one, other)).collect()).collect();
    while let Some((one, other)) = most_alike(&alike, at_least) {
        let (mine, others) = (groups[one].len() as f64, groups[other].len() as f64);
        let mean = |(own, its): (&f64, &f64)| (own * mine + its * others) / (mine + others);
        let means: Vec<f64> = alike[one].iter().zip(&alike[other]).map(mean).collect();
        for (row, mean) in alike.iter_mut().zip(&means) {
            row[one] = *mean;
        }
        alike[one] = means;
        let joined = groups.remove(other);
        groups[one].extend(joined);
        alike.remove(other);
        for row in &mut alike {
            row.remove(other);
        }
    }
    for group in &mut groups {
        group.sort_unstable();
    }
    groups
}

/// The most alike pair of groups; of equal ones the first.
fn most_alike(alike: &[Vec<f64>], at_least: f64) -> Option<(usize, usize)> {
    let mut best: Option<(usize, usize, f64)> = None;
    for (one, row) in alike.iter().enumerate() {
        for (other, likeness) in row.iter().enumerate().skip(one + 1) {
            if *likeness >= at_least && best.is_none_or(|(_, _, than)| *likeness > than) {
                best = Some((one, other, *likeness));
            }
        }
    }
    best.map(|(one, other, _)| (one, other))
}

fn are_near(one: Option<LineRange>, other: Option<LineRange>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => {
            one.first <= other.last.saturating_add(NEAR) && other.first <= one.last.saturating_add(NEAR)
        }
        // Outdated remarks and findings about a whole file have no line.
        _ => true,
    }
}

fn cosine(one: &[f32], other: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
    let lengths = (dot(one, one) * dot(other, other)).sqrt();
    if lengths > 0.0 && one.len() == other.len() { dot(one, other) / lengths } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::{prop, prop_assert_eq, proptest};

    use super::{AT_LEAST_ALIKE, GroupedRemark, group_remarks, remark_words};
    use crate::review::LineRange;

    fn grouped(told: &[(&str, u32, &str)]) -> Vec<Vec<usize>> {
        let words: Vec<BTreeSet<String>> = told.iter().map(|(_, _, text)| remark_words(text)).collect();
        let remarks: Vec<GroupedRemark<'_>> = told
            .iter()
            .zip(&words)
            .map(|((path, line, _), words)| GroupedRemark {
                path,
                lines: LineRange::new(*line, *line),
                words,
                vector: None,
            })
            .collect();
        group_remarks(&remarks, AT_LEAST_ALIKE)
    }

    #[test]
    fn one_problem_at_one_place_is_one_group() {
        let told = [
            ("a.js", 10, "the file handle leaks when reading fails"),
            ("a.js", 14, "file handle leaks when the reading fails early"),
            // Another place, another file, another problem.
            ("a.js", 90, "the file handle leaks when reading fails"),
            ("b.js", 10, "the file handle leaks when reading fails"),
            ("a.js", 10, "rename this variable"),
        ];
        assert_eq!(grouped(&told), [vec![0, 1], vec![2], vec![3], vec![4]]);
        assert_eq!(grouped(&[]), Vec::<Vec<usize>>::new());
    }

    proptest! {
        #[test]
        fn each_remark_is_in_one_group(lines in prop::collection::vec((1u32..40, 0usize..4), 0..20)) {
            let texts = ["the handle leaks here", "a handle leaks here", "rename the variable", ""];
            let told: Vec<(&str, u32, &str)> = lines.iter().map(|(line, text)| ("a.js", *line, texts[*text])).collect();
            let mut all: Vec<usize> = grouped(&told).into_iter().flatten().collect();
            all.sort_unstable();
            prop_assert_eq!(all, (0..told.len()).collect::<Vec<usize>>());
        }
    }
}
