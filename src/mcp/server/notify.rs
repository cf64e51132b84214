use super::super::protocol::Era;
use super::{Catalog, LogLevel, Outgoing, PendingCall, Server, render};
use crate::json::{Object, RawJson};
use crate::jsonrpc::{self, Params};

/// A line that the client did not ask for at this moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// The `subscriptions/listen` request on whose stream it goes; `None` for the connection.
    pub subscription: Option<RawJson>,
    /// The line.
    pub line: String,
}

/// What a `subscriptions/listen` request wants to hear of.
#[derive(Clone, Debug, Default)]
pub(super) struct Interest {
    tools: bool,
    prompts: bool,
    resources: bool,
    uris: Vec<String>,
}

/// The most resources that one client follows.
const MAX_SUBSCRIPTIONS: usize = 1_000;

/// The most `subscriptions/listen` requests of one connection.
const MAX_LISTENING: usize = 100;

impl Server {
    /// Serves another catalogue from now on. Gives the lines that tell those who want to know which lists changed.
    pub fn set_catalog(&mut self, catalog: Catalog) -> Vec<Notice> {
        let before = std::mem::replace(&mut self.catalog, catalog);
        let after = &self.catalog;
        let tools = |catalog: &Catalog| catalog.tools.iter().map(|tool| tool.tool.clone()).collect::<Vec<_>>();
        let changed = [
            ("notifications/tools/list_changed", tools(&before) != tools(after)),
            ("notifications/prompts/list_changed", before.prompts != after.prompts),
            (
                "notifications/resources/list_changed",
                before.resources != after.resources || before.templates != after.templates,
            ),
        ];
        let methods = changed.into_iter().filter(|(_, is_changed)| *is_changed).map(|(method, _)| method);
        methods.flat_map(|method| self.announce(method, Params::new(), |interest| interest.wants(method))).collect()
    }

    /// The lines that tell those who follow a resource that it changed.
    pub fn resource_updated(&self, uri: &str) -> Vec<Notice> {
        let params = Params::new().with("uri", uri);
        let mut notices = self.announce("notifications/resources/updated", params, |interest| {
            interest.uris.iter().any(|followed| followed == uri)
        });
        if !self.subscribed.contains_key(uri) {
            notices.retain(|notice| notice.subscription.is_some());
        }
        notices
    }

    /// The line that tells the client of something; `None` when it does not want to hear of that. Of the stateless era it
    /// is asked per call.
    pub fn log(&self, call: &PendingCall, level: LogLevel, logger: Option<&str>, data: &RawJson) -> Option<String> {
        let wanted =
            if call.era == Era::Stateless { call.log_level? } else { self.log_level.unwrap_or(LogLevel::Info) };
        if !self.catalog.logs || level < wanted {
            return None;
        }
        let mut params = Params::new().with("level", level.as_str());
        if let Some(logger) = logger {
            params.set("logger", logger);
        }
        Some(render::line(&jsonrpc::notification("notifications/message", &params.with("data", data))))
    }

    /// Ends a subscription from this side, such as before the server closes. Gives the line to send.
    pub fn end_subscription(&mut self, subscription: &RawJson) -> Option<String> {
        self.listening.remove(subscription.as_str())?;
        let result = Params::new().with("resultType", "complete").with("_meta", &subscription_meta(subscription));
        Some(render::line(&jsonrpc::response(subscription, &Ok(result.to_raw()))))
    }

    pub(super) fn listen(&mut self, id: RawJson, params: &Object<'_>) -> Option<Outgoing> {
        if self.listening.len() >= MAX_LISTENING {
            return None;
        }
        let interest = Interest::read(params);
        let mut honoured = Params::new();
        for (name, is_wanted) in [
            ("toolsListChanged", interest.tools),
            ("promptsListChanged", interest.prompts),
            ("resourcesListChanged", interest.resources),
        ] {
            if is_wanted {
                honoured.set(name, &true);
            }
        }
        if !interest.uris.is_empty() {
            honoured.set("resourceSubscriptions", &interest.uris);
        }
        let acknowledged = Params::new().with("notifications", &honoured).with("_meta", &subscription_meta(&id));
        let line = render::line(&jsonrpc::notification("notifications/subscriptions/acknowledged", &acknowledged));
        self.listening.insert(id.as_str().to_owned(), interest);
        Some(Outgoing::Listening { subscription: id, line })
    }

    /// Follows a resource for a client of the handshake era; `false` when it follows too many.
    pub(super) fn subscribe(&mut self, uri: String) -> bool {
        if self.subscribed.len() >= MAX_SUBSCRIPTIONS {
            return false;
        }
        self.subscribed.insert(uri, ());
        true
    }

    fn announce(&self, method: &str, params: Params, wants: impl Fn(&Interest) -> bool) -> Vec<Notice> {
        let plain = self
            .client
            .is_some()
            .then(|| Notice { subscription: None, line: render::line(&jsonrpc::notification(method, &params)) });
        let subscribed = self.listening.iter().filter(|(_, interest)| wants(interest)).filter_map(|(id, _)| {
            let subscription = RawJson::parse(id.as_str()).ok()?;
            let params = params.clone().with("_meta", &subscription_meta(&subscription));
            let line = render::line(&jsonrpc::notification(method, &params));
            Some(Notice { subscription: Some(subscription), line })
        });
        plain.into_iter().chain(subscribed).collect()
    }
}

impl Interest {
    fn read(params: &Object<'_>) -> Self {
        let wanted = params.object("notifications").unwrap_or_default();
        let flag = |name| wanted.boolean(name).unwrap_or_default();
        let mut uris: Vec<String> = wanted.read("resourceSubscriptions").unwrap_or_default();
        uris.truncate(MAX_SUBSCRIPTIONS);
        Self {
            tools: flag("toolsListChanged"),
            prompts: flag("promptsListChanged"),
            resources: flag("resourcesListChanged"),
            uris,
        }
    }

    fn wants(&self, method: &str) -> bool {
        match method {
            "notifications/tools/list_changed" => self.tools,
            "notifications/prompts/list_changed" => self.prompts,
            _ => self.resources,
        }
    }
}

fn subscription_meta(id: &RawJson) -> Params {
    Params::new().with("io.modelcontextprotocol/subscriptionId", id)
}
