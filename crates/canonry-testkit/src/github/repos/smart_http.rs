//! Git over HTTP: the requests of `git clone` and `git fetch`.

use std::io::Read;

use flate2::read::GzDecoder;

use crate::github::people::accounts::{Actor, CONTENTS};
use crate::github::serve::call::{Answer, Call, Reply};
use crate::github::world::World;

/// The maximum size of one request from git.
const LARGEST_INPUT: u64 = 32 << 20;

/// The part of a request that only git sends.
#[derive(Debug, Clone, Default)]
pub(crate) struct GitRequest {
    protocol: Option<String>,
    input: Vec<u8>,
}

impl GitRequest {
    /// Git compresses long requests.
    pub(crate) fn read(encoding: Option<&str>, protocol: Option<String>, bytes: &[u8]) -> Self {
        let mut input = Vec::new();
        if encoding == Some("gzip") {
            let mut unpacked = GzDecoder::new(bytes).take(LARGEST_INPUT);
            // Git would not understand input that cannot be decompressed.
            let _ = unpacked.read_to_end(&mut input);
        } else {
            input.extend_from_slice(bytes);
        }
        Self { protocol, input }
    }
}

/// `GET /{owner}/{repo}.git/info/refs`
pub(crate) fn info_refs(world: &mut World, call: &Call) -> Reply {
    if call.query("service") != Some("git-upload-pack") {
        return Err(plain(403, "The emulator lets nobody push."));
    }
    let position = readable(world, call)?;
    let protocol = call.git.protocol.as_deref();
    let refs = world.git_of(position).upload_pack(true, protocol, &[]).map_err(|error| plain(500, &error))?;
    // Version 2 of the protocol starts at once; the older ones name the service first.
    let two = protocol.is_some_and(|protocol| protocol.split(':').any(|word| word == "version=2"));
    let mut bytes = if two { Vec::new() } else { b"001e# service=git-upload-pack\n0000".to_vec() };
    bytes.extend(refs);
    Ok(packets("application/x-git-upload-pack-advertisement", bytes))
}

/// `POST /{owner}/{repo}.git/git-upload-pack`
pub(crate) fn upload_pack(world: &mut World, call: &Call) -> Reply {
    let position = readable(world, call)?;
    let git = world.git_of(position);
    let answer = git.upload_pack(false, call.git.protocol.as_deref(), &call.git.input);
    Ok(packets("application/x-git-upload-pack-result", answer.map_err(|error| plain(500, &error))?))
}

/// The repository, if the caller may read its contents. Anonymous callers must identify themselves first.
fn readable(world: &World, call: &Call) -> Result<usize, Answer> {
    let name = call.param("repo");
    let name = name.strip_suffix(".git").unwrap_or(name);
    let full_name = format!("{}/{name}", call.param("owner"));
    let is = |candidate: &String| candidate.eq_ignore_ascii_case(&full_name);
    let missing = || match call.actor {
        Actor::Anonymous => plain(401, "Repository not found.").header("www-authenticate", "Basic realm=\"GitHub\""),
        _ => plain(404, "Repository not found."),
    };
    if let Some(moved) = world.repos.iter().find(|repo| repo.old_names.iter().any(is)) {
        let place = format!("{}/{}.git/info/refs?service=git-upload-pack", world.api_url, moved.full_name());
        return Err(plain(301, "Moved").header("location", &place));
    }
    let position = world.repos.iter().position(|repo| is(&repo.full_name())).ok_or_else(missing)?;
    let call = Call { repo: Some(position), ..call.clone() };
    world.may_read(&call, CONTENTS).map_err(|refusal| match refusal.status {
        404 => missing(),
        status => plain(status, "Write access to repository not granted."),
    })?;
    Ok(position)
}

fn packets(kind: &str, bytes: Vec<u8>) -> Answer {
    let mut answer = Answer::empty(200).header("content-type", kind).header("cache-control", "no-cache");
    answer.raw = Some(bytes.into());
    answer
}

fn plain(status: u16, text: &str) -> Answer {
    let mut answer = Answer::empty(status).header("content-type", "text/plain; charset=utf-8");
    answer.raw = Some(text.as_bytes().into());
    answer
}
