//! The commands of the command line as the console's search shows them.

use canonry_console::ConsoleCommand;
use clap::{Command, CommandFactory as _};

use crate::arguments::Arguments;

pub(crate) fn console_commands() -> Vec<ConsoleCommand> {
    let mut commands = Vec::new();
    collect(&Arguments::command(), "canonry", &mut commands);
    commands
}

fn collect(command: &Command, path: &str, commands: &mut Vec<ConsoleCommand>) {
    for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
        let usage = format!("{path} {}", inner.get_name());
        if inner.has_subcommands() {
            collect(inner, &usage, commands);
        } else {
            let about = inner.get_about().map(ToString::to_string).unwrap_or_default();
            commands.push(ConsoleCommand { usage, about });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::console_commands;

    #[test]
    fn every_command_is_found_with_what_it_does() {
        let commands = console_commands();
        assert!(commands.iter().any(|command| command.usage == "canonry plan show"), "{commands:?}");
        assert!(commands.iter().all(|command| !command.about.is_empty()), "{commands:?}");
        assert!(commands.iter().all(|command| !command.about.contains('\n')), "{commands:?}");
    }
}
