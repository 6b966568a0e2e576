//! Decides whether a plan may still be applied. It may not if it is too old, if a newer plan has its items, or if
//! rulings affect all of its remaining rows.

use std::fmt::Display;

use jiff::{SignedDuration, Timestamp};

/// After a week too much may have changed that is not rechecked before closing (SPEC 19).
pub const PLAN_LIFETIME: SignedDuration = SignedDuration::from_hours(7 * 24);

/// Closes without a maintainer's approval are limited in every window of this length: one day, as in
/// `close.maxPerDay`.
pub const DAILY_LIMIT_WINDOW: SignedDuration = SignedDuration::from_hours(24);

/// What to do if a plan may not be applied any more.
const NEW_PLAN: &str =
    "make a new plan with `canonry plan-close`: it keeps approvals of unchanged items, and exclusions";

/// Whether a plan may be applied. `P` is the name or number of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlanAge<P> {
    /// The plan may be applied until then, unless another variant applies first.
    Good {
        /// The last moment at which the plan may be applied.
        until: Timestamp,
    },
    TooOld,
    Overtaken {
        by: P,
    },
    /// After the plan was made, rulings were made or removed about every cluster that remains in it. A ruling about
    /// only some of them keeps those rows open and does not stop the others.
    RuledSince {
        /// The newest ruling.
        ruling: i64,
    },
}

/// The age of a plan. `newer_plan` is the newest plan that has items of this plan. `newer_ruling` is the newest ruling
/// if rulings that were made or removed since affect everything that remains of the plan.
pub fn plan_age<P>(made_at: Timestamp, newer_plan: Option<P>, newer_ruling: Option<i64>, now: Timestamp) -> PlanAge<P> {
    if is_too_old(made_at, now) {
        return PlanAge::TooOld;
    }
    match (newer_plan, newer_ruling) {
        (Some(by), _) => PlanAge::Overtaken { by },
        (None, Some(ruling)) => PlanAge::RuledSince { ruling },
        // The addition overflows only at the end of time.
        (None, None) => PlanAge::Good { until: made_at.checked_add(PLAN_LIFETIME).unwrap_or(Timestamp::MAX) },
    }
}

/// Whether the plan is older than `PLAN_LIFETIME`.
pub fn is_too_old(made_at: Timestamp, now: Timestamp) -> bool {
    now.duration_since(made_at) > PLAN_LIFETIME
}

impl<P: Display> PlanAge<P> {
    /// Why the plan may not be applied, and what to do instead; `None` if it may be applied.
    pub fn refusal(&self, plan: P) -> Option<String> {
        match self {
            Self::Good { .. } => None,
            Self::TooOld => Some(format!("plan {plan} is older than 7 days; {NEW_PLAN}")),
            Self::Overtaken { by } => Some(format!("plan {by} is newer and has items of plan {plan}; apply that one")),
            Self::RuledSince { ruling } => Some(format!(
                "override {ruling} was given or removed after plan {plan}, and nothing is left of the plan that rulings do \
                 not touch; {NEW_PLAN}"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::{SignedDuration, Timestamp};
    use proptest::prelude::{any, prop_assert_eq, proptest};

    use super::{PLAN_LIFETIME, PlanAge, plan_age};

    #[test]
    fn a_week_is_good_and_a_moment_more_is_not() {
        let made_at = Timestamp::from_second(1_800_000_000).expect("in range");
        let until = made_at + PLAN_LIFETIME;
        assert_eq!(plan_age::<i64>(made_at, None, None, until), PlanAge::Good { until });
        let later = until + SignedDuration::from_micros(1);
        let age = plan_age(made_at, Some(9), Some(3), later);
        assert_eq!(
            age.refusal(7).as_deref(),
            Some(
                "plan 7 is older than 7 days; make a new plan with `canonry plan-close`: it keeps approvals of unchanged \
                 items, and exclusions"
            )
        );
        assert_eq!(plan_age::<i64>(Timestamp::MAX, None, None, until), PlanAge::Good { until: Timestamp::MAX });
    }

    #[test]
    fn of_two_reasons_the_newer_plan_is_told() {
        let now = Timestamp::from_second(1_800_000_000).expect("in range");
        assert_eq!(plan_age(now, Some(9), Some(3), now), PlanAge::Overtaken { by: 9 });
        assert_eq!(plan_age::<i64>(now, None, Some(3), now), PlanAge::RuledSince { ruling: 3 });
    }

    proptest! {
        #[test]
        fn a_plan_is_refused_unless_it_is_good(age in 0i64..20 * 24, newer in any::<Option<i64>>(), ruled in any::<Option<i64>>()) {
            let made_at = Timestamp::from_second(1_800_000_000).expect("in range");
            let found = plan_age(made_at, newer, ruled, made_at + SignedDuration::from_hours(age));
            let good = age <= 7 * 24 && newer.is_none() && ruled.is_none();
            prop_assert_eq!(found.refusal(1).is_none(), good);
            prop_assert_eq!(matches!(found, PlanAge::Good { .. }), good);
        }
    }
}
