//! OpenAPI documents as tools, against a real server that tells what it was asked.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::Request;
use axum::http::header::{CONTENT_TYPE, LOCATION};
use axum::response::{IntoResponse, Response};
use crablet::host::tools::{
    ApiOperation, Authorization, BuiltInTool, OpenApiError, OpenApiOptions, OpenApiTools, open_api_tools,
};
use crablet::json::RawJson;
use crablet::native::NativeHost;
use serde_json::{Value, json};

use super::{call, call_output, text};

/// A server that remembers what it was asked: method, address, headers, body.
struct Echo {
    url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

#[derive(Clone, Debug)]
struct Asked {
    method: String,
    url: String,
    headers: Vec<(String, String)>,
    body: String,
}

impl Asked {
    fn header(&self, wanted: &str) -> Option<&str> {
        self.headers.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str())
    }
}

impl Echo {
    async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::<Mutex<Vec<Asked>>>::default();
        let seen = asked.clone();
        let answer = move |request: Request| answer(request, seen.clone());
        tokio::spawn(axum::serve(listener, Router::new().fallback(answer)).into_future());
        Self { url, asked }
    }

    fn last(&self) -> Asked {
        self.asked.lock().unwrap().last().cloned().expect("it was asked")
    }
}

async fn answer(request: Request, seen: Arc<Mutex<Vec<Asked>>>) -> Response {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 1_000_000).await.unwrap();
    let headers = parts.headers.iter().map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()));
    let url = parts.uri.to_string();
    seen.lock().unwrap().push(Asked {
        method: parts.method.to_string(),
        url: url.clone(),
        headers: headers.collect(),
        body: String::from_utf8(body.to_vec()).unwrap(),
    });
    match url.as_str() {
        "/pets/away" => (axum::http::StatusCode::FOUND, [(LOCATION, "http://127.0.0.1:1/stolen")]).into_response(),
        "/pets/large" => "x".repeat(1_000).into_response(),
        "/pets/broken" => (axum::http::StatusCode::INTERNAL_SERVER_ERROR, "broken").into_response(),
        _ => ([(CONTENT_TYPE, "application/json")], json!({ "asked": url }).to_string()).into_response(),
    }
}

fn pet_store(version: &str) -> Value {
    json!({
        "openapi": version,
        "servers": [{ "url": "https://pets.example.com/v1" }],
        "paths": {
            "/pets": {
                "get": {
                    "operationId": "listPets",
                    "tags": ["pets"],
                    "summary": "List all pets",
                    "parameters": [
                        { "name": "limit", "in": "query", "description": "How many", "schema": { "type": "integer" } },
                        { "name": "tag", "in": "query", "schema": { "type": "array", "items": { "type": "string" } } },
                        { "$ref": "#/components/parameters/Trace" },
                        { "name": "Authorization", "in": "header", "schema": { "type": "string" } },
                        { "name": "session", "in": "cookie", "schema": { "type": "string" } },
                    ],
                },
                "post": {
                    "operationId": "pets.create!",
                    "tags": ["pets", "write"],
                    "requestBody": {
                        "required": true,
                        "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Pet" } } },
                    },
                },
            },
            "/pets/{petId}": {
                "parameters": [{ "name": "petId", "in": "path", "required": true, "schema": { "type": "string" } }],
                "get": { "summary": "One pet" },
                "delete": { "operationId": "pets_create", "deprecated": true },
                "put": {
                    "operationId": "upload",
                    "requestBody": { "required": true, "content": { "multipart/form-data": { "schema": {} } } },
                },
            },
        },
        "components": {
            "parameters": {
                "Trace": { "name": "X-Trace", "in": "header", "required": true, "schema": { "type": "string" } },
            },
            "schemas": {
                "Pet": {
                    "type": "object",
                    "required": ["id", "name"],
                    "properties": {
                        "id": { "type": "integer", "readOnly": true },
                        "name": { "type": "string", "example": "Rex" },
                        "parent": { "$ref": "#/components/schemas/Pet" },
                        "owner": { "$ref": "#/components/schemas/Owner" },
                    },
                },
                "Owner": { "type": "object", "properties": { "email": { "type": "string" } }, "xml": { "name": "o" } },
            },
        },
    })
}

fn at(server: &str) -> OpenApiOptions {
    OpenApiOptions { server: Some(server.to_owned()), ..OpenApiOptions::default() }
}

fn import(document: &Value, options: OpenApiOptions) -> Result<OpenApiTools, OpenApiError> {
    open_api_tools(&NativeHost::new().unwrap(), &RawJson::from_value(document).unwrap(), options)
}

fn names(tools: &[BuiltInTool]) -> Vec<&str> {
    tools.iter().map(|(definition, _)| definition.name.as_str()).collect()
}

fn schema(tools: &[BuiltInTool], name: &str) -> Value {
    let found = tools.iter().find(|(definition, _)| definition.name == name).unwrap();
    found.0.input_schema.read().unwrap()
}

#[tokio::test]
async fn operations_become_tools_with_one_input_for_parameters_of_all_places() {
    let api = Echo::start().await;
    let OpenApiTools { tools, skipped, .. } = import(&pet_store("3.1.0"), at(&format!("{}/v1/", api.url))).unwrap();
    let mut found = names(&tools);
    found.sort_unstable();
    assert_eq!(found, ["get_pets_petId", "listPets", "pets_create", "pets_create_2"]);
    assert_eq!(skipped, [("upload".to_owned(), OpenApiError::Body("multipart/form-data".to_owned()))]);
    let list = schema(&tools, "listPets");
    assert_eq!(list["required"], json!(["X-Trace"]));
    assert_eq!(list["properties"]["limit"], json!({ "type": "integer", "description": "How many" }));
    assert!(list["properties"].get("Authorization").is_none());

    let input = json!({ "limit": 5, "tag": ["a b", "c&d"], "X-Trace": "t1", "session": "s;1" });
    let told = call(&tools, "listPets", input).await.unwrap();
    assert_eq!(told, "HTTP 200, application/json\n\n{\"asked\":\"/v1/pets?limit=5&tag=a%20b&tag=c%26d\"}");
    assert_eq!((api.last().header("x-trace"), api.last().header("cookie")), (Some("t1"), Some("session=s%3B1")));
    call(&tools, "get_pets_petId", json!({ "petId": "a/b?c" })).await.unwrap();
    assert_eq!(api.last().url, "/v1/pets/a%2Fb%3Fc");
    let create =
        if schema(&tools, "pets_create")["properties"].get("body").is_some() { "pets_create" } else { "pets_create_2" };
    assert_eq!(
        schema(&tools, create)["properties"]["body"],
        json!({
            "type": "object",
            "required": ["name"],
            "properties": {
                "name": { "type": "string" },
                "parent": { "description": "another Pet" },
                "owner": { "type": "object", "properties": { "email": { "type": "string" } } },
            },
        })
    );
    call(&tools, create, json!({ "body": { "name": "Rex" } })).await.unwrap();
    let asked = api.last();
    assert_eq!((asked.method.as_str(), asked.body.as_str()), ("POST", r#"{"name":"Rex"}"#));
    assert_eq!(asked.header("content-type"), Some("application/json"));
}

#[tokio::test]
async fn what_authorises_a_request_is_seen_by_the_server_alone() {
    let api = Echo::start().await;
    let authorize = |operation: &ApiOperation| {
        assert_eq!(operation.id, "get/pets/{petId}");
        std::future::ready(Ok(Authorization {
            headers: vec![("authorization".into(), "Bearer s3cret".into())],
            query: vec![("key".into(), "k3y".into())],
        }))
    };
    let options = OpenApiOptions { authorize: Some(Arc::new(authorize)), ..at(&api.url) };
    let tools = import(&pet_store("3.1.0"), options).unwrap().tools;
    let output = call_output(&tools, "get_pets_petId", json!({ "petId": "1" })).await.unwrap();
    assert_eq!(api.last().header("authorization"), Some("Bearer s3cret"));
    assert_eq!(api.last().url, "/pets/1?key=k3y");
    assert!(!format!("{:?}", output.details).contains("k3y"));
}

#[tokio::test]
async fn redirects_large_answers_and_failures_are_told() {
    let api = Echo::start().await;
    let options = OpenApiOptions { max_bytes: Some(10), ..at(&api.url) };
    let tools = import(&pet_store("3.1.0"), options).unwrap().tools;
    let pet = async |id: &str| call_output(&tools, "get_pets_petId", json!({ "petId": id })).await;
    assert!(pet("away").await.unwrap_err().contains("redirects to another address"));
    assert!(text(&pet("large").await.unwrap()).ends_with("xxxxxxxxxx\n[cut after 10 bytes]"));
    assert!(pet("broken").await.unwrap().is_error);
    let nowhere = import(&pet_store("3.1.0"), at("http://127.0.0.1:1")).unwrap().tools;
    let told = call(&nowhere, "get_pets_petId", json!({ "petId": "secret" })).await.unwrap_err();
    assert!(told.contains("no answer from http://127.0.0.1:1") && !told.contains("secret"), "{told}");
}

#[tokio::test]
async fn no_value_leads_to_another_address_or_another_header() {
    let api = Echo::start().await;
    let tools = import(&pet_store("3.1.0"), at(&format!("{}/v1", api.url))).unwrap().tools;
    for id in ["..", ".", ""] {
        assert!(call(&tools, "get_pets_petId", json!({ "petId": id })).await.is_err(), "{id:?}");
    }
    call(&tools, "get_pets_petId", json!({ "petId": "../../admin" })).await.unwrap();
    assert_eq!(api.last().url, "/v1/pets/..%2F..%2Fadmin");
    call(&tools, "get_pets_petId", json!({ "petId": "%2e%2e" })).await.unwrap();
    assert_eq!(api.last().url, "/v1/pets/%252e%252e");
    let told = call(&tools, "listPets", json!({ "X-Trace": "a\r\nx-evil: 1" })).await.unwrap_err();
    assert!(told.contains("X-Trace goes into a header"), "{told}");
}

#[test]
fn a_document_does_not_decide_where_requests_go() {
    let document = pet_store("3.1.0");
    assert_eq!(import(&document, OpenApiOptions::default()).unwrap_err(), OpenApiError::NoOrigins);
    for odd in ["ftp://x", "https://user@x", "x", "https://a b", "https://a#b", "https://a:x"] {
        assert_eq!(import(&document, at(odd)).unwrap_err(), OpenApiError::Address(odd.to_owned()));
    }
    let from = |origin: &str| {
        import(&document, OpenApiOptions { origins: vec![origin.to_owned()], ..OpenApiOptions::default() }).unwrap()
    };
    let other = from("https://other.example.com");
    assert!(other.tools.is_empty());
    assert!(other.skipped.contains(&("listPets".into(), OpenApiError::NotAllowed("https://pets.example.com".into()))));
    assert_eq!(from("https://*.example.com").tools.len(), 4);
    assert!(from("https://*.ample.com").tools.is_empty());
    assert!(from("http://pets.example.com").tools.is_empty());
}

#[test]
fn filters_prefixes_and_approvals() {
    let import = |options| import(&pet_store("3.1.0"), options).unwrap().tools;
    let base = || at("https://a.test");
    assert_eq!(names(&import(OpenApiOptions { tags: vec!["write".into()], ..base() })), ["pets_create"]);
    let only = OpenApiOptions { operations: vec!["listPets".into()], prefix: "x_".into(), ..base() };
    assert_eq!(names(&import(only)), ["x_listPets"]);
    let asks =
        |tools: Vec<BuiltInTool>| tools.into_iter().filter(|(tool, _)| tool.needs_approval && !tool.repeatable).count();
    assert_eq!(asks(import(base())), 2);
    assert_eq!(asks(import(OpenApiOptions { without_approval: true, ..base() })), 0);
}

#[test]
fn odd_documents_circles_and_bombs() {
    for (document, error) in [
        (json!("text"), OpenApiError::NotADocument),
        (json!({ "swagger": "2.0" }), OpenApiError::Version("2.0".into())),
        (json!({ "openapi": "3.10" }), OpenApiError::Version("3.10".into())),
    ] {
        assert_eq!(import(&document, at("https://a.test")).unwrap_err(), error);
    }
    let odd = json!({
        "openapi": "3.1.0",
        "paths": {
            "/a": 5, "x": {}, "/b": { "get": "no", "post": { "parameters": [1, null, {}] } }, "/c": { "$ref": "other.yaml" },
        },
    });
    let imported = import(&odd, at("https://a.test")).unwrap();
    assert_eq!(names(&imported.tools), ["post_b"]);
    assert_eq!(imported.skipped, [("/c".to_owned(), OpenApiError::Outside("other.yaml".into()))]);

    let with = |schema: Value, schemas: Value| {
        let body = json!({ "content": { "application/json": { "schema": schema } } });
        let document = json!({
            "openapi": "3.1.0",
            "paths": { "/a": { "post": { "operationId": "a", "requestBody": body } } },
            "components": { "schemas": schemas },
        });
        import(&document, at("https://a.test")).unwrap()
    };
    let to = |name: &str| json!({ "$ref": format!("#/components/schemas/{name}") });
    let nowhere = OpenApiError::Nowhere("#/components/schemas/None".into());
    assert_eq!(with(to("None"), json!({})).skipped[0].1, nowhere);
    let mut bomb = json!({ "L20": {} });
    for level in 0..20 {
        let next = to(&format!("L{}", level + 1));
        bomb[format!("L{level}")] = json!({ "type": "object", "properties": { "a": next, "b": next } });
    }
    assert_eq!(with(to("L0"), bomb).skipped[0].1, OpenApiError::TooLarge(2_000));
    let circle = with(to("A"), json!({ "A": to("B"), "B": to("A") }));
    assert_eq!(schema(&circle.tools, "a")["properties"]["body"], json!({ "description": "another A" }));
}

#[test]
fn openapi_30_says_some_things_in_other_words() {
    let mut document = pet_store("3.0.3");
    let properties = &mut document["components"]["schemas"]["Pet"]["properties"];
    properties["name"] = json!({ "type": "string", "nullable": true, "enum": ["a"] });
    properties["age"] = json!({ "type": "number", "minimum": 0, "exclusiveMinimum": true });
    let tools = import(&document, OpenApiOptions { tags: vec!["write".into()], ..at("https://a.test") }).unwrap().tools;
    let body = schema(&tools, "pets_create")["properties"]["body"]["properties"].clone();
    assert_eq!(body["name"], json!({ "type": ["string", "null"], "enum": ["a", null] }));
    assert_eq!(body["age"], json!({ "type": "number", "exclusiveMinimum": 0 }));
}

#[tokio::test]
async fn every_style_of_parameter() {
    let api = Echo::start().await;
    let object = json!({ "G": 200, "R": 100 });
    for (place, style, value, wanted) in [
        ("query", json!({ "style": "form", "explode": true }), json!([1, 2]), "/?p=1&p=2"),
        ("query", json!({ "style": "form", "explode": false }), json!([1, 2]), "/?p=1,2"),
        ("query", json!({ "style": "spaceDelimited", "explode": false }), json!([1, 2]), "/?p=1%202"),
        ("query", json!({ "style": "pipeDelimited", "explode": false }), json!([1, 2]), "/?p=1%7C2"),
        ("query", json!({ "style": "form", "explode": true }), object.clone(), "/?G=200&R=100"),
        ("query", json!({ "style": "form", "explode": false }), object.clone(), "/?p=G,200,R,100"),
        ("query", json!({ "style": "deepObject", "explode": true }), object.clone(), "/?p[G]=200&p[R]=100"),
        ("query", json!({ "allowReserved": true }), json!("a/b:c&d"), "/?p=a/b:c%26d"),
        ("query", json!({ "content": { "application/json": {} } }), json!({ "a": 1 }), "/?p=%7B%22a%22%3A1%7D"),
        ("path", json!({}), json!([3, 4]), "/3,4"),
        ("path", json!({ "explode": true }), object.clone(), "/G=200,R=100"),
        ("path", json!({ "style": "label" }), json!([3, 4]), "/.3,4"),
        ("path", json!({ "style": "label", "explode": true }), json!([3, 4]), "/.3.4"),
        ("path", json!({ "style": "matrix" }), json!(5), "/;p=5"),
        ("path", json!({ "style": "matrix", "explode": true }), json!([3, 4]), "/;p=3;p=4"),
        ("path", json!({ "style": "matrix", "explode": true }), object.clone(), "/;G=200;R=100"),
    ] {
        let path = if place == "path" { "/{p}" } else { "/" };
        let mut parameter = json!({ "name": "p", "in": place, "required": true, "schema": {} });
        for (name, value) in style.as_object().unwrap() {
            parameter[name] = value.clone();
        }
        let operation = json!({ "operationId": "get", "parameters": [parameter] });
        let document = json!({ "openapi": "3.1.0", "paths": { path: { "get": operation } } });
        let tools = import(&document, at(&api.url)).unwrap().tools;
        call(&tools, "get", json!({ "p": value })).await.unwrap();
        assert_eq!(api.last().url, wanted, "{place} {style}");
    }
}
