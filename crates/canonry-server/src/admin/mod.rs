//! What operators and programs read: health, metrics and the API.

pub(crate) mod address_attempts;
pub(crate) mod api;
pub(crate) mod api_access;
pub(crate) mod exposition;
pub(crate) mod health;
pub(crate) mod metrics;
pub(crate) mod operations;
pub(crate) mod repo_readers;
pub(crate) mod stored_metrics;
pub(crate) mod threshold_report;
pub(crate) mod work_views;

pub use address_attempts::AddressAttempts;
pub use api::{ApiParts, api_routes};
pub use api_access::{ApiAccess, ApiRefusal};
pub use metrics::Metrics;
pub use operations::{Operations, operations_routes};
pub use repo_readers::ReadDenial;
pub use threshold_report::{
    ReportedAdjustment, ReportedSettings, ReportedThreshold, ThresholdReport, threshold_report,
};
pub use work_views::{DeliveryView, JobView};
