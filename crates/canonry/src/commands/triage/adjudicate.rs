//! `adjudicate`: a person reads pairs of items, one key each.

use std::collections::BTreeMap;
use std::io::{BufRead as _, IsTerminal as _, Write as _};

use anyhow::{Context as _, Result};
use canonry_domain::{
    AdjudicatedAnswer, AdjudicationSummary, Boilerplate, Item, ItemNumber, ItemType, Verdict, reading_order,
};
use canonry_review::output::columns::{columns, wrapped};
use canonry_store::{Adjudication, AdjudicationKind, Repo, Store};
use canonry_triage::stored_boilerplate;
use serde_json::json;

use crate::output::numbers::{percent, thousands};
use crate::output::printable::one_line;
use crate::output::report::Report;
use crate::output::tables::{counted, table};
use crate::output::terminal::width;
use crate::session::context::Context;
use crate::session::database::DatabaseOption;
use crate::session::known_repo::RepoOption;

/// Read pairs of items and say which are the same.
#[derive(Debug, clap::Args)]
#[command(
    long_about = "Read pairs of items and say which are the same.\n\n\
        First come pairs that a backtest or Canonry called duplicates and that nobody linked: only reading tells whether they \
        are right. Both texts are shown without the repository's templates, one key answers, and what Canonry said is shown \
        afterwards. A backtest counts the answers. The console has the same on its page \"Adjudicate\".",
    before_help = "Example:\n  canonry adjudicate\n  canonry adjudicate --repo octo/cat --count 50"
)]
pub(crate) struct Args {
    #[command(flatten)]
    repo: RepoOption,
    /// How many pairs are shown at most
    #[arg(long, value_name = "COUNT", default_value_t = 24, value_parser = clap::value_parser!(u16).range(1..))]
    count: u16,
    #[command(flatten)]
    database: DatabaseOption,
}

/// How many cases are drawn if none waits: the size of the console's samples.
const DRAWN: usize = 40;
/// Lines of a text that are shown before a person asks for more.
const LINES: usize = 18;
/// The minimum width of a terminal in which two texts stand side by side.
const SIDE_BY_SIDE: usize = 110;

pub(crate) async fn run(args: Args, context: &Context) -> Result<Report> {
    let store = args.database.open_known(context).await?;
    let repo = args.repo.find(&store).await?;
    let queue = waiting(&store, &repo, context).await?;
    let mut session = ReadingSession::new(&store, &repo).await?;
    let total = queue.len().min(usize::from(args.count));
    for (at, case) in (1..).zip(queue.iter().take(total)) {
        if !session.read(case, at, total, context).await? {
            break;
        }
    }
    let (answered, skipped) = (session.answered, session.skipped);
    let totals = store.judge().adjudication_totals(repo.id).await?;
    store.disconnect().await;
    let summary = AdjudicationSummary::of(&totals);
    let stats = json!({ "answered": answered, "skipped": skipped, "waiting": summary.waiting });
    let text = text(&summary, answered, queue.is_empty(), &repo.name.to_string());
    Ok(Report::new(stats, text).of(&repo.name).with("adjudication", &summary))
}

/// The cases without an answer, the most telling first. If there are none, some are drawn from Canonry's verdicts.
async fn waiting(store: &Store, repo: &Repo, context: &Context) -> Result<Vec<Adjudication>> {
    let mut waiting = store.judge().waiting_adjudications(repo.id).await?;
    if waiting.is_empty() {
        let samples = store.judge().adjudication_samples(repo.id, None, 100).await?;
        let seed = samples.iter().map(|sample| sample.seed).max().unwrap_or(0).saturating_add(1);
        for kind in [AdjudicationKind::Triage, AdjudicationKind::Edge] {
            store.judge().draw_adjudications(repo.id, kind, seed, DRAWN, context.now).await?;
        }
        waiting = store.judge().waiting_adjudications(repo.id).await?;
    }
    let mut linked: BTreeMap<(ItemType, ItemNumber), Option<ItemNumber>> = BTreeMap::new();
    for item_type in ItemType::ALL {
        let of_type = waiting.iter().map(|one| one.case).filter(|case| case.item_type == *item_type);
        let mut numbers: Vec<ItemNumber> = of_type.flat_map(|case| [case.number, case.target]).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let items = store.corpus().items_by_number(repo.id, *item_type, &numbers).await?;
        linked.extend(items.into_iter().map(|item| ((*item_type, item.number), item.duplicate_of)));
    }
    let is_linked = |item_type, one, other| linked.get(&(item_type, one)).copied().flatten() == Some(other);
    let cases: Vec<_> = waiting
        .iter()
        .map(|one| {
            let case = one.case;
            let (item_type, number, target) = (case.item_type, case.number, case.target);
            (case, is_linked(item_type, number, target) || is_linked(item_type, target, number))
        })
        .collect();
    let answered = store.judge().adjudication_totals(repo.id).await?;
    let order = reading_order(&cases, &answered, repo.id.get());
    Ok(order.into_iter().map(|index| waiting[index].clone()).collect())
}

/// What a person pressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Key {
    Answer(AdjudicatedAnswer),
    More,
    Skip,
    Quit,
}

const KEYS: &str = "[s]ame  [d]ifferent  [c]an't tell  [m]ore text  [k] skip  [q]uit";

impl Key {
    fn of(character: char) -> Option<Self> {
        Some(match character.to_ascii_lowercase() {
            's' | 'y' => Self::Answer(AdjudicatedAnswer::Same),
            'd' | 'n' => Self::Answer(AdjudicatedAnswer::Different),
            'c' | 'u' | '?' => Self::Answer(AdjudicatedAnswer::Unsure),
            'm' => Self::More,
            'k' | ' ' => Self::Skip,
            // Control-C and Control-D in a terminal that passes them on.
            'q' | '\u{1b}' | '\u{3}' | '\u{4}' => Self::Quit,
            _ => return None,
        })
    }
}

struct ReadingSession<'a> {
    store: &'a Store,
    repo: &'a Repo,
    boilerplate: BTreeMap<ItemType, Boilerplate>,
    answered: u64,
    skipped: u64,
}

impl<'a> ReadingSession<'a> {
    async fn new(store: &'a Store, repo: &'a Repo) -> Result<Self> {
        let mut boilerplate = BTreeMap::new();
        for item_type in ItemType::ALL {
            boilerplate.insert(*item_type, stored_boilerplate(store, repo, *item_type).await?);
        }
        Ok(Self { store, repo, boilerplate, answered: 0, skipped: 0 })
    }

    /// Shows a case and stores the answer. `false` if the person wants to stop.
    async fn read(&mut self, case: &Adjudication, at: usize, total: usize, context: &Context) -> Result<bool> {
        let pair = &case.case;
        let numbers = [pair.target, pair.number];
        let items = self.store.corpus().items_by_number(self.repo.id, pair.item_type, &numbers).await?;
        let own = &self.boilerplate[&pair.item_type];
        let side = |number| items.iter().find(|item| item.number == number).map(|item| own.own(item));
        let [Some(earlier), Some(later)] = numbers.map(side) else {
            self.skipped += 1;
            return Ok(true);
        };
        let mut lines = LINES;
        loop {
            let shown = pair_shown(&earlier, &later, lines, width().unwrap_or(SIDE_BY_SIDE - 1));
            say(&format!("\n{} {at} of {total}\n{shown}\n{KEYS}: ", pair.item_type.in_words()))?;
            match next_key()? {
                Key::More => lines = usize::MAX - 1,
                Key::Skip => {
                    self.skipped += 1;
                    return Ok(true);
                }
                Key::Quit => return Ok(false),
                Key::Answer(answer) => {
                    let stored =
                        self.store.judge().adjudicate(self.repo.id, case.id, answer, None, context.now).await?;
                    self.answered += u64::from(stored);
                    let said = match pair.verdict {
                        Verdict::Duplicate => "a duplicate",
                        Verdict::MaybeDuplicate => "maybe a duplicate",
                        Verdict::NotDuplicate => "not a duplicate",
                    };
                    let outcome = if stored { "" } else { " Somebody else answered this pair; their answer stays." };
                    say(&format!("{answer}. Canonry said: {said}.{outcome}\n"))?;
                    return Ok(true);
                }
            }
        }
    }
}

fn say(text: &str) -> Result<()> {
    let mut stderr = anstream::stderr().lock();
    write!(stderr, "{text}")?;
    Ok(stderr.flush()?)
}

/// The next key that means something: one key in a terminal, one line of a pipe. The end of the input quits.
fn next_key() -> Result<Key> {
    let is_terminal = std::io::stdin().is_terminal();
    loop {
        let character = if is_terminal {
            Some(console::Term::stderr().read_char().context("the key cannot be read")?)
        } else {
            let mut line = String::new();
            match std::io::stdin().lock().read_line(&mut line)? {
                0 => return Ok(Key::Quit),
                _ => line.trim().chars().next(),
            }
        };
        if let Some(key) = character.and_then(Key::of) {
            return Ok(key);
        }
        say(&format!("\n{KEYS}: "))?;
    }
}

/// Both texts side by side, or one after another where they do not fit.
fn pair_shown(earlier: &Item, later: &Item, lines: usize, width: usize) -> String {
    if width < SIDE_BY_SIDE {
        let shown = |item| side(item, width, lines).join("\n");
        return format!("{}\n\n{}", shown(earlier), shown(later));
    }
    let half = (width - 3) / 2;
    let (left, right) = (side(earlier, half, lines), side(later, half, lines));
    let row = |at: usize| {
        let [left, right] = [&left, &right].map(|side| side.get(at).map_or("", String::as_str));
        format!("{left}{} | {right}", " ".repeat(half.saturating_sub(columns(left)))).trim_end().to_owned()
    };
    (0..left.len().max(right.len())).map(row).collect::<Vec<_>>().join("\n")
}

/// The title, a rule and the beginning of the text.
fn side(item: &Item, width: usize, lines: usize) -> Vec<String> {
    let heading = wrapped(&format!("#{} {}", item.number, one_line(&item.title)), width, usize::MAX - 1);
    let body = match item.body.trim() {
        "" => vec!["(no text of its own)".to_owned()],
        body => wrapped(body, width, lines),
    };
    heading.into_iter().chain(["-".repeat(width.min(40))]).chain(body).collect()
}

fn text(summary: &AdjudicationSummary, answered: u64, nothing: bool, repo: &str) -> String {
    if nothing {
        return format!(
            "No pair waits to be read. Run `canonry backtest --repo {repo}`, or let Canonry triage new items first.\n"
        );
    }
    let mut text = format!("Read {}; {} wait.\n", counted(answered, "pair"), thousands(summary.waiting));
    if !summary.verdicts.is_empty() {
        let mut shown = table(["Canonry said", "read", "right", "can't tell"]);
        for one in &summary.verdicts {
            let (all, interval) = (one.share.all(), one.share.interval());
            let right = one.share.value().map_or_else(String::new, |value| {
                format!("{} ({}–{})", percent(value), percent(interval.low), percent(interval.high))
            });
            shown.add_row([one.verdict.to_string().replace('_', " "), thousands(all), right, thousands(one.unsure)]);
        }
        text += &format!("\n{}\n", shown.with_numbers_from(1));
    }
    text + &format!("\nNext: canonry backtest --repo {repo}, which counts links and readings together\n")
}

#[cfg(test)]
mod tests {
    use canonry_domain::{AdjudicatedAnswer, ItemNumber, ItemRecord, ItemType, merge_record};

    use super::{Key, pair_shown};

    fn item(number: i64, title: &str, body: &str) -> canonry_domain::Item {
        let number = ItemNumber::new(number).expect("positive");
        let record = ItemRecord { body: Some(body.to_owned()), ..ItemRecord::new(ItemType::Issue, number, title) };
        merge_record(None, record).item
    }

    #[test]
    fn texts_stand_side_by_side_where_they_fit() {
        let (one, other) = (item(1, "Export stops", "It stops.\n\nAlways."), item(2, "Export \u{1b}[31mhangs", ""));
        insta::assert_snapshot!(pair_shown(&one, &other, 18, 110), @r"
        #1 Export stops                                       | #2 Export \u{1b}[31mhangs
        ----------------------------------------              | ----------------------------------------
        It stops.                                             | (no text of its own)
                                                              |
        Always.                                               |
        ");
        insta::assert_snapshot!(pair_shown(&one, &other, 18, 80), @r"
        #1 Export stops
        ----------------------------------------
        It stops.

        Always.

        #2 Export \u{1b}[31mhangs
        ----------------------------------------
        (no text of its own)
        ");
    }

    #[test]
    fn one_key_answers() {
        assert_eq!(Key::of('S'), Some(Key::Answer(AdjudicatedAnswer::Same)));
        assert_eq!(Key::of('d'), Some(Key::Answer(AdjudicatedAnswer::Different)));
        assert_eq!(Key::of('?'), Some(Key::Answer(AdjudicatedAnswer::Unsure)));
        assert_eq!((Key::of('q'), Key::of('k'), Key::of('x')), (Some(Key::Quit), Some(Key::Skip), None));
    }
}
