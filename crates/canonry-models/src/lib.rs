#![doc = include_str!("../README.md")]

mod api_key;
mod calibration;
mod calibration_fit;
pub mod chat;
mod confined_program;
mod embedder;
mod encoder;
mod local;
mod model_file;
mod program;
mod provider;
mod remote;
mod remote_failure;
mod remote_service;
mod retry;
mod word_piece;

pub use api_key::ApiKey;
pub use calibration::{Calibration, CalibrationError};
pub use calibration_fit::{CalibrationData, FittedCalibration};
pub use canonry_clock::{Clock, SystemClock};
pub use confined_program::{WITHHELD, hide_own_memory};
pub use embedder::{EmbedError, Embedder, FindingDistances, InputType, TextEmbedding};
pub use local::{CompiledInModel, LocalEmbedder};
pub use model_file::ModelFileError;
pub use program::{ProgramEnd, ProgramError, run_confined_program, run_program};
pub use provider::Provider;
pub use remote::{RemoteEmbedder, RemoteSettings};
pub use remote_failure::RemoteFailure;
pub use remote_service::http_client;
