//! Indexes in memory find what a fresh one finds, whichever process changes the database, and stay within their
//! memory limit.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use canonry_domain::{
    GoneReason, ItemNumber, ItemRecord, ItemState, ItemType, PullChanges, Similarity, TokenVectors, parse_moment,
};
use canonry_models::{Calibration, EmbedError, Embedder, InputType, TextEmbedding};
use canonry_retrieval::RetrievalMode;
use canonry_store::{EmbeddingKey, PurgePlace, Repo, Store};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::on_both_engines;
use canonry_triage::{EmbedOptions, IndexCache, NeighbourQuery, Neighbourhood, RetrievalError, embed};
use futures_util::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};

const MODEL: &str = "words";
const ROOM: usize = 64 << 20;
/// More than there are items, so that nothing depends on which one is last.
const WANTED: NeighbourQuery =
    NeighbourQuery { mode: RetrievalMode::Hybrid, k: 400, min_score: Similarity::ZERO, state: None };
const WORDS: [&str; 12] =
    ["kelp", "crab", "squid", "urchin", "limpet", "reef", "tide", "harbour", "alarm", "panic", "socket", "buffer"];

/// Makes vectors and token vectors from words.
struct WordEmbedder(Calibration);

impl WordEmbedder {
    fn made(text: &str) -> TextEmbedding {
        let (mut vector, mut codes) = (vec![0.0_f32; WORDS.len()], Vec::new());
        for word in text.split_whitespace() {
            if let Some(at) = WORDS.iter().position(|known| *known == word) {
                vector[at] += 1.0;
                codes.extend((0..32).map(|place| if place == at { 127 } else { 0 }));
            }
        }
        vector[0] += 0.01;
        TextEmbedding { vector, tokens: (!codes.is_empty()).then(|| TokenVectors::new(32, codes).expect("whole rows")) }
    }
}

impl Embedder for WordEmbedder {
    fn model_id(&self) -> &str {
        MODEL
    }

    fn dimension(&self) -> Option<usize> {
        Some(WORDS.len())
    }

    fn calibration(&self) -> &Calibration {
        &self.0
    }

    fn embed<'a>(&'a self, texts: &'a [String], _: InputType) -> BoxFuture<'a, Result<Vec<Vec<f32>>, EmbedError>> {
        Box::pin(std::future::ready(Ok(texts.iter().map(|text| Self::made(text).vector).collect())))
    }

    fn embed_with_tokens<'a>(
        &'a self,
        texts: &'a [String],
        _: InputType,
    ) -> BoxFuture<'a, Result<Vec<TextEmbedding>, EmbedError>> {
        Box::pin(std::future::ready(Ok(texts.iter().map(|text| Self::made(text)).collect())))
    }
}

fn number(number: i64) -> ItemNumber {
    ItemNumber::new(number).expect("valid")
}

/// Every call returns another time: the time of embedding distinguishes vectors.
fn now() -> Timestamp {
    static STEPS: AtomicI64 = AtomicI64::new(0);
    parse_moment("2026-02-01").expect("valid") + SignedDuration::from_secs(STEPS.fetch_add(1, Ordering::Relaxed))
}

async fn opened(database: &TestDatabase) -> Store {
    Store::open(&database.url().parse().expect("valid"), now()).await.expect("opens")
}

async fn repository(store: &Store, name: &str) -> Repo {
    store.repos().ensure(&name.parse().expect("valid"), now()).await.expect("created")
}

fn issue(of: i64, text: &str) -> ItemRecord {
    let record = ItemRecord::new(ItemType::Issue, number(of), format!("About {text}"));
    ItemRecord { body: Some(text.to_owned()), state: Some(ItemState::Open), created_at: Some(now()), ..record }
}

async fn take_in(store: &Store, repo: &Repo, records: Vec<ItemRecord>) {
    store.corpus().upsert_items(repo, records, now()).await.expect("taken in");
}

async fn embed_all(store: &Store, repo: &Repo) {
    let options = EmbedOptions { only_changed: true, ..EmbedOptions::default() };
    embed(store, &WordEmbedder(Calibration::identity()), repo, options, now(), &mut |_| ()).await.expect("embeds");
}

/// A repository with these issues, numbered from 1, all embedded.
async fn filled(store: &Store, name: &str, texts: &[&str]) -> Repo {
    let repo = repository(store, name).await;
    take_in(store, &repo, (1..).zip(texts).map(|(of, text)| issue(of, text)).collect()).await;
    embed_all(store, &repo).await;
    repo
}

async fn cached(
    cache: &IndexCache,
    store: &Store,
    repo: &Repo,
    item_type: ItemType,
) -> Result<Neighbourhood, RetrievalError> {
    let (key, calibration) = (EmbeddingKey::raw(MODEL), Calibration::identity());
    cache.neighbourhood(store, repo, item_type, key, calibration, None).await
}

async fn fresh(store: &Store, repo: &Repo, item_type: ItemType) -> Neighbourhood {
    let (key, calibration) = (EmbeddingKey::raw(MODEL), Calibration::identity());
    Neighbourhood::load(store, repo, item_type, key, calibration, None).await.expect("loads")
}

/// The neighbours of an item with all parts of their scores.
async fn found(near: &Neighbourhood, of: ItemNumber) -> BTreeMap<i64, BTreeMap<String, f64>> {
    let Some(entry) = near.entry(of).await.expect("reads") else { return BTreeMap::new() };
    let query = Neighbourhood::query_of(&entry);
    let mode = if entry.vector.is_some() { RetrievalMode::Hybrid } else { RetrievalMode::Lexical };
    let hits = near.neighbours(&query, entry.vector.as_deref(), NeighbourQuery { mode, ..WANTED }, &|_| true).await;
    let told = hits.expect("compares").into_iter().map(|hit| {
        let mut parts: BTreeMap<String, f64> =
            hit.parts.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        parts.insert("score".to_owned(), hit.score.get());
        (hit.number.get(), parts)
    });
    told.collect()
}

async fn numbers(near: &Neighbourhood, of: i64) -> Vec<i64> {
    found(near, number(of)).await.into_keys().collect()
}

/// Sums differ in their last bits with the order in which items were added.
fn assert_alike(one: &BTreeMap<i64, BTreeMap<String, f64>>, other: &BTreeMap<i64, BTreeMap<String, f64>>, what: &str) {
    assert_eq!(one.keys().collect::<Vec<_>>(), other.keys().collect::<Vec<_>>(), "{what}");
    for (number, parts) in one {
        assert_eq!(parts.keys().collect::<Vec<_>>(), other[number].keys().collect::<Vec<_>>(), "{what}: #{number}");
        for (name, value) in parts {
            let expected = other[number][name];
            assert!((value - expected).abs() < 1e-4, "{what}: {name} of #{number} is {value}, not {expected}");
        }
    }
}

on_both_engines! {
    async fn what_another_process_changes_is_seen_at_the_next_query(database: TestDatabase) {
        let (store, other) = (opened(&database).await, opened(&database).await);
        let repo = filled(&store, "tide/pool", &["kelp reef", "kelp tide", "squid alarm"]).await;
        let cache = IndexCache::new(ROOM);
        let near = async || numbers(&cached(&cache, &store, &repo, ItemType::Issue).await.expect("loads"), 1).await;
        assert_eq!(near().await, [2, 3]);
        take_in(&other, &repo, vec![issue(4, "kelp harbour"), issue(3, "kelp panic")]).await;
        embed_all(&other, &repo).await;
        assert_eq!(near().await, [2, 3, 4]);
        let by_words = found(&cached(&cache, &store, &repo, ItemType::Issue).await.expect("loads"), number(1)).await;
        assert_alike(&by_words, &found(&fresh(&other, &repo, ItemType::Issue).await, number(1)).await, "edited");
        other.corpus().mark_gone(repo.id, number(2), GoneReason::Deleted, now()).await.expect("marked");
        assert_eq!(near().await, [3, 4]);
        other.corpus().mark_back(repo.id, number(2), now()).await.expect("marked");
        assert_eq!(near().await, [2, 3, 4]);
        assert_eq!(cache.loads(), 1, "it was brought up to date and not loaded again");
        let open = NeighbourQuery { state: Some(ItemState::Open), ..WANTED };
        take_in(&other, &repo, vec![ItemRecord { state: Some(ItemState::Closed), ..issue(4, "kelp harbour") }]).await;
        let kept = cached(&cache, &store, &repo, ItemType::Issue).await.expect("loads");
        let entry = kept.entry(number(1)).await.expect("reads").expect("there");
        let query = Neighbourhood::query_of(&entry);
        let hits = kept.neighbours(&query, entry.vector.as_deref(), open, &|_| true).await.expect("compares");
        assert!(hits.iter().all(|hit| hit.number != number(4)), "{hits:?}");
        drop(kept);
        for store in [store, other] {
            store.disconnect().await;
        }
    }

    async fn what_is_purged_never_comes_back(database: TestDatabase) {
        let (store, other) = (opened(&database).await, opened(&database).await);
        let repo = filled(&store, "tide/pool", &["kelp reef", "kelp tide", "squid alarm"]).await;
        let cache = IndexCache::new(ROOM);
        let kept = cached(&cache, &store, &repo, ItemType::Issue).await.expect("loads");
        assert_eq!(numbers(&kept, 1).await, [2, 3]);
        drop(kept);
        let mut after = Some(0);
        while let Some(place) = after {
            after = other.maintenance().purge_vectors(repo.id, MODEL, place, 2).await.expect("purges");
        }
        let kept = cached(&cache, &store, &repo, ItemType::Issue).await.expect("loads");
        assert_eq!(kept.embedded(), 0, "no vector is left");
        drop(kept);
        let mut place = Some(PurgePlace::default());
        while let Some(at) = place {
            place = other.maintenance().purge_some(&repo.name, Some(repo.id), at, 2).await.expect("purges");
        }
        // SQLite reuses the key for the next repository, which has the same number of versions in the end.
        let next = filled(&other, "tide/pool", &["crab walk"]).await;
        for of in 2..=12 {
            take_in(&other, &next, vec![issue(of, "crab reef")]).await;
            embed_all(&other, &next).await;
        }
        let kept = cached(&cache, &store, &next, ItemType::Issue).await.expect("loads");
        assert_eq!(kept.rows().len(), 12);
        assert!(kept.index().numbers().all(|one| one.get() <= 12));
        let expected = found(&fresh(&other, &next, ItemType::Issue).await, number(2)).await;
        assert_alike(&found(&kept, number(2)).await, &expected, "after the purge");
        drop(kept);
        for store in [store, other] {
            store.disconnect().await;
        }
    }

    async fn what_was_not_used_for_longest_goes(database: TestDatabase) {
        let store = opened(&database).await;
        let texts: Vec<String> = (0..40).map(|at| format!("kelp reef number {at}")).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let mut repos = Vec::new();
        for name in ["tide/one", "tide/two", "tide/three"] {
            repos.push(filled(&store, name, &texts).await);
        }
        let used = async |cache: &IndexCache, of: usize| {
            drop(cached(cache, &store, &repos[of], ItemType::Issue).await.expect("loads"));
        };
        let all = IndexCache::new(ROOM);
        used(&all, 0).await;
        let bytes = all.bytes();
        assert!(bytes > 10_000, "{bytes}");
        let two = IndexCache::new(bytes * 5 / 2);
        for of in [0, 1, 0, 2, 0] {
            used(&two, of).await;
            assert!(two.bytes() <= bytes * 5 / 2, "{}", two.bytes());
        }
        assert_eq!(two.loads(), 3, "the first was used again before the third came");
        used(&two, 1).await;
        assert_eq!(two.loads(), 4, "the second had to go");
        // An index that does not fit is used, but not kept.
        let none = IndexCache::new(bytes / 2);
        used(&none, 0).await;
        assert_eq!((none.bytes(), none.loads()), (0, 1));
        // With a limit of 0 everything works as without a cache.
        let off = IndexCache::new(0);
        used(&off, 0).await;
        assert_eq!((off.bytes(), off.loads()), (0, 0));
        store.disconnect().await;
    }

    async fn two_workers_load_once(database: TestDatabase) {
        let store = opened(&database).await;
        let repo = filled(&store, "tide/pool", &["kelp reef", "kelp tide", "squid alarm"]).await;
        let cache = Arc::new(IndexCache::new(ROOM));
        let ask = |of: i64| {
            let (cache, store, repo) = (Arc::clone(&cache), store.clone(), repo.clone());
            tokio::spawn(async move {
                let near = cached(&cache, &store, &repo, ItemType::Issue).await.expect("loads");
                numbers(&near, of).await.len()
            })
        };
        let asked: Vec<_> = (0..8).map(|at| ask(at % 3 + 1)).collect();
        for one in asked {
            assert_eq!(one.await.expect("answers"), 2);
        }
        assert_eq!(cache.loads(), 1);
        store.disconnect().await;
    }

    async fn a_kept_index_finds_what_a_fresh_one_finds(database: TestDatabase) {
        let (store, other) = (opened(&database).await, opened(&database).await);
        for seed in 0..3 {
            let mut history = History::new(seed, other.clone()).await;
            let caches = [(IndexCache::new(ROOM), &store), (IndexCache::new(ROOM), &other)];
            for step in 0..24 {
                history.go_on().await;
                for (at, (cache, store)) in caches.iter().enumerate() {
                    if history.draw(3) == 0 {
                        continue;
                    }
                    for item_type in [ItemType::Issue, ItemType::Pr] {
                        let kept = cached(cache, store, &history.repo, item_type).await.expect("loads");
                        let expected = fresh(store, &history.repo, item_type).await;
                        let what = format!("seed {seed}, step {step} ({}), cache {at}", history.last);
                        assert_eq!(kept.rows(), expected.rows(), "{what}");
                        assert_eq!(kept.embedded(), expected.embedded(), "{what}");
                        let mut asked: Vec<ItemNumber> = expected.rows().keys().copied().collect();
                        asked.sort_unstable();
                        asked.truncate(6);
                        for of in asked {
                            assert_alike(&found(&kept, of).await, &found(&expected, of).await, &format!("{what}: #{of}"));
                        }
                    }
                }
            }
        }
        for store in [store, other] {
            store.disconnect().await;
        }
    }
}

/// A random history of a repository, from a seed.
struct History {
    store: Store,
    repo: Repo,
    random: u64,
    next: i64,
    last: &'static str,
}

impl History {
    async fn new(seed: u64, store: Store) -> Self {
        let repo = repository(&store, &format!("tide/pool{seed}")).await;
        Self { store, repo, random: seed, next: 1, last: "" }
    }

    fn draw(&mut self, below: u64) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.random ^ (self.random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        ((mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb) >> 31) % below
    }

    /// Some words, often between lines that many texts share.
    fn text(&mut self) -> String {
        let count = 1 + self.draw(4);
        let words: Vec<&str> = (0..count).map(|_| WORDS[self.draw(WORDS.len() as u64) as usize]).collect();
        let words = words.join(" ");
        match self.draw(3) {
            0 => words,
            1 => format!("### What happened in the reef\n\n{words}\n\n### Which tide do you use"),
            _ => format!("### Steps to the harbour\n\n{words}"),
        }
    }

    fn known(&mut self) -> ItemNumber {
        let next = self.next.max(2).unsigned_abs();
        number(1 + self.draw(next - 1).cast_signed())
    }

    /// Odd numbers are issues, even ones pull requests.
    fn record(&mut self, of: ItemNumber) -> ItemRecord {
        let (title, body) = (format!("About {}", self.text()), self.text());
        let item_type = if of.get() % 2 == 1 { ItemType::Issue } else { ItemType::Pr };
        let word = WORDS[self.draw(WORDS.len() as u64) as usize];
        let changes = PullChanges { files: vec![format!("src/{word}.rs")], diff: format!("+let {word} = 1;\n") };
        ItemRecord {
            body: Some(body),
            state: Some(if self.draw(4) == 0 { ItemState::Closed } else { ItemState::Open }),
            created_at: Some(now()),
            changes: (item_type == ItemType::Pr && self.draw(3) > 0).then_some(changes),
            ..ItemRecord::new(item_type, of, title)
        }
    }

    async fn go_on(&mut self) {
        match self.draw(16) {
            0..5 => {
                self.last = "opened";
                let count = if self.draw(12) == 0 { 120 } else { 1 + self.draw(8).cast_signed() };
                let numbers: Vec<i64> = (self.next..self.next + count).collect();
                self.next += count;
                let records = numbers.into_iter().map(|of| self.record(number(of))).collect();
                take_in(&self.store, &self.repo, records).await;
            }
            5..7 => {
                self.last = "edited";
                let of = self.known();
                let record = self.record(of);
                take_in(&self.store, &self.repo, vec![record]).await;
                self.next = self.next.max(of.get() + 1);
            }
            7..11 => {
                self.last = "embedded";
                embed_all(&self.store, &self.repo).await;
            }
            11 => {
                self.last = "left";
                let of = self.known();
                self.store.corpus().mark_gone(self.repo.id, of, GoneReason::Deleted, now()).await.expect("marked");
            }
            12 => {
                self.last = "came back";
                let of = self.known();
                self.store.corpus().mark_back(self.repo.id, of, now()).await.expect("marked");
            }
            13 => {
                self.last = "said to be a duplicate";
                let (of, target) = (self.known(), self.known());
                self.store.corpus().set_duplicate_of(self.repo.id, ItemType::Issue, of, target).await.expect("noted");
            }
            14 => {
                self.last = "vectors purged";
                let mut after = Some(0);
                while let Some(place) = after {
                    after =
                        self.store.maintenance().purge_vectors(self.repo.id, MODEL, place, 50).await.expect("purges");
                }
            }
            _ if self.draw(3) > 0 => self.last = "nothing",
            _ => {
                self.last = "purged";
                let mut place = Some(PurgePlace::default());
                while let Some(at) = place {
                    place = self
                        .store
                        .maintenance()
                        .purge_some(&self.repo.name, Some(self.repo.id), at, 50)
                        .await
                        .expect("purges");
                }
                let name = self.repo.name.to_string();
                self.repo = repository(&self.store, &name).await;
                self.next = 1;
            }
        }
    }
}
