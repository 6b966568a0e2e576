//! Opens the console in the browser of whoever started the demo.

use std::io::IsTerminal as _;
use std::process::Stdio;

use tokio::process::Command;

use crate::session::context::Context;

/// Whether somebody sits at this terminal who would see a browser.
pub(super) fn is_wanted(context: &Context) -> bool {
    let is_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    is_terminal
        && !context.json
        && !context.quiet
        && has_desktop(|name| std::env::var_os(name).is_some_and(|set| !set.is_empty()))
}

/// Whether windows can be shown, as far as the environment tells.
fn has_desktop(is_set: impl Fn(&str) -> bool) -> bool {
    if cfg!(any(target_os = "macos", windows)) {
        // The window would open on the machine that was signed in to.
        !is_set("SSH_CONNECTION")
    } else {
        is_set("DISPLAY") || is_set("WAYLAND_DISPLAY")
    }
}

/// Opens an address that signs in once.
///
/// What a program is started with can be read by every user of the machine, for as long as a browser runs. So the token is
/// not in it: the address is good for whoever asks first, and for nobody after that.
pub(super) fn open(sign_in_once: &str) -> std::io::Result<()> {
    let mut opener = opener();
    opener.arg(sign_in_once).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // Ctrl-C is for the demo, and not for the browser that was started with it.
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
