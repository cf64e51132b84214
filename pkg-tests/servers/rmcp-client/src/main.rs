//! The client of the official Rust SDK against `crablet-shim expose`, whose tools are those of the page
//! fixtures/expose: `rmcp-client COMMAND ORIGIN`. A line per era; anything else is a panic.

use std::collections::BTreeMap;
use std::sync::Arc;

use rmcp::model::{CallToolRequestParams, ProgressNotificationParam, ProtocolVersion, SubscriptionFilter};
use rmcp::service::{ClientLifecycleMode, ClientServiceExt, NotificationContext, RunningService};
use rmcp::transport::TokioChildProcess;
use rmcp::{ClientHandler, RoleClient};
use serde_json::{Value, json};
use tokio::sync::Notify;

#[derive(Clone, Default)]
struct Handler {
    progress: Arc<Notify>,
    changed: Arc<Notify>,
}

impl ClientHandler for Handler {
    async fn on_progress(&self, _report: ProgressNotificationParam, _context: NotificationContext<RoleClient>) {
        self.progress.notify_one();
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }
}

struct Agent {
    service: RunningService<RoleClient, Handler>,
    handler: Handler,
    origin: String,
}

impl Agent {
    /// The names for agents by those of the page, once there are so many.
    async fn names(&self, count: usize) -> BTreeMap<String, String> {
        loop {
            let tools = serde_json::to_value(self.service.list_all_tools().await.unwrap()).unwrap();
            let tools = tools.as_array().unwrap();
            if tools.len() == count {
                return tools.iter().map(|tool| self.names_of(tool)).collect();
            }
            self.handler.changed.notified().await;
        }
    }

    fn names_of(&self, tool: &Value) -> (String, String) {
        let title = tool["title"].as_str().unwrap();
        let own = title.strip_prefix(&format!("{}: ", self.origin)).expect("the title names the page");
        (own.to_owned(), tool["name"].as_str().unwrap().to_owned())
    }

    async fn call(&self, name: &str, arguments: Value) -> Value {
        let arguments = arguments.as_object().unwrap().clone();
        let request = CallToolRequestParams::new(name.to_owned()).with_arguments(arguments);
        serde_json::to_value(self.service.call_tool(request).await.unwrap()).unwrap()
    }

    async fn text(&self, name: &str, arguments: Value) -> String {
        self.call(name, arguments).await["content"][0]["text"].as_str().unwrap().to_owned()
    }

    async fn check(&self) {
        let names = self.names(7).await;
        let echoed = self.call(&names["echo"], json!({ "text": "Grüße 🦀" })).await;
        assert_eq!(echoed["structuredContent"], json!({ "text": "Grüße 🦀" }));
        assert_eq!(self.text(&names["count"], json!({ "to": 30 })).await, "counted to 30");

        let before = self.text(&names["aborted"], json!({})).await;
        // The reports of the count are told by now or never.
        while tokio::time::timeout(std::time::Duration::ZERO, self.handler.progress.notified()).await.is_ok() {}
        tokio::select! {
            answer = self.call(&names["wait"], json!({})) => panic!("{answer}"),
            () = self.handler.progress.notified() => {}
        }
        while self.text(&names["aborted"], json!({})).await == before {}

        self.call(&names["change"], json!({ "extra": true })).await;
        let more = self.names(8).await;
        assert_eq!(self.text(&more["extra"], json!({})).await, "extra");
        self.call(&names["change"], json!({ "extra": false })).await;
        self.names(7).await;
        let left = self.call(&names["reload"], json!({})).await;
        assert_eq!(left["isError"], true, "{left}");
        loop {
            let again = self.call(&names["echo"], json!({ "text": "again" })).await;
            if again["isError"] != true {
                assert_eq!(again["structuredContent"], json!({ "text": "again" }));
                break;
            }
            self.handler.changed.notified().await;
        }
        assert_eq!(self.names(7).await, names);
    }
}

#[tokio::main]
async fn main() {
    let [command, origin] = <[String; 2]>::try_from(std::env::args().skip(1).collect::<Vec<_>>()).unwrap();
    for mode in [
        ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::LATEST] },
        ClientLifecycleMode::Initialize,
    ] {
        let mut process = tokio::process::Command::new(&command);
        process.arg("expose");
        let handler = Handler::default();
        let transport = TokioChildProcess::new(process).unwrap();
        let service = handler.clone().serve_with_lifecycle(transport, mode.clone()).await.unwrap();
        let is_stateless = mode != ClientLifecycleMode::Initialize;
        let listening = if is_stateless {
            let wanted: SubscriptionFilter = serde_json::from_value(json!({ "toolsListChanged": true })).unwrap();
            let mut subscription = service.listen(wanted).await.unwrap();
            let changed = handler.changed.clone();
            Some(tokio::spawn(async move {
                while let Ok(Some(_)) = subscription.next().await {
                    changed.notify_one();
                }
            }))
        } else {
            None
        };
        let agent = Agent { service, handler, origin: origin.clone() };
        agent.check().await;
        if let Some(listening) = listening {
            listening.abort();
        }
        agent.service.cancel().await.unwrap();
        println!("ok rmcp 3.11.0, {}", if is_stateless { "stateless" } else { "handshake" });
    }
}
