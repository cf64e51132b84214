use super::HEADER_MISMATCH;
use crate::json::Tree;
use crate::jsonrpc::{Params, RpcError};
use crate::mcp::transport::streamable_http::mirrored::{MirroredParam, decode};

/// Whether the headers of a tool call say what its arguments say (2026-07-28, "Custom Headers from Tool Parameters").
///
/// # Errors
///
/// What is wrong, which is answered with 400.
pub fn fits_arguments(
    mirrored: &[MirroredParam],
    params: &Params,
    headers: &[(String, String)],
) -> Result<(), RpcError> {
    let arguments = params.member("arguments").and_then(|raw| Tree::read(raw.as_str()).ok()).unwrap_or(Tree::Null);
    for param in mirrored {
        let name = param.header_name();
        let header = headers.iter().find(|(candidate, _)| *candidate == name).map(|(_, value)| value);
        let is_right = match (param.value(&arguments), header) {
            (None, None) => true,
            (Some(value), Some(header)) => decode(header).is_some_and(|said| is_same(&said, &value)),
            _ => false,
        };
        if !is_right {
            let message = format!("the header {name} does not say what the argument of the tool says");
            return Err(RpcError::new(HEADER_MISMATCH, message));
        }
    }
    Ok(())
}

/// Whether two texts are the same, or the same number: 42 and 42.0 are.
fn is_same(said: &str, value: &str) -> bool {
    let number = |text: &str| text.parse::<f64>().ok().filter(|number| number.is_finite());
    said == value || number(said).is_some_and(|said| Some(said) == number(value))
}
