//! The MCP server asked by the clients that others wrote: the protocol's SDK for Python and the command line of its inspector.

use std::path::{Path, PathBuf};
use std::process::Command;

use canonry_testkit::database::TestDatabase;
use canonry_testkit::models::{Fault, ModelServer};
use canonry_testkit::on_both_engines;
use serde_json::{Value, json};

use crate::place::{Place, Ran};
use crate::service::Service;

/// The folder of the packages of `mcp` for Python.
const SDK: &str = "CANONRY_TEST_MCP_SDK";
/// The program of npm's `@modelcontextprotocol/inspector-cli`.
const INSPECTOR: &str = "CANONRY_TEST_MCP_INSPECTOR";
const TOKEN: &str = "the-operators-own-token";
const KEY: &str = "sk-nobody-may-read-this";
const PANIC: &str = "thread 'main' panicked at crates/store/src/sqlite.rs:88:40:\nread-only database handle cannot begin an immediate transaction";
/// More than a page of resources.
const ITEMS: u32 = 60;

/// An embedder that never answers about `HELD` of the client, and the options that name it.
fn embedder() -> (ModelServer, Vec<String>) {
    let server = ModelServer::start_blocking();
    server.fault_when("hold this draft", Fault::Hang);
    let options = ["--embedder", "openai", "--embed-base-url", &server.base_url()].map(str::to_owned).to_vec();
    (server, options)
}

/// A place whose database has the items that `tests/clients/mcp_client.py` names, each changed after the one before it.
fn place(url: Option<&str>, embedder: &[String]) -> Place {
    let place = Place::new();
    let line = |number: u32| {
        let (title, body) = match number {
            1 => ("Opening a read-only database panics".to_owned(), PANIC.to_owned()),
            // Longer than what an agent is shown.
            2 => ("A log".to_owned(), "It says thing2 and word14.\n".repeat(1_200)),
            _ => (
                format!("Item {number} about something else"),
                format!("It says thing{number} and word{}.", number * 7),
            ),
        };
        let changed_at = format!("2026-01-05T{:02}:{:02}:00Z", 10 + number / 60, number % 60);
        json!({ "number": number, "title": title, "body": body, "created_at": "2026-01-05T09:00:00Z", "updated_at": changed_at })
    };
    let lines: String = (1..=ITEMS).map(|number| format!("{}\n", line(number))).collect();
    place.write("items.jsonl", lines);
    let with_embedder = [&["embed".to_owned()][..], embedder].concat();
    let with_embedder: Vec<&str> = with_embedder.iter().map(String::as_str).collect();
    for arguments in [&["import", "--repo", "octo/cat", "items.jsonl"][..], &["embed"], &with_embedder] {
        let mut command = place.command(arguments);
        command.env("OPENAI_API_KEY", KEY);
        if let Some(url) = url {
            command.env("CANONRY_DATABASE_URL", url);
        }
        Ran::of(command.output().expect("it starts")).succeeded();
    }
    place
}

fn given(variable: &str) -> PathBuf {
    let value = std::env::var_os(variable);
    value.unwrap_or_else(|| panic!("{variable} is not set: run through `cargo xtask test`")).into()
}

/// `program` with the environment in which `place` runs `canonry`, whose path is returned too.
fn beside(place: &Place, program: &str) -> (Command, PathBuf) {
    let canonry = place.command(&[]);
    let mut command = Command::new(program);
    command.env_remove("CANONRY_DATABASE_URL");
    for (name, value) in canonry.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.env("OPENAI_API_KEY", KEY);
    if let Some(folder) = canonry.get_current_dir() {
        command.current_dir(folder);
    }
    (command, canonry.get_program().into())
}

/// What the client says that it did; it ends with an error where an answer is not as expected.
fn python(place: &Place, server: impl FnOnce(&Path) -> Vec<String>) -> String {
    let (mut command, canonry) = beside(place, "python3");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/mcp_client.py");
    command.arg(script).args(server(&canonry)).env("PYTHONPATH", given(SDK)).env("PYTHONDONTWRITEBYTECODE", "1");
    let output = command.output().expect("python3 is there");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// Exit status, output and errors of the inspector; it reads its own version beside the folder in which it runs.
fn inspect(place: &Place, server: &[String], arguments: &[&str]) -> (bool, Value, String) {
    let program = given(INSPECTOR);
    let (mut command, _) = beside(place, "node");
    command.current_dir(program.parent().expect("a folder"));
    let output = command.arg(&program).args(server).args(arguments).output().expect("node is there");
    let said = serde_json::from_slice(&output.stdout).unwrap_or_default();
    (output.status.success(), said, String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Listing, calling and errors through the inspector.
fn inspect_all(place: &Place, server: &[String]) {
    let (_, tools, errors) = inspect(place, server, &["--method", "tools/list"]);
    assert_eq!(tools["tools"].as_array().map(Vec::len), Some(6), "{errors}");
    let (_, resources, errors) = inspect(place, server, &["--method", "resources/list"]);
    assert_eq!(
        (&resources["resources"][0]["uri"], &resources["nextCursor"]),
        (&json!("canonry://octo/cat/items/60"), &json!("50")),
        "{errors}"
    );
    let (_, prompts, errors) = inspect(place, server, &["--method", "prompts/list"]);
    assert_eq!(prompts["prompts"][0]["name"], "before-you-file", "{errors}");
    let title = "title=panic when the database is read-only";
    let call = ["--method", "tools/call", "--tool-name", "check_draft", "--tool-arg", title, &format!("body={PANIC}")];
    let (_, told, errors) = inspect(place, server, &call);
    assert_eq!(told["structuredContent"]["item"]["number"], 1, "{told} {errors}");
    let unknown = ["--method", "tools/call", "--tool-name", "get_item", "--tool-arg", "number=99"];
    let (_, told, errors) = inspect(place, server, &unknown);
    assert_eq!(told["isError"], true, "{told} {errors}");
    let (done, _, errors) = inspect(place, server, &["--method", "tools/call", "--tool-name", "no_such_tool"]);
    assert!(!done && errors.contains("tool not found"), "{errors}");
}

#[test]
fn the_sdk_for_python_asks_over_standard_input() {
    let (_server, embedder) = embedder();
    let place = place(None, &embedder);
    let asked = |work: &str, more: &[String]| {
        python(&place, |canonry| {
            let program = [work, "stdio", &canonry.display().to_string(), "mcp"].map(str::to_owned);
            program.iter().chain(more).cloned().collect()
        })
    };
    let said = asked("most", &[]);
    assert_eq!((said.lines().count(), said.lines().last()), (9, Some("stdio 50 sessions")), "{said}");
    assert_eq!(asked("cancels", &embedder), "stdio auto cancels\nstdio legacy cancels\n");
}

#[test]
fn the_inspector_asks_over_standard_input() {
    let place = place(None, &[]);
    let (_, canonry) = beside(&place, "node");
    inspect_all(&place, &[canonry.display().to_string(), "mcp".to_owned()]);
}

on_both_engines! {
    async fn both_clients_ask_over_http(database: TestDatabase) {
        let place = place(Some(database.url()), &[]);
        let mut command = place.command(&["serve", "--listen", "127.0.0.1:0", "--workers", "0", "--db", database.url()]);
        command.env("CANONRY_ADMIN_TOKEN", TOKEN);
        let service = Service::spawn(command);
        let url = format!("{}/mcp?repo=octo/cat", service.url);
        let said = python(&place, |_| ["most", "http", &url, TOKEN].map(str::to_owned).to_vec());
        assert_eq!((said.lines().count(), said.lines().last()), (9, Some("http 50 sessions")), "{said}");
        let server = |token: &str| [&url, "--transport", "http", "--header", &format!("Authorization: Bearer {token}")].map(str::to_owned);
        inspect_all(&place, &server(TOKEN));
        let without = [url.clone(), "--transport".to_owned(), "http".to_owned()];
        let (done, _, errors) = inspect(&place, &without, &["--method", "tools/list"]);
        assert!(!done && errors.contains("Authorization: Bearer TOKEN"), "{errors}");
        // Without a repository in the address there is nothing to list, and no error.
        let nowhere = [&format!("{}/mcp", service.url), "--transport", "http", "--header", &format!("Authorization: Bearer {TOKEN}")].map(str::to_owned);
        let (_, resources, errors) = inspect(&place, &nowhere, &["--method", "resources/list"]);
        assert_eq!(resources["resources"], json!([]), "{errors}");
    }
}
