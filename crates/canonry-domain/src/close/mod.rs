//! Close plans, the reasons that stop a row, the grace period before a close, and the comments about closes.

pub(crate) mod apply_forecast;
pub(crate) mod breaker;
pub(crate) mod closing_text;
pub(crate) mod drift;
pub(crate) mod earlier_close;
pub(crate) mod grace;
pub(crate) mod plan;
pub(crate) mod plan_age;
pub(crate) mod plan_input;
pub(crate) mod row_approval;
pub(crate) mod skip_reason;

pub use apply_forecast::{ApplyForecast, apply_forecast};
pub use breaker::{BREAKER_DAYS, BREAKER_WINDOW, trips_breaker};
pub use closing_text::{
    ClosingText, POSSIBLE_DUPLICATE, UndoReason, back_link_comment, closing_comment, comment_if_refused,
    repointed_comment, undo_comment,
};
pub use drift::{DriftKind, ItemSnapshot, LiveItem, RowRefusal, RowSnapshot, UnknownRefusal, drift};
pub use earlier_close::EarlierClose;
pub use grace::{
    GraceBasis, GraceCandidate, GraceEnd, GraceFacts, breaker_comment, grace_end, left_open_text, may_announce_close,
};
pub use plan::{
    ClosePath, ClosePlan, ClusterPlan, FlatRow, PlanRow, PlanRules, RowVerdict, StaleItem, TargetPolicy,
    has_protected_label, plan_closes,
};
pub use plan_age::{DAILY_LIMIT_WINDOW, PLAN_LIFETIME, PlanAge, is_too_old, plan_age};
pub use plan_input::{PlanInput, PlanItem};
pub use row_approval::{ONLY_EXCLUDE, may_row_approval_change};
pub use skip_reason::SkipReason;
