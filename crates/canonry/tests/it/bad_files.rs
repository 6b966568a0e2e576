//! Files that are broken, huge or in another format: imported correctly, or refused without a partial import.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::process::{Command, Stdio};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;

use crate::place::{ITEMS, Place, Ran};

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text.as_bytes()).expect("a vector takes everything");
    encoder.finish().expect("a vector takes everything")
}

fn import(place: &Place, file: &str) -> Ran {
    place.canonry(&["import", "--repo", "octo/cat", file, "--json"])
}

/// The number of items in the store; zero if there is no repository.
fn stored(place: &Place) -> usize {
    place.canonry(&["export", "--repo", "octo/cat"]).stdout.lines().count()
}

#[test]
fn a_file_that_cannot_be_read_to_its_end_writes_nothing() {
    let place = Place::new();
    let many: String =
        (1..=5_000).map(|number| format!("{{\"number\":{number},\"title\":\"Item {number}\"}}\n")).collect();
    let packed = gzip(&many);
    place.write("good.jsonl", ITEMS);
    place.write("empty.jsonl", "");
    place.write("blank.jsonl", "\n  \n");
    place.write("truncated.jsonl.gz", &packed[..packed.len() / 2]);
    place.write("trailing.jsonl.gz", &packed[..packed.len() - 4]);
    place.write("cut.json", r#"[{"number":1,"title":"t"},{"number":2,"#);
    let utf16: Vec<u8> = ITEMS.encode_utf16().flat_map(u16::to_le_bytes).collect();
    place.write("utf16.jsonl", [&[0xff, 0xfe], utf16.as_slice()].concat());
    for file in [
        "empty.jsonl",
        "blank.jsonl",
        "truncated.jsonl.gz",
        "trailing.jsonl.gz",
        "cut.json",
        "utf16.jsonl",
        "absent.jsonl",
        "tmp",
    ] {
        // A valid file next to it is not imported either: all or nothing.
        let ran = place.canonry(&["import", "--repo", "octo/cat", "good.jsonl", file]);
        let message = ran.failed();
        assert!(message.starts_with(&format!("{file} cannot be imported: ")), "{message}");
        assert!(message.ends_with("; nothing was imported"), "{message}");
        assert_eq!(stored(&place), 0, "{file}");
    }
}

#[test]
fn a_broken_line_in_the_middle_costs_only_itself() {
    let place = Place::new();
    let mut lines: Vec<Vec<u8>> =
        (1..=2_500).map(|number| json!({"number": number, "title": "t"}).to_string().into_bytes()).collect();
    lines[1_233] = b"{\"number\":1234,\"title\":".to_vec();
    lines[1_499] = b"{\"number\":1500,\"title\":\"caf\xe9\"}".to_vec();
    place.write("items.jsonl", lines.join(&b'\n'));
    let ran = import(&place, "items.jsonl");
    let document = ran.json();
    assert_eq!(ran.exit, Some(3));
    assert_eq!(document["stats"], json!({"read": 2500, "inserted": 2498, "updated": 0, "unchanged": 0, "failed": 2}));
    assert_eq!(
        document["errors"],
        json!([
            {"file": "items.jsonl", "line": 1234, "message": "not JSON: EOF while parsing a value at column 23"},
            {"file": "items.jsonl", "line": 1500, "message": "byte 28 is not UTF-8"},
        ])
    );
    assert_eq!(stored(&place), 2_498);
}

#[test]
fn numbers_out_of_range_cost_only_their_line() {
    let place = Place::new();
    let lines = [
        r#"{"number":9223372036854775807,"title":"the greatest"}"#,
        r#"{"number":9223372036854775808,"title":"t"}"#,
        r#"{"number":-1,"title":"t"}"#,
        r#"{"number":1e3,"title":"t"}"#,
        r#"{"number":1,"title":"t","comments":99999999999}"#,
        r#"{"number":2,"title":"t","created_at":"2026-02-30T00:00:00Z"}"#,
        r#"{"number":3,"title":"t","id":9007199254740993}"#,
    ];
    place.write("items.jsonl", lines.join("\n"));
    let document = import(&place, "items.jsonl").json();
    let bad: Vec<i64> =
        document["errors"].as_array().expect("a list").iter().filter_map(|error| error["line"].as_i64()).collect();
    assert_eq!(bad, [2, 3, 4, 5, 6], "{document}");
    let id =
        place.canonry(&["show", "--repo", "octo/cat", "--number", "3", "--json"]).json()["item"]["github_id"].clone();
    assert_eq!(id, json!(9_007_199_254_740_993_i64), "no id may lose its last digit");
    place.canonry(&["show", "--repo", "octo/cat", "--number", "9223372036854775807"]).succeeded();
}

#[test]
fn every_record_bad_is_a_failure_with_the_reasons() {
    let place = Place::new();
    place.write("page.html", "<!doctype html>\n<title>Not found</title>\n");
    let ran = import(&place, "page.html");
    assert_eq!((ran.exit, ran.json()["stats"]["failed"].as_u64()), (Some(1), Some(2)), "{ran:?}");
    assert_eq!(stored(&place), 0);
}

#[test]
fn githubs_own_arrays_gzip_and_standard_input() {
    let place = Place::new();
    let page = |numbers: std::ops::Range<u32>| {
        let issues: Vec<_> = numbers
            .map(|number| {
                json!({
                    "id": 5_000_000_000_u64 + u64::from(number), "number": number, "title": format!("Issue {number}"), "body": null,
                    "state": "open", "state_reason": null, "user": {"login": "mona"}, "assignees": [], "labels": [{"name": "bug"}],
                    "comments": 0, "html_url": format!("https://github.com/octo/cat/issues/{number}"),
                    "url": format!("https://api.github.com/repos/octo/cat/issues/{number}"),
                })
            })
            .collect();
        serde_json::to_string_pretty(&issues).expect("JSON")
    };
    // `gh api --paginate` prints several arrays one after the other.
    place.write("pages.json", format!("{}\n{}", page(1..4), page(4..6)));
    let document = import(&place, "pages.json").json();
    assert_eq!(document["stats"], json!({"read": 5, "inserted": 5, "updated": 0, "unchanged": 0, "failed": 0}));
    let item = place.canonry(&["show", "--repo", "octo/cat", "--number", "4", "--json"]).json()["item"].clone();
    assert_eq!((&item["author"], &item["labels"], &item["body"]), (&json!("mona"), &json!(["bug"]), &json!("")));
    assert_eq!(item["url"], "https://github.com/octo/cat/issues/4");

    place.write("pages.json.gz", gzip(&page(1..8)));
    assert_eq!(import(&place, "pages.json.gz").json()["stats"]["inserted"], 2);

    let mut command = place.command(&["import", "--repo", "octo/cat", "-", "--json"]);
    command.stdin(File::open(place.path("pages.json.gz")).expect("just written"));
    let ran = Ran::of(command.output().expect("the program starts"));
    assert_eq!(ran.json()["stats"]["unchanged"], 7, "{ran:?}");
}

/// A single line of 100 MB, and one record of the maximum length: memory stays bounded.
#[test]
fn a_line_of_100_mb_is_refused_within_bounded_memory() {
    let place = Place::new();
    let mut file = BufWriter::new(File::create(place.path("huge.jsonl")).expect("the folder takes files"));
    let megabyte = "x".repeat(1 << 20);
    writeln!(file, r#"{{"number":1,"title":"before"}}"#).expect("written");
    file.write_all(br#"{"number":2,"title":"huge","body":""#).expect("written");
    for _ in 0..100 {
        file.write_all(megabyte.as_bytes()).expect("written");
    }
    file.write_all(b"\"}\n{\"number\":3,\"title\":\"long\",\"body\":\"").expect("written");
    for _ in 0..30 {
        file.write_all(megabyte.as_bytes()).expect("written");
    }
    file.write_all(b"\"}\n").expect("written");
    drop(file.into_inner().expect("written"));

    let mut command = place.command(&["import", "--repo", "octo/cat", "huge.jsonl", "--json"]);
    let (ran, peak) = with_peak_memory(&mut command);
    let document = ran.json();
    assert_eq!(document["stats"], json!({"read": 3, "inserted": 2, "updated": 0, "unchanged": 0, "failed": 1}));
    assert_eq!(document["errors"][0]["line"], 2);
    assert!(peak < 300, "{peak} MB");
}

/// Runs a program and returns its peak memory in MB, as Linux records it.
fn with_peak_memory(command: &mut Command) -> (Ran, u64) {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    while child.try_wait().expect("it is our child").is_none() {
        let status = std::fs::read_to_string(&status).unwrap_or_default();
        let mark = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
        let kilobytes: Option<u64> = mark.trim().strip_suffix(" kB").and_then(|number| number.parse().ok());
        peak = peak.max(kilobytes.unwrap_or_default() / 1024);
        std::thread::yield_now();
    }
    (Ran::of(child.wait_with_output().expect("it has ended")), peak)
}
