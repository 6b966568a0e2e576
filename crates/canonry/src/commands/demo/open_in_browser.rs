//! Opens the console in the browser of whoever started the demo.

use std::io::IsTerminal as _;
use std::process::Stdio;
use std::time::Duration;

use canonry_github::Secret;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Command;
use tokio::time::timeout;

use crate::console_secrets::fresh_token;
use crate::context::Context;

/// The longest beginning of a request that is read; a browser's is shorter.
const LONGEST_HEAD: u64 = 16_384;
/// How long one who has connected may take: browsers connect ahead of what they ask for, and others wait meanwhile.
const PATIENCE: Duration = Duration::from_secs(2);

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

/// Opens an address that signs in.
///
/// What a program is started with can be read by every user of the machine, for as long as a browser runs. So the token
/// is not in it: the browser is given an address that leads on once, to whoever asks first, and to nobody after that.
pub(super) async fn open(sign_in: &str) -> std::io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let once = fresh_token();
    let address = format!("http://{}/{}", listener.local_addr()?, once.expose());
    let sign_in = sign_in.to_owned();
    tokio::spawn(async move { lead_on(&listener, &once, &sign_in).await });
    let mut opener = opener();
    opener.arg(address).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
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

/// Answers until the one who knows the address has come.
async fn lead_on(listener: &TcpListener, once: &Secret, to: &str) {
    while let Ok((stream, _)) = listener.accept().await {
        if matches!(timeout(PATIENCE, is_led_on(stream, once, to)).await, Ok(Ok(true))) {
            return;
        }
    }
}

async fn is_led_on(stream: TcpStream, once: &Secret, to: &str) -> std::io::Result<bool> {
    let mut stream = BufReader::new(stream);
    let mut head = String::new();
    // All of the request is read: a browser takes no answer from whoever hangs up on it.
    let mut lines = (&mut stream).take(LONGEST_HEAD);
    while !head.ends_with("\r\n\r\n") && lines.read_line(&mut head).await? > 0 {}
    let is_known = head.starts_with(&format!("GET /{} ", once.expose()));
    let answer = if is_known {
        format!("HTTP/1.1 303 See Other\r\nlocation: {to}\r\n")
    } else {
        "HTTP/1.1 404 Not Found\r\n".to_owned()
    };
    let answer = answer
        + "cache-control: no-store\r\nreferrer-policy: no-referrer\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    stream.get_mut().write_all(answer.as_bytes()).await?;
    stream.get_mut().shutdown().await?;
    Ok(is_known)
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};

    use super::{has_desktop, lead_on};
    use crate::console_secrets::fresh_token;

    #[cfg(target_os = "linux")]
    #[test]
    fn a_browser_is_opened_where_there_are_windows() {
        assert!(has_desktop(|name| name == "DISPLAY") && has_desktop(|name| name == "WAYLAND_DISPLAY"));
        assert!(!has_desktop(|_| false));
    }

    #[tokio::test]
    async fn the_address_leads_on_once() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let (address, once) = (listener.local_addr().expect("an address"), fresh_token());
        let known = once.expose().to_owned();
        let leading = tokio::spawn(async move { lead_on(&listener, &once, "http://127.0.0.1:1/sign-in#token").await });
        let ask = async |path: &str| {
            let mut stream = TcpStream::connect(address).await.expect("somebody listens");
            stream.write_all(format!("GET /{path} HTTP/1.1\r\nhost: x\r\n\r\n").as_bytes()).await.expect("written");
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.expect("an answer");
            answer
        };
        for wrong in ["", "favicon.ico", &known[1..], &format!("{known}x")] {
            let answer = ask(wrong).await;
            assert!(answer.starts_with("HTTP/1.1 404 ") && !answer.contains("token"), "{answer}");
        }
        let answer = ask(&known).await;
        assert!(
            answer.starts_with("HTTP/1.1 303 ")
                && answer.contains("\r\nlocation: http://127.0.0.1:1/sign-in#token\r\n")
        );
        leading.await.expect("it has ended");
        assert!(TcpStream::connect(address).await.is_err(), "nobody listens any more");
    }
}
