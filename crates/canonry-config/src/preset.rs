//! Commented settings files to start with.

use canonry_domain::text_enum;

text_enum! {
    /// A settings file to start with; the most careful first.
    pub enum Preset: "a preset" {
        /// Everything is recorded, and nothing is public.
        Shadow = "shadow",
        /// Possible duplicates get a comment and a label; nothing is closed.
        Suggest = "suggest",
        /// Announced duplicates are closed after a grace period.
        Grace = "grace",
        /// Pull requests are reviewed; duplicates are only recorded.
        Review = "review",
    }
}

impl Preset {
    /// What the service does with this preset, as the end of a sentence.
    pub const fn effect(self) -> &'static str {
        match self {
            Self::Shadow => "records what it would do and writes nothing on GitHub",
            Self::Suggest => "comments on possible duplicates and closes nothing",
            Self::Grace => "announces duplicates and closes them 72 hours later unless somebody objects",
            Self::Review => "reviews pull requests and only records duplicates",
        }
    }

    /// The text of the settings file.
    pub fn file(self) -> String {
        let mode = match self {
            Self::Shadow | Self::Review => "shadow",
            Self::Suggest => "suggest",
            Self::Grace => "grace",
        };
        let (effect, reviews) = (self.effect(), self == Self::Review);
        // Only the preset with closes writes `close`: in the others it would announce closes that do not happen.
        let close = if self == Self::Grace { GRACE_CLOSE } else { DORMANT_CLOSE };
        format!(
            "# Settings of Canonry, read from the default branch.\n\
             # The service {effect}.\n\
             # Check a change with `canonry config check`; `canonry config show` lists every key with its default.\n\
             \n\
             triage:\n  \
               # off: new items are not compared. shadow: results are recorded only. suggest: a comment and the label\n  \
               # possible-duplicate. grace: as suggest, and sure duplicates are closed after close.graceHours.\n  \
               mode: {mode}\n  \
               # Items with one of these labels are not triaged.\n  \
               excludeLabels: []\n\
             \n\
             {close}\
             \n\
             review:\n  \
               # true: pull requests get a review and, with a GitHub App, a check.\n  \
               enabled: {reviews}\n  \
               # Also review every push to an open pull request.\n  \
               triggers: {{onSynchronize: false}}\n  \
               # Nothing in these paths is reviewed, for example \"vendor/**\".\n  \
               skipPaths: []\n"
        )
    }
}

const GRACE_CLOSE: &str = "\
close:
  # Time between the announcement and the close, in which anybody can object.
  graceHours: 72
  # Items with one of these labels are never closed.
  protectedLabels: [security]
  # Closes per day without a person's approval.
  maxPerDay: 10
";

const DORMANT_CLOSE: &str = "\
# Used by plans and by the mode grace.
# close:
#   graceHours: 72
#   protectedLabels: [security]
#   maxPerDay: 10
";

#[cfg(test)]
mod tests {
    use canonry_domain::TriageMode;

    use super::Preset;
    use crate::{RepoConfig, parse};

    #[test]
    fn each_preset_changes_what_its_name_says_and_nothing_else() {
        for preset in Preset::ALL.iter().copied() {
            let file = preset.file();
            let parsed = parse(&file);
            assert_eq!(parsed.problems, [], "{preset}: {file}");
            let mut expected = RepoConfig::default();
            match preset {
                Preset::Shadow => {}
                Preset::Suggest => expected.triage.mode = TriageMode::Suggest,
                Preset::Grace => expected.triage.mode = TriageMode::Grace,
                Preset::Review => expected.review.enabled = true,
            }
            assert_eq!(parsed.config, expected, "{preset}");
            assert!(file.lines().all(|line| line.len() <= 120), "{file}");
        }
    }

    #[test]
    fn what_is_commented_out_may_be_switched_on() {
        let file = Preset::Shadow.file();
        let begin = file.find("# close:").expect("the section");
        let (before, after) = file.split_at(begin);
        let lines = after.lines().map(|line| line.strip_prefix("# ").or(line.strip_prefix('#')).unwrap_or(line));
        let switched_on = format!("{before}{}", lines.collect::<Vec<_>>().join("\n"));
        let parsed = parse(&switched_on);
        assert_eq!((parsed.problems, parsed.config), (Vec::new(), RepoConfig::default()), "{switched_on}");
    }
}
