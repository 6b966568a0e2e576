//! Measures how fast, and in how much memory, 10,000 open items are judged by a scripted server, and how fast their
//! plan is made.
#![expect(clippy::print_stdout, reason = "a benchmark prints its table")]

use canonry_models::chat::TokenBudget;
use std::collections::BTreeMap;
use std::time::Instant;

use canonry_domain::{
    Extractor, ItemNumber, ItemRecord, ItemState, ItemType, Login, PlanRules, Probability, TargetPolicy,
};
use canonry_models::chat::{ChatProvider, ChatSettings, RemoteChat};
use canonry_store::{CandidateMember, MaintainerSource, NewCandidateSet, Repo, Representation, Store};
use canonry_testkit::models::ModelServer;
use canonry_triage::{EmbedSource, Judge, JudgeOptions, JudgeReport, PlanOptions, judge, plan_close};
use jiff::Timestamp;

const ITEMS: i64 = 10_000;
const WORKERS: usize = 8;

#[tokio::main]
async fn main() {
    let folder = tempfile::tempdir().expect("a folder");
    let now: Timestamp = "2026-03-01T00:00:00Z".parse().expect("a time");
    let url = format!("sqlite:{}", folder.path().join("speed.db").display()).parse().expect("a URL");
    let store = Store::open(&url, now).await.expect("opens");
    let repo = store.repos().ensure(&"bench/speed".parse().expect("a name"), now).await.expect("a repository");
    fill(&store, &repo, now).await;

    let server = ModelServer::start().await;
    server.answer_by(|request| Some(answer(&request.prompt())));
    let settings = ChatSettings { base_url: server.base_url(), ..ChatSettings::new(ChatProvider::OpenAi) };
    let model = RemoteChat::new(settings).expect("a model");
    let options = JudgeOptions {
        item_type: Some(ItemType::Issue),
        source: EmbedSource::Raw,
        min_edge: probability(0.85),
        allow_stale: false,
        rejudge: false,
        joining: None,
        workers: WORKERS,
        budget: TokenBudget::default(),
        config_hash: "bench".to_owned(),
        run_id: "bench".to_owned(),
    };
    let began = Instant::now();
    let mut memory: Vec<(usize, u64)> = Vec::new();
    let mut progress = |so_far: &JudgeReport| {
        // The memory for recorded requests is the server's, not the program's.
        server.forget_requests();
        if so_far.decisions.len() >= (memory.len() + 1) * 2_000 {
            memory.push((so_far.decisions.len(), resident()));
        }
    };
    let asked = Judge::Model { provider: Extractor::OpenAi, model: &model };
    let done = judge(&store, &repo, asked, &options, now, &mut progress).await.expect("judged");
    let seconds = began.elapsed().as_secs_f64();
    println!("| | |\n|---|---:|");
    println!("| items judged, {WORKERS} workers | {} |", done.judged);
    println!("| edges accepted | {} |", done.accepted);
    println!("| decisions a second | {:.0} |", done.judged as f64 / seconds);
    for (decided, megabytes) in memory {
        println!("| memory after {decided} decisions | {megabytes} MB |");
    }
    let began = Instant::now();
    let again = judge(&store, &repo, asked, &options, now, &mut |_| {}).await.expect("judged");
    println!("| the same again: {} calls | {:.1} s |", again.calls, began.elapsed().as_secs_f64());

    let rules =
        PlanRules { min_close: probability(0.9), policy: TargetPolicy::CanonicalOnly, protected_labels: Vec::new() };
    let options = PlanOptions {
        item_type: Some(ItemType::Issue),
        source: EmbedSource::Raw,
        rules,
        dry_run: false,
        config_hash: "bench".to_owned(),
        run_id: "bench".to_owned(),
    };
    let began = Instant::now();
    let plan = plan_close(&store, &repo, None, &options, now).await.expect("planned");
    let closes = plan.rows.iter().filter(|row| row.skip.is_none()).count();
    println!("| plan of {} clusters, {closes} closes | {:.2} s |", plan.clusters, began.elapsed().as_secs_f64());
}

fn probability(value: f64) -> Probability {
    Probability::new(value).expect("in range")
}

fn number(number: i64) -> ItemNumber {
    ItemNumber::new(number).expect("positive")
}

/// Creates issues in pairs: each even one repeats the odd one before it.
async fn fill(store: &Store, repo: &Repo, now: Timestamp) {
    let mona: Login = "mona".parse().expect("a login");
    store.repos().set_maintainers(repo.id, MaintainerSource::Set, &[mona], now).await.expect("set");
    let record = |of: i64| {
        let pair = (of + 1) / 2;
        let body = format!(
            "Since version 1.{pair} the command `frob --level {pair}` fails with\n\n```\nerror: cannot open channel {pair}: \
             permission denied\n   at frob::channel::open_{pair}(channel.rs:{pair})\n```\n\n{}",
            "It worked before the update, and going back to the version before helps. ".repeat(20)
        );
        ItemRecord {
            body: Some(body),
            state: Some(ItemState::Open),
            author: Some(format!("user{of}").parse().expect("a login")),
            assignees: Some(Vec::new()),
            ..ItemRecord::new(ItemType::Issue, number(of), format!("frob cannot open channel {pair}"))
        }
    };
    for batch in (1..=ITEMS).collect::<Vec<_>>().chunks(500) {
        let records = batch.iter().map(|of| record(*of)).collect();
        store.corpus().upsert_items(repo, records, now).await.expect("taken in");
    }
    for of in 1..=ITEMS {
        let twin = if of % 2 == 0 { of - 1 } else { of + 1 };
        let others = [twin, (of + 100) % ITEMS + 1, (of + 200) % ITEMS + 1, (of + 300) % ITEMS + 1];
        let members = others.into_iter().zip([0.95, 0.80, 0.79, 0.78]).map(|(other, score)| CandidateMember {
            number: number(other),
            score,
            parts: BTreeMap::from([("dense".to_owned(), score)]),
        });
        let set = NewCandidateSet {
            item_type: ItemType::Issue,
            number: number(of),
            representation: Representation::Raw,
            content_version: canonry_domain::ContentVersion::FIRST,
            model: "bench".to_owned(),
            members: members.collect(),
            pairs: Vec::new(),
        };
        assert!(store.duplicates().write_candidate_set(repo.id, &set, now).await.expect("written"));
    }
}

/// The even issue of a pair is a duplicate of the odd one. The source is recognized by the channel in its text: the
/// question lists the candidates by number, including the other issue of the pair.
fn answer(prompt: &str) -> String {
    let channel = |text: &str| {
        text.split("open channel ")
            .nth(1)
            .and_then(|rest| rest.split(|c: char| !c.is_ascii_digit()).next().map(str::to_owned))
    };
    let pair: i64 = channel(prompt).and_then(|pair| pair.parse().ok()).unwrap_or(1);
    let odd = 2 * pair - 1;
    let is_even = prompt.contains(&format!("Candidate {odd}, "));
    format!(
        "{{\"is_duplicate\":{is_even},\"duplicate_of\":{},\"confidence\":0.95,\"reasoning\":\"Both show the same error.\"}}",
        if is_even { odd } else { 0 }
    )
}

fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").trim().parse::<u64>().unwrap_or_default() / 1_024
}
