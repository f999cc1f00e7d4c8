//! Which cases a run measures.

use crosstie_wamp::Serializer;

use super::case::Case;
use super::target::Url;
use crate::error::BenchError;

/// The cases to measure: those named, or the usual ones, or what a URL speaks.
pub(crate) fn definite(
    named: &[Case],
    serializer: Option<Serializer>,
    url: Option<&Url>,
    usual: &[Case],
) -> Result<Vec<Case>, BenchError> {
    let Some(url) = url else {
        let mut cases = match named.is_empty() {
            true => usual.to_vec(),
            false => named.to_vec(),
        };
        if let Some(serializer) = serializer {
            cases
                .iter_mut()
                .for_each(|case| case.serializer = serializer);
        }
        return Ok(cases);
    };
    let usual = match url.websocket {
        true => Serializer::Json,
        false => Serializer::MsgPack,
    };
    let url_case = url.case(serializer.unwrap_or(usual), false);
    if named.is_empty() {
        return Ok(vec![url_case]);
    }
    let stranger = named.iter().find(|case| {
        case.socket != url_case.socket
            || case.transport.is_websocket() != url_case.transport.is_websocket()
    });
    match stranger {
        Some(case) => Err(BenchError::Options(format!(
            "{case} is not what that URL speaks"
        ))),
        None => Ok(named.to_vec()),
    }
}

/// As the option of that name has it.
pub(crate) fn serializer(name: &str) -> Result<Serializer, String> {
    Serializer::from_name(name).ok_or_else(|| "expected json, msgpack or cbor".to_owned())
}
