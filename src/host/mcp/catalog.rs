//! What servers have besides tools.

use std::collections::BTreeMap;

use super::Connection;
use crate::error::{Error, ErrorKind};
use crate::json::{Object, RawJson};
use crate::jsonrpc::Params;
use crate::mcp::client::Collection;
use crate::mcp::protocol::{Prompt, PromptMessage, Resource, ResourceContents};

impl Connection {
    /// All resources of the server. Empty when it offers none.
    ///
    /// # Errors
    ///
    /// As for [`tools`](Self::tools), here and below.
    pub async fn resources(&self) -> Result<Vec<Resource>, Error> {
        self.list(Collection::Resources, Resource::read).await
    }

    /// The families of resources, by the templates of their addresses.
    ///
    /// # Errors
    ///
    /// As for [`tools`](Self::tools).
    pub async fn resource_templates(&self) -> Result<Vec<Resource>, Error> {
        self.list(Collection::ResourceTemplates, Resource::read).await
    }

    /// The contents of a resource, which may have several parts.
    ///
    /// # Errors
    ///
    /// As for [`tools`](Self::tools); `rpc` when there is no such resource.
    pub async fn read_resource(&self, uri: &str) -> Result<Vec<ResourceContents>, Error> {
        let result = self.request("resources/read", Params::new().with("uri", uri)).await?;
        Ok(parsed(&result)?.objects("contents").iter().filter_map(ResourceContents::read).collect())
    }

    /// All prompts of the server. Empty when it offers none.
    ///
    /// # Errors
    ///
    /// As for [`tools`](Self::tools).
    pub async fn prompts(&self) -> Result<Vec<Prompt>, Error> {
        self.list(Collection::Prompts, Prompt::read).await
    }

    /// The messages of a prompt with these arguments.
    ///
    /// # Errors
    ///
    /// As for [`tools`](Self::tools); `rpc` when there is no such prompt or an argument is missing.
    pub async fn prompt(&self, name: &str, arguments: &BTreeMap<String, String>) -> Result<Vec<PromptMessage>, Error> {
        let params = Params::new().with("name", name).with("arguments", arguments);
        let result = self.request("prompts/get", params).await?;
        Ok(parsed(&result)?.objects("messages").iter().filter_map(PromptMessage::read).collect())
    }

    async fn list<T>(&self, collection: Collection, read: impl Fn(&Object<'_>) -> Option<T>) -> Result<Vec<T>, Error> {
        let entries = self.entries(collection).await?;
        Ok(entries.iter().filter_map(|entry| read(&Object::parse(entry.as_str()).ok()?)).collect())
    }
}

fn parsed(result: &RawJson) -> Result<Object<'_>, Error> {
    Object::parse(result.as_str())
        .map_err(|_| Error::new(ErrorKind::Protocol, "the MCP server's answer is not a JSON object"))
}
