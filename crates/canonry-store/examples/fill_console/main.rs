//! Fills a database for the console's timings: `fill_console URL [ITEMS]` with an empty database.
//!
//! With 100,000 items: 5,000 clusters, a plan of 10,000 rows, 50,000 triage records, 30,000 outcomes, 20,000 findings
//! in 2,000 reviews, and 200,000 deliveries with their jobs. Fewer items mean less of everything.
#![expect(clippy::print_stdout, reason = "what was written is what this program tells")]

mod closing;
mod corpus;
mod reviews;
mod service;
mod triage;

use std::error::Error;
use std::time::Instant;

use canonry_domain::{GithubId, ItemNumber, Probability, Similarity};
use canonry_store::{MaintainerSource, Repo, Store};
use jiff::{SignedDuration, Timestamp};

/// Rows per transaction.
const BATCH: usize = 1_000;
/// Repositories besides the large one.
const OTHER_REPOS: i64 = 200;

type Failure = Box<dyn Error>;

/// The target database, and the amount of data.
struct Filling {
    store: Store,
    repo: Repo,
    now: Timestamp,
    /// The number of items; four of five are issues, which come first.
    items: i64,
}

impl Filling {
    /// The number of clusters, with the large one counted as forty; there are 15 issues from one canonical to the
    /// next.
    fn clusters(&self) -> i64 {
        self.items / 20 + 40
    }

    fn issues(&self) -> i64 {
        self.items * 4 / 5
    }

    /// The duplicates of each cluster: one to five, and 319 in one.
    fn pairs(&self) -> Vec<(ItemNumber, ItemNumber)> {
        let of = |cluster: i64| {
            let canonical = cluster * 15 + 1;
            (1..=1 + cluster % 5).map(move |at| (number(canonical + at), number(canonical)))
        };
        let mut pairs: Vec<_> = (40..self.clusters()).flat_map(of).collect();
        pairs.extend((2..=320).map(|at| (number(at), number(1))));
        pairs
    }

    fn ago(&self, hours: i64) -> Timestamp {
        self.now - SignedDuration::from_hours(hours)
    }
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let url = arguments.next().ok_or("which database?")?;
    let items: i64 = arguments.next().map_or(Ok(100_000), |items| items.parse())?;
    let now = Timestamp::now();
    let store = Store::open(&url.parse()?, now).await?;
    for other in 0..OTHER_REPOS {
        let repo = store.repos().ensure(&format!("bench/other-{other}").parse()?, now).await?;
        store.repos().identify(repo.id, GithubId(1_000 + other), &repo.name).await?;
    }
    let repo = store.repos().ensure(&"bench/large".parse()?, now).await?;
    let repo = store.repos().identify(repo.id, GithubId(1), &repo.name).await?.ok_or("its own name")?;
    store.repos().set_maintainers(repo.id, MaintainerSource::Set, &["maint".parse()?], now).await?;
    let settings = "triage: {mode: suggest}\nfeedback:\n  autoSuppress: {enabled: true}\n";
    store.repos().write_settings(repo.id, Some(settings), now).await?;
    let filling = Filling { store, repo, now, items };
    told("items", corpus::fill(&filling)).await?;
    told("triage records and outcomes", triage::fill(&filling)).await?;
    told("decisions, clusters and plans", closing::fill(&filling)).await?;
    told("reviews and findings", reviews::fill(&filling)).await?;
    told("deliveries and jobs", service::fill(&filling, &url)).await?;
    filling.store.disconnect().await;
    Ok(())
}

async fn told(what: &str, filling: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    let began = Instant::now();
    filling.await?;
    println!("{what}: {:.1} s", began.elapsed().as_secs_f64());
    Ok(())
}

fn number(number: i64) -> ItemNumber {
    ItemNumber::new(number).expect("invariant: positive")
}

fn score(hundredths: i64) -> Similarity {
    Similarity::new(hundredths as f64 / 100.0).expect("invariant: at most one")
}

fn probability(hundredths: i64) -> Probability {
    Probability::new(hundredths as f64 / 100.0).expect("invariant: at most one")
}
