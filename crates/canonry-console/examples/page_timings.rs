//! Measures the console's pages on a large database and prints Markdown: `page_timings URL [TIMES]`, with a database of
//! `canonry-store`'s example `fill_console`. Fails if a page is slower than its limit.
#![expect(clippy::print_stdout, reason = "the table is what this program is for")]

use std::error::Error;
use std::sync::Arc;
use std::time::Instant;

use canonry_console::{AdminToken, ConsoleParts, console_routes};
use canonry_domain::ItemType;
use canonry_github::SystemClock;
use canonry_store::{DeliveryFilter, FindingFilter, JobFilter, PlanOrigin, PlanRowFilter, Repo, SessionOwner, Store};
use canonry_testkit::github::loopback_client_builder;
use jiff::Timestamp;
use sha2::{Digest as _, Sha256};

/// The limit for 95 of 100 requests of every page, in milliseconds.
const MOST: f64 = 150.0;
/// How many pages of a list are opened in a row.
const STEPS: usize = 20;
const REPO: &str = "bench/large";

type Failure = Box<dyn Error>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let url = arguments.next().ok_or("which database?")?;
    let times: usize = arguments.next().map_or(Ok(30), |times| times.parse())?;
    let store = Store::open(&url.parse()?, Timestamp::now()).await?;
    let repo = store.repos().find(&REPO.parse()?).await?.ok_or("the database is not filled")?;
    let session = format!("{:032x}", rand::random::<u128>());
    let admin_token = AdminToken::hashed([0; 32]);
    let whose = SessionOwner::Operator { seal: admin_token.seal(&session) };
    store.console().begin_session(&Sha256::digest(session.as_bytes()).into(), whose, Timestamp::now()).await?;
    let pages = pages(&store, &repo).await?;
    let routes = console_routes(ConsoleParts {
        store: store.clone(),
        github: None,
        github_api: "https://api.github.com".parse()?,
        clock: Arc::new(SystemClock),
        oauth: None,
        public_url: None,
        admin_token,
        form_key: [7; 32],
        one_time_codes: None,
        wake_worker: Arc::default(),
        wake_publisher: Arc::default(),
        version: env!("CARGO_PKG_VERSION"),
        commands: Vec::new(),
        lookup: None,
        public_checks: Vec::new(),
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let address = format!("http://{}", listener.local_addr()?);
    tokio::spawn(async move { axum::serve(listener, routes).await });
    let client = loopback_client_builder().redirect(reqwest::redirect::Policy::none()).build()?;
    let browser = Browser { client, address, session };
    println!("| page | p50 | p95 | max | size |\n|---|---|---|---|---|");
    let mut slow = Vec::new();
    for path in pages {
        let first = browser.time(&path, &path, times, &mut slow).await?;
        let (mut at, mut steps) = (first, 0);
        let mut last = None;
        while steps < STEPS
            && let Some(next) = next_page(&at)
        {
            at = browser.page(&next).await?;
            (last, steps) = (Some(next), steps + 1);
        }
        if let Some(last) = last {
            browser.time(&format!("{path}, {steps} pages on"), &last, times, &mut slow).await?;
        }
    }
    if slow.is_empty() { Ok(()) } else { Err(format!("slower than {MOST} ms: {}", slow.join("; ")).into()) }
}

struct Browser {
    client: reqwest::Client,
    address: String,
    session: String,
}

impl Browser {
    /// Requests a page `times` times and prints a row; returns the page.
    async fn time(&self, name: &str, path: &str, times: usize, slow: &mut Vec<String>) -> Result<String, Failure> {
        let mut taken = Vec::with_capacity(times);
        let mut page = String::new();
        for _ in 0..times {
            let began = Instant::now();
            page = self.page(path).await?;
            taken.push(began.elapsed().as_secs_f64() * 1e3);
        }
        taken.sort_by(f64::total_cmp);
        let at = |share: f64| taken[((taken.len() - 1) as f64 * share).round() as usize];
        let [half, most, max] = [at(0.5), at(0.95), at(1.0)];
        println!("| `{name}` | {half:.1} ms | {most:.1} ms | {max:.1} ms | {} KB |", page.len().div_ceil(1_000));
        if most > MOST {
            slow.push(name.to_owned());
        }
        Ok(page)
    }

    async fn page(&self, path: &str) -> Result<String, Failure> {
        let request = self.client.get(format!("{}{path}", self.address));
        let answer = request.header("cookie", format!("canonry={}", self.session)).send().await?;
        let (status, text) = (answer.status(), answer.text().await?);
        if status.is_success() || status.is_redirection() {
            Ok(text)
        } else {
            Err(format!("{path} answered {status}: {text}").into())
        }
    }
}

/// The link of the key `n`.
fn next_page(page: &str) -> Option<String> {
    let (before, _) = page.split_once("\" data-key=\"n\"")?;
    let (_, address) = before.rsplit_once("href=\"")?;
    Some(address.replace("&#38;", "&").replace("&amp;", "&"))
}

/// Every page, with its filters and far from its beginning.
async fn pages(store: &Store, repo: &Repo) -> Result<Vec<String>, Failure> {
    let plans = store.plans().list(repo.id, PlanOrigin::Person, None, 5).await?;
    let plan = plans.first().ok_or("there is a plan")?.run.id;
    let applied = plans.last().ok_or("there is an older plan")?.run.id;
    let row = store.plans().rows_page(&plans[0], PlanRowFilter::default(), None, 1).await?;
    let row = row.first().ok_or("the plan has rows")?.row.number;
    let review = store.review().list_before(repo.id, None, None, 1).await?.first().ok_or("there is a review")?.id;
    let finding = store.findings().pages(repo.id, FindingFilter::default(), None, 1).await?;
    let finding = finding.first().ok_or("there is a finding")?.found.id;
    let job = store.jobs().list(&JobFilter::default(), 1).await?.first().ok_or("there is a job")?.id;
    let delivery = store.deliveries().list(&DeliveryFilter::default(), 1).await?;
    let delivery = &delivery.first().ok_or("there is a delivery")?.id;
    let audit = store.judge().latest_audit(repo.id).await?.ok_or("there is an audit")?.id;
    let case = store.judge().next_adjudication(repo.id, None).await?;
    let issues = store.corpus().item_numbers(repo.id).await?;
    let pull = issues.iter().find(|(_, item_type)| *item_type == ItemType::Pr).ok_or("there is a pull request")?.0;
    let all = [
        "/",
        "/?text=nobody&trouble=1",
        "/help/keys",
        "/search?q=2",
        "/search?q=said+by+no+item",
        "/search?q=the+list&repo=bench/large",
        "/setup",
        "/jobs",
        "/jobs?state=dead",
        "/jobs?kind=webhook",
        "/deliveries",
    ];
    let mut pages: Vec<String> = all.into_iter().map(str::to_owned).collect();
    pages.push(format!("/jobs/{job}"));
    pages.push("/deliveries?state=dead".to_owned());
    pages.push(format!("/deliveries/{delivery}"));
    let of_repo = [
        String::new(),
        "/items".to_owned(),
        "/items?state=open&type=issue".to_owned(),
        "/items?verdict=duplicate".to_owned(),
        "/items?cluster=no".to_owned(),
        "/items?title=said+by+no+item".to_owned(),
        "/items?label=on+no+item&author=nobody&cluster=no".to_owned(),
        "/items?title=e&state=open".to_owned(),
        "/announced".to_owned(),
        "/announced?type=pr".to_owned(),
        "/activity".to_owned(),
        "/activity?text=nothing+of+the+kind".to_owned(),
        "/issues/2".to_owned(),
        "/issues/1".to_owned(),
        format!("/pulls/{pull}"),
        "/clusters".to_owned(),
        "/clusters?view=list".to_owned(),
        "/clusters?view=list&min=4&open=1&unplanned=1".to_owned(),
        "/clusters/issue/1".to_owned(),
        "/clusters/issue/1516".to_owned(),
        "/plans".to_owned(),
        format!("/plans/{plan}"),
        format!("/plans/{plan}?show=skips"),
        format!("/plans/{plan}/rows/issue/{row}"),
        format!("/plans/{plan}/progress"),
        format!("/plans/{applied}"),
        "/learning".to_owned(),
        "/learning?taught=missed".to_owned(),
        "/adjudicate".to_owned(),
        "/audits".to_owned(),
        format!("/audits/{audit}"),
        format!("/audits/{audit}?score=0.8"),
        "/reviews".to_owned(),
        format!("/reviews/{review}"),
        "/findings".to_owned(),
        "/findings?severity=critical&status=new".to_owned(),
        "/findings?path=src/part_1".to_owned(),
        format!("/findings/{finding}"),
        "/patterns".to_owned(),
        "/patterns?title=nothing+of+the+kind&hidden_title=nothing+of+the+kind".to_owned(),
        "/jobs".to_owned(),
        "/jobs?state=dead".to_owned(),
        "/deliveries".to_owned(),
        "/deliveries?event=star&state=done".to_owned(),
        "/settings".to_owned(),
        "/settings?item=999999999".to_owned(),
    ];
    pages.extend(of_repo.into_iter().map(|path| format!("/r/{REPO}{path}")));
    pages.extend(case.map(|case| format!("/r/{REPO}/adjudicate/{}", case.id.get())));
    Ok(pages)
}
