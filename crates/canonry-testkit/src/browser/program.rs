//! The browser's process: started with pipes instead of a port, ended with its last user.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use tempfile::TempDir;

use super::connection::Connection;
use super::page::Page;

/// The variable with the path of the browser; `cargo xtask test` sets it.
pub const CHROMIUM_VARIABLE: &str = "CANONRY_TEST_CHROMIUM";

/// Set if the machine is known to have no browser: tests that need one then end at once.
pub const WITHOUT_BROWSER_VARIABLE: &str = "CANONRY_TEST_WITHOUT_BROWSER";

/// The usual paths of the browser, for a test that is run without `cargo xtask test`.
const USUAL: [&str; 3] = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

/// Whether this machine is declared to have no browser.
#[must_use]
pub fn is_missing() -> bool {
    std::env::var_os(WITHOUT_BROWSER_VARIABLE).is_some_and(|value| !value.is_empty())
}

/// A running browser with its own profile; dropping it ends the browser.
#[derive(Debug)]
pub struct Browser {
    process: Child,
    connection: Arc<Connection>,
    _profile: TempDir,
}

impl Browser {
    /// Starts the browser.
    ///
    /// # Panics
    /// If there is none, or it does not start.
    #[must_use]
    pub fn start() -> Self {
        let profile = tempfile::Builder::new().prefix("canonry-browser-").tempdir().expect("a temporary folder");
        let mut command = Command::new("sh");
        command
            // The browser reads from descriptor 3 and writes to 4. Without unsafe code a child can be given only 0 to
            // 2.
            .args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 </dev/null >/dev/null"])
            .arg(program())
            .args(FLAGS)
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("about:blank")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut process = command.spawn().expect("a shell starts");
        let (input, output) = (process.stdin.take(), process.stdout.take());
        let connection = Connection::new(input.expect("a pipe was asked for"), output.expect("a pipe was asked for"));
        let browser = Self { process, connection: Arc::new(connection), _profile: profile };
        browser.connection.call(None, "Browser.getVersion", &json!({}));
        browser
    }

    /// A new tab that shares neither cookies nor cache with any other.
    #[must_use]
    pub fn page(&self) -> Page {
        Page::open(&self.connection)
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        self.connection.send_last("Browser.close");
        let patience = Instant::now() + Duration::from_secs(5);
        while Instant::now() < patience {
            if !matches!(self.process.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

const FLAGS: [&str; 18] = [
    "--headless=new",
    "--remote-debugging-pipe",
    // The sandbox needs rights that containers rarely give. Only our own pages are ever shown.
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-background-timer-throttling",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-sync",
    "--hide-scrollbars",
    "--mute-audio",
    "--force-color-profile=srgb",
    "--window-size=1440,900",
    // A page that requests anything from another host fails its test.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
];

fn program() -> PathBuf {
    let named = std::env::var_os(CHROMIUM_VARIABLE).filter(|value| !value.is_empty()).map(PathBuf::from);
    let usual = || USUAL.iter().map(PathBuf::from).find(|path| path.is_file());
    named.or_else(usual).unwrap_or_else(|| panic!("there is no browser: install chromium, or set {CHROMIUM_VARIABLE}"))
}
