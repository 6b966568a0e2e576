//! Judges every item of a public set offline as if it were new, against everything that existed then, and prints
//! precision and recall of the verdicts as Markdown, and what the score of the first neighbour says.
//!
//! `judge_replay --vectors FOLDER [--features FILE] [--verdicts FILE] [SET.TYPE…]`. `--features` writes a line for each
//! pair; `training/fit_judge.py` fits the weights to these. `--verdicts` writes every verdict with both texts, so that
//! they can be read. `--relations FILE` needs no vectors: it counts the pairs that are related and no duplicates, and
//! writes them.
#![expect(clippy::print_stdout, reason = "the table is what this program is for")]

mod relations;
mod sets;

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use canonry_domain::{
    GateCandidate, ItemOrigin, ItemState, ItemType, JudgeAnswer, JudgedItem, OnlineThresholds, OnlineVerdict,
    PairScores, Similarity, Verdict, online_verdict,
};
use canonry_models::{Embedder as _, LocalEmbedder};
use canonry_retrieval::{Ask, Entry, Hit, ItemIndex, LateQuery, Query, RetrievalMode, TextFacts, rank, wilson};
use canonry_triage::{FEATURES, LocalCandidate, LocalText, compare, judge_locally};
use jiff::Timestamp;
use serde_json::json;
use sets::{SetItem, folder, load};

/// The same number as in `detect-new`.
const NEIGHBOURS: usize = 8;
const SETS: [&str; 6] =
    ["rust.issue", "gitbugs_hadoop.issue", "gitbugs_seamonkey.issue", "openoffice.issue", "rust.pr", "rails.pr"];

fn main() -> Result<(), Box<dyn Error>> {
    let mut files: BTreeMap<String, PathBuf> = BTreeMap::new();
    let mut wanted = Vec::new();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.strip_prefix("--") {
            Some(name) => {
                files.insert(name.to_owned(), arguments.next().ok_or("which file?")?.into());
            }
            None => wanted.push(argument),
        }
    }
    if wanted.is_empty() {
        wanted = SETS.map(str::to_owned).to_vec();
    }
    let created = |name: &str| files.get(name).map(File::create).transpose().map(|file| file.map(BufWriter::new));
    if let Some(mut out) = created("relations")? {
        let folder = folder()?;
        return wanted.iter().try_for_each(|name| relations::count(&folder, name, &mut out));
    }
    let vectors = files.get("vectors").ok_or("which folder of vectors? --vectors FOLDER")?;
    let (mut features, mut verdicts) = (created("features")?, created("verdicts")?);
    let folder = folder()?;
    let embedder = LocalEmbedder::load()?;
    let calibrate = |cosine| embedder.calibration().similarity(cosine).get();
    if let Some(out) = &mut features {
        writeln!(out, "set\tsource\tcandidate\tquery\tduplicate\t{}", FEATURES.join("\t"))?;
    }
    println!(
        "| set | items | duplicates | verdict | given | per 1,000 items | linked by people | precision | recall |"
    );
    println!("|---|---:|---:|---|---:|---:|---:|---:|---:|");
    let mut by_score = Vec::new();
    for name in wanted {
        let (set, item_type) = name.rsplit_once('.').ok_or("a set is named like rust.issue")?;
        let item_type: ItemType = item_type.parse()?;
        let items = load(&folder, set, item_type, Some(vectors))?;
        let mut index = ItemIndex::new(item_type, "bench");
        let (mut tally, mut later, mut scores) = (Tally::default(), Tally::default(), FirstScores::default());
        for item in &items {
            let hits = neighbours(&index, &items, item, &calibrate);
            let case = Case::of(&items, item, &hits);
            if let Some(out) = &mut features {
                case.write_features(&name, out)?;
            }
            let evidence = TextFacts::of(&format!("{}\n{}", item.record.title, body(item)));
            let common = index.common_facts(&evidence);
            let source = LocalText { common: Some(&common), ..text(item) };
            let answer = judge_locally(&source, &case.candidates());
            let ruled = case.verdict(&index, &answer, &calibrate);
            tally.count(item, &ruled);
            if is_later(item) {
                later.count(item, &ruled);
            }
            if let Some(out) = &mut verdicts {
                case.write_verdict(&name, &answer, &ruled, out)?;
            }
            if let Some((first, score, _)) = case.found.first() {
                scores.count(*score, item.cluster.contains(&first.number));
            }
            let (vector, changes) = (item.vector.as_deref(), item.record.changes.as_ref());
            let entry = Entry { title: &item.record.title, body: body(item), vector, changes, stamp: 0 };
            index.upsert(item.number, entry)?;
        }
        tally.print(&name, &items.iter().collect::<Vec<_>>());
        if name == "rust.issue" {
            later.print("rust.issue from 2014-07 on", &items.iter().filter(|item| is_later(item)).collect::<Vec<_>>());
        }
        by_score.push((name, scores));
    }
    println!("\n| set | first neighbour's score | items | linked by people | share |");
    println!("|---|---|---:|---:|---:|");
    by_score.iter().for_each(|(name, scores)| scores.print(name));
    Ok(())
}

/// An item and the candidates that were found for it.
struct Case<'a> {
    item: &'a SetItem,
    found: Vec<(&'a SetItem, Similarity, BTreeMap<String, f64>)>,
}

impl<'a> Case<'a> {
    fn of(items: &'a [SetItem], item: &'a SetItem, hits: &[Hit]) -> Self {
        let found = hits.iter().map(|hit| {
            let parts = hit.parts.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
            let place = usize::try_from(hit.number.get() - 1).expect("positions count from 1");
            (&items[place], hit.score, parts)
        });
        Self { item, found: found.collect() }
    }

    fn candidates(&self) -> Vec<LocalCandidate<'_>> {
        self.found
            .iter()
            .map(|(item, score, parts)| LocalCandidate { text: text(item), score: *score, parts })
            .collect()
    }

    fn verdict(&self, index: &ItemIndex, answer: &JudgeAnswer, calibrate: &dyn Fn(f32) -> f64) -> OnlineVerdict {
        let candidates: Vec<GateCandidate<'_>> = self
            .found
            .iter()
            .map(|(item, score, _)| GateCandidate { item: judged(item), score: *score, cluster: None })
            .collect();
        let mut pairs = PairScores::default();
        for (at, (one, ..)) in self.found.iter().enumerate() {
            for (two, ..) in &self.found[at + 1..] {
                let (Some(left), Some(right)) = (index.vector(one.number), index.vector(two.number)) else { continue };
                let cosine = left.iter().zip(right).map(|(a, b)| a * b).sum();
                pairs.insert(
                    one.number,
                    two.number,
                    Similarity::clamped(calibrate(cosine)).unwrap_or(Similarity::ZERO),
                );
            }
        }
        online_verdict(&judged(self.item), &candidates, &pairs, Some(answer), &OnlineThresholds::default())
    }

    fn write_features(&self, set: &str, out: &mut impl Write) -> std::io::Result<()> {
        for (compared, (found, ..)) in compare(&text(self.item), &self.candidates()).iter().zip(&self.found) {
            let is_duplicate = u8::from(self.item.cluster.contains(&found.number));
            let is_query = u8::from(self.item.is_query);
            write!(out, "{set}\t{}\t{}\t{is_query}\t{is_duplicate}", self.item.number, found.number)?;
            for feature in compared.features {
                write!(out, "\t{feature:.4}")?;
            }
            writeln!(out)?;
        }
        Ok(())
    }

    fn write_verdict(
        &self,
        set: &str,
        answer: &JudgeAnswer,
        ruled: &OnlineVerdict,
        out: &mut impl Write,
    ) -> std::io::Result<()> {
        let Some((target, score, _)) = self.found.iter().find(|(found, ..)| Some(found.number) == ruled.target) else {
            return Ok(());
        };
        let shown = |item: &SetItem| json!({"number": item.named, "title": item.record.title, "body": body(item)});
        let is_linked = self.item.cluster.contains(&target.number);
        let line = json!({
            "set": set, "position": self.item.number, "target_position": target.number, "linked": is_linked,
            "verdict": ruled.verdict, "reason": ruled.reason, "confidence": answer.confidence,
            "score": score, "reasoning": answer.reasoning, "source": shown(self.item), "target": shown(target),
        });
        writeln!(out, "{line}")
    }
}

/// How often the first neighbour was linked, by bands of its score.
#[derive(Default)]
struct FirstScores([(usize, usize); BANDS.len()]);

/// The lower ends of the bands.
const BANDS: [f64; 5] = [0.95, 0.90, 0.85, 0.80, 0.75];

impl FirstScores {
    fn count(&mut self, score: Similarity, is_linked: bool) {
        let band = BANDS.iter().position(|low| score.get() >= *low);
        if let Some(band) = band.and_then(|at| self.0.get_mut(at)) {
            band.0 += 1;
            band.1 += usize::from(is_linked);
        }
    }

    fn print(&self, name: &str) {
        for (low, (items, linked)) in BANDS.iter().zip(self.0) {
            let share = if items == 0 { "–".to_owned() } else { interval(linked, items) };
            println!("| {name} | from {low:.2} | {items} | {linked} | {share} |");
        }
    }
}

#[derive(Default)]
struct Tally {
    /// The number of verdicts, and how many of them people linked, for `duplicate` and for `maybe_duplicate`.
    duplicate: (usize, usize),
    maybe: (usize, usize),
    asked: [usize; 2],
}

impl Tally {
    fn count(&mut self, item: &SetItem, ruled: &OnlineVerdict) {
        let is_right = ruled.target.is_some_and(|target| item.cluster.contains(&target));
        let (place, at) = match ruled.verdict {
            Verdict::Duplicate => (&mut self.duplicate, 0),
            Verdict::MaybeDuplicate => (&mut self.maybe, 1),
            Verdict::NotDuplicate => return,
        };
        place.0 += 1;
        place.1 += usize::from(is_right);
        self.asked[at] += usize::from(is_right && item.is_query);
    }

    fn print(&self, name: &str, items: &[&SetItem]) {
        let queries = items.iter().filter(|item| item.is_query).count();
        let both = (self.duplicate.0 + self.maybe.0, self.duplicate.1 + self.maybe.1);
        let rows = [
            ("`duplicate`", self.duplicate, self.asked[0]),
            ("`maybe_duplicate`", self.maybe, self.asked[1]),
            ("either", both, self.asked[0] + self.asked[1]),
        ];
        for (verdict, (given, right), asked) in rows {
            let share = |right: usize, all: usize| {
                if all == 0 {
                    return "–".to_owned();
                }
                interval(right, all)
            };
            println!(
                "| {name} | {} | {queries} | {verdict} | {given} | {:.1} | {right} | {} | {} |",
                items.len(),
                1_000.0 * given as f64 / items.len() as f64,
                share(right, given),
                share(asked, queries),
            );
        }
    }
}

/// Issues of rust from then on were used neither for training nor for fitting, except for the anchors of the
/// calibration.
fn is_later(item: &SetItem) -> bool {
    let split: Timestamp = "2014-07-01T00:00:00Z".parse().expect("a moment");
    item.record.created_at.is_some_and(|created_at| created_at >= split)
}

fn interval(right: usize, all: usize) -> String {
    let share = wilson(right, all);
    format!("{} ({}–{})", three(share.value), three(share.low), three(share.high))
}

fn three(value: f64) -> String {
    format!("{value:.3}").trim_start_matches('0').to_owned()
}

fn body(item: &SetItem) -> &str {
    item.record.body.as_deref().unwrap_or_default()
}

/// Only what a new item has: no labels and no state.
fn text(item: &SetItem) -> LocalText<'_> {
    LocalText {
        item_type: item.record.item_type,
        number: item.number,
        title: &item.record.title,
        body: body(item),
        labels: &[],
        author: item.record.author.as_ref(),
        created_at: item.record.created_at,
        changes: item.record.changes.as_ref(),
        base_branch: None,
        common: None,
    }
}

/// The data does not say what was open when an item was filed, so everything earlier counts as open.
fn judged(item: &SetItem) -> JudgedItem<'_> {
    JudgedItem {
        number: item.number,
        state: ItemState::Open,
        item_type: item.record.item_type,
        title: &item.record.title,
        body: body(item),
        labels: &[],
        origin: ItemOrigin {
            author: item.record.author.as_ref(),
            created_at: item.record.created_at,
            changes: item.record.changes.as_ref(),
            base_branch: None,
        },
    }
}

fn neighbours(index: &ItemIndex, items: &[SetItem], item: &SetItem, calibrate: &dyn Fn(f32) -> f64) -> Vec<Hit> {
    let Some(vector) = &item.vector else { return Vec::new() };
    let mut query = Query::new(&item.record.title, body(item)).for_item(item.number).with_vector(vector.clone());
    if let Some(changes) = &item.record.changes {
        query = query.with_changes(changes);
    }
    let min_score = OnlineThresholds::default().min_score;
    let ask = Ask { mode: RetrievalMode::Hybrid, k: NEIGHBOURS, min_score, calibrate, filter: &|_| true };
    let mut pool = index.candidates(&query, &ask).expect("a query with its vector");
    let tokens = item.tokens.as_ref().and_then(LateQuery::of);
    for candidate in &mut pool.candidates {
        let other = &items[usize::try_from(candidate.number.get() - 1).expect("positions count from 1")];
        candidate.late = tokens.as_ref().zip(other.tokens.as_ref()).and_then(|(tokens, other)| tokens.compare(other));
        let authors = item.record.author.as_ref().zip(other.record.author.as_ref());
        candidate.same_author = authors.map(|(one, other)| one == other);
        let times = item.record.created_at.zip(other.record.created_at);
        candidate.hours_apart = times.map(|(one, other)| one.duration_since(other).as_secs_f64().abs() / 3_600.0);
    }
    rank(index.item_type(), ask.mode, &pool.candidates, pool.spread, calibrate, NEIGHBOURS)
}
