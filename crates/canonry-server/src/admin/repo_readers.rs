//! Who may read data about a repository: accounts that can read it on GitHub, and the operator.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use canonry_domain::{GithubId, RepoName};
use canonry_github::{Auth, ClientOptions, Clock, GitHub, GitHubError, Secret};
use jiff::{SignedDuration, Timestamp};
use sha2::{Digest as _, Sha256};
use tokio::sync::Notify;
use url::Url;

use crate::admin::address_attempts::AddressAttempts;
use crate::admin::operations::is_same;

/// How long GitHub's answer is cached. A reader who lost access can read for this much longer.
const BELIEVED: SignedDuration = SignedDuration::from_mins(1);
/// The most answers in the cache. Beyond this number, expired answers are removed.
const MOST_KEPT: usize = 1_000;
const MOST_ASKED: usize = 60;
/// The most tokens a minute that GitHub may refuse. Beyond this number, GitHub is shown no token that it has not
/// accepted before. GitHub locks out an address that sends many wrong tokens, including their valid ones, and the
/// service uses the same address.
const MOST_BAD: usize = 5;
/// How long a token counts as accepted by GitHub, so that an attacker who guesses tokens does not lock out readers.
const PROVEN: SignedDuration = SignedDuration::from_hours(1);
/// A person waits for the answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// GitHub's tokens have at most 255 characters.
const LONGEST_TOKEN: usize = 255;
/// The prefixes of GitHub's tokens; old tokens are 40 hexadecimal digits instead. Other tokens are refused without a
/// request.
const PREFIXES: [&str; 6] = ["ghp_", "github_pat_", "gho_", "ghu_", "ghs_", "ghr_"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ApiReader {
    Operator,
    /// An account that can read the repository with this id on GitHub.
    OnGithub(GithubId),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReadDenial {
    #[error("send a GitHub token that may read the repository, as `Authorization: Bearer TOKEN`")]
    NoToken,
    #[error("GitHub does not accept this token")]
    BadToken,
    #[error("this token may not read the repository")]
    Forbidden,
    #[error("no such repository, or this token cannot see it")]
    NotFound,
    #[error("too many tokens were checked in the last minute; try again in a minute")]
    TooMany,
    #[error("GitHub's rate limit is used up; try again later")]
    Limited,
    #[error("GitHub does not answer; try again later")]
    Unreachable,
}

/// GitHub's answer: the repository that the token can read, or why it can read none.
type ReadVerdict = Result<GithubId, ReadDenial>;

/// Asks GitHub with the reader's own token and caches the answer for a minute.
pub(crate) struct RepoReaders {
    api: Url,
    operator: Option<Secret>,
    wrong: AddressAttempts,
    clock: Arc<dyn Clock>,
    known: Mutex<ReadVerdicts>,
    /// Notified when GitHub has answered.
    answered: Notify,
}

#[derive(Default)]
struct ReadVerdicts {
    /// By the hash of token and repository, so that no token is stored.
    words: HashMap<Hash, (Timestamp, ReadVerdict)>,
    proven: HashMap<Hash, Timestamp>,
    asked: VecDeque<Timestamp>,
    /// When GitHub refused a token, or may have refused it.
    bad: VecDeque<Timestamp>,
    /// The number of unproven tokens that GitHub was shown and has not answered yet. All of them may be refused.
    unanswered: usize,
}

type Hash = [u8; 32];

#[derive(Debug, Clone, Copy)]
struct ReadQuestion {
    token: Hash,
    word: Hash,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NextStep {
    Verdict(ReadVerdict),
    Ask { is_proven: bool },
    Wait,
}

impl RepoReaders {
    pub(crate) fn new(api: Url, operator: Option<Secret>, clock: Arc<dyn Clock>) -> Self {
        Self {
            api,
            operator,
            wrong: AddressAttempts::default(),
            clock,
            known: Mutex::default(),
            answered: Notify::new(),
        }
    }

    /// Checks what the holder of this token may read.
    pub(crate) async fn check(
        &self,
        token: Option<&str>,
        repo: &RepoName,
        peer: Option<IpAddr>,
    ) -> Result<ApiReader, ReadDenial> {
        let token = token.ok_or(ReadDenial::NoToken)?;
        let is_githubs = looks_like_githubs(token);
        if let Some(operator) = &self.operator {
            let now = self.clock.now();
            // The same limit as on the sign-in page, because a token that a person chose can be guessed. A token that
            // looks like GitHub's is checked by GitHub, which has its own limit.
            if !is_githubs && !self.wrong.may_try(peer, now) {
                return Err(ReadDenial::TooMany);
            }
            if is_same(token, operator) {
                return Ok(ApiReader::Operator);
            }
            if !is_githubs {
                self.wrong.note(peer, now);
                tracing::warn!("somebody tried a wrong admin token");
            }
        }
        if !is_githubs {
            return Err(ReadDenial::BadToken);
        }
        let word = Sha256::digest(format!("{}\n{token}", repo.key())).into();
        let question = ReadQuestion { token: Sha256::digest(token).into(), word };
        let is_proven = loop {
            // Subscribes before the check, so that an answer that arrives after the check is not missed.
            let answered = self.answered.notified();
            let next = self.lock().next(question, self.clock.now())?;
            match next {
                NextStep::Verdict(word) => return word.map(ApiReader::OnGithub),
                NextStep::Ask { is_proven } => break is_proven,
                NextStep::Wait => answered.await,
            }
        };
        let mut asking = PendingQuestion { readers: self, question, is_proven, word: None };
        let word = self.ask(token, repo).await;
        asking.word = Some(word);
        word.map(ApiReader::OnGithub)
    }

    async fn ask(&self, token: &str, repo: &RepoName) -> ReadVerdict {
        let options = ClientOptions {
            api: self.api.clone(),
            clock: Arc::clone(&self.clock),
            longest_wait: SignedDuration::ZERO,
            tries: 1,
            connect_timeout: PATIENCE,
            request_timeout: PATIENCE,
            ..ClientOptions::new(Auth::Token(Secret::new(token)))
        };
        let answer = match GitHub::new(options) {
            Ok(github) => github.repo(repo).await,
            Err(error) => Err(error),
        };
        match answer {
            Ok(found) => Ok(found.github_id()),
            Err(GitHubError::Unauthorized { .. }) => Err(ReadDenial::BadToken),
            Err(GitHubError::Forbidden { .. }) => Err(ReadDenial::Forbidden),
            Err(GitHubError::NotFound { .. } | GitHubError::Gone { .. } | GitHubError::Refused { .. }) => {
                Err(ReadDenial::NotFound)
            }
            Err(error) => {
                tracing::warn!(%repo, %error, "GitHub could not say who may read a repository");
                let is_limit = matches!(error, GitHubError::RateLimited { .. });
                Err(if is_limit { ReadDenial::Limited } else { ReadDenial::Unreachable })
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, ReadVerdicts> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A question under way. Its end is recorded on drop, because GitHub was shown the token even if the caller stopped
/// waiting.
struct PendingQuestion<'a> {
    readers: &'a RepoReaders,
    question: ReadQuestion,
    is_proven: bool,
    word: Option<ReadVerdict>,
}

impl Drop for PendingQuestion<'_> {
    fn drop(&mut self) {
        let now = self.readers.clock.now();
        self.readers.lock().end(self.question, self.is_proven, self.word, now);
        self.readers.answered.notify_waiters();
    }
}

impl ReadVerdicts {
    /// GitHub's cached answer if it is recent; otherwise whether GitHub may be asked now.
    fn next(&mut self, question: ReadQuestion, now: Timestamp) -> Result<NextStep, ReadDenial> {
        let recent = |moment: &Timestamp| now.duration_since(*moment) < BELIEVED;
        if let Some((_, word)) = self.words.get(&question.word).filter(|(at, _)| recent(at)) {
            return Ok(NextStep::Verdict(*word));
        }
        for moments in [&mut self.asked, &mut self.bad] {
            while moments.front().is_some_and(|at| !recent(at)) {
                moments.pop_front();
            }
        }
        let is_proven = self.proven.get(&question.token).is_some_and(|at| now.duration_since(*at) < PROVEN);
        if self.asked.len() >= MOST_ASKED || (!is_proven && self.bad.len() >= MOST_BAD) {
            return Err(ReadDenial::TooMany);
        }
        if !is_proven {
            if self.bad.len() + self.unanswered >= MOST_BAD {
                return Ok(NextStep::Wait);
            }
            self.unanswered += 1;
        }
        self.asked.push_back(now);
        Ok(NextStep::Ask { is_proven })
    }

    /// Records the result of a question; `None` if the caller stopped waiting.
    fn end(&mut self, question: ReadQuestion, was_proven: bool, word: Option<ReadVerdict>, now: Timestamp) {
        if !was_proven {
            self.unanswered -= 1;
        }
        match word {
            Some(Ok(_) | Err(ReadDenial::Forbidden | ReadDenial::NotFound)) => {
                if self.proven.len() >= MOST_KEPT {
                    self.proven.retain(|_, at| now.duration_since(*at) < PROVEN);
                }
                self.proven.insert(question.token, now);
            }
            Some(Err(ReadDenial::BadToken)) => {
                self.proven.remove(&question.token);
                self.bad.push_back(now);
            }
            Some(Err(ReadDenial::Limited)) | None if !was_proven => self.bad.push_back(now),
            _ => {}
        }
        let Some(word) = word.filter(|word| !matches!(word, Err(ReadDenial::Limited | ReadDenial::Unreachable))) else {
            return;
        };
        if self.words.len() >= MOST_KEPT {
            self.words.retain(|_, (at, _)| now.duration_since(*at) < BELIEVED);
        }
        self.words.insert(question.word, (now, word));
    }
}

fn looks_like_githubs(token: &str) -> bool {
    let is_old = token.len() == 40 && token.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_new = PREFIXES.iter().any(|prefix| token.strip_prefix(prefix).is_some_and(|rest| !rest.is_empty()));
    (is_old || is_new) && token.len() <= LONGEST_TOKEN && token.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use canonry_domain::GithubId;
    use jiff::{SignedDuration, Timestamp};

    use super::{NextStep, ReadDenial, ReadQuestion, ReadVerdicts, looks_like_githubs};

    const ASK: Result<NextStep, ReadDenial> = Ok(NextStep::Ask { is_proven: false });

    fn about(token: u8, repo: u8) -> ReadQuestion {
        ReadQuestion { token: [token; 32], word: [token.wrapping_mul(16) + repo; 32] }
    }

    #[test]
    fn what_is_no_token_of_githubs_is_told_apart() {
        for token in ["ghp_a", "github_pat_11A_b", "gho_1", "ghu_1", "ghs_1", "ghr_1", &"0aF4".repeat(10)] {
            assert!(looks_like_githubs(token), "{token}");
        }
        let long = format!("ghp_{}", "a".repeat(252));
        for token in ["", "ghp_", "ghx_1", "Ghp_1", "password", "ghp_a b", "ghp_ü", &"0aF4".repeat(9), &long] {
            assert!(!looks_like_githubs(token), "{token}");
        }
    }

    #[test]
    fn unknown_tokens_wait_while_those_before_them_may_all_be_bad() {
        let (mut known, now) = (ReadVerdicts::default(), Timestamp::UNIX_EPOCH);
        for token in 0..5 {
            assert_eq!(known.next(about(token, 0), now), ASK);
        }
        assert_eq!(known.next(about(5, 0), now), Ok(NextStep::Wait));
        // A token that proves good may ask about anything, and frees a place for another unproven token.
        let good = Ok(GithubId(7));
        known.end(about(0, 0), false, Some(good), now);
        assert_eq!(known.next(about(0, 0), now), Ok(NextStep::Verdict(good)));
        assert_eq!(known.next(about(0, 1), now), Ok(NextStep::Ask { is_proven: true }));
        assert_eq!(known.next(about(5, 0), now), ASK);
        assert_eq!(known.next(about(6, 0), now), Ok(NextStep::Wait));
        // A refused token, an abandoned question and a rate limit all count as bad; an unreachable GitHub does not.
        known.end(about(1, 0), false, Some(Err(ReadDenial::BadToken)), now);
        known.end(about(2, 0), false, None, now);
        known.end(about(3, 0), false, Some(Err(ReadDenial::Limited)), now);
        known.end(about(4, 0), false, Some(Err(ReadDenial::Unreachable)), now);
        assert_eq!(known.next(about(4, 0), now), ASK);
        known.end(about(4, 0), false, Some(Err(ReadDenial::BadToken)), now);
        assert_eq!(known.next(about(6, 0), now), Ok(NextStep::Wait));
        known.end(about(5, 0), false, Some(Err(ReadDenial::BadToken)), now);
        assert_eq!(known.next(about(6, 0), now), Err(ReadDenial::TooMany));
        assert_eq!(known.next(about(1, 0), now), Ok(NextStep::Verdict(Err(ReadDenial::BadToken))));
        assert_eq!(known.next(about(0, 2), now), Ok(NextStep::Ask { is_proven: true }));
        // A proven token that is refused counts as unproven again.
        known.end(about(0, 2), true, Some(Err(ReadDenial::BadToken)), now);
        assert_eq!(known.next(about(0, 3), now), Err(ReadDenial::TooMany));
        assert_eq!(known.next(about(6, 0), now + SignedDuration::from_mins(1)), ASK);
    }
}
