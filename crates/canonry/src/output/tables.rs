//! Tables for people, fitted to the width of the terminal.

use std::fmt;

pub(crate) use canonry_domain::counted;
use canonry_review::output::columns::{columns, wrapped};

use crate::output::terminal;

const GAP: &str = "  ";
/// The minimum width of a wrapped column; if that does not fit, rows become blocks of lines.
const LEAST: usize = 16;
/// Words up to this length, such as ids, are not broken.
const LONGEST_WORD: usize = 40;

#[derive(Debug)]
pub(crate) struct Table {
    heading: Vec<String>,
    rows: Vec<Vec<String>>,
    /// The first column with numbers; all later ones have numbers too.
    numbers_from: usize,
}

pub(crate) fn table<const COLUMNS: usize>(heading: [&str; COLUMNS]) -> Table {
    Table { heading: heading.map(str::to_owned).into(), rows: Vec::new(), numbers_from: COLUMNS }
}

impl Table {
    pub(crate) fn add_row<const COLUMNS: usize>(&mut self, cells: [String; COLUMNS]) {
        debug_assert_eq!(COLUMNS, self.heading.len());
        self.rows.push(cells.into());
    }

    /// Aligns the columns from this one on as numbers.
    pub(crate) fn with_numbers_from(mut self, column: usize) -> Self {
        self.numbers_from = column;
        self
    }

    /// The table in lines of at most `width` columns; without a width, as wide as its cells.
    fn laid_out(&self, width: Option<usize>) -> String {
        let natural: Vec<usize> = (0..self.heading.len())
            .map(|at| self.lines().map(|cells| columns(&cells[at])).max().unwrap_or_default())
            .collect();
        let words = |cell: &String| cell.split_whitespace().map(columns).max().unwrap_or_default();
        let least: Vec<usize> = (0..self.heading.len())
            .map(|at| self.lines().map(|cells| words(&cells[at])).max().unwrap_or_default().min(LONGEST_WORD))
            .collect();
        match widths(&natural, &least, width) {
            Some(widths) => self.as_columns(&widths),
            None => self.as_blocks(width.unwrap_or(usize::MAX)),
        }
    }

    fn lines(&self) -> impl Iterator<Item = &Vec<String>> {
        std::iter::once(&self.heading).chain(&self.rows)
    }

    fn as_columns(&self, widths: &[usize]) -> String {
        let mut text = String::new();
        let rule = widths.iter().sum::<usize>() + GAP.len() * widths.len().saturating_sub(1);
        for (at, cells) in self.lines().enumerate() {
            let cells: Vec<Vec<String>> =
                cells.iter().zip(widths).map(|(cell, width)| wrapped(cell, *width, usize::MAX - 1)).collect();
            for line in 0..cells.iter().map(Vec::len).max().unwrap_or_default() {
                let mut shown = String::new();
                for (column, (cell, width)) in cells.iter().zip(widths).enumerate() {
                    let part = cell.get(line).map_or("", String::as_str);
                    let space = " ".repeat(width.saturating_sub(columns(part)));
                    let gap = if column > 0 { GAP } else { "" };
                    shown += &match column >= self.numbers_from {
                        true => format!("{gap}{space}{part}"),
                        false => format!("{gap}{part}{space}"),
                    };
                }
                text += shown.trim_end();
                text.push('\n');
            }
            if at == 0 {
                text += &format!("{}\n", "─".repeat(rule));
            }
        }
        text
    }

    /// Each row as its first cell, with the other cells and their headings below it.
    fn as_blocks(&self, width: usize) -> String {
        let names = self.heading.iter().skip(1).map(|name| columns(name)).max().unwrap_or_default();
        let mut text = String::new();
        for cells in &self.rows {
            let mut cells = cells.iter();
            for line in wrapped(cells.next().map_or("", String::as_str), width, usize::MAX - 1) {
                text += &format!("{line}\n");
            }
            for (name, cell) in self.heading.iter().skip(1).zip(cells) {
                let indent = GAP.len() + names + GAP.len();
                let lines = wrapped(cell, width.saturating_sub(indent).max(LEAST), usize::MAX - 1);
                for (at, line) in lines.iter().enumerate() {
                    let name = if at == 0 { name.as_str() } else { "" };
                    let space = " ".repeat(names - columns(name));
                    text += &format!("{GAP}{name}{space}{GAP}{line}\n");
                }
            }
        }
        text
    }
}

/// The width of each column; `None` if columns would be too narrow to read. No column is narrower than its longest
/// word in `least`.
fn widths(natural: &[usize], least: &[usize], width: Option<usize>) -> Option<Vec<usize>> {
    let gaps = GAP.len() * natural.len().saturating_sub(1);
    let capped = |cap: usize| -> Vec<usize> {
        natural.iter().zip(least).map(|(natural, least)| (*natural).min(cap.max(*least))).collect()
    };
    let widest = natural.iter().copied().max().unwrap_or_default();
    let Some(width) = width else { return Some(natural.to_vec()) };
    (LEAST.min(widest)..=widest).rev().map(capped).find(|widths| widths.iter().sum::<usize>() + gaps <= width)
}

impl fmt::Display for Table {
    /// Without the last line end, because the table is part of a report.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.laid_out(terminal::width()).trim_end_matches('\n'))
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::{Table, columns, table};

    fn sample() -> Table {
        let mut table = table(["item", "title", "confidence"]).with_numbers_from(2);
        let title = "Client never reconnects after the laptop wakes up";
        table.add_row(["#12".to_owned(), title.to_owned(), "97 %".to_owned()]);
        table.add_row(["#1,204".to_owned(), "日本語のタイトル".to_owned(), "8 %".to_owned()]);
        table.add_row(["#7".to_owned(), String::new(), String::new()]);
        table
    }

    #[test]
    fn a_table_is_as_wide_as_it_must_be() {
        assert_snapshot!(sample().laid_out(None), @"
        item    title                                              confidence
        ─────────────────────────────────────────────────────────────────────
        #12     Client never reconnects after the laptop wakes up        97 %
        #1,204  日本語のタイトル                                          8 %
        #7
        ");
        assert_eq!(sample().laid_out(Some(200)), sample().laid_out(None));
    }

    #[test]
    fn long_cells_are_wrapped() {
        assert_snapshot!(sample().laid_out(Some(50)), @"
        item    title                           confidence
        ──────────────────────────────────────────────────
        #12     Client never reconnects after         97 %
                the laptop wakes up
        #1,204  日本語のタイトル                       8 %
        #7
        ");
    }

    #[test]
    fn a_table_fits_forty_columns() {
        assert_snapshot!(sample().laid_out(Some(40)), @"
        item    title                 confidence
        ────────────────────────────────────────
        #12     Client never                97 %
                reconnects after the
                laptop wakes up
        #1,204  日本語のタイトル             8 %
        #7
        ");
    }

    #[test]
    fn rows_become_blocks_where_columns_do_not_fit() {
        assert_snapshot!(sample().laid_out(Some(32)), @"
        #12
          title       Client never
                      reconnects after
                      the laptop wakes
                      up
          confidence  97 %
        #1,204
          title       日本語のタイトル
          confidence  8 %
        #7
        ");
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        for width in 30..120 {
            for line in sample().laid_out(Some(width)).lines() {
                assert!(columns(line) <= width, "{width}: {line:?}");
            }
        }
    }
}
