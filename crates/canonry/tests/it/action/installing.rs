//! What the Action installs, and what it refuses to install.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex};

use sha2::{Digest as _, Sha256};

use super::{Left, TOKEN, program, run_step};
use crate::packages::{ACTION, steps, yaml};
use crate::place::Place;

const VERSION: &str = "v9.8.7";
const ARCHIVE: &str = "canonry-v9.8.7-x86_64-unknown-linux-musl.tar.gz";

/// The files of a release at a local URL, and the paths that were requested.
struct Release {
    address: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Release {
    fn offer(files: &[(&str, Vec<u8>)]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = format!("http://{}/releases", listener.local_addr().expect("bound"));
        let files: BTreeMap<String, Vec<u8>> =
            files.iter().map(|(name, bytes)| (format!("/releases/{VERSION}/{name}"), bytes.clone())).collect();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = BufReader::new(stream.expect("a connection"));
                let mut lines = Vec::new();
                while lines.last().is_none_or(|line| line != "\r\n") {
                    let mut line = String::new();
                    stream.read_line(&mut line).expect("a request");
                    lines.push(line);
                }
                let path = lines[0].split(' ').nth(1).expect("a path").to_owned();
                let (status, body) = match files.get(&path) {
                    Some(bytes) => ("200 OK", bytes.as_slice()),
                    None => ("404 Not Found", &[][..]),
                };
                noted.lock().expect("nobody panicked").push(path);
                let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
                stream.get_mut().write_all(&[head.as_bytes(), body].concat()).expect("an answer");
            }
        });
        Self { address, asked }
    }

    fn asked(&self) -> Vec<String> {
        let asked = self.asked.lock().expect("nobody panicked");
        asked.iter().map(|path| path.rsplit('/').next().expect("a last part").to_owned()).collect()
    }

    fn install(&self, place: &Place, given: &[(&str, &str)]) -> Left {
        let usual = [
            ("RELEASES", self.address.as_str()),
            ("VERSION", VERSION),
            ("OS", "Linux"),
            ("ARCH", "X64"),
            ("GH_TOKEN", TOKEN),
        ];
        run_step(place, "install", &[&usual[..], given].concat())
    }
}

/// An archive like those of a release, with a program that prints its name.
fn archive(place: &Place) -> Vec<u8> {
    let name = ARCHIVE.strip_suffix(".tar.gz").expect("an archive");
    fs::create_dir_all(place.path(name)).expect("a folder");
    let path = place.write(&format!("{name}/canonry"), "#!/bin/sh\necho installed\n");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("it is ours");
    let mut tar = Command::new("tar");
    tar.arg("-czf").arg(place.path("archive")).arg("-C").arg(place.path("")).arg(name);
    assert!(tar.status().expect("tar starts").success());
    fs::remove_dir_all(place.path(name)).expect("it is ours");
    fs::read(place.path("archive")).expect("it was packed")
}

fn sum(bytes: &[u8]) -> String {
    canonry_domain::hex_digits(Sha256::digest(bytes))
}

/// A stand-in for `gh` that records its arguments, and whether it got the token.
fn gh(place: &Place, exit: u8) -> PathBuf {
    let notes = place.path("gh-was-asked");
    program(place, "gh", &format!("echo \"$* with $GH_TOKEN\" >> '{}'; exit {exit}", notes.display()));
    notes
}

#[test]
fn an_archive_of_the_release_is_installed_once_its_sum_and_its_origin_hold() {
    let place = Place::new();
    let bytes = archive(&place);
    let sums = format!("{}  canonry-{VERSION}-aarch64-apple-darwin.tar.gz\n{}  {ARCHIVE}\n", sum(b""), sum(&bytes));
    let release = Release::offer(&[(ARCHIVE, bytes.clone()), ("SHA256SUMS", sums.into_bytes())]);
    let asked = gh(&place, 0);
    let left = release.install(&place, &[]);
    assert_eq!(left.exit, Some(0), "{}", left.outputs);
    let program = left.outputs.lines().find_map(|line| line.strip_prefix("program=")).expect("an output");
    assert_eq!(Command::new(program).output().expect("it starts").stdout, b"installed\n");
    assert!(left.outputs.contains("\nday=20"), "names the day's cache: {}", left.outputs);
    assert_eq!(release.asked(), [ARCHIVE, "SHA256SUMS"]);
    let asked_of_github = format!(
        "attestation verify {ARCHIVE} --repo canonry/canonry --signer-workflow canonry/canonry/.github/workflows/release.yml with {TOKEN}\n"
    );
    assert_eq!(fs::read_to_string(&asked).expect("asked"), asked_of_github);

    // If the workflow names the checksum, no other check is needed.
    let place = Place::new();
    let asked = gh(&place, 1);
    let left = release.install(&place, &[("WANTED", &sum(&bytes))]);
    assert_eq!((left.exit, asked.exists()), (Some(0), false), "{}", left.outputs);
    assert_eq!(release.asked(), [ARCHIVE, "SHA256SUMS", ARCHIVE]);
}

#[test]
fn nothing_is_unpacked_that_is_not_what_it_should_be() {
    let bytes = archive(&Place::new());
    let other = sum(b"another archive");
    let right = format!("{}  {ARCHIVE}\n", sum(&bytes)).into_bytes();
    // The list of checksums, the checksum in the workflow, whether GitHub knows the archive, and the message of the
    // refusal.
    let cases: [(Vec<u8>, &str, u8, &str); 5] = [
        (format!("{other}  {ARCHIVE}\n").into_bytes(), "", 0, "does not match SHA256SUMS of v9.8.7"),
        (format!("{}  {ARCHIVE}.sig\n", sum(&bytes)).into_bytes(), "", 0, "does not match SHA256SUMS of v9.8.7"),
        (Vec::new(), "", 0, "does not match SHA256SUMS of v9.8.7"),
        (right.clone(), &other, 0, "not the one in the input sha256"),
        (right.clone(), "", 1, ""),
    ];
    for (sums, wanted, gh_exit, words) in cases {
        let place = Place::new();
        gh(&place, gh_exit);
        let release = Release::offer(&[(ARCHIVE, bytes.clone()), ("SHA256SUMS", sums)]);
        let left = release.install(&place, &[("WANTED", wanted)]);
        assert_eq!(left.exit, Some(1), "{words}: {}", left.outputs);
        assert!(left.outputs.contains(words) && !left.outputs.contains("program="), "{words}: {}", left.outputs);
        let folder = place.path("runner/canonry-bin");
        assert!(
            fs::read_dir(folder).expect("a folder").all(|entry| entry.expect("an entry").path().is_file()),
            "unpacked"
        );
    }
    // No such release, no such runner, and an invalid version.
    let release = Release::offer(&[("SHA256SUMS", right)]);
    let left = release.install(&Place::new(), &[]);
    assert!(left.exit == Some(22) && left.outputs.contains("404"), "{:?} {}", left.exit, left.outputs);
    for given in
        [("ARCH", "RISCV"), ("VERSION", "v1.0.0/../../../x"), ("VERSION", "latest"), ("VERSION", "v1.0.0\nv1.0.0")]
    {
        let left = release.install(&Place::new(), &[given]);
        assert!(left.exit != Some(0) && left.outputs.contains("::error::"), "{given:?}: {}", left.outputs);
    }
    assert_eq!(release.asked().len(), 1, "nothing more is asked for");
}

#[test]
fn releases_come_from_where_the_provenance_is_looked_up() {
    let document = yaml(ACTION);
    let install = &steps(&document).into_iter().find(|step| step["id"] == "install").expect("the step")["env"];
    let source = install["SOURCE"].as_str().expect("a repository");
    assert_eq!(install["RELEASES"], format!("https://github.com/{source}/releases/download"));
}
