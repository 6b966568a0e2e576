//! Describes in plain text which reviewers ran and what they cost.

use canonry_domain::counted;

use crate::run::report::{ModelUse, ReviewReport, ReviewerRun};

/// The notes of the review and of each reviewer; nothing is quoted.
pub(crate) fn notes(report: &ReviewReport) -> impl Iterator<Item = String> {
    let own = |one: &'_ ReviewerRun| one.notes.iter().map(|note| format!("{}: {note}", one.name)).collect::<Vec<_>>();
    report.notes.iter().cloned().chain(report.reviewers.iter().flat_map(own))
}

/// The reviewers, and how many findings each reported; names are not quoted.
pub fn reviewers_in_words(reviewers: &[ReviewerRun]) -> String {
    let words: Vec<String> =
        reviewers.iter().map(|one| format!("{} ({})", one.name, counted(one.findings as u64, "finding"))).collect();
    words.join(", ")
}

/// The calls to a model and their cost. An unknown price is left out, not shown as free.
pub fn model_in_words(model: &ModelUse) -> String {
    let cost = model.cost_usd.map_or_else(String::new, |cost| format!(", ${cost:.4}"));
    format!(
        "{}: {}, {} in, {} out{cost}",
        model.model,
        counted(u64::from(model.calls), "call"),
        counted(model.input_tokens, "token"),
        counted(model.output_tokens, "token"),
    )
}

#[cfg(test)]
mod tests {
    use super::{model_in_words, reviewers_in_words};
    use crate::run::report::{ModelUse, ReviewerRun};

    #[test]
    fn who_and_how_much() {
        let reviewer = |name: &str, findings| ReviewerRun {
            name: name.into(),
            findings,
            files: 1,
            problems: vec![],
            notes: vec![],
        };
        assert_eq!(
            reviewers_in_words(&[reviewer("builtin", 1), reviewer("eslint", 0)]),
            "builtin (1 finding), eslint (0 findings)"
        );
        let asked =
            |cost_usd| ModelUse { model: "m-1".into(), calls: 3, input_tokens: 12_345, output_tokens: 1, cost_usd };
        assert_eq!(model_in_words(&asked(Some(0.03125))), "m-1: 3 calls, 12,345 tokens in, 1 token out, $0.0312");
        assert_eq!(model_in_words(&asked(None)), "m-1: 3 calls, 12,345 tokens in, 1 token out");
    }
}
