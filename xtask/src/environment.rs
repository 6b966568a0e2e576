//! The environment of the tests: a PostgreSQL server, a browser, clients, and GitHub's descriptions of its API and webhooks.

use std::process::Command;

use anyhow::{Context as _, Result};
use tempfile::TempDir;

use crate::browser;
use crate::memory_folder::memory_folder;
use crate::postgres::{Durability, PostgresServer};
use crate::process::quietly;
use crate::tools::{self, Tool};

const POSTGRES_URL: &str = "CANONRY_TEST_POSTGRES_URL";
const POSTGRES_TEMPLATE: &str = "CANONRY_TEST_POSTGRES_TEMPLATE";
const TEMPORARY: &str = "TMPDIR";

const TEMPLATE: &str = "canonry_template";

/// Files that tests read or run: the variable, the tool, the file or folder in it.
const TOOL_FILES: [(&str, &Tool, &str); 5] = [
    ("CANONRY_TEST_GITHUB_OPENAPI", &tools::GITHUB_OPENAPI, "package/generated/api.github.com.json"),
    ("CANONRY_TEST_WEBHOOK_EXAMPLES", &tools::WEBHOOK_EXAMPLES, "package/api.github.com/index.json"),
    ("CANONRY_TEST_AXE", &tools::AXE_CORE, "package/axe.min.js"),
    ("CANONRY_TEST_MCP_SDK", &tools::MCP_SDK, ""),
    (
        "CANONRY_TEST_MCP_INSPECTOR",
        &tools::MCP_INSPECTOR,
        "node_modules/@modelcontextprotocol/inspector-cli/build/index.js",
    ),
];

/// The variables for test processes, and the server and the folder that exist as long as this value.
#[derive(Debug)]
pub(crate) struct TestEnvironment {
    variables: Vec<(&'static str, String)>,
    server: Option<PostgresServer>,
    _folder: Option<TempDir>,
}

impl TestEnvironment {
    /// Installs and starts what no variable provides.
    pub(crate) fn prepare() -> Result<Self> {
        let mut variables = Vec::new();
        for (variable, tool, file) in TOOL_FILES {
            let value = match given(variable) {
                Some(value) => value,
                None => {
                    let installed = tools::install(tool)
                        .with_context(|| format!("a file for the tests, which {variable} can name"))?;
                    installed.join(file).display().to_string()
                }
            };
            variables.push((variable, value));
        }
        variables.push(browser::variable()?);
        let (url, server) = match given(POSTGRES_URL) {
            Some(url) => {
                eprintln!("PostgreSQL: the server that {POSTGRES_URL} names");
                (url, None)
            }
            None => {
                let server = PostgresServer::start(Durability::Off)?;
                (server.url().to_owned(), Some(server))
            }
        };
        variables.push((POSTGRES_URL, url));
        let folder = if given(TEMPORARY).is_none() { memory_folder() } else { None };
        if let Some(folder) = &folder {
            variables.push((TEMPORARY, folder.path().display().to_string()));
        }
        Ok(Self { variables, server, _folder: folder })
    }

    /// Creates the schema once, in a database that tests copy theirs from. On a server that we did not start, each
    /// test creates its own.
    pub(crate) fn make_template(&mut self) -> Result<()> {
        let Some(server) = &self.server else { return Ok(()) };
        let url = server.create_database(TEMPLATE)?;
        // Cargo puts all programs of the workspace into one folder.
        let canonry = std::env::current_exe()?.with_file_name("canonry");
        quietly(Command::new(canonry).args(["init", "--db", &url])).context("the schema that tests copy")?;
        self.variables.push((POSTGRES_TEMPLATE, TEMPLATE.to_owned()));
        Ok(())
    }

    pub(crate) fn variables(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.variables.iter().map(|(variable, value)| (*variable, value.as_str()))
    }
}

/// An empty variable is how a shell unsets one for a single command.
pub(crate) fn given(variable: &str) -> Option<String> {
    std::env::var(variable).ok().filter(|value| !value.is_empty())
}
