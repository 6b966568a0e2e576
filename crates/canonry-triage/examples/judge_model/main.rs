//! Measures a model behind an OpenAI-compatible server as a judge, on pairs whose truth is known, and prints Markdown.
//!
//! `judge_model --base-url URL [--model NAME] [--pairs COUNT] [--other-pairs COUNT] [--timeout SECONDS]
//! [--max-tokens COUNT]`. The pairs are a
//! stratified sample of the 300 pairs of rust that people read, and pairs of other projects: linked ones, and an item with
//! the earlier one whose words are nearest.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "the table is what this program is for")]

#[path = "../judge_replay/sets.rs"]
#[expect(dead_code, reason = "no vectors are read here")]
mod sets;

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::time::Duration;

use canonry_domain::{Extractor, Item, ItemNumber, ItemType, Similarity, merge_record};
use canonry_models::chat::{
    ChatAnswer, ChatError, ChatModel, ChatProvider, ChatRequest, ChatSettings, RemoteChat, TokenBudget,
};
use canonry_retrieval::{Ask, Entry, ItemIndex, Query, RetrievalMode, wilson};
use canonry_triage::{Judge, PairReadingError, read_pair};
use futures_util::future::BoxFuture;
use serde::Deserialize;
use sets::{SetItem, folder, load};

/// Small sets of other trackers than GitHub's.
const OTHER_SETS: [&str; 2] = ["gitbugs_hadoop", "gitbugs_seamonkey"];
/// The confidences at which precision and recall are printed.
const CONFIDENCES: [f64; 3] = [0.5, 0.8, 0.9];

/// A line of `adjudicated/rust.jsonl`.
#[derive(Deserialize)]
struct ReadPair {
    source: ItemNumber,
    target: ItemNumber,
    label: String,
    stratum: u8,
}

struct TruePair {
    source: Item,
    target: Item,
    is_same: bool,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut options: BTreeMap<String, String> = BTreeMap::new();
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let name = name.strip_prefix("--").ok_or("options begin with --")?.to_owned();
        options.insert(name, arguments.next().ok_or("an option needs a value")?);
    }
    let count = |name: &str, usual: usize| options.get(name).map_or(Ok(usual), |count| count.parse());
    let (pairs, others, timeout) = (count("pairs", 300)?, count("other-pairs", 60)?, count("timeout", 600)?);
    let mut settings = ChatSettings::from_environment(ChatProvider::OpenAi);
    settings.base_url = options.get("base-url").ok_or("which server? --base-url URL")?.clone();
    settings.model = options.get("model").cloned().unwrap_or_else(|| "default".to_owned());
    settings.timeout = Duration::from_secs(timeout as u64);
    settings.attempts = 1;
    let model = RemoteChat::new(settings)?;
    let model = Limited { model, max_tokens: u32::try_from(count("max-tokens", 1_000)?)? };
    let judge = Judge::Model { provider: Extractor::OpenAi, model: &model };
    println!("| pairs | read | same | no usable answer | AUC | said yes at .5 | .8 | .9 | s a pair | tokens in, out |");
    println!("|---|---:|---:|---:|---:|---|---|---|---:|---:|");
    measure("rust, read by people", judge, &read_pairs(pairs)?).await?;
    measure("other projects", judge, &other_pairs(others)?).await?;
    Ok(())
}

/// A model whose answers end after so many tokens: a small one may never end a string.
struct Limited {
    model: RemoteChat,
    max_tokens: u32,
}

impl ChatModel for Limited {
    fn model_id(&self) -> &str {
        self.model.model_id()
    }

    fn complete<'a>(&'a self, request: &'a ChatRequest) -> BoxFuture<'a, Result<ChatAnswer, ChatError>> {
        Box::pin(async move {
            let request = ChatRequest { max_tokens: self.max_tokens, ..request.clone() };
            self.model.complete(&request).await
        })
    }
}

/// A sample of the pairs that were read, in turn from each stratum and truth.
fn read_pairs(most: usize) -> Result<Vec<TruePair>, Box<dyn Error>> {
    let folder = folder()?;
    let items: BTreeMap<ItemNumber, SetItem> =
        load(&folder, "rust", ItemType::Issue, None)?.into_iter().map(|item| (item.named, item)).collect();
    let path = folder.join("adjudicated/rust.jsonl");
    let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut strata: BTreeMap<(u8, bool), Vec<TruePair>> = BTreeMap::new();
    for line in text.lines() {
        let pair: ReadPair = serde_json::from_str(line)?;
        let is_same = match pair.label.as_str() {
            "same" => true,
            "related" | "different" => false,
            // Neither yes nor no.
            _ => continue,
        };
        let (Some(source), Some(target)) = (items.get(&pair.source), items.get(&pair.target)) else { continue };
        let stratum = pair.stratum;
        let pair = TruePair { source: item(source), target: item(target), is_same };
        strata.entry((stratum, is_same)).or_default().push(pair);
    }
    Ok(in_turn(strata.into_values().collect(), most))
}

/// Linked pairs of other projects, and as many nearest ones that nobody linked.
fn other_pairs(most: usize) -> Result<Vec<TruePair>, Box<dyn Error>> {
    let folder = folder()?;
    let mut kinds = Vec::new();
    for set in OTHER_SETS {
        let items = load(&folder, set, ItemType::Issue, None)?;
        let mut index = ItemIndex::new(ItemType::Issue, "bench");
        let (mut linked, mut near) = (Vec::new(), Vec::new());
        for own in &items {
            let body = own.record.body.as_deref().unwrap_or_default();
            let earlier = own.cluster.range(..own.number).next_back();
            let nearest = nearest(&index, own)?.filter(|number| !own.cluster.contains(number));
            let at = |number: ItemNumber| &items[usize::try_from(number.get() - 1).expect("positions count from 1")];
            let pair =
                |number: &ItemNumber, is_same| TruePair { source: item(own), target: item(at(*number)), is_same };
            linked.extend(earlier.filter(|_| own.is_query).map(|number| pair(number, true)));
            near.extend(nearest.as_ref().filter(|_| own.cluster.is_empty()).map(|number| pair(number, false)));
            let changes = own.record.changes.as_ref();
            index.upsert(own.number, Entry { title: &own.record.title, body, vector: None, changes, stamp: 0 })?;
        }
        kinds.extend([spread(linked, most), spread(near, most)]);
    }
    Ok(in_turn(kinds, most))
}

fn nearest(index: &ItemIndex, own: &SetItem) -> Result<Option<ItemNumber>, Box<dyn Error>> {
    let query = Query::new(&own.record.title, own.record.body.as_deref().unwrap_or_default()).for_item(own.number);
    let ask = Ask {
        mode: RetrievalMode::Lexical,
        k: 1,
        min_score: Similarity::ZERO,
        calibrate: &|cosine| f64::from(cosine),
        filter: &|_| true,
    };
    let pool = index.candidates(&query, &ask)?;
    Ok(pool.candidates.first().map(|candidate| candidate.number))
}

/// At most `most`, from the whole list.
fn spread<T>(list: Vec<T>, most: usize) -> Vec<T> {
    let step = list.len().div_ceil(most.max(1)).max(1);
    list.into_iter().step_by(step).collect()
}

/// One of each list in turn until there are enough.
fn in_turn<T>(lists: Vec<Vec<T>>, most: usize) -> Vec<T> {
    let mut lists: Vec<_> = lists.into_iter().map(Vec::into_iter).collect();
    let mut taken = Vec::new();
    while taken.len() < most {
        let before = taken.len();
        for list in &mut lists {
            if taken.len() < most {
                taken.extend(list.next());
            }
        }
        if taken.len() == before {
            break;
        }
    }
    taken
}

fn item(of: &SetItem) -> Item {
    merge_record(None, of.record.clone()).item
}

async fn measure(name: &str, judge: Judge<'_>, pairs: &[TruePair]) -> Result<(), Box<dyn Error>> {
    let budget = TokenBudget::default();
    // The probability that the two are the same, by what the model said; an unusable answer says no.
    let mut said: Vec<(f64, bool)> = Vec::new();
    let (mut unusable, mut seconds, mut input, mut output) = (0, 0.0, 0, 0);
    for (at, pair) in pairs.iter().enumerate() {
        let reading = match read_pair(judge, &pair.source, &pair.target, &budget).await {
            Ok(reading) => reading,
            Err(error @ PairReadingError::OverBudget(_)) => return Err(error.into()),
            Err(error) => {
                eprintln!("pair {at}: {error}");
                unusable += 1;
                said.push((0.0, pair.is_same));
                continue;
            }
        };
        seconds += reading.latency.as_secs_f64();
        input += reading.input_tokens.unwrap_or_default();
        output += reading.output_tokens.unwrap_or_default();
        let probability = match &reading.answer {
            Ok(answer) if answer.is_duplicate => answer.confidence.get(),
            Ok(answer) => (1.0 - answer.confidence.get()).min(0.499),
            Err(kind) => {
                eprintln!("pair {at}: {kind}");
                unusable += 1;
                0.0
            }
        };
        eprintln!("pair {at} of {}: {probability:.2}, same {}", pairs.len(), pair.is_same);
        said.push((probability, pair.is_same));
    }
    let same = said.iter().filter(|(_, is_same)| *is_same).count();
    let cells = CONFIDENCES.map(|least| {
        let yes: Vec<bool> = said.iter().filter(|(value, _)| *value >= least).map(|(_, is_same)| *is_same).collect();
        let right = yes.iter().filter(|is_same| **is_same).count();
        let (precision, recall) = (wilson(right, yes.len()), wilson(right, same));
        format!(
            "{right} of {} right ({:.2}–{:.2}), found {:.2} ({:.2}–{:.2})",
            yes.len(),
            precision.low,
            precision.high,
            recall.value,
            recall.low,
            recall.high
        )
    });
    let all = said.len().max(1);
    println!(
        "| {name} | {} | {same} | {unusable} | {:.2} | {} | {:.1} | {}, {} |",
        said.len(),
        area(&said),
        cells.join(" | "),
        seconds / all as f64,
        input / all as u64,
        output / all as u64,
    );
    Ok(())
}

/// The area under the curve: how often a pair that is the same gets the higher probability.
fn area(said: &[(f64, bool)]) -> f64 {
    let (mut wins, mut all) = (0.0, 0.0);
    for (same, _) in said.iter().filter(|(_, is_same)| *is_same) {
        for (other, _) in said.iter().filter(|(_, is_same)| !*is_same) {
            all += 1.0;
            wins += if same > other { 1.0 } else { f64::from(same == other) / 2.0 };
        }
    }
    if all == 0.0 { f64::NAN } else { wins / all }
}
