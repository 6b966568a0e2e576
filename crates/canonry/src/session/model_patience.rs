//! Timeouts and retries of models.

use std::time::Duration;

use canonry_models::RemoteSettings;
use canonry_models::chat::{ChatSettings, CommandSettings};
use jiff::SignedDuration;

/// The longest timeout for one answer that the options accept.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// The patience with models that answer questions: a large one on a machine of one's own may take minutes.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub(crate) struct ModelPatience {
    /// How long a model may be silent, such as 90s or 10m; serve ends work on an item after 15 minutes and a review after
    /// 45 [default: 2m, for a program 3m]
    #[arg(long, value_name = "TIME", env = "CANONRY_MODEL_TIMEOUT", value_parser = answer_time)]
    model_timeout: Option<Duration>,
    /// How often a model is asked before a question counts as failed [default: 5]
    #[arg(long, value_name = "COUNT", env = "CANONRY_MODEL_TRIES", value_parser = clap::value_parser!(u32).range(1..=20))]
    model_tries: Option<u32>,
}

impl ModelPatience {
    /// Applies the timeout and the number of tries to a hosted model.
    pub(crate) fn apply(self, settings: &mut ChatSettings) {
        settings.timeout = self.model_timeout.unwrap_or(settings.timeout);
        settings.attempts = self.model_tries.unwrap_or(settings.attempts);
    }

    /// Applies the timeout to a program, which is run only once.
    pub(crate) fn apply_to_program(self, settings: &mut CommandSettings) {
        settings.timeout = self.model_timeout.unwrap_or(settings.timeout);
    }
}

/// The patience with embedders.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub(crate) struct EmbedPatience {
    /// How long a remote embedder may take for one answer, such as 90s or 10m [default: 1m]
    #[arg(long, value_name = "TIME", env = "CANONRY_EMBED_TIMEOUT", value_parser = answer_time)]
    embed_timeout: Option<Duration>,
    /// How often a remote embedder is asked before a request counts as failed [default: 5]
    #[arg(long, value_name = "COUNT", env = "CANONRY_EMBED_TRIES", value_parser = clap::value_parser!(u32).range(1..=20))]
    embed_tries: Option<u32>,
}

impl EmbedPatience {
    pub(crate) fn apply(self, settings: &mut RemoteSettings) {
        settings.timeout = self.embed_timeout.unwrap_or(settings.timeout);
        settings.attempts = self.embed_tries.unwrap_or(settings.attempts);
    }
}

/// Parses a time such as `90s`, `10m` or `1h 30m`.
fn answer_time(text: &str) -> Result<Duration, String> {
    let time = text.parse::<SignedDuration>().ok().and_then(|time| Duration::try_from(time).ok());
    time.filter(|time| (Duration::from_secs(1)..=LONGEST).contains(time))
        .ok_or_else(|| format!("{text:?} is not a time between 1s and 24h; write it as 90s or 10m"))
}

#[cfg(test)]
mod tests {
    use super::answer_time;

    #[test]
    fn times_are_read_with_their_unit() {
        for (text, seconds) in [("90s", 90), ("10m", 600), ("1h 30m", 5400), ("24h", 86_400)] {
            assert_eq!(answer_time(text).map(|time| time.as_secs()), Ok(seconds), "{text}");
        }
        for bad in ["", "90", "0s", "-5s", "25h", "soon"] {
            assert!(answer_time(bad).is_err(), "{bad:?}");
        }
    }
}
