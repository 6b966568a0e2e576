//! Starting a program that reads text from strangers: it may be talked into telling what it sees, so it sees no secret of
//! Canonry's, neither in its own environment nor in that of another process.

use std::io;

use tokio::process::{Child, Command};

/// The variables with Canonry's own secrets, which no such program is given.
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

/// Keeps every process of the same user from reading this one's environment and memory; only root still can. To be called
/// before anything else is started.
pub fn hide_own_memory() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable) {
        tracing::debug!(%error, "other programs of this user can read Canonry's environment");
    }
}

/// Starts a program without Canonry's secrets. On Linux it cannot look into any process but those that it starts itself:
/// not at their environment, their memory or their files, not even as root.
pub(crate) fn spawn_confined(command: &mut Command) -> io::Result<Child> {
    for variable in WITHHELD {
        command.env_remove(variable);
    }
    let runtime = tokio::runtime::Handle::current();
    // What confines a thread goes over to the processes that it starts, and to no other thread.
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
    // Whoever is in a Landlock domain may look into processes of that domain alone. Making devices, which nobody needs,
    // is forbidden because a domain must forbid something.
    let rules = Ruleset::default().handle_access(AccessFs::MakeChar | AccessFs::MakeBlock);
    let enforced = rules
        .and_then(|rules| rules.scope(Scope::Signal))
        .and_then(Ruleset::create)
        .and_then(landlock::RulesetCreated::restrict_self);
    match enforced {
        Ok(status) if status.ruleset != RulesetStatus::NotEnforced => {}
        // Canonry itself cannot be looked into all the same; who started it can.
        Ok(_) => {
            tracing::debug!("this kernel has no Landlock: a program can read the environment of who started Canonry");
        }
        Err(error) => tracing::debug!(%error, "Landlock is not in force for a program"),
    }
}

#[cfg(not(target_os = "linux"))]
fn confine_this_thread() {}

/// Takes from root what lets it look into other processes, load code into the kernel or reach devices. Nobody else has any
/// of it.
#[cfg(target_os = "linux")]
fn drop_capabilities() {
    use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};
    let Ok(own) = capabilities(None) else { return };
    if own.permitted.is_empty() && own.inheritable.is_empty() {
        return;
    }
    // With these a program keeps files of other users in order and runs as one of them.
    let kept = CapabilitySet::CHOWN
        | CapabilitySet::DAC_OVERRIDE
        | CapabilitySet::FOWNER
        | CapabilitySet::FSETID
        | CapabilitySet::SETGID
        | CapabilitySet::SETUID
        | CapabilitySet::NET_BIND_SERVICE;
    // Root gets everything back when it starts a program, but for what is out of this set.
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
