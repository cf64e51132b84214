use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

use js_sys::{Array, ArrayBuffer, Function, IteratorNext, Promise, Uint8Array};
use wasm_bindgen::prelude::{Closure, wasm_bindgen};
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::{AbortController, Headers, ReadableStreamDefaultReader, RequestInit, RequestRedirect, Response};

use super::property;
use super::rejection::error_from_rejection;
use crate::error::{Error, ErrorKind};
use crate::host::Body;
use crate::host::origin::origin;
use crate::mcp::transport::OPAQUE_FAILURE;
use crate::model::{HttpRequest, ResponseHead, may_hold_key};

/// Sends a request and waits for the head of the answer. Dropping the future, or later the body, aborts the request.
pub(super) async fn fetch(fetch: Option<Function>, request: HttpRequest) -> Result<(ResponseHead, WebBody), Error> {
    let origin = origin(&request.url).to_owned();
    let unreachable = |thrown: JsValue| {
        let mut error = error_from_rejection(&thrown, ErrorKind::Network, &format!("could not reach {origin}"));
        error.redact(&private_parts(&request.url));
        with_cors_hint(error, &request)
    };
    let controller = AbortController::new().map_err(unreachable)?;
    let looks_at_redirects = looks_at_redirects(&request);
    let init = init(&request, &controller, looks_at_redirects).map_err(unreachable)?;
    let mut abort = AbortOnDrop(Some(controller));
    let mut url = request.url.clone();
    let mut redirects = 0;
    let response = loop {
        let answer = match &fetch {
            Some(fetch) => fetch.call2(&JsValue::UNDEFINED, &JsValue::from_str(&url), &init),
            None => global_fetch(&url, &init),
        };
        let answer = JsFuture::from(Promise::resolve(&answer.map_err(unreachable)?)).await.map_err(unreachable)?;
        let response: Response = answer.unchecked_into();
        let next = if looks_at_redirects { redirect_within_origin(&response, request.method, &url) } else { None };
        match next {
            Some(next) if redirects < MAX_REDIRECTS => {
                redirects += 1;
                url = next;
                if let Some(unread) = response.body() {
                    let _ = Promise::all_settled(&Array::of1(&unread.cancel()));
                }
            }
            _ => break response,
        }
    };
    if response.status() == 0 && property(&response, "type").as_string().as_deref() == Some("opaqueredirect") {
        return Err(Error::new(
            ErrorKind::Network,
            format!(
                "{origin} answered with a redirect, which is not followed with a key: use the address it redirects to"
            ),
        ));
    }
    let head = ResponseHead { status: response.status(), headers: headers(&response.headers()) };
    let pump = response.body().map(|stream| Pump::new(stream.get_reader().unchecked_into(), origin.clone()));
    if pump.is_none() {
        abort.forget();
    }
    Ok((head, WebBody { pump, abort }))
}

/// The bytes of an answer.
///
/// The reader is driven by two closures that live as long as the body, so that a chunk costs one promise of the
/// platform and none of crablet's own. At most [`READ_AHEAD`] bytes and one chunk are held: a slow consumer pauses the
/// connection. Chunks that arrived together are handed out together.
#[derive(Debug)]
pub struct WebBody {
    pump: Option<Rc<Pump>>,
    abort: AbortOnDrop,
}

impl Body for WebBody {
    async fn next(&mut self) -> Result<Option<Vec<u8>>, Error> {
        let Some(pump) = &self.pump else { return Ok(None) };
        poll_fn(|context| {
            let answer = pump.take(context.waker());
            pump.read_more();
            answer
        })
        .await
    }
}

impl Drop for WebBody {
    fn drop(&mut self) {
        if self.pump.as_ref().is_some_and(|pump| pump.close()) {
            self.abort.forget();
        }
    }
}

#[derive(Debug)]
struct Pump {
    reader: ReadableStreamDefaultReader,
    origin: String,
    state: RefCell<State>,
}

#[derive(Debug, Default)]
struct State {
    buffer: Vec<u8>,
    end: Option<Result<(), Error>>,
    is_reading: bool,
    waker: Option<Waker>,
    /// Held here, and so by themselves, until the last read has settled: a promise must find its closure alive.
    handlers: Option<Rc<Handlers>>,
}

#[derive(Debug)]
struct Handlers {
    chunk: Closure<dyn FnMut(JsValue)>,
    failure: Closure<dyn FnMut(JsValue)>,
}

impl Pump {
    fn new(reader: ReadableStreamDefaultReader, origin: String) -> Rc<Self> {
        let pump = Rc::new(Self { reader, origin, state: RefCell::default() });
        let chunk = {
            let pump = Rc::clone(&pump);
            Closure::new(move |result: JsValue| pump.settled(Ok(result)))
        };
        let failure = {
            let pump = Rc::clone(&pump);
            Closure::new(move |thrown: JsValue| pump.settled(Err(thrown)))
        };
        pump.state.borrow_mut().handlers = Some(Rc::new(Handlers { chunk, failure }));
        pump
    }

    fn take(&self, waker: &Waker) -> Poll<Result<Option<Vec<u8>>, Error>> {
        let mut state = self.state.borrow_mut();
        if !state.buffer.is_empty() {
            return Poll::Ready(Ok(Some(std::mem::take(&mut state.buffer))));
        }
        match state.end.clone() {
            Some(end) => {
                state.end = Some(Ok(()));
                Poll::Ready(end.map(|()| None))
            }
            None => {
                state.waker = Some(waker.clone());
                Poll::Pending
            }
        }
    }

    /// Starts a read unless one is under way or enough is held. No borrow is held while the stream's own code runs.
    fn read_more(&self) {
        let handlers = {
            let mut state = self.state.borrow_mut();
            if state.is_reading || state.end.is_some() || state.buffer.len() >= READ_AHEAD {
                return;
            }
            state.is_reading = true;
            state.handlers.clone()
        };
        if let Some(handlers) = handlers {
            let _ = self.reader.read().then2(&handlers.chunk, &handlers.failure);
        }
    }

    fn settled(&self, outcome: Result<JsValue, JsValue>) {
        let bytes = match outcome {
            Ok(result) => {
                let result: IteratorNext = result.unchecked_into();
                if result.done() { Ok(None) } else { bytes(&result.value()).map(Some) }
            }
            Err(thrown) => Err(error_from_rejection(
                &thrown,
                ErrorKind::Network,
                &format!("the connection to {} broke before the answer was complete", self.origin),
            )),
        };
        let mut state = self.state.borrow_mut();
        state.is_reading = false;
        match bytes {
            // Closed while this read was under way: nothing is waiting, and the closures are no longer needed.
            _ if state.end.is_some() => {}
            Ok(Some(bytes)) if state.buffer.is_empty() => state.buffer = bytes,
            Ok(Some(bytes)) => state.buffer.extend(bytes),
            Ok(None) => state.end = Some(Ok(())),
            Err(error) => state.end = Some(Err(error)),
        }
        let handlers = if state.end.is_some() { state.handlers.take() } else { None };
        let waker = state.waker.take();
        drop(state);
        drop(handlers);
        self.read_more();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Whether the answer was at its end already.
    fn close(&self) -> bool {
        let (handlers, had_ended) = {
            let mut state = self.state.borrow_mut();
            let had_ended = state.end.replace(Ok(())).is_some();
            state.buffer = Vec::new();
            state.waker = None;
            (if state.is_reading { None } else { state.handlers.take() }, had_ended)
        };
        drop(handlers);
        if !had_ended {
            // Aborting the request closes the connection; a stream of the caller's own `fetch` may not know of the
            // signal. The rejection that follows is of no interest, and `allSettled` is what takes it.
            let _ = Promise::all_settled(&Array::of1(&self.reader.cancel()));
        }
        had_ended
    }
}

/// Aborts a request that is given up before its end. After that there is nothing to abort, and doing it all the same would
/// make an exception with its stack trace for every request.
#[derive(Debug)]
struct AbortOnDrop(Option<AbortController>);

impl AbortOnDrop {
    fn forget(&mut self) {
        self.0 = None;
    }
}

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        if let Some(controller) = &self.0 {
            controller.abort();
        }
    }
}

fn init(request: &HttpRequest, controller: &AbortController, looks_at_redirects: bool) -> Result<RequestInit, JsValue> {
    let headers = Headers::new()?;
    for (name, value) in &request.headers {
        // The platform's own error would show the value, which may be a key.
        headers.append(name, value).map_err(|_| format!("the header {name} cannot be sent"))?;
    }
    let init = RequestInit::new();
    init.set_method(request.method);
    init.set_headers(&headers);
    init.set_signal(Some(&controller.signal()));
    if !request.body.is_empty() {
        // Text costs the platforms less than bytes, which they copy twice and count among what a collection is due for.
        match str::from_utf8(&request.body) {
            Ok(text) => init.set_body(&JsValue::from_str(text)),
            Err(_) => init.set_body(&Uint8Array::from(request.body.as_slice())),
        }
    }
    if looks_at_redirects {
        init.set_redirect(RequestRedirect::Manual);
    }
    Ok(init)
}

/// Whether redirects are looked at here and not followed by the platform. Outside of pages always, as natively. In a page, which
/// does not see where one leads, those that would carry a key to another origin: forms are those of OAuth, which hold codes,
/// refresh tokens and secrets, and `authorization` is what a page itself leaves out there.
fn looks_at_redirects(request: &HttpRequest) -> bool {
    let is_form = request.header("content-type") == Some("application/x-www-form-urlencoded");
    !is_page() || is_form || request.headers.iter().any(|(name, _)| name != "authorization" && may_hold_key(name))
}

/// Where a redirect leads that keeps method and body and stays within the origin. Pages do not see it.
fn redirect_within_origin(response: &Response, method: &str, from: &str) -> Option<String> {
    let keeps_request = match response.status() {
        307 | 308 => true,
        301..=303 => method == "GET",
        _ => false,
    };
    let location = response.headers().get("location").ok().flatten().filter(|_| keeps_request)?;
    let (from, to) = (Url::new(from, None).ok()?, Url::new(&location, Some(from)).ok()?);
    (from.origin() == to.origin()).then(|| to.href())
}

/// Documents and workers of browsers have an address of their own.
fn is_page() -> bool {
    property(&js_sys::global(), "location").is_object()
}

fn headers(headers: &Headers) -> Vec<(String, String)> {
    let pair = |entry: JsValue| {
        let entry: Array = entry.unchecked_into();
        Some((entry.get(0).as_string()?, entry.get(1).as_string()?))
    };
    Array::from(headers).iter().filter_map(pair).collect()
}

fn bytes(value: &JsValue) -> Result<Vec<u8>, Error> {
    if ArrayBuffer::is_view(value) {
        return Ok(value.unchecked_ref::<Uint8Array>().to_vec());
    }
    value.as_string().map(String::into_bytes).ok_or_else(|| {
        Error::new(ErrorKind::MalformedStream, "the body of the answer gave a chunk that is neither bytes nor text")
    })
}

/// A page cannot see why a request failed, and CORS is the usual reason.
fn with_cors_hint(error: Error, request: &HttpRequest) -> Error {
    if error.kind() != ErrorKind::Network || !is_page() {
        return error;
    }
    let names: Vec<&str> = request
        .headers
        .iter()
        .map(|(name, _)| name.as_str())
        .filter(|name| !matches!(*name, "accept" | "content-type"))
        .collect();
    let headers = match names.as_slice() {
        [] => String::new(),
        names => format!(" and the request headers {}", names.join(", ")),
    };
    Error::new(
        ErrorKind::Network,
        format!(
            "{}. Either the server is not running, or it does not allow this page (CORS): it must allow the page's origin{headers}",
            error.message().trim_end_matches('.')
        ),
    )
    .with_code(OPAQUE_FAILURE)
}

/// What platforms repeat of an address that they cannot fetch and that may hold keys: user name and password, path and
/// query.
fn private_parts(url: &str) -> Vec<String> {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let user = authority.rfind('@').map(|at| authority.get(..at).unwrap_or_default());
    let query = path.split_once('?').map(|(_, query)| query);
    let parts = [Some(path), query, user].into_iter().flatten();
    parts.filter(|part| part.len() >= SHORTEST_PART).map(str::to_owned).collect()
}

/// What is shorter, in bytes, is left in errors: it may be part of a word.
const SHORTEST_PART: usize = 4;

/// How far a body is read ahead of its consumer: about one read of the platform.
const READ_AHEAD: usize = 64 * 1024;

/// The most redirects of one request: as natively.
const MAX_REDIRECTS: usize = 5;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_name = fetch, catch)]
    fn global_fetch(url: &str, init: &RequestInit) -> Result<JsValue, JsValue>;

    #[wasm_bindgen(js_name = URL)]
    type Url;

    #[wasm_bindgen(constructor, js_class = "URL", catch)]
    fn new(url: &str, base: Option<&str>) -> Result<Url, JsValue>;

    #[wasm_bindgen(method, getter, js_class = "URL")]
    fn origin(this: &Url) -> String;

    #[wasm_bindgen(method, getter, js_class = "URL")]
    fn href(this: &Url) -> String;
}
