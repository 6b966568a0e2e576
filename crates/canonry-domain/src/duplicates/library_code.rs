//! Detects frames and names of runtimes and libraries. Every program that uses them prints these, so they prove
//! nothing about a problem.

use std::sync::LazyLock;

use regex::Regex;

use crate::RepoName;

/// Names of library code, each with the repository in which it is the project's own code. A name that ends in a
/// separator is a prefix.
const NAMES: &[(&str, &str)] = &[
    // Rust
    ("std::", "rust"),
    ("core::", "rust"),
    ("alloc::", "rust"),
    ("proc_macro::", "rust"),
    ("rust_begin_unwind", "rust"),
    ("__rust_", "rust"),
    ("backtrace::", "backtrace-rs"),
    ("tokio::", "tokio"),
    ("futures::", "futures-rs"),
    ("futures_", "futures-rs"),
    ("rayon::", "rayon"),
    ("rayon_core::", "rayon"),
    ("hyper::", "hyper"),
    ("hyper_util::", "hyper-util"),
    ("tower::", "tower"),
    ("async_std::", "async-std"),
    // JavaScript
    ("node:", "node"),
    ("internal/", "node"),
    ("Module._", "node"),
    ("Module.load", "node"),
    ("Object.Module._", "node"),
    ("Object.<anonymous>", ""),
    ("<anonymous>", ""),
    ("Function.executeUserEntryPoint", "node"),
    ("process.processTicksAndRejections", "node"),
    ("processTicksAndRejections", "node"),
    ("process._tickCallback", "node"),
    ("Promise.", ""),
    ("EventEmitter.emit", "node"),
    // The JVM
    ("java.", "jdk"),
    ("javax.", "jdk"),
    ("jdk.", "jdk"),
    ("sun.", "jdk"),
    ("com.sun.", "jdk"),
    ("kotlin.", "kotlin"),
    ("kotlinx.coroutines.", "kotlinx.coroutines"),
    ("scala.", "scala"),
    ("android.", "platform_frameworks_base"),
    ("com.android.internal.", "platform_frameworks_base"),
    ("dalvik.", "platform_frameworks_base"),
    // .NET
    ("System.", "runtime"),
    ("Microsoft.", "runtime"),
    ("MS.Internal.", "wpf"),
    // Go
    ("runtime.", "go"),
    ("net/http.", "go"),
    ("syscall.", "go"),
    ("reflect.", "go"),
    ("testing.tRunner", "go"),
    ("internal/poll.", "go"),
    // Python
    ("asyncio.", "cpython"),
    ("importlib.", "cpython"),
    ("concurrent.futures.", "cpython"),
    // C and C++
    ("__libc_", "glibc"),
    ("__GI_", "glibc"),
    ("_start", "glibc"),
    ("start_thread", "glibc"),
    ("__cxa_", "gcc"),
    ("__gnu_cxx::", "gcc"),
    ("BaseThreadInitThunk", ""),
    ("RtlUserThreadStart", ""),
    ("_dispatch_", "swift-corelibs-libdispatch"),
    ("UIApplicationMain", ""),
    // Test frameworks: every failed assertion goes through their helpers.
    ("org.junit.", "junit5"),
    ("junit.framework.", "junit4"),
    ("org.hamcrest.", "JavaHamcrest"),
    ("org.assertj.", "assertj"),
    ("org.mockito.", "mockito"),
    ("unittest.", "cpython"),
    ("_pytest.", "pytest"),
    ("pytest.", "pytest"),
    ("Minitest::", "minitest"),
    ("Minitest.", "minitest"),
    ("RSpec::", "rspec-core"),
    ("testing.", "go"),
    ("testify.", "testify"),
    ("Xunit.", "xunit"),
    ("NUnit.", "nunit"),
    ("test::run_test", "rust"),
    ("test::__rust_begin_short_backtrace", "rust"),
    // Erlang
    ("gen_server.", "otp"),
    ("proc_lib.", "otp"),
];

/// Paths of library code in the line of a frame.
const PATHS: &[&str] = &[
    "/rustc/",
    "/.cargo/registry/",
    "node_modules/",
    "node_modules\\",
    "node:internal",
    "(internal/",
    "site-packages",
    "dist-packages",
    "lib/python3",
    "lib\\python3",
    "<frozen ",
    "/go/src/",
    "/pkg/mod/",
    "/lib/ruby/",
    "/gems/",
    "vendor/bundle",
    "/vendor/composer",
];

/// Endings of names that a compiler generates: they are printed beside the function that they belong to.
const ENDINGS: &[&str] = &["::{{closure}}", "::panic_cold_explicit", "::panic_cold_display", ".<anonymous>"];

/// Names of helpers that only report a failure: the last part of `assert_eq`, `Assert.assertEquals`, `Option::unwrap`.
const HELPERS: &[&str] = &["assert", "expect", "unwrap", "panic", "fail", "raise", "throw", "abort"];
/// Helpers of which there are variants: `panic_fmt`, `expect_failed`.
const VARIED: &[&str] =
    &["assert_", "expect_", "unwrap_", "panic_", "assertthat", "assertequal", "asserttrue", "assertfalse"];

/// Whether a frame belongs to a helper that every failure of a project goes through, whatever failed.
pub fn is_failure_helper(name: &str) -> bool {
    let last = name.rsplit(['.', ':', '#', '/']).next().unwrap_or(name).to_lowercase();
    let last = last.trim_start_matches('_').trim_end_matches(['!', '(', ')']);
    HELPERS.contains(&last) || VARIED.iter().any(|varied| last.starts_with(varied))
}

/// Whether a line only introduces a failure or says that something failed: the header of a traceback, the message of a
/// failed assertion without its values.
pub fn is_failure_header(line: &str) -> bool {
    let bare = line.trim().trim_start_matches(['>', '#', '*', '-', '`', '|', ' ']);
    FAILURE_HEADER.is_match(bare)
}

static FAILURE_HEADER: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r"(?xi) ^ (?: traceback \s* \( most \s+ recent \s+ call \s+ last \) | stack \s* (?: backtrace | trace ) | backtrace
        | caused \s+ by | exception \s+ in \s+ thread \s+ \S+ | note: \s+ run \s+ with .* backtrace .*
        | thread \s+ '[^']*' \s+ panicked (?: \s+ at )?
        | assertion (?: \s* error | \s+ failed )? (?: \s* : \s* `? \(? left \s* [=!]= \s* right \)? `? )? (?: \s+ failed )?
        | (?: assertion \s+ )? `? left \s* [=!]= \s* right `? (?: \s+ failed )? | (?: left | right | expected | actual | received | got )
        | called \s+ `?\w+::(?: unwrap | expect ) (?: _err )? \(\) `? \s+ on \s+ an? \s+ `?\w+(?: \( .* \) )? `? \s+ value
        | explicit \s+ panic | (?: test | tests | build | job | suite ) \s+ failed | failures? | failed | error | fatal \s+ error | an? \s+ error \s+ occurred
        | process \s+ (?: completed | exited ) \s+ with \s+ (?: exit \s+ )? code \s+ \d+ ) \s* [:.!]? $";
    Regex::new(pattern).expect("invariant: the pattern is constant")
});

/// Whether a frame or a qualified name belongs to a runtime or a library. `line` is the line that it was found in. A
/// library's own repository may be unknown; then its code counts as a library's there too.
pub fn is_library_code(repo: Option<&RepoName>, name: &str, line: &str) -> bool {
    // `<alloc::boxed::Box<F> as core::ops::FnOnce>::call_once`
    let name = name.trim_start_matches(['<', '&', '*', '(']);
    let is_theirs = |(theirs, home): &(&str, &str)| {
        let is_beginning = theirs.ends_with([':', '.', '_', '/']);
        let is_named = name == theirs.trim_end_matches([':', '.']) || is_beginning && name.starts_with(theirs);
        is_named && !repo.is_some_and(|repo| repo.name().eq_ignore_ascii_case(home))
    };
    is_failure_helper(name)
        || PATHS.iter().any(|path| line.contains(path))
        || ENDINGS.iter().any(|ending| name.ends_with(ending))
        || NAMES.iter().any(is_theirs)
}

#[cfg(test)]
mod tests {
    use super::{is_failure_header, is_failure_helper, is_library_code};

    #[test]
    fn what_every_failure_shows_is_known() {
        for line in [
            "Traceback (most recent call last):",
            "stack backtrace:",
            "thread 'main' panicked at",
            "AssertionError:",
            "assertion failed: `(left == right)`",
            "assertion `left == right` failed",
            "called `Result::unwrap()` on an `Err` value",
            "> Caused by:",
            "note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace",
            "Process completed with exit code 1.",
        ] {
            assert!(is_failure_header(line), "{line}");
        }
        for line in [
            "AssertionError: the lamp is off",
            // The place of a panic is one of the most telling facts.
            "thread 'main' panicked at src/lib.rs:12:5:",
            "assertion failed: index < self.len",
            "called `Result::unwrap()` on an `Err` value: LampIsOff",
            "error: tree renderer lost its viewport anchor",
            "Caused by: java.io.IOException: disk full",
            "",
        ] {
            assert!(!is_failure_header(line), "{line}");
        }
        for name in
            ["assert_eq", "assertEquals", "org.junit.Assert.assertTrue", "Option::unwrap", "expect", "panic_fmt"]
        {
            assert!(is_failure_helper(name), "{name}");
        }
        for name in ["failover", "Window.expectedSize", "raised_button", "unwrapped", "store::begin", "", "shoulder"] {
            assert!(!is_failure_helper(name), "{name}");
        }
    }

    #[test]
    fn frames_of_runtimes_and_libraries_are_known() {
        let repo = "o/n".parse().expect("a name");
        for (name, line) in [
            ("std::panicking::begin_panic", "   4: 0x7f8a - std::panicking::begin_panic"),
            ("core::option::unwrap_failed", ""),
            ("<alloc::boxed::Box<F,A> as core::ops::function::FnOnce<Args>>::call_once", ""),
            ("tokio::runtime::task::raw::poll", ""),
            ("futures_util::future::poll_fn", ""),
            ("processTicksAndRejections", "    at processTicksAndRejections (node:internal/process/task_queues:96:5)"),
            ("Module._compile", "    at Module._compile (internal/modules/cjs/loader.js:999:30)"),
            ("Object.<anonymous>", "    at Object.<anonymous> (/app/index.js:1:1)"),
            ("next", "    at next (/app/node_modules/express/lib/router/route.js:137:13)"),
            ("java.lang.Thread.run", "    at java.lang.Thread.run(Thread.java:748)"),
            ("java.util.concurrent.ThreadPoolExecutor.runWorker", ""),
            ("sun.reflect.NativeMethodAccessorImpl.invoke", ""),
            ("jdk.internal.reflect.DirectMethodHandleAccessor.invoke", ""),
            ("System.Threading.Tasks.Task.Execute", ""),
            ("runtime.goexit", ""),
            ("panic.go", "\t/usr/local/go/src/runtime/panic.go:884 +0x212"),
            ("adapters.py", "  File \"/usr/lib/python3.11/site-packages/requests/adapters.py\", line 519, in send"),
            ("threading.py", "  File \"/usr/lib/python3.11/threading.py\", line 980, in run"),
            ("base.rb", "/usr/lib/ruby/gems/3.1.0/gems/rack-2.2/lib/rack/base.rb:12:in `call'"),
            ("store::sqlite::Table::panic_cold_explicit", ""),
            ("store::sqlite::begin::{{closure}}", ""),
            ("__libc_start_main", "#9 0x00007f in __libc_start_main () from /lib/libc.so.6"),
        ] {
            assert!(is_library_code(Some(&repo), name, line), "{name} in {line}");
        }
    }

    #[test]
    fn code_of_the_project_is_not() {
        let repo = |name: &str| name.parse().expect("a name");
        for (of, name, line) in [
            ("o/n", "org.apache.hadoop.fs.FileSystem.get", ""),
            ("o/n", "store::sqlite::begin", "   4: store::sqlite::begin"),
            ("o/n", "standard::run", ""),
            ("o/n", "_start_sync", ""),
            ("o/n", "PromiseCache.get", ""),
            ("o/n", "Systematic.check", ""),
            ("o/n", "user.rb", "/app/models/user.rb:12:in `save'"),
            ("o/n", "client.reconnect", ""),
            ("rust-lang/rust", "std::io::read_to_end", ""),
            ("tokio-rs/tokio", "tokio::net::TcpStream::connect", ""),
            ("nodejs/node", "internal/modules/cjs/loader", ""),
            ("golang/go", "runtime.gopark", ""),
        ] {
            assert!(!is_library_code(Some(&repo(of)), name, line), "{name} in {of}");
        }
    }
}
