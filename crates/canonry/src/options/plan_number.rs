//! The plan that a command is about.

use canonry_store::CloseRunId;

/// The number of a plan; `--run N` is how it was written before.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct PlanNumber {
    /// The plan's number, as `canonry plan-close` prints it
    #[arg(value_name = "PLAN", value_parser = parse, required = true)]
    plan: Option<CloseRunId>,
    #[arg(long, alias = "plan", value_name = "N", value_parser = parse, hide = true, conflicts_with = "plan")]
    run: Option<CloseRunId>,
}

impl PlanNumber {
    pub(crate) fn get(self) -> CloseRunId {
        self.plan.or(self.run).expect("invariant: clap requires one of the two")
    }
}

fn parse(text: &str) -> Result<CloseRunId, String> {
    let number: i64 = text.parse().map_err(|_| format!("{text:?} is not a plan's number; write it as 3"))?;
    Ok(CloseRunId::new(number))
}
