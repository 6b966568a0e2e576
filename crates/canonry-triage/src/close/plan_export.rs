//! Exports a plan as Markdown, JSON or CSV.

use canonry_github::quote_line;
use serde_json::{Value, json};

use crate::close::plan_close::PlannedRow;
use crate::close::stored_plan::StoredPlan;

pub fn plan_json(plan: &StoredPlan) -> String {
    let items: Vec<Value> = plan.rows.iter().map(row_document).collect();
    let run = &plan.run;
    let document =
        json!({ "repo": run.repo.name, "plan": { "id": run.id.get(), "created_at": run.created_at }, "items": items });
    format!("{document:#}\n")
}

pub fn row_document(row: &PlannedRow) -> Value {
    json!({
        "number": row.number,
        "type": row.item_type,
        "title": row.title,
        "target": row.target,
        "target_title": row.target_title,
        "action": if row.skip.is_none() { "close" } else { "skip" },
        "skip_reason": row.skip.map(|reason| reason.as_str()),
        "confidence": row.confidence,
        "approved": row.approved,
        "approved_by": row.approved_by,
        "approved_at": row.approved_at,
        "evidence": row.evidence,
        "result": row.result,
    })
}

pub fn plan_markdown(plan: &StoredPlan) -> String {
    let mut text = format!(
        "# Plan {} of {}\n\nMade on {}. Nothing is closed until it is applied.\n\n\
         | item | action | duplicate of | confidence | evidence or reason | approved |\n|---|---|---|---:|---|---|\n",
        plan.run.id, plan.run.repo.name, plan.run.created_at
    );
    for row in &plan.rows {
        let action = if row.skip.is_none() { "close" } else { "leave open" };
        let why = match row.skip {
            Some(reason) => format!("`{}`: {}", reason.as_str(), reason.in_words()),
            None => row
                .evidence
                .facts
                .iter()
                .chain(&row.evidence.reasoning)
                .map(|fact| cell(fact))
                .collect::<Vec<_>>()
                .join("; "),
        };
        let by = row.approved_by.as_ref().map(|by| format!(", by {}", cell(by.as_str()))).unwrap_or_default();
        let approved = match row.approved {
            Some(true) => format!("yes{by}"),
            Some(false) => format!("excluded{by}"),
            None => String::new(),
        };
        let confidence = row
            .confidence
            .map_or_else(String::new, |confidence| format!("{:.0} %", (confidence.get() * 100.0 + 1e-9).floor()));
        text += &format!(
            "| #{} {} | {action} | #{} {} | {confidence} | {why} | {approved} |\n",
            row.number,
            cell(&row.title),
            row.target,
            cell(&row.target_title)
        );
    }
    text
}

/// Untrusted text as one table cell: it can neither end the cell nor mention anybody.
fn cell(text: &str) -> String {
    quote_line(text, 200).replace('|', "\\|")
}

pub fn plan_csv(plan: &StoredPlan) -> String {
    let mut text = String::from(
        "type,number,title,action,target,target_title,skip_reason,confidence,approved,approved_by,reasoning,facts,result\r\n",
    );
    for row in &plan.rows {
        let optional = |value: Option<String>| value.unwrap_or_default();
        let fields = [
            row.item_type.to_string(),
            row.number.to_string(),
            row.title.clone(),
            if row.skip.is_none() { "close" } else { "skip" }.to_owned(),
            row.target.to_string(),
            row.target_title.clone(),
            optional(row.skip.map(|reason| reason.as_str().to_owned())),
            optional(row.confidence.map(|confidence| confidence.to_string())),
            optional(row.approved.map(|approved| approved.to_string())),
            optional(row.approved_by.as_ref().map(ToString::to_string)),
            optional(row.evidence.reasoning.clone()),
            row.evidence.facts.join("; "),
            optional(row.result.clone()),
        ];
        text += &fields.map(|field| quoted(&field)).join(",");
        text += "\r\n";
    }
    text
}

/// The characters that begin a formula, also in Japanese and Chinese spreadsheets, or that some programs skip before
/// one.
const FORMULA: [char; 11] = ['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠'];

/// A field of a CSV file. Strangers write titles, so a field that a spreadsheet would interpret as a formula is
/// prefixed with a quote.
fn quoted(field: &str) -> String {
    let tame = if field.starts_with(FORMULA) { format!("'{field}") } else { field.to_owned() };
    if tame.contains([',', '"', '\n', '\r']) { format!("\"{}\"", tame.replace('"', "\"\"")) } else { tame }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn fields_can_neither_break_a_row_nor_be_a_formula() {
        for (field, expected) in [
            ("plain", "plain"),
            ("a,b", "\"a,b\""),
            ("say \"hi\"\nthere", "\"say \"\"hi\"\"\nthere\""),
            ("=HYPERLINK(1)", "'=HYPERLINK(1)"),
            ("＝HYPERLINK(1)", "'＝HYPERLINK(1)"),
            ("\n=1", "\"'\n=1\""),
            ("-1,2", "\"'-1,2\""),
        ] {
            assert_eq!(quoted(field), expected);
        }
    }
}
