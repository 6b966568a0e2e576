//! Tracks the progress of an entry: a state machine without any I/O.
//!
//! A send without an answer may still take effect. So each such send is followed by a minute's wait and two reads
//! before anything is sent again, and a comment that was sent again is followed by reads for a twin. A review is a
//! draft first, which nobody else sees; a draft is submitted once at most, so a review never has a twin, whatever goes
//! wrong.

#[cfg(test)]
mod tests;

use canonry_clock::BackOff;
use canonry_domain::GithubId;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::end_reason::EndReason;
use super::receipt::{Receipt, WrittenComment, WrittenReview};
use crate::http::error::GitHubError;

/// How long a write without an answer may take to appear. GitHub ends its own work on a request after ten seconds; the
/// rest is for queues and for lagging listings.
const DOUBT_WAIT: SignedDuration = SignedDuration::from_secs(60);
/// The pause between two reads, so that the second does not meet the same lagging replica.
const LOOK_GAP: SignedDuration = SignedDuration::from_secs(10);
/// The pause after a read that failed. In doubt there is no last try: only a read can tell how the send ended.
const LOOK_RETRY: SignedDuration = SignedDuration::from_secs(120);
/// How many reads must find nothing before it is sent again.
const LOOKS_IN_DOUBT: u8 = 2;
/// How many reads must show one comment and no twin.
const CALM_LOOKS: u8 = 2;
/// If a listing still lacks our comment after so many reads, a person deleted it.
const MOST_LOOKS: u8 = 6;
/// With the pauses below, a write fails after about an hour.
const MOST_TRIES: u32 = 8;
const BETWEEN_TRIES: BackOff = BackOff { first: SignedDuration::from_secs(15), longest: SignedDuration::from_mins(30) };
/// How long GitHub may be unreachable before a write fails: a weekend, in which nobody renews a token.
const LONGEST_OUTAGE: SignedDuration = SignedDuration::from_hours(72);

/// The steps of an entry, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Act {
    Comment,
    /// Creates the draft of its review, which nobody else sees.
    Draft,
    /// Changes something that can be read back: a label, a state, the text of a comment. A draft is submitted.
    Set,
    /// Edits its comment to say that the change did not happen, or deletes its draft.
    Correct,
}

/// The acts of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Comment,
    Set,
    /// The comment is sent first, so that nobody finds an item closed without a comment.
    CommentThenSet,
    DraftThenSet,
}

/// A draft of ours, which nobody else sees.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Draft {
    pub(super) review: GithubId,
    /// The keys of the comments that GitHub refused.
    #[serde(default)]
    pub(super) left_out: Vec<String>,
}

/// Why an entry ends without being sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Verdict {
    Refuse(String),
    Fail(String),
}

/// The progress of an entry; stored with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Progress {
    pub(super) act: Act,
    pub(super) phase: Phase,
    #[serde(default)]
    pub(super) tries: u32,
    /// Since when GitHub is unreachable for the act.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) outage_since: Option<Timestamp>,
    /// How many sends of the act may still take effect.
    #[serde(default)]
    pub(super) unsure: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) comment: Option<WrittenComment>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) draft: Option<Draft>,
    /// GitHub was asked for a draft, and an unrecorded one may be left behind.
    #[serde(default)]
    pub(super) asked: bool,
    /// The end of the entry once the comment is corrected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) verdict: Option<Verdict>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Phase {
    Ready,
    /// It is being sent. This is stored before the send: a worker that finds it does not know how the send ended.
    Sending,
    Doubt {
        /// How many reads in a row found nothing.
        absent: u8,
        /// The end if nothing is found; without a verdict it is sent again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        otherwise: Option<Verdict>,
    },
    /// The comment was sent more than once: a twin may appear.
    Settling {
        known: WrittenComment,
        calm: u8,
        looks: u8,
    },
    /// The review is submitted; its comments have to be read.
    Listing {
        already: bool,
        looks: u8,
    },
    /// A newer twin has to be deleted.
    Twin {
        keep: WrittenComment,
        twin: WrittenComment,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hold {
    /// Until that time, for a reason outside of the write: a limit, the pace, a new name.
    Until(Timestamp),
    /// Until GitHub is available: it cannot be reached, fails, or does not accept the token.
    Outage,
    Try,
}

impl Hold {
    /// The hold for a write that was not sent because of a failed request.
    pub(super) fn of(error: &GitHubError) -> Self {
        match error {
            GitHubError::RateLimited { until } => Self::Until(*until),
            GitHubError::Network { .. } | GitHubError::Unavailable { .. } | GitHubError::Unauthorized { .. } => {
                Self::Outage
            }
            _ => Self::Try,
        }
    }

    /// When to read again if only a read can tell how the send ended, and no try is the last one.
    fn next_look(self, now: Timestamp) -> Timestamp {
        match self {
            Self::Until(until) => until.max(now),
            Self::Outage | Self::Try => now + LOOK_RETRY,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Event {
    /// A stored send was found whose end is unknown.
    Died,
    Done(Option<WrittenComment>),
    Drafted(Draft),
    DraftGone(String),
    /// The draft was deleted because it would have had to wait.
    Withdrawn {
        hold: Hold,
        reason: String,
    },
    /// Nothing was sent, or GitHub has certainly not carried it out; it may be tried again.
    NotSent {
        hold: Hold,
        reason: String,
    },
    Refused(String),
    /// GitHub says that the thing to delete does not exist, or that we cannot see it.
    NotThere(String),
    NoAnswer(String),
    /// The state could not be read from GitHub.
    LookFailed {
        hold: Hold,
        reason: String,
    },
    ItemGone(Verdict),
    /// Our own comments with the entry's marker, oldest first.
    SawComments(Vec<WrittenComment>),
    /// Our own comment with the entry's marker and another text.
    SawOutdated(WrittenComment),
    SawAbsent,
    /// The wanted state is already there.
    SawThere {
        objected: bool,
    },
    SawSubmitted(Draft),
    /// The submitted review and its comments; whether none of the expected comments is missing.
    SawReview {
        review: WrittenReview,
        is_whole: bool,
    },
    /// The wanted state cannot be reached any more.
    SawAgainst(String),
    TwinGone,
    TwinStays,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Move {
    On(Progress),
    /// Continue at that time.
    Wait {
        progress: Progress,
        until: Timestamp,
        reason: Option<String>,
    },
    End(End),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum End {
    Sent(Receipt),
    Without(Verdict),
}

/// An event that cannot happen in that phase.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the outbox met {event} in the phase {phase}")]
pub struct OutOfPlace {
    event: String,
    phase: String,
}

impl Progress {
    pub(super) fn begin(shape: Shape) -> Self {
        let act = match shape {
            Shape::Comment | Shape::CommentThenSet => Act::Comment,
            Shape::Set => Act::Set,
            Shape::DraftThenSet => Act::Draft,
        };
        let (comment, draft, verdict) = (None, None, None);
        let asked = false;
        Self { act, phase: Phase::Ready, tries: 0, outage_since: None, unsure: 0, comment, draft, asked, verdict }
    }

    /// The progress that is stored right before the act is sent.
    pub(super) fn sending(self) -> Self {
        let asked = self.asked || self.act == Act::Draft;
        Self { asked, ..self.in_phase(Phase::Sending) }
    }

    /// Whether the comment exists already, with another text.
    pub(super) fn is_edit(&self) -> bool {
        self.act == Act::Comment && self.comment.is_some()
    }

    /// The next move after an event.
    pub(super) fn advance(self, shape: Shape, event: Event, now: Timestamp) -> Result<Move, OutOfPlace> {
        Ok(match (self.phase.clone(), event) {
            (Phase::Ready, Event::SawAbsent) => Move::On(self),
            (Phase::Ready, Event::SawThere { objected }) => {
                let already = self.unsure == 0;
                self.act_done(shape, None, already, objected)
            }
            (Phase::Ready, Event::SawSubmitted(draft)) => {
                let already = self.act == Act::Draft && self.unsure == 0;
                Self { draft: Some(draft), ..self }.submitted(already)
            }
            // An earlier database sent it with another text: it is edited.
            (Phase::Ready, Event::SawOutdated(found)) => Move::On(Self { comment: Some(found), ..self }),
            // An earlier database sent it.
            (Phase::Ready, Event::SawComments(found)) if !found.is_empty() => {
                self.act_done(shape, found.first().copied(), true, false)
            }
            (Phase::Ready, Event::SawAgainst(reason)) => self.refused(reason, now),
            (Phase::Ready, Event::LookFailed { hold, reason }) => self.later(hold, reason, now),
            (Phase::Ready, Event::ItemGone(verdict)) => self.give_up(verdict),
            (Phase::Ready | Phase::Sending, Event::NotSent { hold, reason }) => self.later(hold, reason, now),
            (Phase::Ready | Phase::Sending, Event::Refused(reason)) => self.refused(reason, now),

            (Phase::Sending, Event::Drafted(draft)) => {
                Move::On(Self { act: Act::Set, draft: Some(draft), tries: self.tries, ..Self::begin(shape) })
            }
            (Phase::Ready | Phase::Sending, Event::Withdrawn { hold, reason }) => {
                let (tries, outage_since) = (self.tries, self.outage_since);
                Self { tries, outage_since, ..Self::begin(shape) }.later(hold, reason, now)
            }
            (Phase::Sending, Event::DraftGone(reason)) => self.draft_again(shape, reason, now),
            (Phase::Sending, Event::NotThere(reason)) => self.refused_unless_seen(reason, now),
            (Phase::Sending, Event::Died) => self.doubt("the program ended while it was sent".to_owned(), now),
            (Phase::Sending, Event::NoAnswer(reason)) => self.doubt(reason, now),
            (Phase::Sending, Event::Done(comment)) => match comment {
                Some(known) if self.unsure > 0 && self.act == Act::Comment && !self.is_edit() => {
                    self.settle(known, 0, now)
                }
                comment => self.act_done(shape, comment, false, false),
            },

            (Phase::Doubt { absent, otherwise }, Event::SawAbsent) => self.not_found(absent, otherwise, now),
            // A lagging replica may not know a young item yet.
            (Phase::Doubt { absent, otherwise }, Event::ItemGone(verdict)) => match absent + 1 < LOOKS_IN_DOUBT {
                true => self.not_found(absent, otherwise, now),
                false => self.give_up(verdict),
            },
            (Phase::Doubt { .. }, Event::SawThere { objected }) => self.act_done(shape, None, false, objected),
            (Phase::Sending | Phase::Doubt { .. }, Event::SawSubmitted(draft)) => {
                Self { draft: Some(draft), ..self }.submitted(false)
            }
            (Phase::Doubt { .. }, Event::SawAgainst(reason)) => self.give_up(Verdict::Refuse(reason)),
            (Phase::Doubt { absent, otherwise }, Event::SawComments(found)) => match found.as_slice() {
                [] => self.not_found(absent, otherwise, now),
                [only] if self.unsure == 1 => self.act_done(shape, Some(*only), false, false),
                [oldest, ..] => self.settle(*oldest, 0, now),
            },
            (Phase::Settling { known, calm, looks }, Event::SawComments(found)) => {
                self.settling(shape, known, calm, looks, &found, now)
            }
            (Phase::Listing { already, looks }, Event::SawReview { review, is_whole }) => {
                self.listed(already, if is_whole { MOST_LOOKS } else { looks }, Some(review), now)
            }
            (Phase::Listing { already, looks }, Event::ItemGone(_)) => {
                let unread = |draft: Draft| WrittenReview {
                    id: Some(draft.review),
                    comments: Vec::new(),
                    left_out: draft.left_out,
                };
                let review = self.draft.clone().map(unread);
                self.listed(already, looks, review, now)
            }
            (
                Phase::Doubt { .. } | Phase::Settling { .. } | Phase::Listing { .. },
                Event::LookFailed { hold, reason },
            ) => Move::Wait { progress: self, until: hold.next_look(now), reason: Some(reason) },
            (Phase::Settling { known, .. }, Event::ItemGone(_)) => self.act_done(shape, Some(known), false, false),

            (Phase::Twin { keep, .. }, Event::TwinGone) => {
                let tries = self.tries + 1;
                self.settle(keep, tries, now)
            }
            (Phase::Twin { keep, .. }, Event::TwinStays) => self.act_done(shape, Some(keep), false, false),
            (Phase::Twin { .. }, Event::NotSent { hold, reason }) => {
                Move::Wait { progress: self, until: hold.next_look(now), reason: Some(reason) }
            }
            // Deleting twice is harmless: a deleted twin answers with "not found".
            (Phase::Twin { .. }, Event::NoAnswer(reason)) => {
                Move::Wait { progress: self, until: now + LOOK_GAP, reason: Some(reason) }
            }
            (phase, event) => {
                return Err(OutOfPlace { event: format!("{event:?}"), phase: format!("{phase:?}") });
            }
        })
    }

    fn in_phase(self, phase: Phase) -> Self {
        Self { phase, ..self }
    }

    /// A send that may still take effect. If it was the last one, a read still decides how it ended.
    fn doubt(self, reason: String, now: Timestamp) -> Move {
        let tries = self.tries + 1;
        let otherwise = (tries >= MOST_TRIES).then(|| Verdict::Fail(reason.clone()));
        let phase = Phase::Doubt { absent: 0, otherwise };
        let progress = Self { tries, outage_since: None, unsure: self.unsure + 1, phase, ..self };
        Move::Wait { progress, until: now + DOUBT_WAIT, reason: Some(reason) }
    }

    /// Nothing was sent this time. An earlier send may have taken effect meanwhile, so the reads start again.
    fn later(self, hold: Hold, reason: String, now: Timestamp) -> Move {
        let (progress, until, is_last) = match hold {
            // A limit is not the write's fault: it waits as long as necessary.
            Hold::Until(until) => (Self { outage_since: None, ..self }, until.max(now), false),
            Hold::Outage => {
                let since = self.outage_since.unwrap_or(now);
                let lasted = now.duration_since(since);
                let until = now + (lasted / 2).clamp(BETWEEN_TRIES.first, BETWEEN_TRIES.longest);
                (Self { outage_since: Some(since), ..self }, until, lasted >= LONGEST_OUTAGE)
            }
            Hold::Try => {
                let tries = self.tries + 1;
                (Self { tries, outage_since: None, ..self }, now + BETWEEN_TRIES.pause(tries, 0.0), tries >= MOST_TRIES)
            }
        };
        let given_up = is_last.then(|| Verdict::Fail(reason.clone()));
        if progress.unsure > 0 {
            let progress = progress.in_phase(Phase::Doubt { absent: 0, otherwise: given_up });
            return Move::Wait { progress, until, reason: Some(reason) };
        }
        match given_up {
            Some(verdict) => progress.give_up(verdict),
            None => Move::Wait { progress: progress.in_phase(Phase::Ready), until, reason: Some(reason) },
        }
    }

    fn refused(self, reason: String, now: Timestamp) -> Move {
        if self.unsure == 0 {
            return self.give_up(Verdict::Refuse(reason));
        }
        // An earlier send may have arrived anyway.
        self.refused_unless_seen(reason, now)
    }

    fn refused_unless_seen(self, reason: String, now: Timestamp) -> Move {
        let verdict = Verdict::Refuse(reason.clone());
        let progress = self.in_phase(Phase::Doubt { absent: 0, otherwise: Some(verdict) });
        Move::Wait { progress, until: now + LOOK_GAP, reason: Some(reason) }
    }

    fn not_found(self, absent: u8, otherwise: Option<Verdict>, now: Timestamp) -> Move {
        let absent = absent + 1;
        if absent < LOOKS_IN_DOUBT {
            let progress = self.in_phase(Phase::Doubt { absent, otherwise });
            return Move::Wait { progress, until: now + LOOK_GAP, reason: None };
        }
        match otherwise {
            Some(verdict) => self.give_up(verdict),
            None => Move::On(self.in_phase(Phase::Ready)),
        }
    }

    /// From here on the tries count deletions of twins.
    fn settle(self, known: WrittenComment, tries: u32, now: Timestamp) -> Move {
        let progress = Self { tries, phase: Phase::Settling { known, calm: 0, looks: 0 }, ..self };
        Move::Wait { progress, until: now + LOOK_GAP, reason: None }
    }

    fn settling(
        self,
        shape: Shape,
        known: WrittenComment,
        calm: u8,
        looks: u8,
        found: &[WrittenComment],
        now: Timestamp,
    ) -> Move {
        if let [keep, .., twin] = found {
            // GitHub says each time that it is deleted and still shows it: two are better than none.
            if self.tries >= MOST_TRIES {
                return self.act_done(shape, Some(*keep), false, false);
            }
            return Move::On(self.in_phase(Phase::Twin { keep: *keep, twin: *twin }));
        }
        // A listing without the comment we know of lags, and may hide a twin as well.
        let shown = found.first().is_some_and(|only| only.id == known.id);
        let (calm, looks) = (if shown { calm + 1 } else { 0 }, looks + 1);
        if calm >= CALM_LOOKS || looks >= MOST_LOOKS {
            let comment = found.first().copied().unwrap_or(known);
            return self.act_done(shape, Some(comment), false, false);
        }
        let progress = self.in_phase(Phase::Settling { known, calm, looks });
        Move::Wait { progress, until: now + LOOK_GAP, reason: None }
    }

    fn act_done(self, shape: Shape, comment: Option<WrittenComment>, already: bool, objected: bool) -> Move {
        let comment = comment.or(self.comment);
        match (self.act, shape) {
            (Act::Comment, Shape::CommentThenSet) => Move::On(Self { act: Act::Set, comment, ..Self::begin(shape) }),
            (Act::Set, Shape::DraftThenSet) => self.submitted(already),
            (Act::Correct, _) => {
                let unknown = || Verdict::Refuse("the change did not come about".to_owned());
                Move::End(End::Without(self.verdict.unwrap_or_else(unknown)))
            }
            _ => Move::End(End::Sent(Receipt { comment, already, objected, review: None })),
        }
    }

    fn submitted(self, already: bool) -> Move {
        Move::On(Self { act: Act::Set, ..self }.in_phase(Phase::Listing { already, looks: 0 }))
    }

    /// Ends with the comments that were read, unless another read may help: a comment that never appears was deleted by
    /// a person.
    fn listed(self, already: bool, looks: u8, review: Option<WrittenReview>, now: Timestamp) -> Move {
        let looks = looks + 1;
        if looks >= MOST_LOOKS {
            return Move::End(End::Sent(Receipt { already, review, ..Receipt::default() }));
        }
        let progress = self.in_phase(Phase::Listing { already, looks });
        Move::Wait { progress, until: now + LOOK_GAP, reason: None }
    }

    /// A draft that does not exist any more was never submitted: GitHub's answer to the submission says so.
    fn draft_again(self, shape: Shape, reason: String, now: Timestamp) -> Move {
        let tries = self.tries + 1;
        if tries >= MOST_TRIES {
            return Move::End(End::Without(Verdict::Fail(reason)));
        }
        let progress = Self { tries, ..Self::begin(shape) };
        Move::Wait { progress, until: now + BETWEEN_TRIES.pause(tries, 0.0), reason: Some(reason) }
    }

    /// Ends without having sent it; first a comment that says otherwise is corrected, and a draft is deleted.
    fn give_up(self, verdict: Verdict) -> Move {
        let left_behind = self.comment.is_some() || self.draft.is_some();
        match (self.act, left_behind) {
            (Act::Set, true) | (Act::Draft, _) if left_behind || self.asked => Move::On(Self {
                act: Act::Correct,
                phase: Phase::Ready,
                tries: 0,
                outage_since: None,
                unsure: 0,
                verdict: Some(verdict),
                ..self
            }),
            // Nobody sees a draft that stays behind, and our next review deletes it.
            (Act::Correct, _) if self.comment.is_none() => Move::End(End::Without(self.verdict.unwrap_or(verdict))),
            (Act::Correct, _) => {
                Move::End(End::Without(self.verdict.map_or(verdict.clone(), |first| first.with_note(&verdict))))
            }
            _ => Move::End(End::Without(verdict)),
        }
    }
}

impl Verdict {
    pub(super) fn reason(&self) -> &str {
        match self {
            Self::Refuse(reason) | Self::Fail(reason) => reason,
        }
    }

    fn with_note(self, note: &Self) -> Self {
        let add = |why: String| EndReason { why: &why, uncorrected: Some(note.reason()) }.to_string();
        match self {
            Self::Refuse(reason) => Self::Refuse(add(reason)),
            Self::Fail(reason) => Self::Fail(add(reason)),
        }
    }
}
