//! The operator's token for the console: a given one, or one that the first start creates and writes to a file.

use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow};
use canonry_console::AdminToken;
use canonry_github::Secret;
use canonry_store::{Store, StoredAdminToken};
use jiff::Timestamp;
use sha2::{Digest as _, Sha256};
use tempfile::NamedTempFile;
use url::Url;

use crate::session::console_secrets::secret_of;
use crate::session::database::DatabaseOption;

/// The variable with the operator's token. It is never an option, because every process can read arguments.
pub(crate) const ADMIN_TOKEN: &str = "CANONRY_ADMIN_TOKEN";

/// The name of the file with a created token.
const FILE: &str = "admin-token";

/// The token with which an operator signs in. It is created once per database, by the first process that starts, and
/// is never logged, because others can read logs. It is written to a file that only this user can read, and is also
/// shown to a person at a terminal. The database contains only its hash. If no file can be written, there is no token
/// and no operator. `console` is the URL of the console.
pub(crate) async fn admin_token(store: &Store, database: &DatabaseOption, console: &Url) -> Result<AdminToken> {
    if let Some(token) = secret_of(ADMIN_TOKEN) {
        return Ok(AdminToken::given(&token));
    }
    if let Some(kept) = store.console().admin_token().await? {
        return Ok(of_another_start(&kept));
    }
    let token = canonry_console::fresh_token();
    let (unnamed, file) = match written(database, &token) {
        Ok(both) => both,
        Err(error) => return Ok(nobodys(&error)),
    };
    let hash = Sha256::digest(token.expose().as_bytes()).into();
    let made = StoredAdminToken { hash, place: place(&file) };
    let kept = store.console().ensure_admin_token(&made, Timestamp::now()).await?;
    if kept != made {
        return Ok(of_another_start(&kept));
    }
    // The file gets its name only now, so a file of that name always contains the complete, valid token.
    if let Err(refused) = unnamed.persist_noclobber(&file) {
        store.console().delete_admin_token(&made).await?;
        return Ok(nobodys(&anyhow!("{} cannot be made: {}", file.display(), refused.error)));
    }
    tracing::info!(file = %file.display(), "created the console's admin token in a file that only this user can read");
    if std::io::stderr().is_terminal() {
        show(console, &token, &file);
    }
    Ok(AdminToken::hashed(hash))
}

/// The token in a temporary file, and the final path. Only this user can read the file, and its name is
/// unpredictable, so that no link or file planted in a shared folder is followed or filled.
fn written(database: &DatabaseOption, token: &Secret) -> Result<(NamedTempFile, PathBuf)> {
    let folder = database.local_folder()?;
    let mut file = tempfile::Builder::new()
        .prefix(&format!(".{FILE}-"))
        .tempfile_in(&folder)
        .with_context(|| format!("the folder {} cannot be written to", folder.display()))?;
    writeln!(file, "{}", token.expose())?;
    file.as_file().sync_all()?;
    Ok((file, folder.join(FILE)))
}

fn of_another_start(kept: &StoredAdminToken) -> AdminToken {
    tracing::info!(place = kept.place, "the console's admin token was created by another start");
    AdminToken::hashed(kept.hash)
}

fn nobodys(error: &anyhow::Error) -> AdminToken {
    tracing::warn!(
        "no admin token could be written, so nobody can sign in as operator ({error:#}); fix that or set {ADMIN_TOKEN}, then \
         start again"
    );
    AdminToken::hashed(rand::random())
}

/// Shows a link that fills in the field: the part behind `#` is never sent.
fn show(console: &Url, token: &Secret, file: &Path) {
    let mut link = console.clone();
    link.set_path("/sign-in");
    link.set_fragment(Some(token.expose()));
    let _ = writeln!(
        anstream::stderr().lock(),
        "Sign in to the console as its operator:\n  {link}\nThis is shown once; the token is in {}.",
        file.display()
    );
}

/// The file, and on Linux the name of the machine, for people who start the program elsewhere.
fn place(file: &Path) -> String {
    let machine = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    match machine.trim() {
        "" => file.display().to_string(),
        machine => format!("{} on {machine}", file.display()),
    }
}
