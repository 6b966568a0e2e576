//! Measures the referee on judged review comments, leaving one project out, and prints the tables of docs/benchmarks.md.
//!
//! `cargo run --release -p canonry-review --example referee [FEATURES.tsv]`, from the repository's root; the data is in
//! `shared/bench/review` beside it, or in the folder `review` of `CANONRY_BENCH_DATA`. With a file the traits of all
//! groups are written into it, for `training/fit_referee.py`.
#![expect(clippy::print_stdout, reason = "the tables are what this program is for")]

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fmt::Write as _;
use std::path::PathBuf;

use canonry_domain::Share;
use canonry_domain::review::{
    AT_LEAST_ALIKE, GroupedRemark, LineRange, ProblemTraits, RANK_WEIGHTS, group_remarks, likeness, problem_traits,
    remark_essence, remark_words,
};
use canonry_models::{Embedder as _, InputType, LocalEmbedder};
use serde_json::Value;

/// One judge's verdicts are used, as the data's description says.
const JUDGE: &str = "openai_gpt-5.2";
const SETS: [(&str, &[&str]); 3] = [
    ("Copilot, CodeRabbit, Gemini", &["copilot", "coderabbit", "gemini"]),
    ("and Qodo", &["copilot", "coderabbit", "gemini", "qodo"]),
    ("all twelve", &[]),
];
/// The likenesses among which the wide groups choose.
const WIDE: [f64; 5] = [0.4, 0.5, 0.6, 0.7, 0.8];
const RIDGE: f64 = 1.0;
const RESAMPLES: usize = 2_000;

struct Comment {
    pull: usize,
    project: usize,
    tool: String,
    matches: Option<u64>,
    words: BTreeSet<String>,
    vector: Vec<f32>,
}

struct Pull {
    project: usize,
    wanted: u64,
}

struct Group {
    pull: usize,
    members: Vec<usize>,
    /// The member that is shown: the one most like the others.
    shown: usize,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::var_os("CANONRY_BENCH_DATA").map_or_else(|| PathBuf::from("../shared/bench"), PathBuf::from);
    let folder = folder.join("review");
    if !folder.join("agreement.jsonl").exists() {
        return Err(format!(
            "there are no judged comments in {}: run this from the repository's root, or name the folder in CANONRY_BENCH_DATA",
            folder.display()
        )
        .into());
    }
    let read = |name: &str| -> Result<Vec<Value>, Box<dyn Error>> {
        let text = std::fs::read_to_string(folder.join(name))?;
        Ok(text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?)
    };
    let embedder = LocalEmbedder::load()?;
    let lines: Vec<Value> = read("agreement.jsonl")?.into_iter().filter(|line| line["judge"] == JUDGE).collect();
    let (comments, pulls, projects) = comments(&embedder, &lines).await?;
    println!(
        "{} comments, {} pull requests, {} projects; {}\n",
        comments.len(),
        pulls.len(),
        projects,
        embedder.model_id()
    );
    if let Some(path) = std::env::args().nth(1) {
        std::fs::write(path, features(&comments, &pulls))?;
    }
    pairs(&comments);
    println!("| tools | method | precision | recall | F1 (95 % interval) |\n|---|---|--:|--:|--:|");
    for (name, tools) in SETS {
        let data = Data { comments: &comments, pulls: &pulls, projects, tools };
        data.measure(name);
    }
    println!();
    labelled(&embedder, &read("labelled_comments.jsonl")?).await
}

async fn comments(
    embedder: &LocalEmbedder,
    lines: &[Value],
) -> Result<(Vec<Comment>, Vec<Pull>, usize), Box<dyn Error>> {
    let texts: Vec<String> = lines.iter().map(|line| remark_essence(text(line, "text"))).collect();
    let vectors = embedder.embed(&texts, InputType::Document).await?;
    let (mut names, mut projects): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    let (mut pulls, mut comments) = (Vec::new(), Vec::new());
    for ((line, said), vector) in lines.iter().zip(&texts).zip(vectors) {
        let url = text(line, "pull");
        // Two projects are also in the data as copies, such as `sentry-greptile`.
        let repository = url.split('/').nth(4).ok_or("a pull request without a repository")?;
        let project = place(&mut projects, repository.trim_end_matches("-greptile").trim_end_matches("-graphite"));
        let pull = place(&mut names, url);
        if pull == pulls.len() {
            pulls.push(Pull { project, wanted: line["wanted"].as_u64().ok_or("no number of wanted comments")? });
        }
        comments.push(Comment {
            pull,
            project,
            tool: text(line, "tool").to_owned(),
            matches: line["matches"].as_u64(),
            words: remark_words(said),
            vector,
        });
    }
    Ok((comments, pulls, projects.len()))
}

fn place<'t>(known: &mut Vec<&'t str>, name: &'t str) -> usize {
    known.iter().position(|one| *one == name).unwrap_or_else(|| {
        known.push(name);
        known.len() - 1
    })
}

fn text<'v>(line: &'v Value, key: &str) -> &'v str {
    line[key].as_str().unwrap_or_default()
}

fn compared(one: &Comment) -> GroupedRemark<'_> {
    GroupedRemark { path: "", lines: None, words: &one.words, vector: Some(&one.vector) }
}

/// The groups of the comments by these tools in each pull request.
fn groups(comments: &[Comment], tools: &[&str], at_least: f64) -> Vec<Group> {
    let last = comments.iter().map(|one| one.pull).max().unwrap_or_default();
    let mut all = Vec::new();
    for pull in 0..=last {
        let is_one = |one: &Comment| one.pull == pull && (tools.is_empty() || tools.contains(&one.tool.as_str()));
        let places: Vec<usize> = (0..comments.len()).filter(|at| is_one(&comments[*at])).collect();
        let remarks: Vec<GroupedRemark<'_>> = places.iter().map(|at| compared(&comments[*at])).collect();
        for group in group_remarks(&remarks, at_least) {
            let alike = |one: usize| {
                group
                    .iter()
                    .filter(|other| **other != one)
                    .map(|other| likeness(&remarks[one], &remarks[*other]))
                    .sum::<f64>()
            };
            let central =
                group.iter().max_by(|one, other| alike(**one).total_cmp(&alike(**other)).then(other.cmp(one)));
            all.push(Group {
                pull,
                shown: places[*central.expect("invariant: a group has a member")],
                members: group.iter().map(|at| places[*at]).collect(),
            });
        }
    }
    all
}

/// The record of each tool on some projects.
fn records(comments: &[Comment], projects: &[usize]) -> BTreeMap<String, Share> {
    let mut records: BTreeMap<String, Share> = BTreeMap::new();
    for one in comments.iter().filter(|one| projects.contains(&one.project)) {
        let share = records.entry(one.tool.clone()).or_default();
        if one.matches.is_some() { share.right += 1 } else { share.wrong += 1 }
    }
    records
}

fn traits_of(group: &Group, comments: &[Comment], records: &BTreeMap<String, Share>) -> ProblemTraits {
    let tools: BTreeSet<&String> = group.members.iter().map(|at| &comments[*at].tool).collect();
    let shares: Vec<Share> = tools.iter().map(|tool| records.get(*tool).copied().unwrap_or_default()).collect();
    problem_traits(&shares, group.members.len())
}

/// The traits in the order of the weights.
fn values(traits: ProblemTraits) -> Vec<f64> {
    vec![traits.agreement, traits.repeats, traits.record]
}

/// The precision and recall of pairs: two comments of one pull request, of which at least one is right, are one problem
/// if they match the same wanted comment.
fn pairs(comments: &[Comment]) {
    println!("| likeness | pairs joined rightly | same pairs found | F1 | groups |\n|--:|--:|--:|--:|--:|");
    let mut same = 0;
    for (at, one) in comments.iter().enumerate() {
        let is_same =
            |other: &&Comment| other.pull == one.pull && one.matches.is_some() && other.matches == one.matches;
        same += comments[..at].iter().filter(is_same).count();
    }
    for at_least in [0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0, 1.1] {
        let groups = groups(comments, &[], at_least);
        let (mut right, mut wrong) = (0, 0);
        for group in &groups {
            for (at, one) in group.members.iter().enumerate() {
                for other in &group.members[..at] {
                    match (comments[*one].matches, comments[*other].matches) {
                        (None, None) => {}
                        (a, b) if a == b => right += 1,
                        _ => wrong += 1,
                    }
                }
            }
        }
        let (precision, recall) = (share(right, right + wrong), share(right, same));
        println!("| {at_least} | {precision:.3} | {recall:.3} | {:.3} | {} |", f1(precision, recall), groups.len());
    }
    println!();
}

fn share(part: usize, all: usize) -> f64 {
    part as f64 / all.max(1) as f64
}

fn f1(precision: f64, recall: f64) -> f64 {
    if precision + recall > 0.0 { 2.0 * precision * recall / (precision + recall) } else { 0.0 }
}

/// How a shown group counts.
#[derive(Clone, Copy, PartialEq)]
enum Counting {
    /// A group is right if any member matches a wanted comment, and finds all that its members match: the rule of the
    /// published figures.
    AnyMember,
    /// A group is right if the comment that is shown matches, and finds that one.
    ShownComment,
}

/// The counts of one pull request: shown groups, right ones, wanted comments found, wanted comments.
type Counts = (usize, usize, usize, usize);

struct Data<'a> {
    comments: &'a [Comment],
    pulls: &'a [Pull],
    projects: usize,
    tools: &'a [&'a str],
}

impl Data<'_> {
    fn measure(&self, name: &str) {
        use Counting::{AnyMember, ShownComment};
        let product = groups(self.comments, self.tools, AT_LEAST_ALIKE);
        for (counting, rule) in [(AnyMember, "any member"), (ShownComment, "shown comment")] {
            let lonely = self.best_single(counting);
            print_row(name, &format!("best single tool, {rule}"), &lonely);
            let counted =
                self.left_out(|known, unknown| self.by_count(std::slice::from_ref(&product), known, unknown, counting));
            print_row(name, &format!("least number of tools, {rule}"), &counted);
            let ranked = self.left_out(|known, unknown| self.by_rank(&product, known, unknown, counting));
            print_row(name, &format!("rank, {rule}"), &ranked);
        }
        let wide: Vec<Vec<Group>> = WIDE.iter().map(|at_least| groups(self.comments, self.tools, *at_least)).collect();
        let counted = self.left_out(|known, unknown| self.by_count(&wide, known, unknown, AnyMember));
        print_row(name, "wide groups, least number of tools, any member", &counted);
        let all = groups(self.comments, self.tools, -2.0);
        let everything: Vec<&Group> = all.iter().collect();
        print_row(name, "one group for each pull request, any member", &self.counts(&everything, AnyMember, None));
    }

    /// The counts of all pull requests, each with what was chosen on the other projects.
    fn left_out(&self, choose: impl Fn(&[usize], usize) -> Vec<Counts>) -> Vec<Counts> {
        let mut all = vec![(0, 0, 0, 0); self.pulls.len()];
        for project in 0..self.projects {
            let known: Vec<usize> = (0..self.projects).filter(|one| *one != project).collect();
            let found = choose(&known, project);
            for (at, _) in self.pulls.iter().enumerate().filter(|(_, pull)| pull.project == project) {
                all[at] = found[at];
            }
        }
        all
    }

    fn counts(&self, shown: &[&Group], counting: Counting, projects: Option<&[usize]>) -> Vec<Counts> {
        let mut counts: Vec<Counts> = self.pulls.iter().map(|pull| (0, 0, 0, pull.wanted as usize)).collect();
        let mut found: Vec<BTreeSet<u64>> = vec![BTreeSet::new(); self.pulls.len()];
        for group in shown {
            let matched: BTreeSet<u64> = match counting {
                Counting::AnyMember => group.members.iter().filter_map(|at| self.comments[*at].matches).collect(),
                Counting::ShownComment => self.comments[group.shown].matches.into_iter().collect(),
            };
            counts[group.pull].0 += 1;
            counts[group.pull].1 += usize::from(!matched.is_empty());
            found[group.pull].extend(matched);
        }
        for (at, found) in found.iter().enumerate() {
            counts[at].2 = found.len();
            if projects.is_some_and(|projects| !projects.contains(&self.pulls[at].project)) {
                counts[at] = (0, 0, 0, 0);
            }
        }
        counts
    }

    fn best_single(&self, counting: Counting) -> Vec<Counts> {
        let tools: BTreeSet<&str> = self.comments.iter().map(|one| one.tool.as_str()).collect();
        let tools = tools.into_iter().filter(|tool| self.tools.is_empty() || self.tools.contains(tool));
        let each = tools.map(|tool| {
            let alone = groups(self.comments, &[tool], 9.0);
            self.counts(&alone.iter().collect::<Vec<_>>(), counting, None)
        });
        each.max_by(|one, other| score(one).2.total_cmp(&score(other).2)).unwrap_or_default()
    }

    fn by_count(&self, choices: &[Vec<Group>], known: &[usize], unknown: usize, counting: Counting) -> Vec<Counts> {
        let tools = |group: &Group| {
            group.members.iter().map(|at| self.comments[*at].tool.as_str()).collect::<BTreeSet<&str>>().len()
        };
        let mut best: Option<(f64, Vec<Counts>)> = None;
        for choice in choices {
            for least in 1..=8 {
                let shown: Vec<&Group> = choice.iter().filter(|group| tools(group) >= least).collect();
                let (_, _, f1) = score(&self.counts(&shown, counting, Some(known)));
                if best.as_ref().is_none_or(|(than, _)| f1 > *than) {
                    best = Some((f1, self.counts(&shown, counting, Some(&[unknown]))));
                }
            }
        }
        best.map(|(_, counts)| counts).unwrap_or_default()
    }

    /// Fits the weights and the least rank to the known projects. The least rank is chosen on ranks of projects that the
    /// weights were not fitted to.
    fn by_rank(&self, all: &[Group], known: &[usize], unknown: usize, counting: Counting) -> Vec<Counts> {
        let mut ranked: Vec<(f64, &Group)> = Vec::new();
        for inner in known {
            let others: Vec<usize> = known.iter().copied().filter(|one| one != inner).collect();
            ranked.extend(self.ranked(all, &others, *inner));
        }
        let mut least: Vec<f64> = ranked.iter().map(|(rank, _)| *rank).collect();
        least.sort_by(f64::total_cmp);
        least.dedup();
        let step = (least.len() / 60).max(1);
        let f1_from = |least: f64| {
            let shown: Vec<&Group> =
                ranked.iter().filter(|(rank, _)| *rank >= least).map(|(_, group)| *group).collect();
            score(&self.counts(&shown, counting, Some(known))).2
        };
        let best = least.iter().step_by(step).copied().max_by(|one, other| f1_from(*one).total_cmp(&f1_from(*other)));
        let best = best.unwrap_or_default();
        let shown: Vec<&Group> = self
            .ranked(all, known, unknown)
            .into_iter()
            .filter(|(rank, _)| *rank >= best)
            .map(|(_, group)| group)
            .collect();
        self.counts(&shown, counting, Some(&[unknown]))
    }

    fn ranked<'g>(&self, all: &'g [Group], known: &[usize], unknown: usize) -> Vec<(f64, &'g Group)> {
        let records = records(self.comments, known);
        let of = |group: &Group| values(traits_of(group, self.comments, &records));
        let project = |group: &&Group| self.pulls[group.pull].project;
        let learnt: Vec<&Group> = all.iter().filter(|group| known.contains(&project(group))).collect();
        let rows: Vec<Vec<f64>> = learnt.iter().map(|group| of(group)).collect();
        let right = |group: &&Group| group.members.iter().any(|at| self.comments[*at].matches.is_some());
        let labels: Vec<f64> = learnt.iter().map(|group| f64::from(u8::from(right(group)))).collect();
        let weights = fit(&rows, &labels);
        let unknown = all.iter().filter(|group| project(group) == unknown);
        unknown.map(|group| (rank(&weights, &of(group)), group)).collect()
    }
}

fn rank(weights: &[f64], row: &[f64]) -> f64 {
    let (intercept, weights) = weights.split_last().expect("invariant: the last weight is the intercept");
    intercept + row.iter().zip(weights).map(|(value, weight)| value * weight).sum::<f64>()
}

/// Logistic regression with a ridge, by Newton's method; the last weight is the intercept.
fn fit(rows: &[Vec<f64>], labels: &[f64]) -> Vec<f64> {
    let size = rows.first().map_or(0, Vec::len) + 1;
    let mut weights = vec![0.0; size];
    for _ in 0..30 {
        let mut gradient: Vec<f64> =
            weights.iter().enumerate().map(|(at, weight)| if at + 1 < size { -RIDGE * weight } else { 0.0 }).collect();
        let mut curve = vec![vec![0.0; size]; size];
        for (at, row) in curve.iter_mut().enumerate() {
            row[at] = if at + 1 < size { RIDGE } else { 1e-6 };
        }
        for (row, label) in rows.iter().zip(labels) {
            let p = 1.0 / (1.0 + (-rank(&weights, row)).exp());
            let value = |at: usize| row.get(at).copied().unwrap_or(1.0);
            for one in 0..size {
                gradient[one] += (label - p) * value(one);
                for (other, cell) in curve[one].iter_mut().enumerate() {
                    *cell += p * (1.0 - p) * value(one) * value(other);
                }
            }
        }
        let step = solve(curve, gradient);
        for (weight, step) in weights.iter_mut().zip(&step) {
            *weight += step;
        }
        if step.iter().all(|step| step.abs() < 1e-9) {
            break;
        }
    }
    weights
}

/// Gauss's elimination for a positive definite matrix.
fn solve(mut matrix: Vec<Vec<f64>>, mut right: Vec<f64>) -> Vec<f64> {
    let size = right.len();
    for at in 0..size {
        for below in at + 1..size {
            let factor = matrix[below][at] / matrix[at][at];
            let above = matrix[at].clone();
            for (cell, above) in matrix[below].iter_mut().zip(&above).skip(at) {
                *cell -= factor * above;
            }
            right[below] -= factor * right[at];
        }
    }
    for at in (0..size).rev() {
        let known: f64 = (at + 1..size).map(|column| matrix[at][column] * right[column]).sum();
        right[at] = (right[at] - known) / matrix[at][at];
    }
    right
}

fn score(counts: &[Counts]) -> (f64, f64, f64) {
    let sum = |of: fn(&Counts) -> usize| counts.iter().map(of).sum::<usize>();
    let precision = share(sum(|one| one.1), sum(|one| one.0));
    let recall = share(sum(|one| one.2), sum(|one| one.3));
    (precision, recall, f1(precision, recall))
}

fn print_row(name: &str, method: &str, counts: &[Counts]) {
    let (precision, recall, f1) = score(counts);
    let (low, high) = interval(counts.len(), |drawn| score(&drawn.iter().map(|at| counts[*at]).collect::<Vec<_>>()).2);
    println!("| {name} | {method} | {precision:.3} | {recall:.3} | {f1:.3} ({low:.3}–{high:.3}) |");
}

/// The 95 % interval of a figure over resampled units, always the same.
fn interval(units: usize, figure: impl Fn(&[usize]) -> f64) -> (f64, f64) {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut draw = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % units.max(1)
    };
    let mut figures: Vec<f64> =
        (0..RESAMPLES).map(|_| figure(&(0..units).map(|_| draw()).collect::<Vec<_>>())).collect();
    figures.sort_by(f64::total_cmp);
    (figures[RESAMPLES / 40], figures[RESAMPLES - 1 - RESAMPLES / 40])
}

/// The area under the curve of good against bad comments, ranked as in the product: by agreement at the same place and by
/// the tool's record in the other repositories.
async fn labelled(embedder: &LocalEmbedder, lines: &[Value]) -> Result<(), Box<dyn Error>> {
    let texts: Vec<String> = lines.iter().map(|line| remark_essence(text(line, "text"))).collect();
    let vectors = embedder.embed(&texts, InputType::Document).await?;
    let words: Vec<BTreeSet<String>> = texts.iter().map(|said| remark_words(said)).collect();
    let is_good = |line: &Value| line["label"] == "good";
    let mut names = Vec::new();
    let repositories: Vec<usize> = lines
        .iter()
        .map(|line| place(&mut names, text(line, "pull").split("/pull/").next().unwrap_or_default()))
        .collect();
    let mut by_pull: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, line) in lines.iter().enumerate() {
        by_pull.entry(text(line, "pull")).or_default().push(at);
    }
    let line_of = |line: &Value, key: &str| line[key].as_u64().and_then(|line| u32::try_from(line).ok());
    let mut ranks = vec![0.0; lines.len()];
    for places in by_pull.values() {
        let remarks: Vec<GroupedRemark<'_>> = places
            .iter()
            .map(|at| GroupedRemark {
                path: text(&lines[*at], "path"),
                lines: line_of(&lines[*at], "from_line")
                    .zip(line_of(&lines[*at], "to_line"))
                    .and_then(|(first, last)| LineRange::new(first, last)),
                words: &words[*at],
                vector: Some(&vectors[*at]),
            })
            .collect();
        for group in group_remarks(&remarks, AT_LEAST_ALIKE) {
            let members: Vec<usize> = group.iter().map(|at| places[*at]).collect();
            let tools: BTreeSet<&str> = members.iter().map(|at| text(&lines[*at], "tool")).collect();
            let record = |tool: &str| {
                let mut share = Share::default();
                let others = lines.iter().zip(&repositories);
                for (line, _) in
                    others.filter(|(line, of)| **of != repositories[members[0]] && text(line, "tool") == tool)
                {
                    if is_good(line) { share.right += 1 } else { share.wrong += 1 }
                }
                share
            };
            let shares: Vec<Share> = tools.iter().map(|tool| record(tool)).collect();
            let rank = RANK_WEIGHTS.rank(&problem_traits(&shares, members.len()));
            members.iter().for_each(|at| ranks[*at] = rank);
        }
    }
    let area = |drawn: &[usize]| {
        let mut members = Vec::new();
        for repository in drawn {
            members.extend((0..lines.len()).filter(|at| repositories[*at] == *repository));
        }
        auc(&members.iter().map(|at| (ranks[*at], is_good(&lines[*at]))).collect::<Vec<_>>())
    };
    let all: Vec<usize> = (0..names.len()).collect();
    let (low, high) = interval(names.len(), area);
    println!(
        "good against bad, records from the other of {} repositories: AUC {:.3} ({low:.3}–{high:.3})",
        names.len(),
        area(&all)
    );
    Ok(())
}

/// The probability that a good one ranks before a bad one.
fn auc(ranked: &[(f64, bool)]) -> f64 {
    let mut sorted = ranked.to_vec();
    sorted.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (mut at, mut good_ranks, mut good) = (0, 0.0, 0.0);
    while at < sorted.len() {
        let equal = sorted[at..].iter().take_while(|one| one.0 == sorted[at].0).count();
        let here = sorted[at..at + equal].iter().filter(|one| one.1).count() as f64;
        good_ranks += here * (at as f64 + (equal as f64 + 1.0) / 2.0);
        good += here;
        at += equal;
    }
    let bad = sorted.len() as f64 - good;
    if good > 0.0 && bad > 0.0 { (good_ranks - good * (good + 1.0) / 2.0) / (good * bad) } else { 0.5 }
}

/// The traits of all groups, with records of the other projects, and whether a member is right.
fn features(comments: &[Comment], pulls: &[Pull]) -> String {
    let mut table = "project\tright\tagreement\trepeats\trecord\n".to_owned();
    let projects: BTreeSet<usize> = pulls.iter().map(|pull| pull.project).collect();
    for group in groups(comments, &[], AT_LEAST_ALIKE) {
        let project = pulls[group.pull].project;
        let others: Vec<usize> = projects.iter().copied().filter(|one| *one != project).collect();
        let ProblemTraits { agreement, repeats, record } = traits_of(&group, comments, &records(comments, &others));
        let is_right = u8::from(group.members.iter().any(|at| comments[*at].matches.is_some()));
        let _ = writeln!(table, "{project}\t{is_right}\t{agreement:.5}\t{repeats:.5}\t{record:.5}");
    }
    table
}
