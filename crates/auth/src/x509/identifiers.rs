//! Object identifiers: their dotted form, and the names of those that are attributes or extensions.

use std::fmt::Write;

/// An identifier, `1.2.840`. One with a number beyond 64 bits, or cut short, is its octets in hexadecimal digits.
pub(super) fn dotted(octets: &[u8]) -> String {
    numbers(octets).unwrap_or_else(|| {
        let octets = octets.iter().map(|octet| format!("{octet:02x}"));
        octets.collect::<Vec<_>>().join(" ")
    })
}

fn numbers(octets: &[u8]) -> Option<String> {
    // The last octet of a number has its first bit unset.
    if octets.last()? & 0x80 != 0 {
        return None;
    }
    let mut text = String::new();
    let mut number: u64 = 0;
    for octet in octets {
        number = number.checked_mul(0x80)? | u64::from(octet & 0x7f);
        if octet & 0x80 != 0 {
            continue;
        }
        // Writing to a string cannot fail.
        let _ = if text.is_empty() {
            // The first octets are two numbers, of which the first is at most 2.
            let first = (number / 40).min(2);
            write!(text, "{first}.{}", number - 40 * first)
        } else {
            write!(text, ".{number}")
        };
        number = 0;
    }
    Some(text)
}

/// The short name of an attribute of a subject or issuer, in lower case; the identifier itself if it has none here.
pub(super) fn attribute(octets: &[u8]) -> String {
    let dotted = dotted(octets);
    known(ATTRIBUTES, &dotted).map_or(dotted, str::to_ascii_lowercase)
}

/// The name of an extension; the identifier itself if it has none here.
pub(super) fn extension(octets: &[u8]) -> String {
    let dotted = dotted(octets);
    known(EXTENSIONS, &dotted).map_or(dotted, str::to_owned)
}

fn known(names: &[(&str, &'static str)], dotted: &str) -> Option<&'static str> {
    let found = names.iter().find(|(identifier, _)| *identifier == dotted);
    found.map(|(_, name)| *name)
}

/// As Autobahn and OpenSSL call them.
const ATTRIBUTES: &[(&str, &str)] = &[
    ("0.9.2342.19200300.100.1.1", "uid"),
    ("0.9.2342.19200300.100.1.25", "DC"),
    ("1.2.840.113549.1.9.1", "Email"),
    ("1.2.840.113549.1.9.2", "unstructuredName"),
    ("1.2.840.113549.1.9.3", "contentType"),
    ("1.2.840.113549.1.9.4", "id-messageDigest"),
    ("1.2.840.113549.1.9.5", "signing-time"),
    ("1.2.840.113549.1.9.7", "challengePassword"),
    ("1.2.840.113549.1.9.14", "extensionRequest"),
    ("1.2.840.113549.1.9.15", "smimeCapabilities"),
    ("1.2.840.113549.1.9.20", "friendlyName"),
    ("1.3.6.1.4.1.311.60.2.1.1", "msJurisdictionLocality"),
    ("1.3.6.1.4.1.311.60.2.1.2", "msJurisdictionStateOrProvince"),
    ("1.3.6.1.4.1.311.60.2.1.3", "msJurisdictionCountry"),
    ("2.5.4.0", "objectClass"),
    ("2.5.4.1", "aliasedEntryName"),
    ("2.5.4.2", "knowledgeInformation"),
    ("2.5.4.3", "CN"),
    ("2.5.4.4", "surname"),
    ("2.5.4.5", "serialNumber"),
    ("2.5.4.6", "C"),
    ("2.5.4.7", "L"),
    ("2.5.4.8", "ST"),
    ("2.5.4.9", "streetAddress"),
    ("2.5.4.10", "O"),
    ("2.5.4.11", "OU"),
    ("2.5.4.12", "title"),
    ("2.5.4.13", "description"),
    ("2.5.4.14", "searchGuide"),
    ("2.5.4.15", "businessCategory"),
    ("2.5.4.16", "postalAddress"),
    ("2.5.4.17", "postalCode"),
    ("2.5.4.41", "name"),
    ("2.5.4.42", "givenName"),
    ("2.5.4.43", "initials"),
    ("2.5.4.44", "generationQualifier"),
    ("2.5.4.45", "uniqueIdentifier"),
    ("2.5.4.46", "dnQualifier"),
];

const EXTENSIONS: &[(&str, &str)] = &[
    ("1.3.6.1.4.1.11129.2.4.2", "ctSCTList"),
    ("1.3.6.1.5.5.7.1.1", "authorityInfoAccess"),
    ("1.3.6.1.5.5.7.1.11", "subjectInfoAccess"),
    ("2.5.29.1", "oldAuthorityKeyIdentifier"),
    ("2.5.29.2", "oldKeyAttributes"),
    ("2.5.29.3", "oldCertificatePolicies"),
    ("2.5.29.4", "oldKeyUsage"),
    ("2.5.29.5", "oldPolicyMapping"),
    ("2.5.29.6", "oldSubtreesConstraint"),
    ("2.5.29.7", "oldSubjectAltNAme"),
    ("2.5.29.8", "oldIssuerAltNAme"),
    ("2.5.29.14", "subjectKeyIdentifier"),
    ("2.5.29.15", "keyUsage"),
    ("2.5.29.16", "privateKeyUsagePeriod"),
    ("2.5.29.17", "subjectAltName"),
    ("2.5.29.18", "issuerAltName"),
    ("2.5.29.19", "basicConstraints"),
    ("2.5.29.20", "crlNumber"),
    ("2.5.29.21", "reasonCode"),
    ("2.5.29.23", "holdInstructionCode"),
    ("2.5.29.24", "invalidityDate"),
    ("2.5.29.27", "deltaCRLIndicator"),
    ("2.5.29.28", "issuerDistributionPoint"),
    ("2.5.29.29", "issuer"),
    ("2.5.29.30", "nameConstraints"),
    ("2.5.29.31", "crlDistributionPoints"),
    ("2.5.29.32", "certificatePolicies"),
    ("2.5.29.33", "policyMappings"),
    ("2.5.29.35", "authorityKeyIdentifier"),
    ("2.5.29.36", "policyConstraints"),
    ("2.5.29.37", "extendedKeyUsage"),
    ("2.5.29.46", "freshestCRL"),
    ("2.5.29.54", "inhibitAnyPolicy"),
    ("2.16.840.1.113730.1.1", "nsCertType"),
    ("2.16.840.1.113730.1.2", "nsBaseURL"),
    ("2.16.840.1.113730.1.3", "nsRevocationURL"),
    ("2.16.840.1.113730.1.4", "nsCARevocationURL"),
    ("2.16.840.1.113730.1.5", "nsCACRLURL"),
    ("2.16.840.1.113730.1.6", "nsCACertURL"),
    ("2.16.840.1.113730.1.7", "nsRenewalURL"),
    ("2.16.840.1.113730.1.8", "nsCAPolicyURL"),
    ("2.16.840.1.113730.1.9", "nsHomepageURL"),
    ("2.16.840.1.113730.1.10", "nsEntityLogo"),
    ("2.16.840.1.113730.1.11", "nsUserPicture"),
    ("2.16.840.1.113730.1.12", "nsSSLServerName"),
    ("2.16.840.1.113730.1.13", "nsComment"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_dotted() {
        let check = |octets: &[u8], text: &str| assert_eq!(dotted(octets), text);
        check(&[0x55, 4, 3], "2.5.4.3");
        check(
            &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 1],
            "1.2.840.113549.1.9.1",
        );
        check(&[0x88, 0x37, 1], "2.999.1");
        check(&[0x27], "0.39");
        check(&[], "");
        check(&[0x55, 0x84], "55 84");
        check(
            &[[0xff; 10].as_slice(), &[1]].concat(),
            "ff ff ff ff ff ff ff ff ff ff 01",
        );
    }

    #[test]
    fn attributes_and_extensions_have_names() {
        assert_eq!(attribute(&[0x55, 4, 3]), "cn");
        assert_eq!(attribute(&[0x55, 4, 5]), "serialnumber");
        assert_eq!(attribute(&[0x55, 4, 99]), "2.5.4.99");
        assert_eq!(extension(&[0x55, 0x1d, 17]), "subjectAltName");
        assert_eq!(extension(&[0x55, 0x1d, 99]), "2.5.29.99");
    }
}
