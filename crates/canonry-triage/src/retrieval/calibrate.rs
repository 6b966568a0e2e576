//! `calibrate`: fits a model's scores to the repository's own duplicates.

use canonry_boxed::boxed;
use std::collections::{BTreeMap, BTreeSet};

use canonry_domain::{ItemNumber, Similarity};
use canonry_models::{CalibrationData, CalibrationError, FittedCalibration};
use canonry_retrieval::{CreationOrder, RetrievalMode, duplicate_clusters};
use canonry_store::{Store, StoreError};
use jiff::Timestamp;

use crate::retrieval::neighbourhood::{NeighbourQuery, Neighbourhood, RetrievalError};

#[derive(Debug, Clone, PartialEq)]
pub struct CalibrateReport {
    pub fitted: FittedCalibration,
    pub true_pairs: usize,
    /// Pairs that are near by the model and that nobody called duplicates.
    pub other_pairs: usize,
}

#[derive(Debug, thiserror::Error)]
pub enum CalibrateError {
    #[error("{0}; the repository needs more issues that people closed as duplicates: try `canonry sync --outcomes`")]
    Fit(#[from] CalibrationError),
    #[error(transparent)]
    Retrieval(#[from] RetrievalError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// How many of the nearest items a duplicate is compared with. Both kinds of pairs must come from the same retriever;
/// otherwise the odds belong to another question.
const NEAREST: usize = 20;

/// Fits the scores of a neighbourhood's model to what people closed as duplicates, and stores the fit.
#[boxed]
pub async fn calibrate(
    store: &Store,
    neighbourhood: &Neighbourhood,
    now: Timestamp,
) -> Result<CalibrateReport, CalibrateError> {
    let rows = neighbourhood.rows();
    let links: Vec<(ItemNumber, ItemNumber)> =
        rows.values().filter_map(|row| Some((row.number, row.duplicate_of?))).collect();
    let clusters: BTreeMap<ItemNumber, BTreeSet<ItemNumber>> = duplicate_clusters(links);
    let order = CreationOrder::of(rows.values().map(|row| (row.number, row.created_at)));
    let wanted = NeighbourQuery { mode: RetrievalMode::Dense, k: NEAREST, min_score: Similarity::ZERO, state: None };
    let mut data = CalibrationData::default();
    for query in order.queries(&clusters) {
        let Some(entry) = neighbourhood.entry(query.number).await?.filter(|entry| entry.vector.is_some()) else {
            continue;
        };
        let asked = Neighbourhood::query_of(&entry);
        let earlier = |row: &canonry_store::IndexRow| order.is_before(row.number, query.number);
        for hit in neighbourhood.neighbours(&asked, entry.vector.as_deref(), wanted, &earlier).await? {
            let Some(cosine) = hit.parts.get("dense") else { continue };
            let pairs = if query.relevant.contains(&hit.number) { &mut data.true_pairs } else { &mut data.other_pairs };
            pairs.push(*cosine as f32);
        }
    }
    let fitted = data.fit()?;
    let stored = serde_json::to_value(&fitted.calibration).expect("invariant: a calibration is plain data");
    store.corpus().write_calibration(neighbourhood.index().model(), &stored, now).await?;
    Ok(CalibrateReport { fitted, true_pairs: data.true_pairs.len(), other_pairs: data.other_pairs.len() })
}
