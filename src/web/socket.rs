use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

use js_sys::{Array, ArrayBuffer, Function, JsString, Reflect, Uint8Array};
use wasm_bindgen::prelude::Closure;
use wasm_bindgen::{JsCast, JsValue};
use web_sys::{BinaryType, CloseEvent, MessageEvent, WebSocket};

use super::rejection::error_from_rejection;
use crate::error::{Error, ErrorKind};
use crate::host::Socket;
use crate::host::origin::origin;

/// Opens a WebSocket and waits until it is open. Dropping the future, or later the socket, closes it.
pub(super) async fn connect(
    class: Option<Function>,
    url: String,
    protocols: Vec<String>,
) -> Result<WebSocketConnection, Error> {
    let origin = origin(&url).to_owned();
    let protocols: Array = protocols.into_iter().map(JsString::from).collect();
    let opened = match class {
        Some(class) => {
            Reflect::construct(&class, &Array::of2(&JsValue::from_str(&url), &protocols)).map(JsCast::unchecked_into)
        }
        None => WebSocket::new_with_str_sequence(&url, &protocols),
    };
    let socket: WebSocket = opened.map_err(|thrown| {
        error_from_rejection(&thrown, ErrorKind::Network, &format!("could not open a WebSocket to {origin}"))
    })?;
    socket.set_binary_type(BinaryType::Arraybuffer);
    let state = Rc::new(RefCell::new(State::default()));
    let handlers = Handlers::attach(&socket, &state);
    let mut connection = WebSocketConnection { socket, origin, protocol: String::new(), state, _handlers: handlers };
    poll_fn(|context| {
        let mut state = connection.state.borrow_mut();
        if state.is_open {
            return Poll::Ready(Ok(()));
        }
        if let Some((code, reason)) = &state.close {
            let detail = if reason.is_empty() { format!("code {code}") } else { format!("code {code}: {reason}") };
            return Poll::Ready(Err(Error::new(
                ErrorKind::Network,
                format!(
                    "could not open a WebSocket to {} ({detail}): the server is not running, or refused this origin or token",
                    connection.origin
                ),
            )));
        }
        state.waker = Some(context.waker().clone());
        Poll::Pending
    })
    .await?;
    connection.protocol = connection.socket.protocol();
    Ok(connection)
}

/// An open WebSocket of the platform.
#[derive(Debug)]
pub struct WebSocketConnection {
    socket: WebSocket,
    origin: String,
    protocol: String,
    state: Rc<RefCell<State>>,
    _handlers: Handlers,
}

impl Socket for WebSocketConnection {
    fn protocol(&self) -> &str {
        &self.protocol
    }

    async fn send(&mut self, frame: Vec<u8>) -> Result<(), Error> {
        let closed = |detail: &str| {
            Error::new(ErrorKind::ConnectionClosed, format!("the WebSocket to {} {detail}", self.origin))
        };
        if self.socket.ready_state() != WebSocket::OPEN {
            return Err(closed("is closed"));
        }
        if self.socket.buffered_amount() > MAX_BUFFERED {
            return Err(closed("does not take what is sent; too much is waiting already"));
        }
        // A copy: what is not the platform's own may read the bytes later.
        self.socket.send_with_js_u8_array(&Uint8Array::from(frame.as_slice())).map_err(|_| closed("could not send"))
    }

    async fn next(&mut self) -> Result<Option<Vec<u8>>, Error> {
        poll_fn(|context| {
            let mut state = self.state.borrow_mut();
            if let Some(frame) = state.frames.pop_front() {
                state.waiting -= frame.len();
                return Poll::Ready(Ok(Some(frame)));
            }
            if let Some(error) = state.failure.take() {
                return Poll::Ready(Err(error));
            }
            if state.close.is_some() {
                return Poll::Ready(Ok(None));
            }
            state.waker = Some(context.waker().clone());
            Poll::Pending
        })
        .await
    }

    fn close_reason(&self) -> Option<(u16, String)> {
        self.state.borrow().close.clone()
    }
}

impl Drop for WebSocketConnection {
    fn drop(&mut self) {
        self.socket.set_onopen(None);
        self.socket.set_onmessage(None);
        self.socket.set_onclose(None);
        // It throws only for a bad code, and there is none.
        let _ = self.socket.close();
    }
}

#[derive(Debug, Default)]
struct State {
    is_open: bool,
    frames: VecDeque<Vec<u8>>,
    waiting: usize,
    close: Option<(u16, String)>,
    failure: Option<Error>,
    waker: Option<Waker>,
}

impl State {
    fn wake(state: &RefCell<Self>) {
        let waker = state.borrow_mut().waker.take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn receive(&mut self, frame: Vec<u8>) -> Result<(), ()> {
        self.waiting += frame.len();
        if self.waiting > MAX_WAITING {
            self.failure = Some(Error::new(
                ErrorKind::ConnectionClosed,
                format!("more than {MAX_WAITING} bytes arrived over a WebSocket without being read; it was closed"),
            ));
            return Err(());
        }
        self.frames.push_back(frame);
        Ok(())
    }
}

/// The event handlers, kept alive as long as the socket.
#[derive(Debug)]
struct Handlers {
    _open: Closure<dyn FnMut()>,
    _message: Closure<dyn FnMut(MessageEvent)>,
    _close: Closure<dyn FnMut(CloseEvent)>,
}

impl Handlers {
    fn attach(socket: &WebSocket, state: &Rc<RefCell<State>>) -> Self {
        let open = {
            let state = Rc::clone(state);
            Closure::new(move || {
                state.borrow_mut().is_open = true;
                State::wake(&state);
            })
        };
        let message = {
            let (state, socket) = (Rc::clone(state), socket.clone());
            Closure::new(move |event: MessageEvent| {
                let Some(frame) = frame(&event.data()) else { return };
                let received = state.borrow_mut().receive(frame);
                if received.is_err() {
                    let _ = socket.close();
                }
                State::wake(&state);
            })
        };
        let close = {
            let state = Rc::clone(state);
            Closure::new(move |event: CloseEvent| {
                state.borrow_mut().close = Some((event.code(), event.reason()));
                State::wake(&state);
            })
        };
        // `close` follows and says more, but an `error` without a handler ends Node with the package ws.
        IGNORED.with(|ignored| socket.set_onerror(Some(callback(ignored))));
        socket.set_onopen(Some(callback(&open)));
        socket.set_onmessage(Some(callback(&message)));
        socket.set_onclose(Some(callback(&close)));
        Self { _open: open, _message: message, _close: close }
    }
}

thread_local! {
    /// The handler of errors. Never dropped: a socket that is closed before it was open tells of an error afterwards.
    static IGNORED: Closure<dyn Fn()> = Closure::new(|| {});
}

fn callback<T: ?Sized>(closure: &Closure<T>) -> &js_sys::Function {
    closure.as_ref().unchecked_ref()
}

fn frame(data: &JsValue) -> Option<Vec<u8>> {
    match data.as_string() {
        Some(text) => Some(text.into_bytes()),
        None => data.dyn_ref::<ArrayBuffer>().map(|buffer| Uint8Array::new(buffer).to_vec()),
    }
}

/// Bytes that may wait to be sent: far above any message, and far below what a page can hold.
const MAX_BUFFERED: u32 = 64 * 1024 * 1024;

/// Bytes that may wait to be read. The platform gives no way to pause a WebSocket.
const MAX_WAITING: usize = 64 * 1024 * 1024;
