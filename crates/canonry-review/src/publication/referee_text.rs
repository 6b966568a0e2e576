//! Writes what other reviewers say for GitHub: each problem once, with links to their threads.

use canonry_domain::counted;

use super::quoted::{code, line, place};
use crate::referee::{RefereeReport, RefereedProblem, RemarkWitness};

/// The limit in characters of what a remark says.
const SAID: usize = 200;
/// The problems and the bots that are listed.
const MOST: usize = 20;
/// The threads that one problem links.
const THREADS: usize = 6;

/// The folded section about other reviewers; `None` if they said nothing.
pub(super) fn referee_section(referee: &RefereeReport) -> Option<String> {
    if referee.remarks == 0 {
        return None;
    }
    let mut heading = format!("Other reviewers: {}", counted(referee.problems.len() as u64, "open problem"));
    if referee.settled > 0 {
        heading += &format!(", {} settled", referee.settled);
    }
    let mut lines: Vec<String> = referee.problems.iter().take(MOST).map(problem).collect();
    if referee.problems.len() > MOST {
        lines.push(format!("- … and {} more", referee.problems.len() - MOST));
    }
    let mut parts = if lines.is_empty() { Vec::new() } else { vec![lines.join("\n")] };
    if !referee.records.is_empty() {
        let rows = referee.records.iter().take(MOST).map(|record| {
            let (name, right) = (code(record.login.as_str()), record.in_counts());
            format!("| {name} | {} | {} | {right} |", record.remarks, record.agreed)
        });
        let rows: Vec<String> = rows.collect();
        parts.push(format!(
            "| bot | comments so far | also named by others | decided by people |\n|---|--:|--:|---|\n{}",
            rows.join("\n")
        ));
    }
    Some(format!("<details>\n<summary>{heading}</summary>\n\n{}\n\n</details>", parts.join("\n\n")))
}

/// A sentence that points to the thread in which another bot already named a finding.
pub(super) fn pointer(thread: &RemarkWitness) -> Option<String> {
    let link = thread.link.as_deref()?;
    Some(format!("{} already reported this problem in [this thread]({link}).", code(thread.author.login.as_str())))
}

fn problem(one: &RefereedProblem) -> String {
    let witnesses = one.witnesses.iter().take(THREADS).map(|by| {
        let name = code(by.author.login.as_str());
        // The link was checked when it was read.
        by.link.as_deref().map_or(name.clone(), |link| format!("[{name}]({link})"))
    });
    let witnesses: Vec<String> = witnesses.collect();
    let own = if one.findings.is_empty() { "" } else { " · also found by Canonry" };
    format!("- {} · {} · {}{own}", line(&one.text, SAID), place(&one.path, one.lines), witnesses.join(", "))
}
