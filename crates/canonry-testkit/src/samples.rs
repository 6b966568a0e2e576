//! Three invented repositories in the import format, with their true duplicates, and the issues of the following
//! week.

/// One sample repository: its items, its true duplicates and its people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    pub repo: &'static str,
    /// Issues and pull requests as JSONL in the import format, ordered by number and by date. Pull requests also have
    /// `files`, `diff`, `draft` and `merged`.
    pub items: &'static str,
    /// One JSON object per duplicate, `{"type","number","relevant"}`: the earlier items that report the same problem,
    /// even if nobody linked them.
    pub truth: &'static str,
    /// The issues of the following week, one JSON object each: `{"key","minute","author","title","body","labels",
    /// "duplicate_of"}`. `minute` counts from the beginning of that week, `key` is a name for code that refers to the
    /// issue, and `duplicate_of` is the truth: the number of the first report of the same problem, or `null`.
    pub week: &'static str,
    pub maintainers: &'static [&'static str],
    pub bots: &'static [&'static str],
}

/// A local-first sync engine in Rust and TypeScript, `tidepool/tidepool`.
pub const TIDEPOOL: Sample = Sample {
    repo: "tidepool/tidepool",
    items: include_str!("../samples/tidepool/items.jsonl"),
    truth: include_str!("../samples/tidepool/truth.jsonl"),
    week: include_str!("../samples/tidepool/week.jsonl"),
    maintainers: &["mirela-k", "jonasbrandt", "sadeo", "hwright-t"],
    bots: &["tidepool-bot[bot]", "dependabot[bot]"],
};

/// A note editor for desktop and phones, `quillnote/quillnote`. Since issue 30 its users fill in a form, and some send it
/// unfilled.
pub const QUILLNOTE: Sample = Sample {
    repo: "quillnote/quillnote",
    items: include_str!("../samples/quillnote/items.jsonl"),
    truth: include_str!("../samples/quillnote/truth.jsonl"),
    week: include_str!("../samples/quillnote/week.jsonl"),
    maintainers: &["annikav", "teodor-lind", "pguerra"],
    bots: &["quill-ci[bot]", "dependabot[bot]"],
};

/// A table viewer for the terminal, in Rust, `brindle/brindle`. Its crash reporter fills in titles and traces, so
/// that many reports of one panic are nearly copies, as in every project with such a button.
pub const BRINDLE: Sample = Sample {
    repo: "brindle/brindle",
    items: include_str!("../samples/brindle/items.jsonl"),
    truth: include_str!("../samples/brindle/truth.jsonl"),
    week: include_str!("../samples/brindle/week.jsonl"),
    maintainers: &["ottilie", "ramonvd", "kpetrov"],
    bots: &["brindle-ci[bot]", "dependabot[bot]"],
};

pub const ALL: [Sample; 3] = [TIDEPOOL, QUILLNOTE, BRINDLE];

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::Value;

    use super::{ALL, BRINDLE, QUILLNOTE, Sample, TIDEPOOL};

    fn lines(text: &str) -> Vec<Value> {
        text.lines()
            .enumerate()
            .map(|(at, line)| serde_json::from_str(line).unwrap_or_else(|error| panic!("line {}: {error}", at + 1)))
            .collect()
    }

    fn number(item: &Value) -> u64 {
        item["number"].as_u64().expect("every line has a number")
    }

    fn text<'a>(item: &'a Value, key: &str) -> &'a str {
        item[key].as_str().unwrap_or_else(|| panic!("#{} has no {key}", number(item)))
    }

    fn by_number(sample: &Sample) -> BTreeMap<u64, Value> {
        let items = lines(sample.items);
        let count = items.len();
        let map: BTreeMap<u64, Value> = items.into_iter().map(|item| (number(&item), item)).collect();
        assert_eq!(map.len(), count, "{}: a number occurs twice", sample.repo);
        map
    }

    fn count_of(sample: &Sample, kind: &str) -> usize {
        lines(sample.items).iter().filter(|item| item["type"] == kind).count()
    }

    #[test]
    fn every_item_has_what_the_import_format_names() {
        for sample in ALL {
            for item in lines(sample.items) {
                let number = number(&item);
                assert_eq!(item["repo"], sample.repo);
                assert!(!text(&item, "title").trim().is_empty(), "#{number} has no title");
                assert!(!text(&item, "author").is_empty(), "#{number} has no author");
                text(&item, "body");
                let page = match text(&item, "type") {
                    "issue" => "issues",
                    "pr" => "pull",
                    other => panic!("#{number} has the type {other}"),
                };
                let url = format!("https://github.com/{}/{page}/{number}", sample.repo);
                assert_eq!(text(&item, "url"), url);
                for key in ["assignees", "labels"] {
                    let list = item[key].as_array().expect("assignees and labels are lists");
                    assert!(list.iter().all(Value::is_string), "#{number}: {key}");
                }
                for key in ["comments", "review_comments"] {
                    assert!(item[key].is_u64(), "#{number}: {key} is a count");
                }
            }
        }
    }

    #[test]
    fn numbers_are_unique_and_dates_follow_them() {
        for sample in ALL {
            let mut earlier = String::new();
            for (number, item) in by_number(&sample) {
                let created = text(&item, "created_at");
                assert!(created > earlier.as_str(), "#{number} is older than its predecessor");
                let updated = text(&item, "updated_at");
                assert!(updated >= created, "#{number} was updated before it was created");
                for time in [created, updated] {
                    // All times have the same format, so comparing strings compares times.
                    assert!(time.len() == 20 && time.ends_with('Z'), "#{number}: {time}");
                }
                earlier = created.to_owned();
            }
        }
    }

    #[test]
    fn closed_items_say_when_and_open_ones_do_not() {
        for sample in ALL {
            for (number, item) in by_number(&sample) {
                match text(&item, "state") {
                    "closed" => {
                        let closed = text(&item, "closed_at");
                        assert!(closed > text(&item, "created_at"), "#{number}");
                        assert!(closed <= text(&item, "updated_at"), "#{number}");
                        let reason = item["state_reason"].is_string();
                        assert_eq!(reason, item["type"] == "issue", "#{number}");
                    }
                    "open" => {
                        assert!(item["closed_at"].is_null(), "#{number}");
                        assert!(item["state_reason"].is_null(), "#{number}");
                        assert_ne!(item["merged"], true, "#{number}");
                    }
                    other => panic!("#{number} has the state {other}"),
                }
            }
        }
    }

    #[test]
    fn pull_requests_carry_files_and_a_diff() {
        for sample in ALL {
            for item in lines(sample.items) {
                if item["type"] == "issue" {
                    assert!(item.get("diff").is_none(), "#{} is an issue", number(&item));
                    continue;
                }
                let files = item["files"].as_array().expect("pull requests list files");
                assert!(!files.is_empty(), "#{} touches nothing", number(&item));
                let diff = text(&item, "diff");
                assert!(
                    diff.ends_with('\n') && diff.lines().all(|line| line.starts_with(['+', '-'])),
                    "#{}: {diff}",
                    number(&item)
                );
                assert!(item["draft"].is_boolean() && item["merged"].is_boolean());
            }
        }
    }

    #[test]
    fn truth_names_earlier_items_of_the_same_type() {
        for sample in ALL {
            let items = by_number(&sample);
            for row in lines(sample.truth) {
                let source = &items[&number(&row)];
                assert_eq!(row["type"], source["type"]);
                let relevant = row["relevant"].as_array().expect("relevant is a list");
                assert!(!relevant.is_empty(), "#{} names nothing", number(&row));
                for target in relevant {
                    let target = target.as_u64().expect("relevant holds numbers");
                    assert!(target < number(&row));
                    assert_eq!(items[&target]["type"], source["type"]);
                }
            }
        }
    }

    #[test]
    fn links_made_by_people_agree_with_the_truth_and_a_third_is_missing() {
        for sample in ALL {
            let truth: BTreeMap<u64, Value> = lines(sample.truth).into_iter().map(|row| (number(&row), row)).collect();
            let mut linked = 0;
            for (number, item) in by_number(&sample) {
                let Some(target) = item["duplicate_of"].as_u64() else {
                    assert_ne!(item["state_reason"], "duplicate", "#{number}");
                    continue;
                };
                assert_eq!(item["state"], "closed", "#{number}");
                let relevant = truth[&number]["relevant"].as_array().expect("relevant is a list");
                assert!(relevant.contains(&Value::from(target)), "#{number} of #{target}");
                linked += 1;
            }
            let unlinked = truth.len() - linked;
            // If a program files the reports, most of them stay unlinked until a maintainer has time.
            let most = if sample == BRINDLE { truth.len() * 3 / 4 } else { truth.len() / 2 };
            assert!(
                unlinked * 4 >= truth.len() && unlinked <= most,
                "{}: {unlinked} of {} duplicates are not linked",
                sample.repo,
                truth.len()
            );
        }
    }

    #[test]
    fn people_agree_with_the_file_and_take_part() {
        let files = [
            include_str!("../samples/tidepool/people.json"),
            include_str!("../samples/quillnote/people.json"),
            include_str!("../samples/brindle/people.json"),
        ];
        for (sample, file) in ALL.iter().zip(files) {
            let people: Value = serde_json::from_str(file).expect("people.json is JSON");
            assert_eq!(people["repo"], sample.repo);
            assert_eq!(people["maintainers"], Value::from(sample.maintainers.to_vec()));
            assert_eq!(people["bots"], Value::from(sample.bots.to_vec()));
            let items = lines(sample.items);
            for login in sample.maintainers.iter().chain(sample.bots) {
                assert!(items.iter().any(|item| item["author"] == *login), "{login} wrote nothing in {}", sample.repo);
            }
        }
    }

    #[test]
    fn the_week_is_in_order_and_its_truth_names_items() {
        for sample in ALL {
            let items = by_number(&sample);
            let mut earlier = 0;
            let mut keys = Vec::new();
            for line in lines(sample.week) {
                let minute = line["minute"].as_u64().expect("every line has its minute");
                assert!((earlier..7 * 24 * 60).contains(&minute), "{}: {line}", sample.repo);
                earlier = minute;
                for key in ["key", "author", "title", "body"] {
                    assert!(line[key].as_str().is_some_and(|text| !text.is_empty()), "{}: {key}", sample.repo);
                }
                assert!(line["labels"].as_array().is_some_and(|labels| labels.iter().all(Value::is_string)));
                if let Some(target) = line["duplicate_of"].as_u64() {
                    assert_eq!((&items[&target]["type"], &items[&target]["state"]), (&"issue".into(), &"open".into()));
                }
                assert!(!keys.contains(&line["key"]), "{}: {} comes twice", sample.repo, line["key"]);
                keys.push(line["key"].clone());
            }
            assert!(!keys.is_empty(), "nothing arrives in {}", sample.repo);
        }
    }

    #[test]
    fn the_samples_are_as_large_as_the_demo_needs() {
        assert_eq!((count_of(&TIDEPOOL, "issue"), count_of(&TIDEPOOL, "pr")), (178, 36));
        assert_eq!((count_of(&QUILLNOTE, "issue"), count_of(&QUILLNOTE, "pr")), (118, 25));
        assert_eq!((count_of(&BRINDLE, "issue"), count_of(&BRINDLE, "pr")), (79, 8));
    }
}
