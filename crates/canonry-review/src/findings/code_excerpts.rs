//! Adds to findings the code that they are about, from the head of the change.

use std::collections::BTreeMap;

use canonry_domain::review::{CodeExcerpt, RepoPath, without_secrets};

use crate::change::head_texts::HeadTexts;
use crate::run::report::ReportedFinding;

/// Adds the code of its lines to each finding that is not fixed. A file is searched for secrets once.
pub(crate) fn add_excerpts(findings: &mut [ReportedFinding], texts: &HeadTexts) {
    let mut shown: BTreeMap<RepoPath, String> = BTreeMap::new();
    for one in findings.iter_mut().filter(|one| !one.is_fixed()) {
        let finding = &one.sighting.finding;
        let Some((lines, text)) = finding.lines.zip(texts.get(&finding.path)) else { continue };
        let text = shown.entry(finding.path.clone()).or_insert_with(|| without_secrets(text));
        one.excerpt = CodeExcerpt::around(text, lines);
    }
}
