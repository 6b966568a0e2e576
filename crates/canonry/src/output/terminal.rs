//! What the terminal supports: the width of a line, and links.

use std::io::IsTerminal as _;

use canonry_review::output::columns::wrapped;

/// The minimum width for any layout.
const LEAST: usize = 30;
/// The width of a terminal that does not report its own.
const USUAL: usize = 80;

/// The columns of a line. `None` for a file or a pipe, where nothing is wrapped unless `COLUMNS` is set.
pub(crate) fn width() -> Option<usize> {
    let asked = std::env::var("COLUMNS").ok().and_then(|columns| columns.trim().parse().ok());
    let width = asked.filter(|columns| *columns > 0).or_else(|| {
        let stdout = std::io::stdout();
        let own = || terminal_size::terminal_size_of(&stdout).map(|(width, _)| usize::from(width.0));
        stdout.is_terminal().then(|| own().filter(|columns| *columns > 0).unwrap_or(USUAL))
    });
    width.map(|columns| columns.max(LEAST))
}

/// A paragraph in indented lines that fit the terminal; one line for a file or a pipe.
pub(crate) fn paragraph(indent: usize, words: &str) -> String {
    let space = " ".repeat(indent);
    let lines = match width() {
        Some(width) => wrapped(words, width.saturating_sub(indent), usize::MAX - 1),
        None => vec![words.to_owned()],
    };
    lines.iter().map(|line| format!("{space}{line}\n")).collect()
}

/// Whether `path:line` becomes a link: on a terminal with colours, unless `FORCE_HYPERLINK` says otherwise.
pub(crate) fn shows_links() -> bool {
    let is_coloured = anstream::AutoStream::choice(&std::io::stdout()) != anstream::ColorChoice::Never;
    match std::env::var("FORCE_HYPERLINK").ok().as_deref() {
        None | Some("") => is_coloured && std::io::stdout().is_terminal(),
        Some("0") => false,
        Some(_) => is_coloured,
    }
}
