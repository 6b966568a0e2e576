//! The points between two steps, where work can end without harm.

use std::ops::ControlFlow;
use std::sync::Arc;

/// A point between two steps of the work on one entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Point {
    Claimed,
    Looked,
    Checked,
    SendStored,
    /// GitHub has answered, or has not; what it said is not stored yet.
    Answered,
    StepStored,
}

/// Asked at every point whether to go on. A service that drains breaks here; what it leaves behind is
/// what a kill would leave, and the next worker goes on from there once the lease has ended.
pub type Checkpoint = Arc<dyn Fn(Point) -> ControlFlow<()> + Send + Sync>;
