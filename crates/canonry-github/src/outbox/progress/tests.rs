//! Tests that nothing is sent twice without a read, whatever GitHub answers and wherever the program dies.

use canonry_domain::GithubId;
use jiff::Timestamp;
use proptest::prelude::{Just, Strategy, any, prop, prop_assert, prop_assert_eq, prop_oneof, proptest};

use super::{
    Act, BETWEEN_TRIES, DOUBT_WAIT, Draft, End, Event, Hold, LONGEST_OUTAGE, LOOK_GAP, LOOKS_IN_DOUBT, MOST_LOOKS,
    MOST_TRIES, Move, Phase, Progress, Receipt, Shape, Verdict, WrittenComment, WrittenReview,
};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).expect("in range")
}

fn comment(id: i64) -> WrittenComment {
    WrittenComment { id: GithubId(id), created_at: None }
}

fn draft(id: i64) -> Draft {
    Draft { review: GithubId(id), left_out: vec!["k".to_owned()] }
}

fn shown(id: i64) -> WrittenReview {
    WrittenReview { id: Some(GithubId(id)), comments: Vec::new(), left_out: vec!["k".to_owned()] }
}

fn go(progress: Progress, shape: Shape, event: Event) -> Move {
    progress.advance(shape, event, at(0)).expect("in place")
}

fn waits(step: Move) -> (Progress, i64) {
    match step {
        Move::Wait { progress, until, .. } => (progress, until.as_second() - at(0).as_second()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_comment_in_doubt_is_looked_for_twice_after_a_minute() {
    let (doubt, wait) =
        waits(go(Progress::begin(Shape::Comment).sending(), Shape::Comment, Event::NoAnswer("x".into())));
    assert_eq!((wait, doubt.unsure), (DOUBT_WAIT.as_secs(), 1));
    let (once, wait) = waits(go(doubt.clone(), Shape::Comment, Event::SawComments(vec![])));
    assert_eq!(wait, LOOK_GAP.as_secs());
    let Move::On(ready) = go(once, Shape::Comment, Event::SawComments(vec![])) else { panic!("not ready") };
    assert_eq!((&ready.phase, ready.unsure), (&Phase::Ready, 1));
    let found = go(doubt, Shape::Comment, Event::SawComments(vec![comment(7)]));
    assert_eq!(found, Move::End(End::Sent(Receipt { comment: Some(comment(7)), ..Receipt::default() })));
    // After a second send it is not over: the first comment may still appear.
    let (settling, _) = waits(go(ready.sending(), Shape::Comment, Event::Done(Some(comment(9)))));
    let Move::On(twin) = go(settling, Shape::Comment, Event::SawComments(vec![comment(8), comment(9)])) else {
        panic!("no twin")
    };
    assert_eq!(twin.phase, Phase::Twin { keep: comment(8), twin: comment(9) });
}

#[test]
fn a_comment_with_an_outdated_text_is_edited_and_no_twin_is_looked_for() {
    let shape = Shape::Comment;
    let Move::On(edit) = go(Progress::begin(shape), shape, Event::SawOutdated(comment(7))) else { panic!("no edit") };
    assert!(edit.is_edit() && edit.phase == Phase::Ready, "{edit:?}");
    let sent = Move::End(End::Sent(Receipt { comment: Some(comment(7)), ..Receipt::default() }));
    assert_eq!(go(edit.clone().sending(), shape, Event::Done(Some(comment(7)))), sent);
    let (doubt, _) = waits(go(edit.sending(), shape, Event::NoAnswer("x".into())));
    assert_eq!(go(doubt.clone(), shape, Event::SawThere { objected: false }), sent);
    let (once, _) = waits(go(doubt, shape, Event::SawAbsent));
    let Move::On(again) = go(once, shape, Event::SawAbsent) else { panic!("not ready") };
    assert_eq!(go(again.sending(), shape, Event::Done(Some(comment(7)))), sent);
}

#[test]
fn a_refused_close_corrects_its_comment() {
    let shape = Shape::CommentThenSet;
    let Move::On(set) = go(Progress::begin(shape).sending(), shape, Event::Done(Some(comment(1)))) else {
        panic!("the close follows")
    };
    let Move::On(correct) = go(set.sending(), shape, Event::Refused("no".into())) else {
        panic!("a correction follows")
    };
    assert_eq!((correct.act, &correct.phase), (Act::Correct, &Phase::Ready));
    let end = go(correct.clone().sending(), shape, Event::Done(Some(comment(1))));
    assert_eq!(end, Move::End(End::Without(Verdict::Refuse("no".into()))));
    let end = go(correct, shape, Event::SawAgainst("it is gone".into()));
    let Move::End(End::Without(Verdict::Refuse(reason))) = end else { panic!("{end:?}") };
    assert_eq!(reason, "no; its comment could not be corrected: it is gone");
}

#[test]
fn a_draft_is_submitted_once_and_then_read() {
    let shape = Shape::DraftThenSet;
    let begun = Progress::begin(shape);
    assert_eq!(begun.act, Act::Draft);
    let Move::On(set) = go(begun.sending(), shape, Event::Drafted(draft(5))) else { panic!("no draft") };
    assert_eq!((set.act, &set.phase, &set.draft), (Act::Set, &Phase::Ready, &Some(draft(5))));
    let Move::On(listing) = go(set.clone().sending(), shape, Event::Done(None)) else { panic!("not submitted") };
    let (mut listing, mut looks) = (listing, 1);
    // A missing comment is waited for, but not for ever.
    let end = loop {
        match go(listing, shape, Event::SawReview { review: shown(5), is_whole: false }) {
            Move::Wait { progress, .. } => (listing, looks) = (progress, looks + 1),
            end => break end,
        }
    };
    assert_eq!(looks, MOST_LOOKS);
    assert_eq!(end, Move::End(End::Sent(Receipt { review: Some(shown(5)), ..Receipt::default() })));
    // The draft does not exist any more: another one is created, a few times.
    let (mut again, mut drafts) = (set.clone(), 0);
    let end = loop {
        match go(again.sending(), shape, Event::DraftGone("404".into())) {
            Move::Wait { progress, .. } => {
                assert_eq!((progress.act, &progress.draft), (Act::Draft, &None));
                let Move::On(set) = go(progress.sending(), shape, Event::Drafted(draft(6))) else { panic!("no draft") };
                (again, drafts) = (set, drafts + 1);
            }
            end => break end,
        }
    };
    assert_eq!((drafts, end), (MOST_TRIES - 1, Move::End(End::Without(Verdict::Fail("404".into())))));
    // Refused before it is visible: the draft is deleted, and GitHub's message stays.
    let Move::On(correct) = go(set.sending(), shape, Event::Refused("403".into())) else { panic!("it stays") };
    assert_eq!(correct.act, Act::Correct);
    // Unless GitHub says that it is no longer a draft.
    let Move::On(listing) = go(correct.clone().sending(), shape, Event::SawSubmitted(draft(5))) else { panic!("lost") };
    assert_eq!((listing.act, &listing.phase), (Act::Set, &Phase::Listing { already: false, looks: 0 }));
    let end = go(correct.sending(), shape, Event::Refused("403 again".into()));
    assert_eq!(end, Move::End(End::Without(Verdict::Refuse("403".into()))));
}

#[test]
fn a_draft_neither_waits_nor_stays_behind() {
    let shape = Shape::DraftThenSet;
    // Refused when nothing was sent: there is nothing to delete.
    let end = go(Progress::begin(shape), shape, Event::Refused("closed".into()));
    assert_eq!(end, Move::End(End::Without(Verdict::Refuse("closed".into()))));
    // The answer was lost, and it is refused now: whatever was created is searched for and deleted.
    let lost = Event::NotSent { hold: Hold::Try, reason: "no answer".into() };
    let (again, _) = waits(go(Progress::begin(shape).sending(), shape, lost));
    let Move::On(correct) = go(again, shape, Event::Refused("closed".into())) else { panic!("it stays") };
    assert_eq!((correct.act, &correct.phase, &correct.draft), (Act::Correct, &Phase::Ready, &None));
    let end = go(correct.clone().sending(), shape, Event::Done(None));
    assert_eq!(end, Move::End(End::Without(Verdict::Refuse("closed".into()))));
    let end = go(correct.sending(), shape, Event::Refused("403".into()));
    assert_eq!(end, Move::End(End::Without(Verdict::Refuse("closed".into()))));
    // It has to wait before it is visible: then the draft is created again.
    let Move::On(set) = go(Progress::begin(shape).sending(), shape, Event::Drafted(draft(5))) else { panic!("none") };
    let (waiting, wait) = waits(go(set, shape, Event::Withdrawn { hold: Hold::Until(at(300)), reason: "p".into() }));
    assert_eq!((waiting, wait), (Progress::begin(shape), 300));
}

/// Simulates an outage to its end. Returns the time of each try, and the end.
fn through_an_outage(mut progress: Progress, shape: Shape) -> (Vec<i64>, Move) {
    let (mut now, mut tried) = (0, Vec::new());
    for _ in 0..1_000 {
        tried.push(now);
        let event = match progress.phase {
            Phase::Ready => Event::NotSent { hold: Hold::Outage, reason: "out of reach".into() },
            _ => Event::SawComments(vec![]),
        };
        match progress.advance(shape, event, at(now)).expect("in place") {
            Move::Wait { progress: next, until, .. } => (progress, now) = (next, until.as_second() - at(0).as_second()),
            Move::On(next) if next.act != Act::Correct => progress = next,
            end => return (tried, end),
        }
        assert_eq!(progress.tries, 0, "an outage is no try");
    }
    panic!("no end: {progress:?}");
}

#[test]
fn an_outage_is_waited_for_and_given_up_after_days() {
    let (tried, end) = through_an_outage(Progress::begin(Shape::Comment), Shape::Comment);
    assert_eq!(end, Move::End(End::Without(Verdict::Fail("out of reach".into()))));
    let pauses: Vec<i64> = tried.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(pauses.is_sorted() && pauses[0] == BETWEEN_TRIES.first.as_secs(), "{pauses:?}");
    assert_eq!(pauses.last(), Some(&BETWEEN_TRIES.longest.as_secs()));
    let lasted = tried.last().expect("tried");
    assert!((LONGEST_OUTAGE.as_secs()..LONGEST_OUTAGE.as_secs() + 1_800).contains(lasted), "{lasted}");
}

#[test]
fn each_outage_is_counted_by_itself_and_each_act_has_its_own() {
    let hold = |hold| Event::NotSent { hold, reason: "x".into() };
    let (out, _) = waits(go(Progress::begin(Shape::Set), Shape::Set, hold(Hold::Outage)));
    assert_eq!(out.outage_since, Some(at(0)));
    let (answered, wait) = waits(go(out.clone(), Shape::Set, hold(Hold::Until(at(300)))));
    assert_eq!((answered.outage_since, answered.tries, wait), (None, 0, 300));
    let (counted, _) = waits(go(out, Shape::Set, hold(Hold::Try)));
    assert_eq!((counted.outage_since, counted.tries), (None, 1));
    let close = Progress { act: Act::Set, comment: Some(comment(1)), ..Progress::begin(Shape::CommentThenSet) };
    let (_, end) = through_an_outage(close, Shape::CommentThenSet);
    let Move::On(correct) = end else { panic!("{end:?}") };
    assert_eq!((correct.act, correct.outage_since), (Act::Correct, None), "the correction has days of its own");
}

#[test]
fn what_was_sent_before_an_outage_is_looked_for_before_it_is_given_up() {
    let sent = Progress { unsure: 1, outage_since: Some(at(0) - LONGEST_OUTAGE), ..Progress::begin(Shape::Comment) };
    let (doubt, _) =
        waits(go(sent, Shape::Comment, Event::NotSent { hold: Hold::Outage, reason: "out of reach".into() }));
    let verdict = Verdict::Fail("out of reach".into());
    assert_eq!(doubt.phase, Phase::Doubt { absent: 0, otherwise: Some(verdict) });
    let found = go(doubt, Shape::Comment, Event::SawComments(vec![comment(7)]));
    assert_eq!(found, Move::End(End::Sent(Receipt { comment: Some(comment(7)), ..Receipt::default() })));
}

#[test]
fn events_out_of_place_are_errors() {
    let ready = Progress::begin(Shape::Set);
    assert!(ready.clone().advance(Shape::Set, Event::TwinGone, at(0)).is_err());
    assert!(ready.advance(Shape::Set, Event::Died, at(0)).is_err());
}

#[test]
fn progress_survives_being_stored() {
    let verdict = Some(Verdict::Fail("x".into()));
    for phase in [
        Phase::Ready,
        Phase::Sending,
        Phase::Doubt { absent: 1, otherwise: verdict.clone() },
        Phase::Settling { known: comment(1), calm: 1, looks: 2 },
        Phase::Twin { keep: comment(1), twin: comment(2) },
        Phase::Listing { already: true, looks: 3 },
    ] {
        let (comment, draft) = (Some(comment(3)), Some(draft(4)));
        let progress = Progress { phase, comment, draft, verdict: verdict.clone(), ..Progress::begin(Shape::Set) };
        let stored = serde_json::to_string(&progress).expect("plain data");
        assert_eq!(serde_json::from_str::<Progress>(&stored).expect("reads"), progress, "{stored}");
    }
}

/// What the outside world does next, in any phase; a fate that is impossible in a phase becomes the nearest possible
/// one.
#[derive(Debug, Clone)]
enum Fate {
    Die,
    Success,
    NotSent(u8),
    Refused,
    NotThere,
    NoAnswer,
    LookFails(u8),
    Gone,
    Absent,
    There(u8),
    Against,
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        2 => Just(Fate::Die),
        4 => Just(Fate::Success),
        2 => (0u8..3).prop_map(Fate::NotSent),
        1 => Just(Fate::Refused),
        1 => Just(Fate::NotThere),
        4 => Just(Fate::NoAnswer),
        2 => (0u8..3).prop_map(Fate::LookFails),
        1 => Just(Fate::Gone),
        5 => Just(Fate::Absent),
        2 => (1u8..4).prop_map(Fate::There),
        1 => Just(Fate::Against),
    ]
}

fn shape() -> impl Strategy<Value = Shape> {
    prop_oneof![Just(Shape::Comment), Just(Shape::Set), Just(Shape::CommentThenSet), Just(Shape::DraftThenSet)]
}

/// A simulated driver: it keeps what the database would keep, and counts.
struct Simulation {
    shape: Shape,
    progress: Progress,
    now: i64,
    /// Reads that found nothing since something of this act may have arrived.
    looks: u8,
    sends: u32,
}

impl Simulation {
    fn event(&mut self, fate: &Fate) -> Result<Option<Event>, String> {
        let hold = |kind: u8| [Hold::Try, Hold::Outage, Hold::Until(at(self.now + 300))][usize::from(kind)];
        let comments = |count: u8| Event::SawComments((1..=i64::from(count)).map(comment).collect());
        let is_comment = self.progress.act == Act::Comment;
        let is_draft = self.progress.act == Act::Draft;
        let is_review = self.shape == Shape::DraftThenSet && self.progress.act != Act::Correct;
        Ok(Some(match &self.progress.phase {
            Phase::Ready => match fate {
                // Dying before anything is stored changes nothing.
                Fate::Die => return Ok(None),
                Fate::There(_) if is_draft => Event::SawSubmitted(draft(1)),
                Fate::There(_) if !is_comment && !is_review => Event::SawThere { objected: false },
                Fate::Against if !is_comment && !is_review => Event::SawAgainst("against".into()),
                Fate::LookFails(kind) => Event::LookFailed { hold: hold(*kind), reason: "x".into() },
                Fate::Gone => Event::ItemGone(Verdict::Refuse("gone".into())),
                fate => {
                    if self.progress.unsure > 0 && self.looks < LOOKS_IN_DOUBT && !is_draft {
                        return Err(format!("sent again after {} looks: {:?}", self.looks, self.progress));
                    }
                    self.sends += 1;
                    self.progress = self.progress.clone().sending();
                    match fate {
                        Fate::Success if is_draft => Event::Drafted(draft(i64::from(self.sends))),
                        Fate::NotThere if is_review && !is_draft => Event::DraftGone("gone".into()),
                        Fate::NoAnswer if is_draft => Event::NotSent { hold: Hold::Try, reason: "none".into() },
                        Fate::NotSent(kind @ 1..) if is_review && !is_draft => {
                            Event::Withdrawn { hold: hold(*kind), reason: "x".into() }
                        }
                        Fate::Success => Event::Done(is_comment.then(|| comment(i64::from(self.sends) + 100))),
                        Fate::NotSent(kind) => Event::NotSent { hold: hold(*kind), reason: "x".into() },
                        Fate::Refused => Event::Refused("no".into()),
                        Fate::NotThere if !is_comment && !is_review => Event::NotThere("not there".into()),
                        _ => {
                            self.looks = 0;
                            return Ok(Some(Event::NoAnswer("none".into())));
                        }
                    }
                }
            },
            Phase::Sending => {
                self.looks = 0;
                Event::Died
            }
            Phase::Doubt { .. } | Phase::Settling { .. } => {
                let settling = matches!(self.progress.phase, Phase::Settling { .. });
                match fate {
                    Fate::Die => return Ok(None),
                    Fate::LookFails(kind) => Event::LookFailed { hold: hold(*kind), reason: "x".into() },
                    Fate::Gone => {
                        self.looks = self.looks.saturating_add(1);
                        Event::ItemGone(Verdict::Refuse("gone".into()))
                    }
                    Fate::There(count) if is_comment => comments(*count),
                    Fate::There(_) if is_review => Event::SawSubmitted(self.progress.draft.clone().unwrap_or(draft(1))),
                    Fate::There(count) => Event::SawThere { objected: *count > 1 },
                    Fate::Against if !is_comment && !is_review => Event::SawAgainst("against".into()),
                    _ if settling => comments(1),
                    _ => {
                        self.looks = self.looks.saturating_add(1);
                        if is_comment { comments(0) } else { Event::SawAbsent }
                    }
                }
            }
            Phase::Listing { .. } => match fate {
                Fate::Die => return Ok(None),
                Fate::LookFails(kind) => Event::LookFailed { hold: hold(*kind), reason: "x".into() },
                Fate::Gone => Event::ItemGone(Verdict::Refuse("gone".into())),
                fate => Event::SawReview { review: shown(1), is_whole: !matches!(fate, Fate::Absent) },
            },
            Phase::Twin { .. } => match fate {
                Fate::Die => return Ok(None),
                Fate::NotSent(kind) => Event::NotSent { hold: hold(*kind), reason: "x".into() },
                Fate::NoAnswer => Event::NoAnswer("none".into()),
                Fate::Refused => Event::TwinStays,
                _ => Event::TwinGone,
            },
        }))
    }
}

proptest! {
    #[test]
    fn ends_or_stays_pending_and_never_sends_blindly(
        shape in shape(),
        fates in prop::collection::vec((fate(), any::<bool>()), 1..120),
    ) {
        let mut simulation = Simulation { shape, progress: Progress::begin(shape), now: 0, looks: 0, sends: 0 };
        let mut end = None;
        for (fate, dies_while_sending) in fates {
            let event = simulation.event(&fate);
            prop_assert!(event.is_ok(), "{event:?}");
            let Ok(Some(mut event)) = event else { continue };
            if dies_while_sending && simulation.progress.phase == Phase::Sending {
                // Killed between GitHub's answer and the store: only what was stored before is left.
                simulation.looks = 0;
                event = Event::Died;
            }
            let act = simulation.progress.act;
            let step = simulation.progress.clone().advance(simulation.shape, event, at(simulation.now));
            prop_assert!(step.is_ok(), "{step:?}");
            match step.expect("checked") {
                Move::On(next) => simulation.progress = next,
                Move::Wait { progress, until, .. } => {
                    prop_assert!(until >= at(simulation.now));
                    simulation.now = until.as_second() - at(0).as_second();
                    simulation.progress = progress;
                }
                Move::End(reached) => {
                    end = Some(reached);
                    break;
                }
            }
            prop_assert!(simulation.progress.tries <= MOST_TRIES);
            if simulation.progress.act != act {
                let phase = &simulation.progress.phase;
                prop_assert!(matches!(phase, Phase::Ready | Phase::Listing { .. }), "{phase:?}");
                simulation.looks = 0;
            }
            // A restart has only what is stored.
            let stored = serde_json::to_value(&simulation.progress).expect("plain data");
            simulation.progress = serde_json::from_value(stored).expect("reads");
        }
        if let Some(End::Sent(receipt)) = end {
            prop_assert!(receipt.already || simulation.sends > 0);
            prop_assert_eq!(receipt.review.is_some(), shape == Shape::DraftThenSet);
            prop_assert_eq!(receipt.comment.is_some(), matches!(shape, Shape::Comment | Shape::CommentThenSet));
        }
    }

    #[test]
    fn a_world_that_goes_well_from_some_moment_on_ends_it(
        shape in shape(),
        fates in prop::collection::vec(fate(), 0..60),
    ) {
        let mut simulation = Simulation { shape, progress: Progress::begin(shape), now: 0, looks: 0, sends: 0 };
        let well = std::iter::repeat_n(Fate::Success, 40);
        let mut ended = false;
        for fate in fates.into_iter().chain(well) {
            let Ok(Some(event)) = simulation.event(&fate) else { continue };
            match simulation.progress.clone().advance(shape, event, at(simulation.now)).expect("in place") {
                Move::On(next) => simulation.progress = next,
                Move::Wait { progress, .. } => simulation.progress = progress,
                Move::End(_) => {
                    ended = true;
                    break;
                }
            }
        }
        prop_assert!(ended, "{:?}", simulation.progress);
    }
}
