//! Reviews of pull requests: their requests, and the job that makes and publishes them.

pub(crate) mod metered_model;
pub(crate) mod review_folder;
pub(crate) mod review_job;
pub(crate) mod review_requests;

pub use metered_model::ReviewModel;
pub use review_folder::ReviewFolder;
pub use review_job::ReviewParts;
