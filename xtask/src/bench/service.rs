//! The `service` benchmark: deliveries accepted per second beside a Probot app that stores the same, and a burst.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use super::service_burst::burst;
use super::service_load::{SignedWebhook, about, example, post_for};
use super::service_process::{Probot, Server, canonry};
use super::watched::{Used, median};
use super::{folder, release_binary};
use crate::postgres::{Durability, PostgresServer};

const ROUNDS: usize = 3;
const CONNECTIONS: usize = 64;
/// The number of issues that the webhooks are about.
const ITEMS: usize = 500;
/// Long enough for Node.js to compile its hot code.
const WARM_UP: Duration = Duration::from_secs(3);
const TIME: Duration = Duration::from_secs(8);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Contender {
    Canonry,
    Probot,
    /// Probot with one database query per delivery, in a statement written for it.
    ProbotOneStatement,
    /// Canonry that also runs jobs while it accepts deliveries.
    CanonryWorking,
}

/// SQLite is a library, so the number of queries makes no difference there.
const ON_SQLITE: &[Contender] = &[Contender::Canonry, Contender::Probot, Contender::CanonryWorking];
const ON_POSTGRES: &[Contender] =
    &[Contender::Canonry, Contender::Probot, Contender::ProbotOneStatement, Contender::CanonryWorking];

/// The result of one round of one contender.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Measured {
    rate: f64,
    p50: f64,
    p99: f64,
    /// Milliseconds of processor time per delivery, without the database server's.
    cpu: f64,
    /// The same for the load generator, which runs on the same machine.
    sending: f64,
    used: Used,
}

pub(crate) fn run() -> Result<()> {
    let probot = Probot::install()?;
    let binary = release_binary()?;
    let example = example("issues", "opened")?;
    let webhooks: Vec<SignedWebhook> =
        (1..=ITEMS).map(|number| about(&example, "octo/cat", number, "opened")).collect();
    // On the disk of the build: a temporary folder is in memory on many systems, where durability costs nothing.
    let place = tempfile::Builder::new().prefix("service-").tempdir_in(folder()?)?;
    let postgres = PostgresServer::start(Durability::Full)?;
    println!(
        "{CONNECTIONS} connections, bodies of {} bytes, {ROUNDS} rounds of {} s each; {}.\n",
        webhooks[0].bytes(),
        TIME.as_secs(),
        probot.versions
    );
    for (engine, contenders) in [("SQLite", ON_SQLITE), ("PostgreSQL", ON_POSTGRES)] {
        let mut rounds: Vec<_> = contenders.iter().map(|contender| (*contender, Vec::new())).collect();
        for round in 0..ROUNDS {
            for (contender, measured) in &mut rounds {
                let name = format!("{engine}_{contender:?}_{round}").to_lowercase();
                let folder = place.path().join(&name);
                std::fs::create_dir(&folder)?;
                let database = match engine {
                    "SQLite" => format!("sqlite:{}", folder.join("bench.db").display()),
                    _ => postgres.create_database(&name)?,
                };
                let server = start(*contender, &probot, &binary, &database, &folder)?;
                let one = measure(server, &webhooks, &probot, &database).with_context(|| name.clone())?;
                eprintln!("{name}: {:.0} a second, p99 {:.1} ms", one.rate, one.p99);
                measured.push(one);
                std::fs::remove_dir_all(&folder)?;
            }
        }
        let rows: Vec<_> = rounds.iter().map(|(contender, measured)| (*contender, summary(measured))).collect();
        print!("{}", table(engine, &rows));
    }
    let database = format!("sqlite:{}", place.path().join("burst.db").display());
    let sqlite = burst(&binary, &database, place.path()).context("the burst on SQLite")?;
    let database = postgres.create_database("burst")?;
    let postgres = burst(&binary, &database, place.path()).context("the burst on PostgreSQL")?;
    print!("{}", super::service_burst::table(&[("SQLite", sqlite), ("PostgreSQL", postgres)]));
    Ok(())
}

fn start(contender: Contender, probot: &Probot, binary: &Path, database: &str, folder: &Path) -> Result<Server> {
    let log = folder.join("log");
    match contender {
        Contender::Canonry => canonry(binary, database, 0, &log),
        Contender::CanonryWorking => canonry(binary, database, 4, &log),
        Contender::Probot => probot.start(database, false, &log),
        Contender::ProbotOneStatement => probot.start(database, true, &log),
    }
}

fn measure(server: Server, webhooks: &[SignedWebhook], probot: &Probot, database: &str) -> Result<Measured> {
    let warm_up = post_for(server.door, CONNECTIONS, webhooks, "warm-up", WARM_UP)?;
    let before = server.used();
    let load = post_for(server.door, CONNECTIONS, webhooks, "load", TIME)?;
    let used = server.used();
    server.stop()?;
    let accepted = u64::try_from(warm_up.deliveries + load.deliveries)?;
    let stored = probot.count(database)?;
    ensure!(
        stored.0 == accepted && stored.1 >= accepted,
        "{accepted} deliveries were accepted, and of deliveries and jobs {stored:?} are stored"
    );
    let cpu_seconds = used.cpu_seconds.unwrap_or(f64::NAN) - before.cpu_seconds.unwrap_or(f64::NAN);
    let cpu = cpu_seconds * 1000.0 / load.deliveries as f64;
    let sending = load.cpu_seconds * 1000.0 / load.deliveries as f64;
    Ok(Measured { rate: load.rate(), p50: load.quantile(0.5), p99: load.quantile(0.99), cpu, sending, used })
}

/// The median of each figure, and the highest memory.
fn summary(rounds: &[Measured]) -> Measured {
    let middle = |figure: fn(&Measured) -> f64| median(rounds.iter().map(figure));
    let peak_kib = rounds.iter().filter_map(|round| round.used.peak_kib).max();
    Measured {
        rate: middle(|round| round.rate),
        p50: middle(|round| round.p50),
        p99: middle(|round| round.p99),
        cpu: middle(|round| round.cpu),
        sending: middle(|round| round.sending),
        used: Used { peak_kib, cpu_seconds: None },
    }
}

fn table(engine: &str, rows: &[(Contender, Measured)]) -> String {
    let mut table = format!(
        "| {engine} | deliveries/s | p50 | p99 | processor time each | sending each | peak memory |\n|---|---:|---:|---:|---:|---:|---:|\n"
    );
    for (contender, Measured { rate, p50, p99, cpu, sending, used }) in rows {
        let name = match contender {
            Contender::Canonry => "**Canonry**, intake alone",
            Contender::Probot => "Probot app",
            Contender::ProbotOneStatement => "Probot app, one statement each",
            Contender::CanonryWorking => "Canonry, with 4 workers busy",
        };
        let memory = used.memory();
        table.push_str(&format!(
            "| {name} | {rate:.0} | {p50:.1} ms | {p99:.1} ms | {cpu:.2} ms | {sending:.2} ms | {memory} |\n"
        ));
    }
    let of = |wanted: Contender| rows.iter().find(|(contender, _)| *contender == wanted).map(|(_, measured)| measured);
    if let (Some(canonry), Some(probot)) = (of(Contender::Canonry), of(Contender::Probot)) {
        let memory = |measured: &Measured| measured.used.peak_kib.map_or(f64::NAN, |kib| kib as f64);
        table.push_str(&format!(
            "\nCanonry accepts {:.1} times as many, with {:.2} of the memory.\n\n",
            canonry.rate / probot.rate,
            memory(canonry) / memory(probot)
        ));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::{Contender, Measured, Used, summary, table};

    fn measured(rate: f64, peak_kib: u64) -> Measured {
        Measured {
            rate,
            p50: 1.0,
            p99: 2.0,
            cpu: 0.1,
            sending: 0.04,
            used: Used { peak_kib: Some(peak_kib), cpu_seconds: None },
        }
    }

    #[test]
    fn the_table_compares_the_middle_rates() {
        let canonry = summary(&[measured(900.0, 1000), measured(5000.0, 3000), measured(6000.0, 2000)]);
        assert_eq!(canonry, measured(5000.0, 3000));
        let table = table("SQLite", &[(Contender::Canonry, canonry), (Contender::Probot, measured(1000.0, 6000))]);
        assert!(
            table.contains("| **Canonry**, intake alone | 5000 | 1.0 ms | 2.0 ms | 0.10 ms | 0.04 ms | 3 MB |\n"),
            "{table}"
        );
        assert!(table.ends_with("\nCanonry accepts 5.0 times as many, with 0.50 of the memory.\n\n"), "{table}");
    }
}
