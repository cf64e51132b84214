//! Whether a tool's value is what its server promised (revision 2025-06-18, "Output schema").

use super::Client;
use crate::error::{Error, ErrorKind};
use crate::json::{Object, RawJson, Schema};

impl Client {
    /// Checks the structured content of a result against the tool's output schema, where the tool was listed and has one.
    ///
    /// # Errors
    ///
    /// `protocol` when the value does not fit, or when the result is no object.
    pub(super) fn check_output(&mut self, tool: &str, result: &RawJson) -> Result<(), Error> {
        let refused = || Error::new(ErrorKind::Protocol, "the MCP server's tool result is not a JSON object");
        // Results can be large, and most have no schema that would be a reason to read them.
        let Some(schema) = self.tools.get(tool).and_then(|tool| tool.output_schema.clone()) else {
            return if result.as_str().trim_start().starts_with('{') { Ok(()) } else { Err(refused()) };
        };
        let object = Object::parse(result.as_str()).map_err(|_| refused())?;
        if object.boolean("isError").unwrap_or_default() {
            return Ok(());
        }
        let Some(value) = object.raw("structuredContent") else {
            self.warn(format!("the MCP tool {tool} promises structured content and gave none"));
            return Ok(());
        };
        let Ok(schema) = Schema::compile(&schema) else {
            self.warn(format!("the output schema of the MCP tool {tool} cannot be used, so its value is not checked"));
            return Ok(());
        };
        let problem = match schema.check(&value) {
            Ok(None) => return Ok(()),
            // The repairs are for what models write; a server's value fits as it is or not.
            Ok(Some(_)) => "a part of it is of another type".to_owned(),
            Err(problem) => problem,
        };
        let message = format!("the value of the MCP tool {tool} does not fit its own output schema: {problem}");
        Err(Error::new(ErrorKind::Protocol, message))
    }
}
