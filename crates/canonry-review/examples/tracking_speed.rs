//! Measures how long it takes to track findings across a push, as Markdown: `tracking_speed [FINDINGS…]`.
//!
//! Each file has two hundred lines and ten findings. The push adds a line at the top of each file, renames every tenth
//! file and fixes every fiftieth finding. Only the tracking is measured, with the files hashed again as in a review.
#![expect(clippy::print_stdout, reason = "the table is what this program is for")]

use std::collections::BTreeMap;
use std::error::Error;
use std::time::Instant;

use canonry_domain::review::{
    Category, CodeIndex, FileMaps, Finding, Fingerprint, Hunk, LineMap, LineRange, PatternKey, RepoPath, ReviewerName,
    Severity, TrackedFinding, TrackedFindings, Witness, around, flagged, track,
};

const LINES: u32 = 200;
const IN_A_FILE: usize = 10;
const ROUNDS: usize = 5;

fn main() -> Result<(), Box<dyn Error>> {
    let counts: Vec<usize> = std::env::args().skip(1).map(|count| count.parse()).collect::<Result<_, _>>()?;
    let counts = if counts.is_empty() { vec![5_000, 10_000, 20_000, 40_000] } else { counts };
    println!("| findings | seconds, the median of {ROUNDS} | times the one before |\n|---:|---:|---:|");
    let mut before = None;
    for count in counts {
        let push = Push::of(count)?;
        let mut seconds: Vec<f64> = Vec::new();
        for _ in 0..ROUNDS {
            let began = Instant::now();
            let mut index = CodeIndex::new(push.texts.iter().map(|(path, text)| (path, text.as_str())));
            let tracked = track(&push.earlier, &push.now, &push.files, &mut index);
            seconds.push(began.elapsed().as_secs_f64());
            push.check(&tracked)?;
        }
        seconds.sort_by(f64::total_cmp);
        let median = seconds[seconds.len() / 2];
        let growth = before.map_or(String::new(), |before: f64| format!("{:.2}", median / before));
        println!("| {count} | {median:.3} | {growth} |");
        before = Some(median);
    }
    Ok(())
}

/// Findings before and after a push.
struct Push {
    earlier: Vec<TrackedFinding>,
    now: Vec<Finding>,
    files: FileMaps,
    texts: BTreeMap<RepoPath, String>,
}

impl Push {
    fn of(count: usize) -> Result<Self, Box<dyn Error>> {
        let mut push =
            Self { earlier: Vec::new(), now: Vec::new(), files: FileMaps::default(), texts: BTreeMap::new() };
        for file in 0..count.div_ceil(IN_A_FILE) {
            let old_path = RepoPath::new(&format!("src/{file}.js"))?;
            let path = if file % 10 == 0 { RepoPath::new(&format!("lib/{file}.js"))? } else { old_path.clone() };
            let old: String = (0..LINES).map(|line| format!("let v{line} = call{}({file});\n", line % 7)).collect();
            let new = format!("zero();\n{old}");
            let (old_lines, new_lines): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
            for one in 0..IN_A_FILE.min(count - file * IN_A_FILE) {
                let line = u32::try_from(one)? * 15 + 5;
                let before = finding(&old_path, line, one, &old_lines)?;
                push.earlier.push(TrackedFinding { finding: before, fixed: false, dismissals: Vec::new() });
                if !push.earlier.len().is_multiple_of(50) {
                    push.now.push(finding(&path, line + 1, one, &new_lines)?);
                }
            }
            push.files.read.insert((ReviewerName::tool("lint"), path.clone()));
            let hunk = Hunk { old_start: 0, old: 0, new_start: 1, new: 1 };
            push.files.lines.insert(old_path.clone(), LineMap::new(vec![hunk]));
            if path != old_path {
                push.files.renamed.insert(old_path, path.clone());
            }
            push.texts.insert(path, new);
        }
        Ok(push)
    }

    /// A fast but wrong result must not be reported.
    fn check(&self, tracked: &TrackedFindings) -> Result<(), String> {
        let fixed = self.earlier.len() / 50;
        let seen = (tracked.followed.len(), tracked.unseen.len(), tracked.new.len());
        if seen == (self.now.len(), fixed, 0) && tracked.followed.iter().all(|one| one.code_unchanged) {
            return Ok(());
        }
        Err(format!("followed, unseen and new are {seen:?} of {} findings", self.earlier.len()))
    }
}

fn finding(path: &RepoPath, line: u32, rule: usize, file: &[&str]) -> Result<Finding, Box<dyn Error>> {
    let (rule, title) = (format!("rule{rule}"), format!("Call number {rule} is not allowed here"));
    let lines = LineRange::new(line, line).ok_or("a line")?;
    Ok(Finding {
        fingerprint: Fingerprint::of_title(&title),
        title,
        message: String::new(),
        path: path.clone(),
        lines: Some(lines),
        severity: Severity::Medium,
        category: Category::Correctness,
        code: flagged(file, lines),
        around: around(file, lines),
        witnesses: vec![Witness {
            reviewer: ReviewerName::tool("lint"),
            key: PatternKey::of_rule("lint", &rule),
            rule: Some(rule),
        }],
        partial: BTreeMap::new(),
        tags: Default::default(),
        fix: None,
        replacement: None,
        unproven: false,
    })
}
