//! Finds files that are made for secrets.

use canonry_domain::review::{Category, LineRange, Severity};

use super::reading::{BuiltinRule, ReadFile, Remark};
use super::usual_passwords::is_usual_password;
use crate::change::file_change::ChangeKind;

pub(super) const RULE: BuiltinRule = BuiltinRule { id: "secret-file", check };

/// Parts of setting names whose values are secrets.
const SECRET_NAMES: [&str; 8] =
    ["SECRET", "TOKEN", "PASSWORD", "PASSWD", "PRIVATE_KEY", "API_KEY", "APIKEY", "ACCESS_KEY"];

/// File name endings of key stores; their content cannot be read here.
const STORES: [&str; 5] = [".p12", ".pfx", ".jks", ".keystore", ".kdbx"];

fn check(files: &[ReadFile<'_>]) -> Vec<Remark> {
    let told = files
        .iter()
        .filter(|file| !file.place.is_sample && !file.place.is_test && file.change.kind != ChangeKind::Deleted);
    told.filter_map(|file| environment(file).or_else(|| key_store(file))).collect()
}

/// Finds an environment file with a secret filled in. Many projects commit an `.env` with plain settings on purpose.
fn environment(file: &ReadFile<'_>) -> Option<Remark> {
    let name = file.path().file_name().to_lowercase();
    // Settings for tests and for local development are meant to be shared.
    let is_shared = [".test", ".ci", ".development"].iter().any(|end| name.ends_with(end));
    if name != ".env" && (!name.starts_with(".env.") || is_shared) {
        return None;
    }
    let (line, _) = file.change.added.iter().find(|(_, line)| assigns_secret(line))?;
    Some(Remark {
        path: file.path().clone(),
        lines: LineRange::new(*line, *line),
        title: "An environment file with secrets is committed",
        message: "Whoever can read the repository can read it. Revoke what is in it, take it out, and commit an example without values.".to_owned(),
        severity: Severity::Major,
        category: Category::Security,
    })
}

fn assigns_secret(line: &str) -> bool {
    let line = line.trim().trim_start_matches("export ");
    let Some((name, value)) = line.split_once('=') else { return false };
    let value = value.trim().trim_matches(['"', '\'']);
    let lower = value.to_lowercase();
    let stands_in = [
        "your",
        "example",
        "change",
        "xxx",
        "placeholder",
        "secret",
        "password",
        "test",
        "local",
        "dummy",
        "<",
        "$",
        "todo",
        "none",
        "null",
    ];
    !line.starts_with('#')
        && SECRET_NAMES.iter().any(|word| name.to_uppercase().contains(word))
        && value.len() >= 8
        && !stands_in.iter().any(|word| lower.contains(word))
        && !is_usual_password(&lower)
}

fn key_store(file: &ReadFile<'_>) -> Option<Remark> {
    let name = file.path().file_name().to_lowercase();
    // Android creates the same debug key for everybody.
    let is_store = file.change.kind == ChangeKind::Added
        && STORES.iter().any(|end| name.ends_with(end))
        && !name.starts_with("debug.");
    is_store.then(|| Remark {
        path: file.path().clone(),
        lines: None,
        title: "A key store is committed",
        message: "Its keys are protected by its password alone. Keep it out of the repository.".to_owned(),
        severity: Severity::Major,
        category: Category::Security,
    })
}

#[cfg(test)]
mod tests {
    use super::super::reading::tests::check_table;
    use super::RULE;

    #[test]
    fn what_holds_secrets() {
        check_table(
            &RULE,
            &[
                (".env", "PORT=80\nAPI_TOKEN=8f2b91c7d3\n", &[2]),
                ("app/.env.production", "export DB_PASSWORD='q8Zr!27b'\n", &[1]),
                (".env", "ADMIN_PASSWORD=admin-q8Zr27b\n", &[1]),
                ("release.keystore", "x", &[0]),
                ("certs/site.p12", "x", &[0]),
                // Not reported.
                (".env", "PORT=80\nREACT_APP_TITLE=Shop\nAPI_TOKEN=\n", &[]),
                (".env", "# API_TOKEN=8f2b91c7d3\nTOKEN=your-token-here\nSECRET=${SECRET}\n", &[]),
                (".env.example", "API_TOKEN=8f2b91c7d3\n", &[]),
                (".env.test", "API_TOKEN=8f2b91c7d3\n", &[]),
                (".env.development", "API_TOKEN=8f2b91c7d3\n", &[]),
                (".env.local.example", "API_TOKEN=8f2b91c7d3\n", &[]),
                (".env.sample", "API_TOKEN=8f2b91c7d3\n", &[]),
                ("app/.env.template", "API_TOKEN=8f2b91c7d3\n", &[]),
                (".env", "POSTGRES_PASSWORD=postgres\nADMIN_PASSWORD=admin-admin123\nS3_SECRET=minioadmin\n", &[]),
                ("android/app/debug.keystore", "x", &[]),
                ("tests/site.p12", "x", &[]),
                ("src/env.ts", "API_TOKEN=8f2b91c7d3\n", &[]),
            ],
        );
    }
}
