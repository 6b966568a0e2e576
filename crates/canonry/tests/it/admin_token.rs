//! The token that a first start creates for the console: its file, who sees it, and what can prevent it.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::loopback_client_builder;
use canonry_testkit::on_both_engines;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use reqwest::redirect::Policy;

use crate::place::{Place, names_in};
use crate::service::{SECRET, Service};

const MADE: &str = "created the console's admin token";
const BY_ANOTHER: &str = "the console's admin token was created by another start";
const NONE_MADE: &str = "no admin token could be written";

/// The file in which a start stores the token.
fn file(place: &Place, database: &TestDatabase) -> PathBuf {
    match database.url().strip_prefix("sqlite:") {
        Some(path) => Path::new(path).with_file_name("admin-token"),
        None => place.path(".local/share/canonry/admin-token"),
    }
}

fn serve(place: &Place, database: &TestDatabase) -> Command {
    place.command(&["serve", "--listen", "127.0.0.1:0", "--workers", "0", "--db", database.url()])
}

/// The status after signing in with a token: 303 leads to the console.
async fn sign_in(service: &Service, token: &str) -> u16 {
    let client = loopback_client_builder().redirect(Policy::none()).build().expect("a client");
    let request = client.post(format!("{}/sign-in", service.url)).header("origin", &service.url);
    let answer = request.body(format!("token={token}&then=/")).send().await.expect("an answer");
    answer.status().as_u16()
}

on_both_engines! {
    async fn a_first_start_leaves_the_token_in_a_file_of_its_users_and_in_no_log(database: TestDatabase) {
        let place = Place::new();
        let file = file(&place, &database);
        let service = Service::spawn(serve(&place, &database));
        let text = fs::read_to_string(&file).expect("the file is there once the service listens");
        let token = text.strip_suffix('\n').expect("a line");
        assert_eq!(token.len(), 43, "{token:?}");
        let made = fs::symlink_metadata(&file).expect("it is there");
        assert!(made.is_file() && made.mode() & 0o777 == 0o600, "{:o}", made.mode());
        assert_eq!((sign_in(&service, token).await, sign_in(&service, "wrong").await), (303, 403));
        let (stdout, log) = service.stopped();
        assert!(log.contains(MADE) && log.contains(&file.display().to_string()), "{log}");
        assert!(!log.contains(token) && !stdout.contains(token), "{log}");

        let again = Service::spawn(serve(&place, &database));
        assert_eq!(sign_in(&again, token).await, 303);
        let (stdout, log) = again.stopped();
        assert!(log.contains(BY_ANOTHER) && log.contains(&file.display().to_string()) && !log.contains(MADE), "{log}");
        assert!(!log.contains(token) && !stdout.contains(token), "{log}");
        let kept = fs::symlink_metadata(&file).expect("it is there");
        assert_eq!((kept.ino(), kept.mtime_nsec(), fs::read_to_string(&file).expect("reads")), (made.ino(), made.mtime_nsec(), text.clone()));

        // If the token was lost or leaked, another one replaces it, and its file is not needed.
        fs::remove_file(&file).expect("it is ours");
        let mut command = serve(&place, &database);
        command.env("CANONRY_ADMIN_TOKEN", "another-token");
        let other = Service::spawn(command);
        assert_eq!((sign_in(&other, "another-token").await, sign_in(&other, token).await), (303, 403));
        other.stopped();
        assert!(!file.exists());
    }

    async fn of_many_that_start_at_once_one_makes_the_token(database: TestDatabase) {
        let place = Place::new();
        let starts: Vec<_> = (0..4).map(|_| serve(&place, &database)).collect();
        let services = tokio::task::spawn_blocking(move || {
            let threads: Vec<_> = starts.into_iter().map(|command| std::thread::spawn(|| Service::spawn(command))).collect();
            threads.into_iter().map(|thread| thread.join().expect("it starts")).collect::<Vec<_>>()
        });
        let services = services.await.expect("they start");
        let text = fs::read_to_string(file(&place, &database)).expect("a token");
        for service in &services {
            assert_eq!(sign_in(service, text.trim()).await, 303);
        }
        let logs: Vec<String> = services.into_iter().map(|service| service.stopped().1).collect();
        let count = |words: &str| logs.iter().filter(|log| log.contains(words)).count();
        assert_eq!((count(MADE), count(BY_ANOTHER), count(NONE_MADE)), (1, 3, 0), "{logs:?}");
        assert!(logs.iter().all(|log| !log.contains(text.trim())), "{logs:?}");
    }

    async fn what_lies_in_the_way_is_neither_followed_nor_replaced(database: TestDatabase) {
        let place = Place::new();
        let file = file(&place, &database);
        fs::create_dir_all(file.parent().expect("a folder")).expect("it is ours");
        let victim = place.write("victim", "of somebody");
        symlink(&victim, &file).expect("a link");
        let service = Service::spawn(serve(&place, &database));
        assert_eq!(sign_in(&service, "of somebody").await, 403);
        let (_, log) = service.stopped();
        assert!(log.contains(NONE_MADE) && log.contains("CANONRY_ADMIN_TOKEN") && !log.contains(MADE), "{log}");
        assert_eq!(fs::read_to_string(&victim).expect("reads"), "of somebody");
        fs::remove_file(&file).expect("it is ours");
        let left = names_in(file.parent().expect("a folder"));
        assert!(!left.iter().any(|name| name.contains("admin-token")), "{left:?}");
        // The token that could not be written was not kept.
        let service = Service::spawn(serve(&place, &database));
        assert_eq!(sign_in(&service, fs::read_to_string(&file).expect("a token").trim()).await, 303);
        service.stopped();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_folder_to_write_to_the_service_says_what_to_do_and_goes_on_postgres() {
    let (place, database) = (Place::new(), TestDatabase::postgres().await);
    let mut command = serve(&place, &database);
    command.env("HOME", place.write("plain", "").join("home"));
    let service = Service::spawn(command);
    assert_eq!(sign_in(&service, "anything").await, 403);
    let (_, log) = service.stopped();
    assert!(
        log.contains(NONE_MADE) && log.contains("cannot be created") && log.contains("CANONRY_ADMIN_TOKEN"),
        "{log}"
    );
}

/// `script` provides a terminal; on other systems it has other arguments.
#[cfg(target_os = "linux")]
#[test]
fn a_person_at_a_terminal_is_shown_a_link_that_signs_them_in() {
    let place = Place::new();
    let program = format!("exec {} serve --listen 127.0.0.1:0 --workers 0", env!("CARGO_BIN_EXE_canonry"));
    let start = || {
        let mut command = Command::new("script");
        command.args(["--quiet", "--flush", "--return", "--command", &program, "/dev/null"]).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("SHELL", "/bin/sh");
        command.env("HOME", place.path("")).env("TMPDIR", place.path("tmp")).env("CANONRY_WEBHOOK_SECRET", SECRET);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("script starts");
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut shown = String::new();
        while !shown.contains("listening at ") {
            assert!(lines.read_line(&mut shown).expect("text") > 0, "it ended: {shown}");
        }
        kill(Pid::from_raw(i32::try_from(child.id()).expect("small")), Signal::SIGTERM).expect("it is there");
        child.wait().expect("it ends");
        shown
    };
    let shown = start();
    let token = fs::read_to_string(place.path(".local/share/canonry/admin-token")).expect("a token");
    assert!(shown.contains(&format!("/sign-in#{}", token.trim())) && shown.contains(MADE), "{shown}");
    let again = start();
    assert!(again.contains(BY_ANOTHER) && !again.contains(token.trim()), "{again}");
}
