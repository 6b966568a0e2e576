//! The pictures in the documents show what Canonry writes: their sources come from a run of the demo, and this test
//! compares them. `cargo xtask pictures` writes them.

mod github_page;
mod terminal;

use std::fs;
use std::io::BufReader;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Stdio};

use canonry_testkit::browser::{Browser, Page, Scheme, Viewport};
use canonry_testkit::github::loopback_client;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use self::github_page::{Comment, Remark, comment_page, review_page, summary_page};
use self::terminal::{Scene, recording};
use crate::action::running::summary_of_a_shadow_run;
use crate::place::{Place, Ran};
use crate::working_copy::WorkingCopy;

const REPO: &str = "brindle/brindle";
/// Its mode is `suggest`.
const SUGGESTED: &str = "tidepool/tidepool";
/// The pull request with three findings.
const REVIEWED: &str = "Export: keep the line ends of the file";
/// The file whose comment is shown.
const REMARKED: &str = "crates/brindle-tui/src/export.rs";
/// How much of the first command's output is shown.
const SHOWN_LINES: usize = 16;
/// The demo ends at the current time, but a picture needs a fixed date.
const DATE: &str = "18 Nov, 20:00 UTC";
const WRITE: &str = "CANONRY_WRITE_PICTURES";

#[tokio::test(flavor = "multi_thread")]
async fn pictures_show_what_canonry_writes() {
    let demo = Demo::start();
    let action = summary_page(&tokio::task::spawn_blocking(summary_of_a_shadow_run).await.expect("it runs"));
    let pages = [
        ("comment", demo.comment(REPO, |body, is_open| is_open && body.contains("**closed on ")).await),
        ("suggestion", demo.comment(SUGGESTED, |body, _| body.contains("Nothing is closed because of it.")).await),
        ("close", demo.comment(REPO, |body, is_open| !is_open && body.starts_with("Closed as a duplicate")).await),
        ("reply", demo.comment(REPO, |body, _| body.starts_with("Recorded by ")).await),
        ("review", demo.review().await),
        ("action", action),
    ];
    let scenes = [demo.why_closed(), reviewed_clone()];
    let terminal = recording(&scenes);
    if std::env::var_os(WRITE).is_some() {
        write(&demo, &pages, &terminal);
    }
    for (name, page) in pages {
        assert_eq!(stored(&format!("{name}.html")), page, "docs/images/{name}.html is stale: cargo xtask pictures");
    }
    assert_eq!(stored("terminal.svg"), terminal, "docs/images/terminal.svg is stale: cargo xtask pictures");
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/images")
}

fn stored(name: &str) -> String {
    fs::read_to_string(folder().join(name)).unwrap_or_default()
}

fn write(demo: &Demo, pages: &[(&str, String)], terminal: &str) {
    let browser = Browser::start();
    let page = browser.page();
    for (name, source) in pages {
        let file = folder().join(format!("{name}.html"));
        fs::write(&file, source).expect("the folder can be written to");
        for (scheme, suffix) in [(Scheme::Light, ""), (Scheme::Dark, "-dark")] {
            page.look_as(Viewport::Desktop, scheme);
            open(&page, source);
            page.screenshot_of("main", &folder().join(format!("{name}{suffix}.png")));
        }
    }
    fs::write(folder().join("terminal.svg"), terminal).expect("the folder can be written to");
    // The times on pages of the console differ from run to run, so these are not compared.
    page.look_as(Viewport::Desktop, Scheme::Light);
    page.goto(demo.document["sign_in_once"].as_str().expect("a link"));
    page.screenshot(&folder().join("console-home.png"));
    let plan = demo.sights().find(|path| path.contains("/plans/")).expect("a plan is among the sights");
    page.goto(&format!("{}{plan}", demo.document["console"].as_str().expect("an address")));
    page.screenshot(&folder().join("console-plan.png"));
}

/// Shows a text as a page; opening a file would need the browser's permission.
fn open(page: &Page, source: &str) {
    page.eval(&format!("document.open(), document.write({}), document.close(), 0", Value::from(source)));
    page.wait_for("document.readyState === 'complete'");
}

/// The demo, whose console stays open while this lives.
struct Demo {
    process: Child,
    _output: ChildStdout,
    document: Value,
    place: Place,
}

impl Demo {
    fn start() -> Self {
        let place = Place::new();
        let arguments = ["demo", "--json", "--verbose", "--no-open", "--keep", "demo", "--listen", "127.0.0.1:0"];
        let mut command = place.command(&arguments);
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the program starts");
        let mut output = process.stdout.take().expect("a pipe was asked for");
        let document = serde_json::Deserializer::from_reader(BufReader::new(&mut output)).into_iter().next();
        let document = document.expect("the demo prints a document").expect("the document is JSON");
        Self { process, _output: output, document, place }
    }

    /// The answer of the demo's GitHub.
    async fn get(&self, repo: &str, path: &str) -> Value {
        let github = &self.document["github"];
        let (api, token) = (github["api"].as_str().expect("an address"), github["token"].as_str().expect("a token"));
        let request = loopback_client().get(format!("{api}/repos/{repo}/{path}"));
        let answer = request.bearer_auth(token).header("user-agent", "canonry-tests").send().await.expect("an answer");
        let text = answer.error_for_status().expect("a success").text().await.expect("a body");
        serde_json::from_str(&text).expect("JSON")
    }

    /// Canonry's latest comment whose text, on an open issue or another one, fits.
    async fn comment(&self, repo: &str, fits: impl Fn(&str, bool) -> bool) -> String {
        let comments = self.get(repo, "issues/comments?per_page=100&sort=created&direction=desc").await;
        for comment in comments.as_array().expect("a list") {
            let body = comment["body"].as_str().unwrap_or_default();
            let number = comment["issue_url"].as_str().and_then(|url| url.rsplit('/').next()).expect("an address");
            let issue = self.get(repo, &format!("issues/{number}")).await;
            if fits(body, issue["state"] == "open") {
                let title = issue["title"].as_str().expect("a title");
                return comment_page(title, number, &Comment { author: author(comment), body: with_date(body) });
            }
        }
        panic!("no such comment in {repo}");
    }

    /// The first review of the pull request with three findings.
    async fn review(&self) -> String {
        let pulls = self.get(REPO, "pulls?state=all&per_page=100").await;
        let pull = pulls.as_array().expect("a list").iter().find(|pull| pull["title"] == REVIEWED);
        let number = pull.expect("the demo opens it")["number"].to_string();
        let reviews = self.get(REPO, &format!("pulls/{number}/reviews")).await;
        let review = &reviews[0];
        let remarks = self.get(REPO, &format!("pulls/{number}/reviews/{}/comments", review["id"])).await;
        let remarks = remarks.as_array().expect("a list").iter().map(|remark| Remark {
            path: remark["path"].as_str().expect("a path").to_owned(),
            hunk: remark["diff_hunk"].as_str().expect("a hunk").to_owned(),
            comment: Comment { author: author(remark), body: remark["body"].as_str().expect("a text").to_owned() },
        });
        let body = review["body"].as_str().expect("a text").to_owned();
        // The summary names all findings; one comment serves as the example.
        let remark = remarks.into_iter().find(|remark| remark.path == REMARKED).expect("a remark in that file");
        review_page(REVIEWED, &number, &Comment { author: author(review), body }, &remark)
    }

    /// The issue that was closed after its grace period.
    fn closed_issue(&self) -> String {
        let (_, number) =
            self.sights().find_map(|path| path.split_once("/issues/")).expect("an issue is among the sights");
        number.to_owned()
    }

    /// The pages that the demo recommends.
    fn sights(&self) -> impl Iterator<Item = &str> {
        let sights = self.document["sights"].as_array().expect("a list");
        sights.iter().filter_map(|sight| sight["path"].as_str())
    }

    fn why_closed(&self) -> Scene {
        let number = self.closed_issue();
        let mut command = self.place.command(&["show", &number, "--repo", REPO]);
        command.env("CANONRY_DATABASE_URL", "sqlite:demo/canonry.db").env("CLICOLOR_FORCE", "1").env("COLUMNS", "100");
        let ran = Ran::of(command.output().expect("the program starts")).succeeded();
        let lines: Vec<&str> = ran.stdout.lines().take(SHOWN_LINES).collect();
        Scene {
            command: format!("canonry show {number} --repo {REPO} | head -n {SHOWN_LINES}"),
            output: lines.join("\n"),
        }
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        let id = i32::try_from(self.process.id()).expect("a process id");
        let _ = kill(Pid::from_raw(id), Signal::SIGTERM);
        let _ = self.process.wait();
    }
}

/// A review of a change in a clone.
fn reviewed_clone() -> Scene {
    let copy = WorkingCopy::new();
    copy.write("src/app.js", "export function start() {\n  debugger;\n  return open(\"main\");\n}\n").commit("Start");
    let mut command = copy.command(&["review", "--base", "main", "--fail-on", "medium"]);
    let output = command.env("CLICOLOR_FORCE", "1").env("COLUMNS", "100").output().expect("the program starts");
    let [base, head] = ["main", "HEAD"].map(|name| copy.git(&["rev-parse", "--short=7", name]));
    // Commit ids depend on the time of this run.
    let output = Ran::of(output).stdout.replace(&base, "4f1c2ab").replace(&head, "9d03e7c");
    Scene { command: "canonry review --base main --fail-on medium".to_owned(), output }
}

fn author(comment: &Value) -> String {
    comment["user"]["login"].as_str().expect("a login").trim_end_matches("[bot]").to_owned()
}

/// Replaces the real date by the fixed one.
fn with_date(text: &str) -> String {
    let mut dated = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("closed on ") {
        let Some((_, behind)) = after.split_once(" UTC") else { break };
        dated.push_str(&format!("{before}closed on {DATE}"));
        rest = behind;
    }
    dated + rest
}
