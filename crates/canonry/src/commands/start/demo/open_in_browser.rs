//! Opens the console in the browser of the user who started the demo.

use std::io::IsTerminal as _;
use std::process::Stdio;

use tokio::process::Command;

use crate::session::context::Context;

/// Whether a person at this terminal would see a browser.
pub(super) fn is_wanted(context: &Context) -> bool {
    let is_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    is_terminal
        && !context.json
        && !context.quiet
        && has_desktop(|name| std::env::var_os(name).is_some_and(|set| !set.is_empty()))
}

/// Whether windows can be shown, according to the environment.
fn has_desktop(is_set: impl Fn(&str) -> bool) -> bool {
    if cfg!(any(target_os = "macos", windows)) {
        // The window would open on the remote machine, not in front of the user.
        !is_set("SSH_CONNECTION")
    } else {
        is_set("DISPLAY") || is_set("WAYLAND_DISPLAY")
    }
}

/// Opens a URL that signs in once.
///
/// Every user of the machine can read the arguments of a program while it runs, and a browser runs long. So the token
/// is not in the URL: the URL works only for the first request.
pub(super) fn open(sign_in_once: &str) -> std::io::Result<()> {
    let mut opener = opener();
    opener.arg(sign_in_once).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // Ctrl-C must end the demo, but not the browser that was started with it.
    #[cfg(unix)]
    opener.process_group(0);
    opener.spawn().map(drop)
}

fn opener() -> Command {
    if cfg!(target_os = "macos") {
        Command::new("open")
    } else if cfg!(windows) {
        let mut command = Command::new("rundll32");
        command.arg("url.dll,FileProtocolHandler");
        command
    } else {
        Command::new("xdg-open")
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::has_desktop;

    #[test]
    fn a_browser_is_opened_where_there_are_windows() {
        assert!(has_desktop(|name| name == "DISPLAY") && has_desktop(|name| name == "WAYLAND_DISPLAY"));
        assert!(!has_desktop(|_| false));
    }
}
