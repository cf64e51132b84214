//! How a configured server is started. Beside the configuration, which is read without anything that starts processes.

use crablet::native::process::{GuardianCommand, ServerCommand};

use crate::config::Server;

impl Server {
    /// How to start it.
    pub(crate) fn to_command(&self, guardian: &GuardianCommand) -> ServerCommand {
        let mut command = ServerCommand::new(&self.command, &self.arguments);
        command.environment = self.environment.clone();
        command.directory = self.directory.clone();
        command.guardian = Some(guardian.clone());
        command
    }
}
