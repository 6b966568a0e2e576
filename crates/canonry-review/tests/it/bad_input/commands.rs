//! Tests reviewing programs that hang, print too much, die, and leave processes behind.

use std::path::Path;
use std::time::{Duration, Instant};

use canonry_review::ReviewerAnswer;
use canonry_review::reviewers::CommandReviewer;

const REPORT: &str = r#"{"findings": [{"title": "Seen", "path": "a.js", "line": 1, "severity": "minor"}]}"#;

async fn ask(folder: &Path, script: &str, timeout: Duration) -> ReviewerAnswer {
    let arguments = vec!["-c".to_owned(), script.to_owned()];
    CommandReviewer { program: "sh".to_owned(), arguments, timeout }.ask(folder, b"+one\n").await
}

const MINUTE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn what_goes_wrong_is_told_and_fixes_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let cut = "printf '{\"findings\": [{\"title\"'; kill -9 $$";
    let line = r#"{"message": "Seen", "location": {"path": "a"}, "source": {"name": "T"}}"#;
    let half = format!("echo '{line}'; kill -9 $$");
    for (script, timeout, expected) in [
        ("sleep 600; true", Duration::from_millis(200), "sh gave no report within 0 s"),
        ("head -c 100000000 /dev/zero | tr '\\0' x", MINUTE, "sh reports more than 32 MiB"),
        ("kill -9 $$", MINUTE, "sh ended with signal: 9 (SIGKILL) and no report"),
        (cut, MINUTE, "the report of sh is not used: it is not rdjson (it ends early, line 1, column 22)"),
        (&half, MINUTE, "sh ended with signal: 9 (SIGKILL); no finding counts as fixed because of this run"),
        ("head -c 3000000 /dev/zero >&2; exit 3", MINUTE, "sh ended with exit status: 3 and no report"),
    ] {
        let heard = ask(folder.path(), script, timeout).await;
        let told = heard.problems.first().map(String::as_str);
        assert_eq!((told, heard.read.len()), (Some(expected), 0), "{script}");
    }
}

#[tokio::test]
async fn what_it_leaves_behind_neither_delays_the_review_nor_stays() {
    let folder = tempfile::tempdir().expect("a folder");
    let began = Instant::now();
    // Its two children run for ten minutes; one keeps its output open, the other has its output redirected.
    let script = format!("sleep 600 & sleep 600 >/dev/null 2>&1 & echo $! > left; echo '{REPORT}'");
    let heard = ask(folder.path(), &script, MINUTE).await;
    assert_eq!((heard.reported.len(), heard.problems, heard.read.len()), (1, Vec::new(), 1));
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    let left = std::fs::read_to_string(folder.path().join("left")).expect("an id");
    let stat = || std::fs::read_to_string(format!("/proc/{}/stat", left.trim())).unwrap_or_default();
    let has_ended = || stat().rsplit_once(") ").is_none_or(|(_, state)| state.starts_with(['Z', 'X']));
    // The signal was sent before the answer; the process ends when it is scheduled next.
    for _ in 0..1_000 {
        if has_ended() {
            return;
        }
        ask(folder.path(), ":", MINUTE).await;
    }
    panic!("what it left behind goes on");
}

#[tokio::test]
async fn it_is_told_no_secret() {
    let folder = tempfile::tempdir().expect("a folder");
    // The program checks its own environment: our variables are not set.
    let script = "test -z \"$GITHUB_TOKEN$CANONRY_WEBHOOK_SECRET$CANONRY_APP_PRIVATE_KEY\" && exit 0; exit 7";
    assert_eq!(ask(folder.path(), script, MINUTE).await.problems, [""; 0]);
}
