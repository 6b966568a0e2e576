//! What the tests find in their environment: a PostgreSQL server and GitHub's own descriptions.

use anyhow::Result;

use crate::postgres::{Durability, PostgresServer};
use crate::tools::{self, Tool};

const POSTGRES_URL: &str = "CANONRY_TEST_POSTGRES_URL";

/// Files of npm packages that tests read: the variable, the package, the file in it.
const PACKAGE_FILES: [(&str, &Tool, &str); 2] = [
    ("CANONRY_TEST_GITHUB_OPENAPI", &tools::GITHUB_OPENAPI, "package/generated/api.github.com.json"),
    ("CANONRY_TEST_WEBHOOK_EXAMPLES", &tools::WEBHOOK_EXAMPLES, "package/api.github.com/index.json"),
];

/// The variables for test processes, and the server that lives as long as this value.
#[derive(Debug)]
pub(crate) struct TestEnvironment {
    variables: Vec<(&'static str, String)>,
    _server: Option<PostgresServer>,
}

impl TestEnvironment {
    /// Installs and starts what no variable names already.
    pub(crate) fn prepare() -> Result<Self> {
        let mut variables = Vec::new();
        for (variable, tool, file) in PACKAGE_FILES {
            let value = match given(variable) {
                Some(value) => value,
                None => tools::install(tool)?.join(file).display().to_string(),
            };
            variables.push((variable, value));
        }
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
        Ok(Self { variables, _server: server })
    }

    pub(crate) fn variables(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.variables.iter().map(|(variable, value)| (*variable, value.as_str()))
    }
}

/// An empty variable is how a shell unsets one for a single command.
fn given(variable: &str) -> Option<String> {
    std::env::var(variable).ok().filter(|value| !value.is_empty())
}
