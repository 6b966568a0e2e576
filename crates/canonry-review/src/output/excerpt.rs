//! The code that findings are about, as far as it is shown beside them.

use std::collections::{BTreeMap, BTreeSet};

use canonry_domain::review::{LineRange, RepoPath, ShownAs};
use canonry_domain::scan_secrets;

use super::columns::fitted;
use crate::change::git::{Git, GitError};
use crate::change::head_texts::HeadTexts;
use crate::run::report::ReviewReport;

/// Lines before and after the flagged ones.
const AROUND: u32 = 2;
/// Flagged lines that are shown; of more, only the first ones.
const FLAGGED: u32 = 6;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Excerpts {
    texts: BTreeMap<RepoPath, String>,
}

impl Excerpts {
    /// Asks git for the files whose code is shown. What is not text or too large is left out.
    pub async fn read(git: &Git, report: &ReviewReport) -> Result<Self, GitError> {
        let paths = paths_shown(report);
        Ok(Self::of(report, &HeadTexts::read(git, &report.head, &[], &paths).await?))
    }

    /// Takes the files whose code is shown out of those that were read.
    pub fn of(report: &ReviewReport, texts: &HeadTexts) -> Self {
        let text = |path: RepoPath| {
            let text = texts.get(&path)?.to_owned();
            Some((path, text))
        };
        paths_shown(report).into_iter().filter_map(text).collect()
    }

    /// The flagged lines of a file with some around them; empty where the file does not have them.
    pub(super) fn around(&self, path: &RepoPath, lines: LineRange, width: usize) -> Vec<ExcerptLine> {
        let Some(text) = self.texts.get(path) else { return Vec::new() };
        let shown = lines.last.min(lines.first.saturating_add(FLAGGED - 1));
        let left_out = lines.last - shown;
        let after = if left_out == 0 { AROUND } else { 0 };
        let (first, last) = (lines.first.saturating_sub(AROUND).max(1), shown.saturating_add(after));
        let mut excerpt = Vec::new();
        for (number, line) in (first..=last).zip(text.lines().skip(first as usize - 1)) {
            let flagged = number >= lines.first && number <= lines.last;
            excerpt.push(ExcerptLine::Code { number, flagged, code: fitted(line, width) });
        }
        // A report on a file that has changed since: the code around would be about something else.
        if !excerpt.iter().any(|line| matches!(line, ExcerptLine::Code { flagged: true, .. })) {
            return Vec::new();
        }
        let goes_on = excerpt.len() > (shown - first) as usize;
        if left_out > 0 && goes_on {
            excerpt.push(ExcerptLine::LeftOut(left_out));
        }
        excerpt
    }
}

impl FromIterator<(RepoPath, String)> for Excerpts {
    fn from_iter<I: IntoIterator<Item = (RepoPath, String)>>(texts: I) -> Self {
        Self { texts: texts.into_iter().map(|(path, text)| (path, without_secrets(&text))).collect() }
    }
}

/// The text with each secret replaced by its kind, and with as many lines: logs of builds are read by many.
fn without_secrets(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut end = 0;
    for secret in scan_secrets(text) {
        shown.push_str(&text[end..secret.range.start]);
        shown.push_str(&format!("[redacted {}]", secret.kind));
        shown.extend(text[secret.range.clone()].matches('\n'));
        end = secret.range.end;
    }
    shown.push_str(&text[end..]);
    shown
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ExcerptLine {
    Code {
        number: u32,
        flagged: bool,
        code: String,
    },
    /// So many more flagged lines that are not shown.
    LeftOut(u32),
}

fn paths_shown(report: &ReviewReport) -> BTreeSet<RepoPath> {
    let inline = report.standing().filter(|one| one.shown == ShownAs::Inline);
    inline.filter(|one| one.sighting.finding.lines.is_some()).map(|one| one.sighting.finding.path.clone()).collect()
}

#[cfg(test)]
mod tests {
    use canonry_domain::review::{LineRange, RepoPath};

    use super::{ExcerptLine, Excerpts};

    fn shown(text: &str, first: u32, last: u32) -> Vec<String> {
        let path = RepoPath::new("a.rs").expect("a path");
        let excerpts: Excerpts = [(path.clone(), text.to_owned())].into_iter().collect();
        let lines = LineRange::new(first, last).expect("lines");
        let line = |line: ExcerptLine| match line {
            ExcerptLine::Code { number, flagged, code } => format!("{}{number} {code}", if flagged { ">" } else { "" }),
            ExcerptLine::LeftOut(more) => format!("+{more}"),
        };
        excerpts.around(&path, lines, 40).into_iter().map(line).collect()
    }

    #[test]
    fn the_flagged_lines_stand_among_others() {
        let text = "one\r\ntwo\r\n\tthree\r\nfour\r\nfive\r\nsix";
        assert_eq!(shown(text, 3, 3), ["1 one", "2 two", ">3     three", "4 four", "5 five"]);
        assert_eq!(shown(text, 1, 1), [">1 one", "2 two", "3     three"]);
        assert_eq!(shown(text, 6, 6), ["4 four", "5 five", ">6 six"]);
    }

    #[test]
    fn a_secret_is_not_repeated_and_moves_no_line() {
        let token = ["gh", "p_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"].concat();
        let body = "MIIEowIBAAKCAQEA3Tz2mr7SZiAMfQyuvBjM9Oi";
        let kind = ["PRIVATE", " KEY"].concat();
        let key = format!("-----BEGIN RSA {kind}-----\n{body}{body}\n-----END RSA {kind}-----");
        let text = format!("let t = '{token}';\n{key}\nlast();\n");
        assert_eq!(shown(&text, 1, 1)[0], ">1 let t = '[redacted GitHub token]';");
        assert_eq!(shown(&text, 5, 5), ["3 ", "4 ", ">5 last();"]);
    }

    #[test]
    fn what_is_not_there_is_not_shown() {
        assert_eq!(shown("one\ntwo\n", 3, 3), [""; 0]);
        assert_eq!(shown("one\ntwo\n", 4_000_000_000, u32::MAX), [""; 0]);
        assert_eq!(shown("", 1, 1), [""; 0]);
        assert_eq!(shown("one\ntwo\n", 2, 9), ["1 one", ">2 two"]);
    }

    #[test]
    fn many_lines_are_cut() {
        let text: String = (1..=50).map(|line| format!("{line}\n")).collect();
        let lines = shown(&text, 10, 40);
        assert_eq!((lines.len(), lines[0].as_str(), lines[8].as_str()), (9, "8 8", "+25"));
    }
}
