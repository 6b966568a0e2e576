//! Computes the state of each finding of a pull request after a run, and its status since the run before.

use crate::review::{FileMaps, Finding, TrackedFinding, TrackedFindings, UnseenFinding, Witness};
use crate::text_enum;

text_enum! {
    pub enum FindingStatus: "a status of a finding" {
        /// The finding was not reported before.
        New = "new",
        Same = "same",
        /// The finding is on another line or in another file.
        Moved = "moved",
        Fixed = "fixed",
        Reopened = "reopened",
        /// A person dismissed the finding, and its code is unchanged.
        Dismissed = "dismissed",
    }
}

/// A finding as it is after one run.
#[derive(Debug, Clone, PartialEq)]
pub struct Sighting {
    /// The finding at its current place; a fixed one at its last place.
    pub finding: Finding,
    /// Its index among the earlier findings; `None` for a new one.
    pub earlier: Option<usize>,
    pub status: FindingStatus,
    pub reported: bool,
    /// Whether the flagged code is unchanged, or for a finding without code, its file; false for a new finding.
    pub code_unchanged: bool,
}

impl Sighting {
    /// Whether nothing new has to be posted: the finding was reported before, on the same code.
    pub fn is_known(&self) -> bool {
        match self.status {
            FindingStatus::Same | FindingStatus::Moved => self.code_unchanged,
            FindingStatus::Dismissed | FindingStatus::Fixed => true,
            FindingStatus::New | FindingStatus::Reopened => false,
        }
    }
}

/// The results of a run: the reported findings in their order, then the earlier ones that no reviewer reports.
///
/// A finding on unchanged code keeps the greater of its earlier and its current severity, and those witnesses that did
/// not read its file this time.
pub fn sightings(
    earlier: &[TrackedFinding],
    now: Vec<Finding>,
    tracked: &TrackedFindings,
    files: &FileMaps,
) -> Vec<Sighting> {
    let mut all: Vec<Sighting> = now
        .into_iter()
        .map(|finding| Sighting {
            finding,
            earlier: None,
            status: FindingStatus::New,
            reported: true,
            code_unchanged: false,
        })
        .collect();
    for followed in &tracked.followed {
        let (before, sighting) = (&earlier[followed.earlier], &mut all[followed.now]);
        sighting.earlier = Some(followed.earlier);
        sighting.code_unchanged = followed.code_unchanged;
        if followed.code_unchanged {
            stand_by(&mut sighting.finding, &before.finding, files);
        }
        sighting.status = status(before, &sighting.finding);
    }
    for (at, fate) in &tracked.unseen {
        let before = &earlier[*at];
        let mut finding = before.finding.clone();
        let status = match fate {
            UnseenFinding::Fixed => FindingStatus::Fixed,
            UnseenFinding::Stands { path, lines } => {
                (finding.path, finding.lines) = (path.clone(), *lines);
                finding.tell_removed_credential();
                status(before, &finding)
            }
        };
        all.push(Sighting { finding, earlier: Some(*at), status, reported: false, code_unchanged: true });
    }
    all
}

/// Keeps what no reviewer withdrew. A lower severity for the same code does not make the earlier, greater one less
/// credible, and a reviewer that did not read the file stays a witness. Otherwise a model's variation or a tool that
/// does not run would hide or fix the finding.
fn stand_by(now: &mut Finding, before: &Finding, files: &FileMaps) {
    now.take_graver(before.severity, before.category);
    let reported = std::mem::take(&mut now.witnesses);
    let is_absent = |one: &Witness| !files.read.contains(&(one.reviewer.clone(), now.path.clone()));
    let (again, others): (Vec<_>, Vec<_>) = before.witnesses.iter().partition(|one| reported.contains(one));
    let absent: Vec<&Witness> = others.into_iter().filter(|one| is_absent(one)).collect();
    if !absent.is_empty() {
        for (name, value) in &before.partial {
            now.partial.entry(name.clone()).or_insert_with(|| value.clone());
        }
        now.tags.extend(before.tags.iter().cloned());
    }
    // The witnesses keep their former order, so that the finding keeps its pattern.
    let kept = before.witnesses.iter().filter(|one| again.contains(one) || absent.contains(one));
    now.witnesses = kept.cloned().collect();
    now.witnesses.extend(reported.into_iter().filter(|one| !again.contains(&one)));
}

fn status(before: &TrackedFinding, now: &Finding) -> FindingStatus {
    let line = |finding: &Finding| finding.lines.map(|lines| lines.first);
    if before.dismissals.iter().any(|dismissal| dismissal.holds(now)) {
        FindingStatus::Dismissed
    } else if before.fixed {
        FindingStatus::Reopened
    } else if before.finding.path == now.path && (line(&before.finding) == line(now) || now.is_removed_credential()) {
        FindingStatus::Same
    } else {
        FindingStatus::Moved
    }
}

#[cfg(test)]
mod tests {
    use super::{FindingStatus, sightings};
    use crate::review::finding::tests::finding;
    use crate::review::{
        Category, CodeHash, CodeIndex, Dismissal, DismissalKind, Dismisser, FileMaps, Finding, ReviewerName, Severity,
        TrackedFinding, is_protected, merge_witnesses, track,
    };

    fn eslint(line: u32, title: &str) -> Finding {
        finding("a.js", line, ReviewerName::tool("eslint"), title)
    }

    fn was(finding: Finding) -> TrackedFinding {
        TrackedFinding { finding, fixed: false, dismissals: Vec::new() }
    }

    fn dismissed(finding: Finding) -> TrackedFinding {
        let by = Dismisser::Author;
        let (kind, code, at) = (DismissalKind::Resolved, finding.code.clone(), jiff::Timestamp::UNIX_EPOCH);
        let protected = is_protected(finding.severity, finding.category);
        TrackedFinding { dismissals: vec![Dismissal { kind, by, code, protected, at }], ..was(finding) }
    }

    #[test]
    fn every_finding_has_its_status() {
        let earlier = [
            was(eslint(1, "Same")),
            was(eslint(2, "Moved")),
            was(eslint(3, "Fixed")),
            TrackedFinding { fixed: true, ..was(eslint(4, "Reopened")) },
            dismissed(eslint(5, "Dismissed")),
            TrackedFinding { fixed: true, ..was(eslint(6, "Long gone")) },
        ];
        let now = vec![
            eslint(1, "Same"),
            eslint(20, "Moved"),
            eslint(4, "Reopened"),
            eslint(5, "Dismissed"),
            eslint(7, "New"),
        ];
        let read = [(ReviewerName::tool("eslint"), now[0].path.clone())].into();
        let files = FileMaps { read, ..FileMaps::default() };
        let tracked = track(&earlier, &now, &files, &mut CodeIndex::default());
        let all = sightings(&earlier, now, &tracked, &files);
        let seen: Vec<_> =
            all.iter().map(|one| (one.finding.title.as_str(), one.status, one.reported, one.is_known())).collect();
        assert_eq!(
            seen,
            [
                ("Same", FindingStatus::Same, true, true),
                ("Moved", FindingStatus::Moved, true, true),
                ("Reopened", FindingStatus::Reopened, true, false),
                ("Dismissed", FindingStatus::Dismissed, true, true),
                ("New", FindingStatus::New, true, false),
                ("Fixed", FindingStatus::Fixed, false, true),
            ]
        );
    }

    #[test]
    fn a_dismissed_one_speaks_again_when_its_code_changes() {
        let earlier = [dismissed(eslint(5, "Eval"))];
        let now = vec![Finding { code: Some(CodeHash::of(["eval(other)"])), ..eslint(5, "Eval") }];
        let tracked = track(&earlier, &now, &FileMaps::default(), &mut CodeIndex::default());
        let all = sightings(&earlier, now, &tracked, &FileMaps::default());
        assert_eq!(
            (all.len(), all[0].status, all[0].earlier, all[0].is_known()),
            (1, FindingStatus::Same, Some(0), false)
        );
    }

    /// A run in which these tools read the file of the findings.
    fn run(earlier: &[TrackedFinding], now: Vec<Finding>, read: &[&str]) -> Vec<super::Sighting> {
        let path = crate::review::RepoPath::new("a.js").expect("a path");
        let read = read.iter().map(|tool| (ReviewerName::tool(tool), path.clone())).collect();
        let files = FileMaps { read, ..FileMaps::default() };
        let tracked = track(earlier, &now, &files, &mut CodeIndex::default());
        sightings(earlier, now, &tracked, &files)
    }

    #[test]
    fn a_milder_word_about_the_same_code_takes_nothing_back() {
        let of = |severity, category| Finding { severity, category, ..eslint(5, "Eval") };
        let critical = of(Severity::Critical, Category::Security);
        let again = run(&[dismissed(critical.clone())], vec![of(Severity::Minor, Category::Style)], &["eslint"]);
        let seen = (again[0].status, again[0].finding.severity, again[0].finding.category);
        // The author's dismissal cannot hold any more either.
        assert_eq!(seen, (FindingStatus::Same, Severity::Critical, Category::Security));
        let major = of(Severity::Major, Category::Security);
        let style = run(&[was(major)], vec![of(Severity::Major, Category::Style)], &["eslint"]);
        assert_eq!(style[0].finding.category, Category::Security);
        let graver = run(&[was(of(Severity::Minor, Category::Style))], vec![critical.clone()], &["eslint"]);
        assert_eq!((graver[0].finding.severity, graver[0].finding.category), (Severity::Critical, Category::Security));
        // On other code the finding is assessed again.
        let other = Finding { code: Some(CodeHash::of(["y"])), ..of(Severity::Minor, Category::Style) };
        let changed = run(&[was(critical)], vec![other], &["eslint"]);
        assert_eq!((changed[0].finding.severity, changed[0].code_unchanged), (Severity::Minor, false));
    }

    #[test]
    fn a_tool_that_is_not_run_takes_nothing_back() {
        let of = |tool: &str, severity| Finding {
            severity,
            partial: [(tool.to_owned(), "1".to_owned())].into(),
            tags: [tool.to_owned()].into(),
            ..finding("a.js", 5, ReviewerName::tool(tool), "Eval")
        };
        let merged = merge_witnesses(vec![of("a", Severity::Critical), of("b", Severity::Minor)]);
        assert_eq!((merged.len(), merged[0].witnesses.len()), (1, 2));
        let without_a = run(&[was(merged[0].clone())], vec![of("b", Severity::Minor)], &["b"]);
        assert_eq!(without_a[0].finding, merged[0]);
        let silent = run(&[was(without_a[0].finding.clone())], Vec::new(), &["b"]);
        assert_eq!((silent[0].status, silent[0].reported), (FindingStatus::Same, false));
        // A tool that read the file and reports nothing is no longer a witness. Once this is true of both, the finding
        // is fixed.
        let unsaid = run(&[was(merged[0].clone())], vec![of("b", Severity::Minor)], &["a", "b"]);
        let left = &unsaid[0].finding;
        assert_eq!(
            (left.witnesses.as_slice(), &left.tags),
            (&of("b", Severity::Minor).witnesses[..], &["b".to_owned()].into())
        );
        let fixed = run(&[was(merged[0].clone())], Vec::new(), &["a", "b"]);
        assert_eq!(fixed[0].status, FindingStatus::Fixed);
        // A new witness comes last, and the finding keeps its pattern.
        let joined = run(&[was(of("b", Severity::Minor))], merged, &["a", "b"]);
        assert_eq!((joined[0].finding.witnesses.len(), joined[0].finding.key()), (2, of("b", Severity::Minor).key()));
    }

    #[test]
    fn a_remark_on_a_file_is_not_repeated_until_the_file_changes() {
        let remark = Finding { code: None, lines: None, ..eslint(1, "Too large") };
        let earlier = [was(remark.clone())];
        let known = |files: &FileMaps| {
            let now = vec![remark.clone()];
            let tracked = track(&earlier, &now, files, &mut CodeIndex::default());
            let all = sightings(&earlier, now, &tracked, files);
            (all[0].status, all[0].is_known())
        };
        assert_eq!(known(&FileMaps::default()), (FindingStatus::Same, true));
        let lines = [(remark.path.clone(), crate::review::LineMap::default())].into();
        assert_eq!(known(&FileMaps { lines, ..FileMaps::default() }), (FindingStatus::Same, false));
    }

    #[test]
    fn a_dismissed_one_that_nobody_looked_at_stays_dismissed() {
        let earlier = [dismissed(eslint(5, "Eval")), was(eslint(6, "Alert"))];
        let tracked = track(&earlier, &[], &FileMaps::default(), &mut CodeIndex::default());
        let all = sightings(&earlier, Vec::new(), &tracked, &FileMaps::default());
        let seen: Vec<_> = all.iter().map(|one| (one.status, one.reported)).collect();
        assert_eq!(seen, [(FindingStatus::Dismissed, false), (FindingStatus::Same, false)]);
    }
}
