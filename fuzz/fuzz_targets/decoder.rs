//! Any bytes as an answer: the same events whole and a byte at a time, one last event, no panic.

use crablet::model::{Access, Assembler, Model, ModelEvent, ModelRequest, ResponseHead};

pub(crate) fn decode(model: &Model, bytes: &[u8]) {
    let Some((first, bytes)) = bytes.split_first() else { return };
    let status = if *first < 200 { 200 } else { 400 + u16::from(*first) };
    let whole = events(model, status, bytes.chunks(bytes.len().max(1)));
    assert_eq!(whole, events(model, status, bytes.chunks(1)));
    assert_eq!(whole.iter().filter(|event| event.is_last()).count(), 1);
    assert!(whole.last().is_some_and(ModelEvent::is_last));
    let mut assembler = Assembler::new();
    whole.iter().for_each(|event| assembler.push(event));
    assembler.finish();
}

pub(crate) fn events<'chunk>(
    model: &Model,
    status: u16,
    chunks: impl IntoIterator<Item = &'chunk [u8]>,
) -> Vec<ModelEvent> {
    let Access::Http { wire, .. } = &model.access else { return Vec::new() };
    let mut decoder = wire.decoder(&ModelRequest::new(model.clone()), &ResponseHead { status, headers: Vec::new() });
    let mut events = Vec::new();
    chunks.into_iter().for_each(|chunk| decoder.push(chunk, &mut events));
    decoder.finish(&mut events);
    events
}
