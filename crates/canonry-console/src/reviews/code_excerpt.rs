//! Flagged code with the lines around it.

use canonry_domain::review::{CodeExcerpt, RepoPath};

/// The data of `reviews/code_excerpt.html`, under the name `excerpt`.
pub(crate) struct ExcerptView {
    pub(crate) place: String,
    pub(crate) lines: Vec<CodeLineView>,
    pub(crate) left_out: u32,
}

pub(crate) struct CodeLineView {
    pub(crate) number: u32,
    pub(crate) is_flagged: bool,
    pub(crate) code: String,
}

impl ExcerptView {
    pub(crate) fn new(path: &RepoPath, excerpt: &CodeExcerpt) -> Self {
        let line =
            |(number, is_flagged, code): (u32, bool, &str)| CodeLineView { number, is_flagged, code: code.to_owned() };
        Self {
            place: format!("{path}:{}", excerpt.flagged.first),
            lines: excerpt.numbered().map(line).collect(),
            left_out: excerpt.left_out(),
        }
    }
}
