//! Tests that findings are tracked through random edits.

use std::collections::{BTreeMap, BTreeSet};

use canonry_domain::review::{
    Category, CodeIndex, FileMaps, Finding, Fingerprint, Hunk, LineMap, LineRange, PatternKey, RepoPath, ReviewerName,
    Severity, TrackedFinding, TrackedFindings, UnseenFinding, Witness, around, flagged, sightings, track,
};
use proptest::prelude::{Just, Strategy, prop_assert, prop_assert_eq, prop_oneof, proptest};

#[derive(Debug, Clone)]
enum Edit {
    Keep(usize),
    Delete(usize),
    Insert(Vec<String>),
    /// Removes lines here and inserts them at the end of the file.
    Move(usize),
}

/// A file before and after, with the place of each line.
struct Edited {
    old: Vec<String>,
    new: Vec<String>,
    hunks: Vec<Hunk>,
    /// The new number of each old line (from 1) that was neither deleted nor moved.
    kept: BTreeMap<u32, u32>,
    /// The new number of each old line that was moved.
    moved: BTreeMap<u32, u32>,
}

fn edited(old: Vec<String>, edits: &[Edit]) -> Edited {
    let (mut new, mut hunks, mut tail) = (Vec::new(), Vec::new(), Vec::new());
    let (mut kept, mut moved) = (BTreeMap::new(), BTreeMap::new());
    let mut at = 0;
    let number = |index: usize| u32::try_from(index).expect("small") + 1;
    let take = |at: usize, count: usize| count.min(old.len() - at);
    let hunk = |at: usize, went: usize, to: usize, came: usize| {
        let start = |at: usize, count: usize| number(at) - u32::from(count == 0);
        Hunk { old_start: start(at, went), old: number(went) - 1, new_start: start(to, came), new: number(came) - 1 }
    };
    for edit in edits {
        match edit {
            Edit::Keep(count) => {
                for (index, line) in old.iter().enumerate().skip(at).take(*count) {
                    kept.insert(number(index), number(new.len()));
                    new.push(line.clone());
                }
                at += take(at, *count);
            }
            Edit::Delete(count) | Edit::Move(count) => {
                let count = take(at, *count);
                if count > 0 {
                    hunks.push(hunk(at, count, new.len(), 0));
                }
                if matches!(edit, Edit::Move(_)) {
                    tail.extend(at..at + count);
                }
                at += count;
            }
            Edit::Insert(lines) => {
                if !lines.is_empty() {
                    hunks.push(hunk(at, 0, new.len(), lines.len()));
                }
                new.extend(lines.iter().cloned());
            }
        }
    }
    for (index, line) in old.iter().enumerate().skip(at) {
        kept.insert(number(index), number(new.len()));
        new.push(line.clone());
    }
    if !tail.is_empty() {
        hunks.push(hunk(old.len(), 0, new.len(), tail.len()));
    }
    for index in tail {
        moved.insert(number(index), number(new.len()));
        new.push(old[index].clone());
    }
    Edited { old, new, hunks, kept, moved }
}

fn line() -> impl Strategy<Value = String> {
    // There are few different lines, so that the same code occurs in many places.
    prop_oneof![
        3 => (0..4_u8).prop_map(|kind| format!("call{kind}();")),
        2 => (0..1000_u32).prop_map(|kind| format!("let value{kind} = {kind};")),
        1 => Just(String::new()),
        1 => Just("}".to_owned()),
    ]
}

fn lines(most: usize) -> impl Strategy<Value = Vec<String>> {
    proptest::collection::vec(line(), 0..most)
}

fn edits() -> impl Strategy<Value = Vec<Edit>> {
    let edit = prop_oneof![
        3 => (0..12_usize).prop_map(Edit::Keep),
        1 => (0..5_usize).prop_map(Edit::Delete),
        1 => lines(8).prop_map(Edit::Insert),
        1 => (0..5_usize).prop_map(Edit::Move),
    ];
    proptest::collection::vec(edit, 0..10)
}

fn path(text: &str) -> RepoPath {
    RepoPath::new(text).expect("a path")
}

fn linter() -> ReviewerName {
    ReviewerName::tool("linter")
}

fn finding(file: &[String], at: &str, line: u32, rule: u8) -> Finding {
    let title = format!("Rule {rule}");
    let file: Vec<&str> = file.iter().map(String::as_str).collect();
    let lines = LineRange::new(line, line).expect("a line");
    let rule = rule.to_string();
    Finding {
        message: String::new(),
        path: path(at),
        lines: Some(lines),
        severity: Severity::Medium,
        category: Category::Correctness,
        fingerprint: Fingerprint::of_title(&title),
        code: flagged(&file, lines),
        around: around(&file, lines),
        witnesses: vec![Witness { reviewer: linter(), key: PatternKey::of_rule("linter", &rule), rule: Some(rule) }],
        partial: BTreeMap::new(),
        tags: BTreeSet::new(),
        fix: None,
        replacement: None,
        unproven: false,
        title,
    }
}

fn was(finding: Finding) -> TrackedFinding {
    TrackedFinding { finding, fixed: false, dismissals: Vec::new() }
}

fn matched_once(tracked: &TrackedFindings, earlier: usize, now: usize) -> bool {
    let befores: BTreeSet<_> = tracked.followed.iter().map(|one| one.earlier).collect();
    let nows: BTreeSet<_> = tracked.followed.iter().map(|one| one.now).collect();
    befores.len() == tracked.followed.len()
        && nows.len() == tracked.followed.len()
        && tracked.followed.len() + tracked.unseen.len() == earlier
        && tracked.followed.len() + tracked.new.len() == now
}

proptest! {
    #[test]
    fn a_finding_whose_line_survives_is_never_lost(
        old in lines(40),
        edits in edits(),
        flags in proptest::collection::btree_set((1..40_u32, 0..3_u8), 0..12),
        fresh in proptest::collection::btree_set((1..60_u32, 0..3_u8), 0..8),
        renamed in proptest::bool::ANY,
    ) {
        let file = edited(old, &edits);
        let new_name = if renamed { "new.rs" } else { "old.rs" };
        let count = |lines: &[String]| u32::try_from(lines.len()).expect("small");
        let flags: Vec<(u32, u8)> = flags.into_iter().filter(|(line, _)| *line <= count(&file.old)).collect();
        let earlier: Vec<TrackedFinding> = flags.iter().map(|(line, rule)| was(finding(&file.old, "old.rs", *line, *rule))).collect();
        // The linter reports each line that survived or was moved again, and some others.
        let again = flags.iter().filter_map(|(line, rule)| Some((*file.kept.get(line).or(file.moved.get(line))?, *rule)));
        let places: BTreeSet<(u32, u8)> = again.chain(fresh).filter(|(line, _)| *line <= count(&file.new)).collect();
        // They are sorted by rule, so that the order of lines is no help.
        let mut places: Vec<(u32, u8)> = places.into_iter().collect();
        places.sort_by_key(|(line, rule)| (*rule, std::cmp::Reverse(*line)));
        let now: Vec<Finding> = places.iter().map(|(line, rule)| finding(&file.new, new_name, *line, *rule)).collect();
        let maps = FileMaps {
            renamed: if renamed { [(path("old.rs"), path("new.rs"))].into() } else { BTreeMap::new() },
            lines: [(path("old.rs"), LineMap::new(file.hunks.clone()))].into(),
            gone: BTreeSet::new(),
            read: [(linter(), path(new_name))].into(),
            was_pushed: true,
        };
        let text = file.new.join("\n");
        let new_path = path(new_name);
        let follow = || track(&earlier, &now, &maps, &mut CodeIndex::new([(&new_path, text.as_str())]));
        let tracked = follow();
        prop_assert!(matched_once(&tracked, earlier.len(), now.len()), "{:?}", tracked);
        prop_assert_eq!(&follow(), &tracked);
        let found: BTreeMap<usize, (u32, u8)> = tracked.followed.iter().map(|one| (one.earlier, places[one.now])).collect();
        for (at, (line, rule)) in flags.iter().enumerate() {
            if let Some(survives) = file.kept.get(line) {
                prop_assert_eq!(found.get(&at), Some(&(*survives, *rule)), "line {}", line);
            }
        }
        // At least as many moved findings are matched as exist on both sides, whichever identical line is matched with
        // which.
        for code in now.iter().filter_map(|one| one.code.as_ref()) {
            for rule in 0..3_u8 {
                let key = PatternKey::of_rule("linter", &rule.to_string());
                let is = |one: &Finding| one.code.as_ref() == Some(code) && *one.key() == key;
                let before = earlier.iter().filter(|one| is(&one.finding)).count();
                let after = now.iter().filter(|one| is(one)).count();
                let pairs = tracked.followed.iter().filter(|one| is(&earlier[one.earlier].finding) && is(&now[one.now])).count();
                prop_assert!(pairs >= before.min(after), "{} of {} and {}", pairs, before, after);
            }
        }
        let all = sightings(&earlier, now.clone(), &tracked, &maps);
        prop_assert_eq!(all.len(), now.len() + tracked.unseen.len());
    }

    #[test]
    fn a_finding_that_nobody_looked_for_stands_where_its_code_is(
        old in lines(40),
        edits in edits(),
        flags in proptest::collection::btree_set((1..40_u32, 0..3_u8), 0..12),
    ) {
        let file = edited(old, &edits);
        let flags: Vec<(u32, u8)> = flags.into_iter().filter(|(line, _)| *line as usize <= file.old.len()).collect();
        let earlier: Vec<TrackedFinding> = flags.iter().map(|(line, rule)| was(finding(&file.old, "a.rs", *line, *rule))).collect();
        let maps = FileMaps { lines: [(path("a.rs"), LineMap::new(file.hunks.clone()))].into(), ..FileMaps::default() };
        let (text, at) = (file.new.join("\n"), path("a.rs"));
        let tracked = track(&earlier, &[], &maps, &mut CodeIndex::new([(&at, text.as_str())]));
        for (at, fate) in &tracked.unseen {
            let line = match fate {
                UnseenFinding::Stands { lines: Some(lines), .. } => lines.first,
                other => panic!("{other:?}"),
            };
            if let Some(survives) = file.kept.get(&flags[*at].0) {
                prop_assert_eq!(line, *survives);
            }
        }
        prop_assert_eq!(tracked.unseen.len(), earlier.len());
    }
}

/// A file with many findings of few rules on repeated code, and 200 lines inserted at the top.
fn pushed(findings: u32) -> (Vec<TrackedFinding>, Vec<Finding>, FileMaps) {
    let of = |line: u32| format!("call{}(\"{}\");", line % 7, line % 500);
    let old: Vec<String> = (0..findings).map(of).collect();
    let new: Vec<String> = (0..200).map(|line| format!("// {line}")).chain(old.iter().cloned()).collect();
    let rule = |line: u32| u8::try_from(line % 5).expect("small");
    // All findings in one file is the worst case: only their code distinguishes them.
    let earlier = (1..=findings).map(|line| was(finding(&old, "a.rs", line, rule(line)))).collect();
    let now = (1..=findings)
        .filter(|line| line % 10 != 0)
        .map(|line| finding(&new, "b.rs", line + 200, rule(line)))
        .collect();
    let maps = FileMaps {
        renamed: [(path("a.rs"), path("b.rs"))].into(),
        lines: [(path("a.rs"), LineMap::new(vec![Hunk { old_start: 0, old: 0, new_start: 1, new: 200 }]))].into(),
        gone: BTreeSet::new(),
        read: [(linter(), path("b.rs"))].into(),
        was_pushed: true,
    };
    (earlier, now, maps)
}

#[test]
fn five_thousand_findings_follow_a_push() {
    let (earlier, now, maps) = pushed(5_000);
    let tracked = track(&earlier, &now, &maps, &mut CodeIndex::default());
    assert_eq!((tracked.followed.len(), tracked.new.len(), tracked.unseen.len()), (4_500, 0, 500));
    assert!(tracked.unseen.iter().all(|(_, fate)| *fate == UnseenFinding::Fixed));
    let exact = |at: usize, line: u32| earlier[at].finding.lines.map(|lines| lines.first + 200) == Some(line);
    let line = |at: usize| now[at].lines.map_or(0, |lines| lines.first);
    assert!(tracked.followed.iter().all(|one| exact(one.earlier, line(one.now))));
}

/// `cargo test --release -p canonry-domain --test it -- --ignored`
#[test]
#[ignore = "a measurement, for a release build"]
fn tracking_grows_in_proportion() {
    let time = |findings| {
        let (earlier, now, maps) = pushed(findings);
        let start = std::time::Instant::now();
        let tracked = track(&earlier, &now, &maps, &mut CodeIndex::default());
        assert!(!tracked.followed.is_empty());
        start.elapsed().as_secs_f64()
    };
    let times: Vec<f64> = [5_000, 10_000, 20_000, 40_000].into_iter().map(time).collect();
    assert!(times[0] < 1.0, "{times:?}");
    assert!(times.windows(2).all(|pair| pair[1] < pair[0] * 3.0 + 0.01), "{times:?}");
}
