//! The `action` benchmark: runs of `canonry run`, from the start of the program to its end.

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use super::{example, folder, release_binary};

const ITEMS: usize = 25_000;

pub(crate) fn run() -> Result<()> {
    let program = release_binary()?;
    let place = tempfile::Builder::new().prefix("action-").tempdir_in(folder()?)?;
    let mut command = example("canonry-server", "action_runs")?;
    let output = command.arg(program).arg(place.path()).arg(ITEMS.to_string()).output()?;
    if !output.status.success() {
        bail!("the runs failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    let printed: Value = serde_json::from_slice(&output.stdout).context("the runs printed no figures")?;
    print!("{}", table(&printed));
    Ok(())
}

fn table(printed: &Value) -> String {
    let row = |name: &str, runs: &[&Value]| {
        let mut seconds: Vec<f64> = runs.iter().filter_map(|run| run["seconds"].as_f64()).collect();
        seconds.sort_by(f64::total_cmp);
        let requests: Vec<String> = runs.iter().map(|run| run["requests"].to_string()).collect();
        let cpu = runs.iter().filter_map(|run| run["cpu"].as_f64()).sum::<f64>() / runs.len().max(1) as f64;
        let (Some(median), Some(longest)) = (seconds.get(seconds.len() / 2), seconds.last()) else {
            return String::new();
        };
        format!("| {name} | {} | {median:.1} | {longest:.1} | {cpu:.1} | {} |\n", runs.len(), requests.join(", "))
    };
    let list = |key: &str| printed[key].as_array().map(|runs| runs.iter().collect::<Vec<_>>()).unwrap_or_default();
    let megabytes = |key: &str| printed[key].as_f64().unwrap_or_default() / 1e6;
    format!(
        "| run, {ITEMS} issues | runs | median s | longest s | mean CPU s | requests |\n|---|--:|--:|--:|--:|---|\n{}{}{}{}{}\n\
         State: {:.1} MB, of which git transfers {:.1} MB. Cache: {:.1} MB.\n",
        row("first: fetch and embed everything", &[&printed["first"]]),
        row("an issue is opened, vectors in the cache", &list("same_cache")),
        row("an issue is opened, the cache of the first run", &list("older_cache")),
        row("the schedule, with nothing to do", &list("idle")),
        row("an issue is opened, without a cache", &[&printed["no_cache"]]),
        megabytes("state_bytes"),
        megabytes("transferred_bytes"),
        megabytes("cache_bytes"),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::table;

    #[test]
    fn a_row_has_the_median_and_the_longest() {
        let run = |seconds: f64| json!({ "seconds": seconds, "cpu": 2.0 * seconds, "requests": 9 });
        let printed = json!({ "first": run(300.0), "same_cache": [run(3.0), run(1.0), run(2.0)], "older_cache": [run(4.0)], "idle": [run(1.0)], "no_cache": run(9.0),
            "state_bytes": 2_500_000, "transferred_bytes": 800_000, "cache_bytes": 3_000_000 });
        let table = table(&printed);
        assert!(
            table.contains("| an issue is opened, vectors in the cache | 3 | 2.0 | 3.0 | 4.0 | 9, 9, 9 |"),
            "{table}"
        );
        assert!(table.ends_with("\nState: 2.5 MB, of which git transfers 0.8 MB. Cache: 3.0 MB.\n"), "{table}");
    }
}
