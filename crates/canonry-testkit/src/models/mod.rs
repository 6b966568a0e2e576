//! A scripted server with OpenAI's API: vectors and answers that a test chooses, and faults.

mod fault;
mod model_server;
mod script;
mod second_reading;
mod vectors;

pub use fault::Fault;
pub use model_server::ModelServer;
pub use script::ModelRequest;
pub use second_reading::confirmed_second_reading;
pub use vectors::{DIMENSION, vectors_with_cosines, vectors_with_pairs};

/// A word of the unrelated text in the control questions to a judge, about which the answer is no.
pub const CONTROL_WORD: &str = "weathervane";
