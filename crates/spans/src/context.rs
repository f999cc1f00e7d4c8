//! The context of a trace: the header `traceparent` of W3C Trace Context.

/// The context that a message brought, of a trace that is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Context {
    pub trace: u128,
    /// The sender's span.
    pub parent: u64,
}

/// Version, trace, parent and flags, with dashes between.
const LENGTH: usize = 2 + 1 + 32 + 1 + 16 + 1 + 2;
const SAMPLED: u64 = 1;

impl Context {
    /// Reads a context; `None` if it is none, or its trace is not recorded.
    pub fn sampled(parent: &str) -> Option<Self> {
        let bytes = parent.as_bytes();
        // A later version may have more fields.
        let is_whole = match bytes.len() {
            LENGTH => true,
            length => length > LENGTH && bytes[LENGTH] == b'-' && !parent.starts_with("00"),
        };
        if !is_whole || [2, 35, 52].iter().any(|at| bytes[*at] != b'-') {
            return None;
        }
        let version = hexadecimal(&bytes[..2])?;
        let trace = hexadecimal(&bytes[3..35])?;
        let parent = hexadecimal(&bytes[36..52])? as u64;
        let flags = hexadecimal(&bytes[53..55])? as u64;
        let is_valid = version != 0xff && trace != 0 && parent != 0;
        (is_valid && flags & SAMPLED != 0).then_some(Self { trace, parent })
    }
}

/// The number that lower-case digits write.
fn hexadecimal(digits: &[u8]) -> Option<u128> {
    digits.iter().try_fold(0, |number, digit| {
        let value = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        Some(number << 4 | u128::from(value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
    const PARENT: &str = "b7ad6b7169203331";

    fn read(version: &str, trace: &str, parent: &str, flags: &str) -> Option<Context> {
        Context::sampled(&format!("{version}-{trace}-{parent}-{flags}"))
    }

    #[test]
    fn a_sampled_context_is_read() {
        let expected = Context {
            trace: 0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c,
            parent: 0xb7ad_6b71_6920_3331,
        };
        for (version, flags) in [("00", "01"), ("00", "ff"), ("cc", "03"), ("cc", "01-more")] {
            let found = read(version, TRACE, PARENT, flags);
            assert_eq!(found, Some(expected), "{version} {flags}");
        }
    }

    #[test]
    fn what_is_not_sampled_or_no_context_is_none() {
        assert_eq!(read("00", TRACE, PARENT, "00"), None);
        assert_eq!(read("00", TRACE, PARENT, "02"), None);
        assert_eq!(read("ff", TRACE, PARENT, "01"), None);
        assert_eq!(read("00", TRACE, PARENT, "01-more"), None);
        assert_eq!(read("cc", TRACE, PARENT, "01more"), None);
        assert_eq!(read("00", &"0".repeat(32), PARENT, "01"), None);
        assert_eq!(read("00", TRACE, &"0".repeat(16), "01"), None);
        assert_eq!(read("00", &TRACE.to_uppercase(), PARENT, "01"), None);
        assert_eq!(read("00", &"é".repeat(16), PARENT, "01"), None);
        for short in ["", "00", "00-", "00-a-b-01", &"-".repeat(55)] {
            assert_eq!(Context::sampled(short), None, "{short}");
        }
    }
}
