//! The token that makes an operator of the console: a given one, or one that the first start makes and leaves in a file.

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

/// The variable with the operator's token. Never an option: arguments are seen by every process.
pub(crate) const ADMIN_TOKEN: &str = "CANONRY_ADMIN_TOKEN";

/// What the file with a made token is called.
const FILE: &str = "admin-token";

/// What an operator signs in with. A token is made once for a database, whoever of many starts first, and is never in the
/// log, which others keep: it lies in a file of this user's, and a person at a terminal sees it there too. The database has
/// its hash alone. Where no file can be written there is no token, and nobody is an operator; `console` is where it is.
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
    // Only now: whoever finds a file of that name finds the token that counts, and all of it.
    if let Err(refused) = unnamed.persist_noclobber(&file) {
        store.console().delete_admin_token(&made).await?;
        return Ok(nobodys(&anyhow!("{} cannot be made: {}", file.display(), refused.error)));
    }
    tracing::info!(file = %file.display(), "made the console's admin token, in a file that only this user can read");
    if std::io::stderr().is_terminal() {
        show(console, &token, &file);
    }
    Ok(AdminToken::hashed(hash))
}

/// The token in a file that has no name to rely on yet, and the name that it is to take. The file is made for this user alone
/// and under a name that nobody can foresee, so that nothing planted in a shared folder is followed or filled.
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
    tracing::info!(place = kept.place, "the console's admin token was made by another start");
    AdminToken::hashed(kept.hash)
}

fn nobodys(error: &anyhow::Error) -> AdminToken {
    tracing::warn!(
        "no admin token could be written, so nobody can sign in as operator ({error:#}); fix that or set {ADMIN_TOKEN}, then \
         start again"
    );
    AdminToken::hashed(rand::random())
}

/// A link that fills the field in: what is behind the # is sent nowhere.
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

/// The file, and on Linux the machine that it is on, for those who start elsewhere.
fn place(file: &Path) -> String {
    let machine = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    match machine.trim() {
        "" => file.display().to_string(),
        machine => format!("{} on {machine}", file.display()),
    }
}
