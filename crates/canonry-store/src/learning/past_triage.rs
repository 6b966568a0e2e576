//! Triage records, with the fields that learning uses.

use std::collections::BTreeMap;

use canonry_domain::{PastTriage, Prediction, TriageVisibility, can_teach};
use sqlx::QueryBuilder;

use crate::corpus::items::NUMBERS_PER_STATEMENT;
use crate::duplicates::triage_actions::TriageActionKind;
use crate::engine::lists::PushList as _;
use crate::engine::row_values::{moment, number, optional_word, similarity, word};
use crate::engine::transaction::{StoreError, Transaction, on_tx};

/// Returns the records of these issues, by the store's key of the issue, oldest first.
pub(crate) async fn triages_of(
    tx: &mut Transaction,
    items: &[i64],
) -> Result<BTreeMap<i64, Vec<PastTriage>>, StoreError> {
    let mut triages: BTreeMap<i64, Vec<PastTriage>> = BTreeMap::new();
    for batch in items.chunks(NUMBERS_PER_STATEMENT) {
        let rows: Vec<Row> = on_tx!(&mut *tx, |db| {
            let mut query = QueryBuilder::new(
                "SELECT d.item_id, d.id, d.verdict, t.number AS target, d.target_score, d.reason, a.action, d.created_at, \
                r.number AS fixed_report, f.score AS fixed_score \
                FROM triage_records d LEFT JOIN items t ON t.id = d.target_item_id \
                LEFT JOIN triage_actions a ON a.triage_id = d.id LEFT JOIN fix_matches f ON f.triage_id = d.id \
                LEFT JOIN items r ON r.id = f.report_item_id WHERE d.item_id IN (",
            );
            query.push_list(batch.iter().copied()).push(" ORDER BY d.item_id, d.created_at, d.id");
            query.build_query_as().fetch_all(db).await?
        });
        for row in rows {
            triages.entry(row.item_id).or_default().push(row.read()?);
        }
    }
    Ok(triages)
}

#[derive(sqlx::FromRow)]
struct Row {
    item_id: i64,
    id: i64,
    verdict: String,
    target: Option<i64>,
    target_score: Option<f64>,
    reason: String,
    action: Option<String>,
    created_at: i64,
    fixed_report: Option<i64>,
    fixed_score: Option<f64>,
}

impl Row {
    fn read(self) -> Result<PastTriage, StoreError> {
        let prediction = |target: Option<i64>, score: Option<f64>| -> Result<Option<Prediction>, StoreError> {
            let Some((target, score)) = target.zip(score) else { return Ok(None) };
            Ok(Some(Prediction { target: number(target)?, score: similarity(score)? }))
        };
        let fixed = prediction(self.fixed_report, self.fixed_score)?;
        let said = match optional_word::<TriageActionKind>(self.action.as_deref())? {
            Some(TriageActionKind::Commented | TriageActionKind::Edited) => TriageVisibility::Spoken,
            Some(TriageActionKind::Withdrawn) => TriageVisibility::TakenBack,
            Some(TriageActionKind::Recorded) | None => TriageVisibility::Nothing,
        };
        Ok(PastTriage {
            id: self.id,
            prediction: prediction(self.target, self.target_score)?,
            fixed,
            teaches: fixed.is_none() && can_teach(word(&self.verdict)?, &self.reason, self.target_score.is_some()),
            said,
            created_at: moment(self.created_at)?,
        })
    }
}
