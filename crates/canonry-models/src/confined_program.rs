//! Starts a program that reads text from strangers. Such text may talk it into revealing what it sees, so it sees no
//! secret of Canonry, neither in its own environment nor in that of another process.

use std::io;

use tokio::process::{Child, Command};

/// The variables with Canonry's own secrets, which no such program receives.
pub const WITHHELD: [&str; 10] = [
    "GITHUB_TOKEN",
    "GH_TOKEN",
    "CANONRY_ADMIN_TOKEN",
    "CANONRY_MARKER_SECRET",
    "CANONRY_OAUTH_CLIENT_SECRET",
    "CANONRY_METRICS_TOKEN",
    "CANONRY_DATABASE_URL",
    "CANONRY_WEBHOOK_SECRET",
    "CANONRY_APP_PRIVATE_KEY",
    "CANONRY_APP_PRIVATE_KEY_PATH",
];

/// Keeps other processes of the same user from reading the environment and memory of this one; only root still can.
/// Call this before any process is started.
pub fn hide_own_memory() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable) {
        tracing::debug!(%error, "other programs of this user can read Canonry's environment");
    }
}

/// Starts a program without Canonry's secrets. On Linux it can inspect no process except those that it starts itself:
/// not their environment, their memory or their files, not even as root.
pub(crate) fn spawn_confined(command: &mut Command) -> io::Result<Child> {
    for variable in WITHHELD {
        command.env_remove(variable);
    }
    let runtime = tokio::runtime::Handle::current();
    // The restrictions of a thread apply to the processes that it starts, and to no other thread.
    std::thread::scope(|scope| {
        let spawn = move || {
            let _entered = runtime.enter();
            confine_this_thread();
            command.spawn()
        };
        let thread = std::thread::Builder::new().name("spawn-confined".to_owned()).spawn_scoped(scope, spawn)?;
        thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread that starts it panicked")))
    })
}

#[cfg(target_os = "linux")]
fn confine_this_thread() {
    use landlock::{AccessFs, Ruleset, RulesetAttr as _, RulesetStatus, Scope};
    drop_capabilities();
    // A process in a Landlock domain can inspect only processes of that domain. A domain must forbid something, so it
    // forbids making devices, which no program needs.
    let rules = Ruleset::default().handle_access(AccessFs::MakeChar | AccessFs::MakeBlock);
    let enforced = rules
        .and_then(|rules| rules.scope(Scope::Signal))
        .and_then(Ruleset::create)
        .and_then(landlock::RulesetCreated::restrict_self);
    match enforced {
        Ok(status) if status.ruleset != RulesetStatus::NotEnforced => {}
        // Canonry itself still cannot be inspected, but the process that started it can.
        Ok(_) => {
            tracing::debug!("this kernel has no Landlock: a program can read the environment of who started Canonry");
        }
        Err(error) => tracing::debug!(%error, "Landlock is not in force for a program"),
    }
}

#[cfg(not(target_os = "linux"))]
fn confine_this_thread() {}

/// Removes the capabilities with which root inspects other processes, loads kernel code or accesses devices. Other
/// users have none of them.
#[cfg(target_os = "linux")]
fn drop_capabilities() {
    use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};
    let Ok(own) = capabilities(None) else { return };
    if own.permitted.is_empty() && own.inheritable.is_empty() {
        return;
    }
    // With these a program manages files of other users and runs as another user.
    let kept = CapabilitySet::CHOWN
        | CapabilitySet::DAC_OVERRIDE
        | CapabilitySet::FOWNER
        | CapabilitySet::FSETID
        | CapabilitySet::SETGID
        | CapabilitySet::SETUID
        | CapabilitySet::NET_BIND_SERVICE;
    // When root starts a program, it regains all capabilities that are not removed from this set.
    for capability in (CapabilitySet::all() - kept).iter() {
        let _ = rustix::thread::remove_capability_from_bounding_set(capability);
    }
    let left = CapabilitySets {
        effective: own.effective & kept,
        permitted: own.permitted & kept,
        inheritable: CapabilitySet::empty(),
    };
    if let Err(error) = set_capabilities(None, left) {
        tracing::debug!(%error, "a program keeps capabilities of root");
    }
}
