use super::super::protocol::Era;
use super::dispatch::invalid_params;
use super::{Server, render};
use crate::json::{Object, RawJson};
use crate::jsonrpc::{Params, RpcError};

impl Server {
    /// The answer to `initialize`.
    pub(super) fn initialized(&self, revision: super::Revision) -> RawJson {
        let era = Era::Handshake(revision);
        let mut result = Params::new()
            .with("protocolVersion", revision.as_str())
            .with("capabilities", &self.capabilities(era))
            .with("serverInfo", &self.info);
        if let Some(instructions) = &self.options.instructions {
            result.set("instructions", instructions);
        }
        result.to_raw()
    }

    /// The answer to `server/discover`.
    pub(super) fn discovered(&self) -> RawJson {
        let mut result = Params::new()
            .with("supportedVersions", &[super::super::protocol::STATELESS_VERSION])
            .with("capabilities", &self.capabilities(Era::Stateless));
        if let Some(instructions) = &self.options.instructions {
            result.set("instructions", instructions);
        }
        let meta = Params::new().with("io.modelcontextprotocol/serverInfo", &self.info);
        self.cacheable(Era::Stateless, result.with("_meta", &meta))
    }

    fn capabilities(&self, era: Era) -> Params {
        let changing = Params::new().with("listChanged", &true);
        let mut capabilities = Params::new();
        if self.catalog.awaits_tools || !self.catalog.tools.is_empty() {
            capabilities.set("tools", &changing);
        }
        if self.catalog.has_resources() {
            capabilities.set("resources", &changing.clone().with("subscribe", &true));
        }
        if !self.catalog.prompts.is_empty() {
            capabilities.set("prompts", &changing);
        }
        let knows_completions = !matches!(era, Era::Handshake(revision) if revision < super::Revision::V2025_03_26);
        if self.catalog.completes && knows_completions {
            capabilities.set("completions", &Params::new());
        }
        if self.catalog.logs {
            capabilities.set("logging", &Params::new());
        }
        capabilities
    }

    /// A page of one of the four lists.
    pub(super) fn listed(&self, method: &str, params: &Object<'_>, era: Era) -> Result<RawJson, RpcError> {
        let catalog = &self.catalog;
        let (name, total) = match method {
            "tools/list" => ("tools", catalog.tools.len()),
            "resources/list" => ("resources", catalog.resources.len()),
            "resources/templates/list" => ("resourceTemplates", catalog.templates.len()),
            _ => ("prompts", catalog.prompts.len()),
        };
        let start = page_start(params, total)?;
        let size = self.options.page_size.max(1);
        let places = || start..start.saturating_add(size).min(total);
        let page: Vec<Params> = match name {
            "tools" => {
                places().filter_map(|at| catalog.tools.get(at)).map(|tool| render::tool(&tool.tool, era)).collect()
            }
            "resources" => {
                let resources = places().filter_map(|at| catalog.resources.get(at));
                resources.map(|resource| render::resource(resource, "uri", era)).collect()
            }
            "resourceTemplates" => {
                let templates = places().filter_map(|at| catalog.templates.get(at));
                templates.map(|template| render::resource(&template.0, "uriTemplate", era)).collect()
            }
            _ => places().filter_map(|at| catalog.prompts.get(at)).map(|prompt| render::prompt(prompt, era)).collect(),
        };
        let mut result = Params::new().with(name, &page);
        if places().end < total {
            result.set("nextCursor", &places().end.to_string());
        }
        Ok(self.cacheable(era, result))
    }

    /// A result that may be kept for a while, where the era says so.
    pub(super) fn cacheable(&self, era: Era, result: Params) -> RawJson {
        if era != Era::Stateless {
            return result.to_raw();
        }
        let result = result.with("resultType", "complete").with("ttlMs", &self.options.cache_milliseconds);
        // Who may see what is not known here.
        result.with("cacheScope", "private").to_raw()
    }
}

/// Where a page begins. A cursor is a number that only this server reads.
fn page_start(params: &Object<'_>, total: usize) -> Result<usize, RpcError> {
    let Some(cursor) = params.raw("cursor") else { return Ok(0) };
    let start = cursor.read::<String>().ok().and_then(|cursor| cursor.parse().ok());
    start.filter(|start| *start <= total).ok_or_else(|| invalid_params("the cursor is not one that this server gave"))
}
