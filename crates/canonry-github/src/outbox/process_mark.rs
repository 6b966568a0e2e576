//! Marks leases, so that other processes of this machine can tell whether the owner of a lease still runs.

use std::sync::OnceLock;

/// The start of a mark, so that it can be found inside a longer text.
const BEGIN: &str = "process/";

/// The unique mark of this process: `process/BOOT/NAMESPACE/PID/START`. If the system does not provide these, a mark
/// that cannot be checked.
pub fn process_mark() -> &'static str {
    static MARK: OnceLock<String> = OnceLock::new();
    MARK.get_or_init(|| {
        let id = std::process::id();
        let known = machine().and_then(|machine| Some(format!("{BEGIN}{machine}/{id}/{}", start_of(id)?)));
        known.unwrap_or_else(|| format!("{BEGIN}{:032x}/-/{id}/-", rand::random::<u128>()))
    })
}

/// Whether the process whose mark is in `owner` has certainly ended: it ran since the same boot of this machine and in
/// the same process namespace, and no longer exists. `false` for all others, because nothing is known about them.
pub fn is_process_gone(owner: &str) -> bool {
    let Some((_, mark)) = owner.split_once(BEGIN) else { return false };
    let mut parts = mark.split(['/', ' ', ':']);
    let (Some(boot), Some(namespace), Some(id), Some(start)) = (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return false;
    };
    let Ok(id) = id.parse::<u32>() else { return false };
    // Another process may have the same id by now.
    machine().is_some_and(|machine| machine == format!("{boot}/{namespace}")) && start_of(id).as_deref() != Some(start)
}

/// The boot of this machine and the process namespace.
fn machine() -> Option<String> {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let namespace = std::fs::read_link("/proc/self/ns/pid").ok()?;
    let namespace: String = namespace.to_str()?.chars().filter(char::is_ascii_digit).collect();
    Some(format!("{}/{namespace}", boot.trim()))
}

/// The start time of a process in the system's ticks; `None` if it has ended.
fn start_of(id: u32) -> Option<String> {
    let status = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The process name may contain anything; it ends with the last bracket.
    let (_, rest) = status.rsplit_once(") ")?;
    let mut fields = rest.split(' ');
    let state = fields.next()?;
    (!matches!(state, "Z" | "X")).then(|| fields.nth(18).map(str::to_owned)).flatten()
}

#[cfg(test)]
mod tests {
    use super::{is_process_gone, process_mark};

    #[test]
    fn only_what_has_certainly_ended_is_gone() {
        let own = process_mark();
        assert!(!is_process_gone(own) && !is_process_gone(&format!("apply-close of plan 3 {own}:77")));
        for unknown in ["", "somebody", "process/", "process/another-boot/1/2/3"] {
            assert!(!is_process_gone(unknown), "{unknown}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_that_ended_is_gone() {
        let own: Vec<&str> = process_mark().split('/').collect();
        let mut child = std::process::Command::new("true").spawn().expect("a child");
        let mark = format!("{}/{}/{}/{}/1", own[0], own[1], own[2], child.id());
        child.wait().expect("ends");
        assert!(is_process_gone(&mark));
        let reused = format!("{}/{}/{}/{}/1", own[0], own[1], own[2], own[3]);
        assert!(is_process_gone(&reused), "another process had our number before");
    }
}
