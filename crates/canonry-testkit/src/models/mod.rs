//! A scripted server with OpenAI's API: vectors and answers that a test chooses, and faults.

mod fault;
mod model_server;
mod script;
mod vectors;

pub use fault::Fault;
pub use model_server::ModelServer;
pub use script::ModelRequest;
pub use vectors::{DIMENSION, vectors_with_cosines, vectors_with_pairs};
