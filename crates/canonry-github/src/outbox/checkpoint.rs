//! Defines the points between two steps at which work can stop without harm.

use std::ops::ControlFlow;
use std::sync::Arc;

/// A point between two steps of the work on one entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Point {
    Claimed,
    Looked,
    Checked,
    SendStored,
    /// GitHub has answered, or has not; the answer is not stored yet.
    Answered,
    StepStored,
}

/// Called at every point to decide whether to continue. A service that drains stops here; the state it leaves is the
/// same as after a kill, and the next worker continues from it once the lease has ended.
pub type Checkpoint = Arc<dyn Fn(Point) -> ControlFlow<()> + Send + Sync>;
