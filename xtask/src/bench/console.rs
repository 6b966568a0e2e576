//! The `console` benchmark: every page on a store of each engine with 100,000 items, and the size, start and memory of
//! the idle program.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::service_process::{canonry_at, free_address, resident_kib};
use super::{example, folder, release_binary};
use crate::postgres::{Durability, PostgresServer};
use crate::process::step;

const ITEMS: &str = "100000";
/// Requests per page.
const TIMES: &str = "30";
/// Starts of the service; the median is printed.
const STARTS: usize = 9;
/// The memory limit of the service, without its model.
const MOST_MEMORY_MB: f64 = 60.0;
const MOST_START: Duration = Duration::from_millis(300);
/// After this time the start is complete.
const AT_REST: Duration = Duration::from_secs(5);

pub(crate) fn run() -> Result<()> {
    at_rest(&release_binary()?)?;
    let place = tempfile::tempdir_in(folder()?)?;
    let server = PostgresServer::start(Durability::Full)?;
    let sqlite = format!("sqlite:{}", place.path().join("canonry.db").display());
    for (engine, url) in [("SQLite", sqlite), ("PostgreSQL", server.create_database("console")?)] {
        let fill = format!("{engine} with {ITEMS} items");
        step(&fill, example("canonry-store", "fill_console")?.arg(&url).arg(ITEMS))?;
        step("pages", example("canonry-console", "page_timings")?.arg(&url).arg(TIMES))?;
    }
    Ok(())
}

/// Size, start and memory of `canonry serve` on an empty store.
fn at_rest(binary: &Path) -> Result<()> {
    let place = tempfile::tempdir_in(folder()?)?;
    let url = format!("sqlite:{}", place.path().join("canonry.db").display());
    let (log, mut starts) = (place.path().join("log"), Vec::new());
    let mut resident = 0.0;
    for start in 0..=STARTS {
        let address = free_address()?;
        let began = Instant::now();
        let server = canonry_at(binary, &url, 4, address, &log)?;
        answers(address, began)?;
        // The first start creates the database.
        if start > 0 {
            starts.push(began.elapsed());
        }
        if start == STARTS {
            thread::sleep(AT_REST);
            resident = resident_kib(server.id()).unwrap_or_default() as f64 * 1024.0 / 1e6;
        }
        server.stop()?;
    }
    starts.sort_unstable();
    let (middle, slowest) = (starts[STARTS / 2], starts[STARTS - 1]);
    let size = std::fs::metadata(binary)?.len() as f64 / 1e6;
    println!("| the program | |\n|---|---|");
    println!("| its size | {size:.1} MB |");
    println!(
        "| from its start until `/healthz` answers, middle and slowest of {STARTS} | {:.0} / {:.0} ms |",
        middle.as_secs_f64() * 1e3,
        slowest.as_secs_f64() * 1e3
    );
    println!("| resident memory of `canonry serve` at rest, its model not in use | {resident:.0} MB |\n");
    ensure!(middle <= MOST_START, "it takes longer than {} ms to start", MOST_START.as_millis());
    ensure!(resident <= MOST_MEMORY_MB, "it takes more than {MOST_MEMORY_MB} MB at rest");
    Ok(())
}

/// Waits for the first answer.
fn answers(address: SocketAddr, began: Instant) -> Result<()> {
    loop {
        ensure!(began.elapsed() < Duration::from_secs(60), "the service does not answer");
        let asked = TcpStream::connect(address).and_then(|mut stream| {
            stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer)?;
            Ok(answer)
        });
        if asked.is_ok_and(|answer| answer.starts_with("HTTP/1.1 200")) {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(2));
    }
}
