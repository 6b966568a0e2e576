//! A loopback proxy in front of a server, which a test can cut off and restore.

use canonry_boxed::boxed;
use std::net::SocketAddr;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// Forwards connections to a server while it is up. When it is cut off, it closes all connections and every new one,
/// like a server that is being restarted. It ends when it is dropped.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    is_up: watch::Sender<bool>,
}

#[boxed]
impl Proxy {
    /// A proxy on a free port of 127.0.0.1.
    ///
    /// # Panics
    ///
    /// If there is no free port.
    pub async fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port on loopback");
        let address = listener.local_addr().expect("a bound socket has an address");
        let (is_up, told) = watch::channel(true);
        tokio::spawn(run(listener, server, told));
        Self { address, is_up }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Closes all connections, and every new one at once.
    pub fn cut(&self) {
        self.is_up.send_replace(false);
    }

    pub fn restore(&self) {
        self.is_up.send_replace(true);
    }
}

async fn run(listener: TcpListener, server: SocketAddr, is_up: watch::Receiver<bool>) {
    let mut handle = is_up.clone();
    loop {
        tokio::select! {
            accepted = listener.accept() => if let Ok((client, _)) = accepted {
                let mut is_up = is_up.clone();
                if *is_up.borrow() {
                    tokio::spawn(async move {
                        tokio::select! {
                            () = pass_on(client, server) => {}
                            // An error means that the proxy was dropped, which cuts it off for good.
                            _ = is_up.wait_for(|up| !*up) => {}
                        }
                    });
                }
            },
            changed = handle.changed() => if changed.is_err() { return },
        }
    }
}

async fn pass_on(mut client: TcpStream, server: SocketAddr) {
    let Ok(mut server) = TcpStream::connect(server).await else { return };
    // Either side may disconnect at any time; the proxy forwards that too.
    let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
}
