//! Tables for people.

pub(crate) use canonry_domain::counted;
use comfy_table::{ContentArrangement, LineStyle, Table, TableStyle};

const STYLE: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

/// An empty table with its heading; it fits the terminal, if there is one.
pub(crate) fn table<const COLUMNS: usize>(heading: [&str; COLUMNS]) -> Table {
    let mut table = Table::new();
    table.load_style(STYLE).set_content_arrangement(ContentArrangement::Dynamic).set_header(heading);
    table
}
